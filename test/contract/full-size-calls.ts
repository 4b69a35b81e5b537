/**
 * The calls of full-size.long.ts, in an order in which each finds what it needs. Every tool is in one of the two tables
 * here. A tool that writes is called twice: the first call is asked for a confirmation, and the second has it.
 */
import type { Json } from '../edge/support/call-tool.js'
import type { PolicySize } from './huge-policy.js'

export type Estate = 'fits' | 'full'

/** An error of a tool, and what its answer says; without an error, what an answer says that is not all known. */
interface Expected {
  error?: string
  says: RegExp
}

interface Call extends Partial<Record<Estate, Expected>> {
  tool: string
  /** The only estate on which the tool is called; both if absent. */
  only?: Estate
  /** True for a call that takes many seconds at work that it shares with other tools: only with `FULL_SIZE=all`. */
  costly?: boolean
  args: object | ((answers: Record<string, Json>) => object)
}

const SIZE = { rules: 5000, names: 5000, changed: 2, oneChangedIn: 2500, workloads: 300, isHalved: true }

/**
 * The IP lists of `fits` are almost as much as a PCE's answer may be, so that tools judge them; those of `full` are almost
 * five times as much, so that tools do without them, or refuse.
 */
export const ESTATES: Record<Estate, PolicySize> = {
  fits: { ...SIZE, lists: 85, long: 85, flows: 20 },
  full: { ...SIZE, lists: 400, long: 400, flows: 3 },
}

/** The tools whose work cannot grow with the policy, with the reasons. */
export const NOT_GROWING: Record<string, string> = {
  'check-pce-connection': 'asks a PCE for its release and its health',
  'check-pce-credentials-status': 'reads the record of its caller',
  'delete-pce-credentials': 'deletes the record of its caller',
  'get-compatibility-reports': 'reads workloads and reports of VENs, and no policy',
  'get-server-changelog': 'reads a file of the package',
  'request-ven-support-reports': 'reads VENs, and no policy',
  'upgrade-vens': 'reads VENs and releases, and no policy',
  'register-pce-credentials':
    'writes the record of its caller, and asks the PCE for one label; both estates begin with it',
}

const TOO_LARGE: Expected = { error: 'pce_answer_too_large', says: /the answer is larger than 32 MiB/ }

const ENDS = { providers: ['ams'], ingress_services: [{ port: 1, proto: 'tcp' }], unscoped_consumers: true }
const RULE = { ...ENDS, consumers: ['iplist:list-0001'] }
const RULE_HREF = '/orgs/1/sec_policy/draft/rule_sets/11/sec_rules/111'
const PAYMENTS = { app_name: 'payments', env_name: 'prod' }
const WEEK = { lookback_days: 7 }

export const CALLS: Call[] = [
  { tool: 'get-iplists', args: {} },
  { tool: 'get-ip-list-matches', args: { fqdn: 'host-8.list-2.example.com' } },
  { tool: 'get-rulesets', args: {} },
  { tool: 'get-services', args: {} },
  { tool: 'get-labels', args: { usage: true } },
  { tool: 'get-label-groups', args: {} },
  { tool: 'get-virtual-services', args: {} },
  { tool: 'get-workloads', args: {} },
  { tool: 'get-workload-enforcement-status', args: {} },
  { tool: 'get-vens', args: {} },
  { tool: 'ven-health-report', args: {} },
  { tool: 'get-events', args: {} },
  { tool: 'get-pairing-profiles', args: {} },
  { tool: 'get-container-clusters', args: {} },
  { tool: 'get-kubernetes-workloads', args: {} },
  {
    tool: 'get-container-workload-profiles',
    args: ({
      'get-container-clusters': {
        container_clusters: [one],
      },
    }) => ({ cluster_href: one?.href }),
  },
  { tool: 'list-policy-versions', args: {} },
  { tool: 'find-rules', args: { rule_type: 'allow' } },
  {
    tool: 'find-redundant-rules',
    args: {},
    full: { says: /\d+ IP lists could not be read, and 5000 rules name such a list: .* is not known/ },
  },
  { tool: 'find-unused', args: {}, full: TOO_LARGE },
  { tool: 'find-unlabelled-workloads', args: { missing: ['role'] } },
  { tool: 'who-changed', args: { kind: 'ip_list', name: 'list-0001' } },
  { tool: 'compare-draft-active', only: 'fits', args: {} },
  { tool: 'compare-policy-versions', costly: true, args: { from: 1, to: 'draft' }, full: TOO_LARGE },
  {
    tool: 'explain-flow',
    only: 'fits',
    costly: true,
    args: { source: 'app=ordering', destination: 'iplist:list-0001', port: 1001, proto: 'tcp' },
  },
  {
    tool: 'suggest-rule',
    only: 'fits',
    costly: true,
    args: { source: 'app=ordering', destination: 'app=payments', port: 8443, proto: 'tcp' },
  },
  { tool: 'get-traffic-flows', only: 'fits', args: { ...WEEK, group_by: ['source_app', 'port', 'policy'] } },
  { tool: 'get-traffic-flows-summary', only: 'fits', args: WEEK },
  { tool: 'compare-traffic', only: 'fits', costly: true, args: {} },
  { tool: 'exposure-report', only: 'fits', costly: true, args: WEEK },
  { tool: 'resolve-policy', only: 'fits', costly: true, args: { application: 'payments|prod' } },
  { tool: 'review-draft', only: 'fits', costly: true, args: {} },
  { tool: 'retire-expired', only: 'fits', costly: true, args: { dry_run: true } },
  { tool: 'plan-port-closure', only: 'fits', costly: true, args: { services: ['PostgreSQL'], ...WEEK, dry_run: true } },
  { tool: 'identity-reach', only: 'fits', costly: true, args: WEEK },
  { tool: 'find-duplicate-workloads', only: 'fits', args: WEEK },
  { tool: 'find-stale-vens', only: 'fits', args: WEEK },
  { tool: 'find-listeners', only: 'fits', args: { labels: ['app=payments'], ...WEEK } },
  { tool: 'discover-process-egress', only: 'fits', args: WEEK },
  { tool: 'find-unmanaged-traffic', only: 'fits', args: WEEK },
  { tool: 'identify-infrastructure-services', only: 'fits', args: WEEK },
  { tool: 'detect-lateral-movement-paths', only: 'fits', costly: true, args: { ...PAYMENTS, ...WEEK } },
  { tool: 'compliance-check', only: 'fits', costly: true, args: { framework: 'pci-dss', ...PAYMENTS, ...WEEK } },
  { tool: 'enforcement-readiness', only: 'fits', costly: true, args: { ...PAYMENTS, ...WEEK } },
  { tool: 'get-policy-coverage-report', only: 'fits', costly: true, args: { ...PAYMENTS, ...WEEK } },
  { tool: 'preview-enforcement-change', only: 'fits', args: { ...PAYMENTS, ...WEEK, enforcement_mode: 'full' } },

  { tool: 'create-label', args: { key: 'role', value: 'new' } },
  { tool: 'update-label', args: { key: 'role', value: 'new', new_value: 'newer' } },
  { tool: 'create-label-group', args: { name: 'new', key: 'role' } },
  { tool: 'update-label-group', args: { name: 'new', description: 'x' } },
  { tool: 'delete-label-group', args: { name: 'new' } },
  { tool: 'create-label-dimension', args: { key: 'bu', display_name: 'Unit' } },
  { tool: 'update-label-dimension', args: { key: 'bu', display_name: 'Business unit' } },
  { tool: 'delete-label-dimension', only: 'fits', costly: true, args: { key: 'bu' } },
  { tool: 'create-virtual-service', args: { name: 'new', service_ports: [{ port: 1001, proto: 'tcp' }] } },
  { tool: 'update-virtual-service', args: { name: 'new', description: 'x' } },
  {
    tool: 'bind-workloads',
    only: 'fits',
    costly: true,
    args: { virtual_service: 'new', workloads: ['host-5'], unbind: true },
  },
  { tool: 'delete-virtual-service', args: { name: 'new' } },
  { tool: 'create-pairing-profile', args: { name: 'new' } },
  { tool: 'update-pairing-profile', args: { name: 'new', description: 'x' } },
  { tool: 'create-pairing-key', args: { name: 'new' } },
  { tool: 'delete-pairing-keys', args: { name: 'new' } },
  { tool: 'delete-pairing-profile', args: { name: 'new' } },
  { tool: 'create-workload', args: { name: 'new', ip_addresses: ['192.0.2.1'] } },
  {
    tool: 'import-workloads',
    only: 'fits',
    costly: true,
    args: { csv: 'name,ip_addresses,app\nimported,192.0.2.2,payments' },
  },
  { tool: 'update-workload', only: 'fits', costly: true, args: { name: 'host-9', enforcement_mode: 'full' } },
  { tool: 'label-workloads', costly: true, args: { workloads: ['host-5'], set: ['role=db'] } },
  { tool: 'create-service', args: { name: 'new', service_ports: [{ port: 1001, proto: 'tcp' }] } },
  { tool: 'update-service', only: 'fits', args: { name: 'PostgreSQL', service_ports: [{ port: 1001, proto: 'tcp' }] } },
  {
    tool: 'create-iplist',
    args: { name: 'new', ip_ranges: [{ from_ip: '10.99.0.0/16' }] },
    full: { says: /Whether another list has these addresses is not known: .* larger than 32 MiB/ },
  },
  {
    tool: 'update-iplist',
    only: 'fits',
    costly: true,
    args: { name: 'list-0005', ip_ranges: [{ from_ip: '10.5.0.0/16' }] },
  },
  {
    tool: 'edit-ip-list-ranges',
    only: 'fits',
    costly: true,
    args: { name: 'list-0007', add_ranges: ['192.0.2.0/24'] },
  },
  { tool: 'create-ruleset', only: 'fits', costly: true, args: { name: 'new', scopes: [[]], rules: [RULE] } },
  { tool: 'create-rule', only: 'fits', costly: true, args: { ruleset_name: 'set-1', ...RULE } },
  { tool: 'create-deny-rule', only: 'fits', costly: true, args: { ruleset_name: 'set-1', ...RULE } },
  { tool: 'update-ruleset', only: 'fits', costly: true, args: { name: 'set-2', enabled: false } },
  { tool: 'update-sec-rule', only: 'fits', costly: true, args: { href: RULE_HREF, enabled: false } },
  {
    tool: 'update-deny-rule',
    only: 'fits',
    costly: true,
    args: ({ 'create-deny-rule': { rule } }) => ({ href: rule.href, enabled: false }),
  },
  { tool: 'create-ringfence', only: 'fits', costly: true, args: { ...PAYMENTS, ...WEEK } },
  {
    tool: 'ringfence-batch',
    only: 'fits',
    costly: true,
    args: { apps: [{ app_name: 'ordering', env_name: 'prod' }], ...WEEK },
  },
  {
    tool: 'set-enforcement-mode',
    only: 'fits',
    costly: true,
    args: { ...PAYMENTS, ...WEEK, enforcement_mode: 'selective' },
  },
  {
    tool: 'set-ven-status',
    only: 'fits',
    costly: true,
    args: { selection: { labels: ['app=payments', 'env=prod'] }, status: 'suspended', ...WEEK, dry_run: true },
  },
  {
    tool: 'unpair-vens',
    only: 'fits',
    costly: true,
    args: { selection: { labels: ['app=payments', 'env=prod'] }, firewall_restore: 'saved', ...WEEK, dry_run: true },
  },
  {
    tool: 'update-container-workload-profile',
    only: 'fits',
    costly: true,
    args: ({ 'get-container-workload-profiles': { profiles } }) => ({
      profile_href: profiles?.find(({ name }: Json) => name === 'profile')?.href,
      enforcement_mode: 'full',
    }),
  },
  {
    tool: 'delete-deny-rule',
    only: 'fits',
    costly: true,
    args: ({ 'create-deny-rule': { rule } }) => ({ href: rule.href }),
  },
  { tool: 'delete-sec-rule', only: 'fits', costly: true, args: { href: RULE_HREF } },
  { tool: 'delete-ruleset', only: 'fits', costly: true, args: { name: 'set-3' } },
  { tool: 'delete-iplist', args: { name: 'new' } },
  { tool: 'delete-service', args: { name: 'new' } },
  { tool: 'delete-workload', args: { name: 'new' } },
  {
    tool: 'restore-policy-object',
    only: 'fits',
    args: { version: 1, kind: 'ip_lists', name: 'list-0001' },
  },
  {
    tool: 'discard-draft-changes',
    only: 'fits',
    costly: true,
    args: { hrefs: ['/orgs/1/sec_policy/draft/ip_lists/10', '/orgs/1/sec_policy/draft/rule_sets/35'] },
  },
  { tool: 'provision-policy', only: 'fits', costly: true, args: { all_pending: true } },
  { tool: 'delete-label', args: { key: 'role', value: 'newer' } },
  { tool: 'restore-policy-version', only: 'fits', costly: true, args: { version: 1 } },
]
