/** The calls that both transports answer alike: one or more for each tool of `default`, and calls that are refused. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { isInDefault } from '../../tools/define.js'
import { tools } from '../../tools/index.js'

const WEEK = { start_date: '2026-06-08', end_date: '2026-06-14' }

/** The arguments of a call. */
export type Args = Record<string, unknown>
/** What each tool last answered at this seat, for the calls that go on with an href from there. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- the shapes are what the client checks against the output schemas
export type Answers = Record<string, any>

const RULE_SET = 'fraud-check | prod'
const DENY_TELNET = {
  providers: ['ams'],
  consumers: ['iplist:Any (0.0.0.0/0 and ::/0)'],
  ingress_services: [{ port: 23, proto: 'tcp' }],
  unscoped_consumers: true,
}

/**
 * The calls of an operator's day, in their order: what is created first is found by what comes later, and undone at the
 * end. A tool that writes has a call here, and so has one that reads and is to be asked for more than its example.
 */
export const GOOD_CALLS: [string, Args | ((answers: Answers) => Args)][] = [
  ['get-events', { max_results: 3 }],
  ['get-labels', { key: 'env' }],
  ['create-label', { key: 'app', value: 'fraud' }],
  ['update-label', { key: 'app', value: 'fraud', new_value: 'fraud-check' }],
  ['create-workload', { name: 'hsm-01', ip_addresses: ['10.250.0.1'], labels: [{ key: 'app', value: 'fraud-check' }] }],
  ['update-workload', { name: 'hsm-01', description: 'key store', labels: [{ key: 'env', value: 'prod' }] }],
  ['create-iplist', { name: 'card scheme', ip_ranges: [{ from_ip: '198.51.100.0/24' }] }],
  ['update-iplist', { name: 'card scheme', fqdn: 'api.scheme.example' }],
  ['get-iplists', { name: 'card' }],
  ['create-service', { name: 'scoring', service_ports: [{ port: 8443, proto: 'tcp' }] }],
  ['update-service', { name: 'scoring', description: 'score a payment' }],
  ['get-services', { port: 8443, proto: 'tcp' }],
  [
    'create-ruleset',
    {
      name: RULE_SET,
      scopes: [['app=fraud-check', 'env=prod']],
      rules: [
        { providers: ['ams'], consumers: ['ams'], ingress_services: [{ service: 'All Services' }] },
        {
          providers: ['ams'],
          consumers: ['app=payments', 'env=prod'],
          ingress_services: [{ service: 'scoring' }],
          unscoped_consumers: true,
        },
        { ...DENY_TELNET, rule_type: 'deny' },
      ],
    },
  ],
  ['update-ruleset', { name: RULE_SET, description: 'who may score a payment' }],
  ['create-deny-rule', { ruleset_name: RULE_SET, ...DENY_TELNET, ingress_services: [{ port: 21, proto: 'tcp' }] }],
  ['get-rulesets', { name: RULE_SET }],
  ['update-deny-rule', ({ 'create-deny-rule': created }) => ({ href: created.rule.href, enabled: false })],
  ['update-sec-rule', ({ 'get-rulesets': list }) => ({ href: list.rulesets[0].rules[1].href, description: 'scoring' })],
  ['compare-draft-active', {}],
  ['get-traffic-flows-summary', { ...WEEK, include_destinations: ['app=payments', 'env=prod'] }],
  [
    'get-traffic-flows',
    { ...WEEK, include_destinations: ['app=payments'], group_by: ['source_app', 'port', 'policy'] },
  ],
  ['discover-process-egress', { lookback_days: 7, process: ['curl'], include_sources: ['env=prod'] }],
  ['identify-infrastructure-services', { lookback_days: 7, top_n: 3 }],
  ['detect-lateral-movement-paths', { app_name: 'payments', env_name: 'prod', lookback_days: 7, max_hops: 2 }],
  ['compliance-check', { framework: 'pci-dss', app_name: 'payments', env_name: 'prod', lookback_days: 7 }],
  ['enforcement-readiness', { app_name: 'payments', env_name: 'prod', lookback_days: 7 }],
  ['get-policy-coverage-report', { app_name: 'payments', env_name: 'prod', lookback_days: 7 }],
  ['create-ringfence', { app_name: 'payments', env_name: 'prod', lookback_days: 7, selective: true }],
  [
    'ringfence-batch',
    { apps: [{ app_name: 'payments', env_name: 'prod', selective: true }], lookback_days: 7, dry_run: true },
  ],
  ['delete-ruleset', ({ 'create-ringfence': ringfence }) => ({ href: ringfence.ruleset.href })],
  ['provision-policy', { change_description: 'let fraud-check in' }],
  ['get-container-clusters', {}],
  [
    'get-container-workload-profiles',
    ({ 'get-container-clusters': list }) => ({ cluster_href: list.container_clusters[0].href }),
  ],
  [
    'update-container-workload-profile',
    ({ 'get-container-workload-profiles': list }) => ({
      profile_href: list.profiles.find((profile: { is_default?: boolean }) => profile.is_default !== true).href,
      managed: true,
      enforcement_mode: 'visibility_only',
    }),
  ],
  ['delete-deny-rule', ({ 'create-deny-rule': created }) => ({ href: created.rule.href })],
  ['delete-sec-rule', ({ 'get-rulesets': list }) => ({ href: list.rulesets[0].rules[0].href })],
  ['delete-ruleset', { name: RULE_SET }],
  ['provision-policy', { change_description: 'take it back' }],
  ['delete-service', { name: 'scoring' }],
  ['delete-iplist', { name: 'card scheme' }],
  ['delete-workload', { name: 'hsm-01' }],
  ['delete-label', { key: 'app', value: 'fraud-check', dry_run: true }],
]

const REGISTRATION = { pce_host: 'pce.example.com', pce_port: 443, pce_org_id: 1, api_key: 'k', api_secret: 's' }

/** Where nobody logs in there are no credentials of one's own (D9). */
export const REFUSED_CALLS: [string, Args, string][] = [
  ['register-pce-credentials', REGISTRATION, 'keystore_unavailable'],
  ['delete-pce-credentials', {}, 'keystore_unavailable'],
]

const called = new Set([...GOOD_CALLS, ...REFUSED_CALLS].map(([name]) => name))
/** The examples of the other tools that only read, which need no call by hand. */
export const EXAMPLE_CALLS = tools
  .filter((tool) => isInDefault(tool) && tool.effect === 'read' && !called.has(tool.name))
  .map(({ name, example }): [string, Args] => [name, example as Args])

/** Where a call is to be written, as `file:line`. */
export const PLACE_OF_CALLS = `test/acceptance/calls.ts:${lineOf('export const GOOD_CALLS')}`

function lineOf(text: string): number {
  const source = readFileSync(fileURLToPath(import.meta.url), 'utf8')
  return source.slice(0, source.indexOf(`\n${text}`) + 1).split('\n').length
}

/** Calls that are refused, with the codes of their errors. */
export const BAD_CALLS: [string, Args, string][] = [
  ...REFUSED_CALLS,
  ['register-pce-credentials', { ...REGISTRATION, pce_port: '443' }, 'invalid_argument'],
  ['delete-pce-credentials', { sub: 'somebody' }, 'invalid_argument'],
  ['check-pce-credentials-status', { sub: 'somebody' }, 'invalid_argument'],
  ['check-pce-connection', { host: 'x' }, 'invalid_argument'],
  ['get-server-changelog', { since: 1 }, 'invalid_argument'],
  ['get-labels', { max_results: 0 }, 'invalid_argument'],
  ['get-traffic-flows', { ...WEEK, group_by: ['colour'] }, 'unknown_group_by'],
  ['get-traffic-flows-summary', { start_date: '2026-02-30', end_date: '2026-03-01' }, 'invalid_window'],
  ['find-unmanaged-traffic', { direction: 'sideways' }, 'invalid_argument'],
  ['discover-process-egress', { include_sources: ['app=payment'] }, 'unresolved_label_filter'],
  ['identify-infrastructure-services', { top_n: 0 }, 'invalid_argument'],
  ['detect-lateral-movement-paths', { app_name: 'payment' }, 'not_found'],
  ['compliance-check', { framework: 'pci', app_name: 'payments' }, 'invalid_argument'],
  ['enforcement-readiness', { app_name: 'payment', env_name: 'prod' }, 'not_found'],
  ['get-policy-coverage-report', { app_name: 'payments', env_name: 'production' }, 'not_found'],
  [
    'create-ringfence',
    { app_name: 'payments', env_name: 'prod', selective: true, deny_service: [{ service: 'no such service' }] },
    'invalid_deny_service',
  ],
  ['ringfence-batch', { apps: [] }, 'invalid_argument'],
  ['create-label', { key: 'app' }, 'invalid_argument'],
  ['create-label', { key: 'app', value: 'payments' }, 'already_exists'],
  ['update-label', { key: 'app', value: 'payment', new_value: 'x' }, 'not_found'],
  ['delete-label', { key: 'app', value: 'payment' }, 'not_found'],
  ['get-workloads', { labels: ['app=payment'] }, 'unresolved_label_filter'],
  ['create-workload', { name: 'w', ip_addresses: ['10.0.0.999'] }, 'invalid_argument'],
  ['update-workload', { name: 'nobody', description: 'x' }, 'not_found'],
  ['update-workload', { href: '/orgs/1/labels/1', description: 'x' }, 'invalid_href'],
  ['delete-workload', { name: 'nobody' }, 'not_found'],
  ['get-workload-enforcement-status', { app_name: 'payment' }, 'not_found'],
  ['get-container-clusters', { max_results: 0 }, 'invalid_argument'],
  ['get-container-workload-profiles', { cluster_href: '/orgs/1/labels/1' }, 'invalid_href'],
  ['update-container-workload-profile', { profile_href: '/orgs/1/labels/1', enforcement_mode: 'full' }, 'invalid_href'],
  ['get-kubernetes-workloads', { cluster_href: '/orgs/1/labels/1' }, 'invalid_href'],
  ['get-iplists', { name: '' }, 'invalid_argument'],
  ['create-iplist', { name: 'x', ip_ranges: [{ from_ip: '10.0.0.9', to_ip: '10.0.0.1' }] }, 'invalid_argument'],
  ['update-iplist', { name: 'nothing', description: 'x' }, 'not_found'],
  ['delete-iplist', { name: 'Any' }, 'not_found'],
  ['get-services', { port: 70_000 }, 'invalid_argument'],
  ['create-service', { name: 'x', service_ports: [{ port: 70_000, proto: 'tcp' }] }, 'invalid_service_definition'],
  ['update-service', { name: 'nothing', description: 'x' }, 'not_found'],
  ['delete-service', { name: 'All' }, 'not_found'],
  ['create-ruleset', { name: 'x', scopes: [['app=payment']] }, 'label_not_found'],
  [
    'create-ruleset',
    {
      name: 'x',
      scopes: [[]],
      rules: [{ providers: ['nobody'], consumers: ['ams'], ingress_services: [{ port: 1, proto: 'tcp' }] }],
    },
    'invalid_actor',
  ],
  ['update-ruleset', { name: 'payments', description: 'x' }, 'not_found'],
  ['delete-ruleset', { name: 'payments' }, 'not_found'],
  ['create-deny-rule', { ruleset_name: 'payments', ...DENY_TELNET }, 'not_found'],
  ['update-deny-rule', { href: '/orgs/1/sec_policy/draft/rule_sets/1/deny_rules/0', enabled: false }, 'not_found'],
  ['delete-deny-rule', { href: '/orgs/1/labels/1' }, 'invalid_href'],
  ['update-sec-rule', { href: '/orgs/1/sec_policy/draft/rule_sets/1/sec_rules/0', enabled: false }, 'not_found'],
  ['delete-sec-rule', { href: '/orgs/1/labels/1' }, 'invalid_href'],
  ['get-rulesets', { labels: 'app=payment' }, 'unresolved_label_filter'],
  ['compare-draft-active', { resource_type: 'workloads' }, 'invalid_argument'],
  ['get-traffic-flows-summary', { start_date: '2026-06-31', end_date: '2026-07-01' }, 'invalid_window'],
  ['get-traffic-flows-summary', { start_date: '2026-06-14', end_date: '2026-06-08' }, 'invalid_window'],
  ['get-events', { timestamp_gte: 'yesterday' }, 'invalid_argument'],
  ['get-pairing-profiles', { max_results: 0 }, 'invalid_argument'],
  ['provision-policy', { hrefs: ['/orgs/1/labels/1'] }, 'invalid_argument'],
]
