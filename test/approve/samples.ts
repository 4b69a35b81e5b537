/** Changes to look at: as previews of real tools show them. */
import type { ShownCall, ShownObject } from '../../schemas/approvals.js'
import type { TouchedGuardrail } from '../../schemas/guardrails.js'

const label = (id: number, key: string, value: string) => ({ label: { href: `/orgs/1/labels/${id}`, key, value } })
const [WEB, PAY, PROD, DEV] = [
  label(3, 'role', 'web'),
  label(11, 'app', 'payments'),
  label(21, 'env', 'production'),
  label(22, 'env', 'development'),
]
const HTTPS = { href: '/orgs/1/sec_policy/draft/services/31', name: 'HTTPS' }

const rules: ShownObject[] = [
  {
    kind: 'allow rule',
    name: 'web → payments, HTTPS',
    href: '/orgs/1/sec_policy/draft/rule_sets/4/sec_rules/17',
    change: 'update',
    effect: 'widening',
    warnings: ['An allow rule names at least half of all IPv4 addresses, or the IPv6 internet (any_address).'],
    fields: [
      {
        path: 'consumers',
        before: [WEB],
        after: [WEB, { ip_list: { href: '/orgs/1/sec_policy/draft/ip_lists/1', name: 'Any (0.0.0.0/0 and ::/0)' } }],
      },
    ],
  },
  {
    kind: 'allow rule',
    href: '/orgs/1/sec_policy/draft/rule_sets/4/sec_rules/19',
    change: 'create',
    effect: 'widening',
    fields: [
      { path: 'providers', after: [{ actors: 'ams' }] },
      { path: 'consumers', after: [PAY] },
      { path: 'ingress_services', after: [HTTPS, { port: 8443, proto: 6 }, { port: 5000, to_port: 5010, proto: 17 }] },
      { path: 'enabled', after: true },
    ],
  },
  {
    kind: 'deny rule',
    href: '/orgs/1/sec_policy/draft/rule_sets/4/deny_rules/2',
    change: 'delete',
    effect: 'widening',
    fields: [{ path: 'providers', before: [PAY] }],
  },
]

const names = ['DNS and NTP', 'Backup', 'Monitoring', 'Active Directory', 'Patching', 'Log collection']

export const WIDE: ShownCall = {
  summary:
    'Makes 11 pending changes active, so that VENs enforce them: 1 rule set updated, 1 rule set deleted, 6 services updated, 1 IP list created, 2 label groups updated. Among them: "Payments | Production", "Legacy FTP", "DNS and NTP", "Backup", "Monitoring". Not named in the call, but required by what is: one of these. 2 of these may permit more traffic than today. The PCE counts about 240 managed workloads affected.',
  effect: 'mixed',
  warnings: [
    'Payments | Production: an allow rule names at least half of all IPv4 addresses, or the IPv6 internet.',
    'Two of these changes may permit more traffic than today.',
  ],
  objects: [
    {
      kind: 'rule set',
      name: 'Payments | Production',
      href: '/orgs/1/sec_policy/draft/rule_sets/4',
      change: 'update',
      effect: 'widening',
      updated_at: '2026-11-24T16:40:00.000Z',
      updated_by: 'bob@example.com',
      fields: [
        { path: 'description', before: 'Payments, in production only', after: 'Payments' },
        {
          path: 'scopes',
          before: [[PAY, PROD]],
          after: [
            [PAY, PROD],
            [PAY, DEV],
          ],
        },
      ],
      parts: rules,
    },
    {
      kind: 'rule set',
      name: 'Legacy FTP',
      href: '/orgs/1/sec_policy/draft/rule_sets/9',
      change: 'delete',
      effect: 'narrowing',
      updated_at: '2026-11-23T08:05:00.000Z',
      updated_by: 'carol@example.com',
      fields: [{ path: 'enabled', before: true }],
    },
    ...names.map((name, at): ShownObject => ({
      kind: 'service',
      name,
      href: `/orgs/1/sec_policy/draft/services/${50 + at}`,
      change: 'update',
      effect: at === 1 ? 'undecided' : 'neutral',
      ...(at === 1 && { effect_note: 'Undecided because of rules for processes.' }),
      updated_at: '2026-11-22T11:00:00.000Z',
      updated_by: 'carol@example.com',
      fields: [{ path: 'description', before: '', after: `${name}, reviewed in November` }],
    })),
    {
      kind: 'IP list',
      name: 'Partners in Oslo',
      href: '/orgs/1/sec_policy/draft/ip_lists/77',
      change: 'create',
      effect: 'neutral',
      fields: [
        {
          path: 'ip_ranges',
          after: [{ from_ip: '203.0.113.0', to_ip: '203.0.113.255' }, { from_ip: '2001:db8::/48' }],
        },
        { path: 'fqdns', after: [{ fqdn: '*.partners.example.com' }] },
      ],
    },
    ...['Crown jewels', 'Regulated'].map((name, at): ShownObject => ({
      kind: 'label group',
      name,
      href: `/orgs/1/sec_policy/draft/label_groups/${at}`,
      change: 'update',
      effect: 'neutral',
      fields: [],
      note: 'The PCE did not let this object be read in one of its versions, so its differences are not shown.',
    })),
  ],
  objects_total: 11,
  workloads_affected: 240,
  is_rough: true,
  dependencies: [
    {
      kind: 'IP list',
      name: 'Partners in Oslo',
      href: '/orgs/1/sec_policy/draft/ip_lists/77',
      required_by: ['Payments | Production'],
    },
  ],
  not_included: {
    total: 3,
    objects: [
      { kind: 'rule set', name: 'Half-finished', href: '/orgs/1/sec_policy/draft/rule_sets/12', change: 'create' },
      { kind: 'service', name: 'SSH', href: '/orgs/1/sec_policy/draft/services/2', change: 'update' },
    ],
  },
  draft: {
    first_edit: '2026-11-22T11:00:00.000Z',
    last_edit: '2026-11-24T16:40:00.000Z',
    by: ['bob@example.com', 'carol@example.com'],
  },
}

/** What a tool that has no objects to show says: of its dry run. */
export const FACTS: ShownCall = {
  summary: 'Would delete the label "env: staging" and take it from 3 workloads.',
  warnings: ['Three workloads lose the label, and rules that name it no longer reach them.'],
  objects: [],
  objects_total: 0,
  facts: {
    requests_total: 1,
    requests: [{ method: 'DELETE', path: '/orgs/1/labels/23', body: null }],
    previous: { key: 'env', value: 'staging' },
  },
}

/** What a call touches that affects too many workloads in a freeze. */
export const GUARDRAILS: readonly TouchedGuardrail[] = [
  {
    guardrail: 'frozen',
    message: 'Changes that take effect at once are frozen.',
    needs_two_persons: true,
    window: 'Fri 18:00 - Mon 06:00 Europe/Berlin',
    frozen_until: '2026-11-30T05:00:00.000Z',
  },
  {
    guardrail: 'too_many_workloads',
    message: 'This affects 1,200 workloads.',
    needs_two_persons: true,
    workloads_affected: 1200,
    max_workloads_affected: 50,
  },
]
