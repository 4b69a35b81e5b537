import t from 'tap'
import type { Rule, ScopeEntry, Actor } from '../../schemas/pce/rule-set.js'
import type { EnforcementMode } from '../../schemas/pce/workload.js'
import type { Endpoint, PolicyView } from '../../pce-simulator/model.js'
import { partial } from '../partial.js'
import {
  ALL,
  allow,
  AMS,
  ANY,
  ANY_TCP,
  BRANCHES,
  decide,
  deny,
  denyAll,
  DRAFT,
  host,
  IIS,
  is,
  isNot,
  judge,
  label,
  PARTNER,
  PING,
  rule,
  ruleSet,
  UPDATER,
  view,
  WEB,
  type Call,
} from './tiny-estate.js'

const OUTSIDE = '198.51.100.7'
const payments = (mode: EnforcementMode) =>
  host('payments-db', { at: '10.0.0.1', labels: 'app=payments env=prod role=db', mode })
const ordering = host('ordering-api', { at: '10.0.0.2', labels: 'app=ordering env=prod role=api' })

t.test('override deny beats allow, allow beats deny, deny beats the default, in every mode', async (t) => {
  const everyone = { from: [ANY], to: [AMS] }
  const rules = [rule({ ...everyone, unscoped_consumers: true })]
  const [denied, overridden] = [deny(everyone), deny({ ...everyone, override: true })]
  const cases = {
    nothing: view(),
    deny: denyAll(denied),
    allow: view(ruleSet({ rules })),
    'allow and deny': view(ruleSet({ rules, deny_rules: [denied] })),
    'override deny and allow': view(ruleSet({ rules, deny_rules: [overridden] })),
    'all three': view(ruleSet({ rules, deny_rules: [denied, overridden] })),
  }
  const potentially = 'potentially_blocked'
  const expected: Record<EnforcementMode, string[]> = {
    idle: ['unknown', 'unknown', 'unknown', 'unknown', 'unknown', 'unknown'],
    visibility_only: [potentially, potentially, 'allowed', 'allowed', potentially, potentially],
    selective: ['allowed', 'blocked', 'allowed', 'allowed', 'blocked', 'blocked'],
    full: ['blocked', 'blocked', 'allowed', 'allowed', 'blocked', 'blocked'],
  }
  const judged = (mode: EnforcementMode) =>
    Object.values(cases).map((policy) => judge({ policy, from: OUTSIDE, to: payments(mode) }))
  for (const mode of ['idle', 'visibility_only', 'selective', 'full'] as const) {
    const decisions = judged(mode).map(({ decision }) => decision)
    t.same(decisions, expected[mode], `${mode}: ${Object.keys(cases).join(', ')}`)
  }

  const drafts = (mode: EnforcementMode) => judged(mode).map(({ draftDecision }) => draftDecision)
  const enforced = ['blocked_by_boundary', 'allowed', 'allowed_across_boundary', 'blocked_by_override_deny']
  const reported = enforced.map((decision) => decision.replace(/^blocked/, 'potentially_blocked'))
  t.same(drafts('full').slice(0, 5), ['blocked', ...enforced])
  t.same(drafts('selective').slice(0, 5), ['allowed', ...enforced])
  t.same(drafts('visibility_only').slice(0, 5), ['potentially_blocked', ...reported])
  t.same(drafts('idle'), drafts('visibility_only'), 'an idle workload is judged as if it reported')

  const verdict = judged('full')[5]
  t.same(verdict?.overrideDenyRules, [overridden.href])
  t.same(verdict?.allowRules, [rules[0]?.href], 'what else applies is named too')
})

t.test('essential services are allowed before every rule', async (t) => {
  const policy = denyAll(
    deny({ from: [ANY], to: [AMS], override: true }),
    deny({ from: [AMS], to: [ANY], override: true }),
  )
  const [self, v6] = [payments('full'), { policy, from: 'fe80::1', to: payments('full'), proto: 58 }]
  t.equal(decide({ policy, from: self, to: '255.255.255.255', port: 67, proto: 17, direction: 'outbound' }), 'allowed')
  t.equal(decide({ ...v6, icmp: [135, 0] }), 'allowed')
  t.equal(decide({ ...v6, icmp: [128, 0] }), 'blocked', 'an echo request is no such thing')
})

t.test('ignores disabled, deleted and foreign-network rules', async (t) => {
  const to = payments('full')
  const inbound = { from: [ANY], to: [AMS] }
  const with_ = (more: Partial<Rule>) => decide({ policy: allow(rule({ ...inbound, ...more })), from: OUTSIDE, to })
  const inSet = (more: Partial<ReturnType<typeof ruleSet>>) =>
    decide({ policy: view(ruleSet({ rules: [rule(inbound)], ...more })), from: OUTSIDE, to })
  t.equal(with_({}), 'allowed')
  t.equal(with_({ enabled: false }), 'blocked')
  t.equal(with_({ update_type: 'delete' }), 'blocked')
  t.equal(with_({ network_type: 'non_brn' }), 'blocked')
  t.equal(with_({ consuming_security_principals: [{ href: '/orgs/1/security_principals/S-1' }] }), 'blocked')
  t.equal(with_({ resolve_labels_as: { providers: ['virtual_services'], consumers: ['workloads'] } }), 'blocked')
  t.equal(inSet({}), 'allowed')
  t.equal(inSet({ enabled: false }), 'blocked')
  t.equal(inSet({ update_type: 'delete' }), 'blocked')
  t.equal(inSet({ scopes: [] }), 'blocked', 'no scope covers nothing')
})

t.test('judges a connection at every managed end, and the stricter verdict wins', async (t) => {
  const source = (mode: EnforcementMode) => host('ordering-api', { at: '10.0.0.2', labels: 'app=ordering', mode })
  const both = (policy: PolicyView, from: EnforcementMode, to: EnforcementMode) =>
    decide({ policy, from: source(from), to: payments(to) })
  const outbound = allow(rule({ from: [AMS], to: [ANY] }))

  t.equal(both(outbound, 'full', 'full'), 'blocked', 'an outbound rule to addresses opens nothing at the destination')
  t.equal(both(outbound, 'full', 'visibility_only'), 'potentially_blocked')
  t.equal(both(view(), 'full', 'visibility_only'), 'blocked', 'the source drops it')
  t.equal(both(view(), 'selective', 'visibility_only'), 'potentially_blocked')
  t.equal(
    both(allow(rule({ from: [AMS], to: [AMS] })), 'full', 'full'),
    'allowed',
    'between workloads: written to both',
  )
  t.equal(both(allow(rule({ from: [ANY], to: [AMS] })), 'full', 'full'), 'blocked', 'from addresses: not to the source')
  t.equal(both(view(), 'idle', 'full'), 'blocked')
  t.equal(both(outbound, 'full', 'idle'), 'allowed', 'an idle end says nothing')
  t.equal(both(outbound, 'idle', 'idle'), 'unknown')

  const fromAddresses = denyAll(deny({ from: [ANY], to: [is('app=payments')] }))
  const fromWorkloads = denyAll(deny({ from: [AMS], to: [is('app=payments')] }))
  t.equal(both(fromAddresses, 'selective', 'idle'), 'allowed', 'denying addresses reaches destinations only')
  t.equal(both(fromWorkloads, 'selective', 'idle'), 'blocked', 'denying all workloads reaches the sources')
})

t.test('judges nothing where no VEN runs', async (t) => {
  const policy = denyAll(deny({ from: [AMS], to: [AMS], override: true }))
  const unmanaged = (name: string, at: string) => host(name, { at, managed: false, mode: 'full' })
  const [a, b] = [unmanaged('a', '10.0.0.8'), unmanaged('b', '10.0.0.9')]
  partial(t, judge({ policy, from: a, to: b }), { decision: 'unknown', decidedBy: null, draftDecision: null })
  t.equal(decide({ policy, from: OUTSIDE, to: '192.0.2.1' }), 'unknown')
  t.equal(decide({ policy, from: a, to: payments('full') }), 'blocked', 'the managed end still does')
})

t.test('intra-scope rules keep both ends in one scope, extra-scope rules only the provider', async (t) => {
  const scope = (...texts: string[]): ScopeEntry[] => texts.map((text) => ({ label: { href: label(text).href } }))
  const open = ruleSet({ rules: [rule({ from: [AMS], to: [ANY] })] })
  const within = (scopes: ScopeEntry[][], more: Parameters<typeof rule>[0]) =>
    view(ruleSet({ scopes, rules: [rule(more)] }), open)
  const everyone = { from: [AMS], to: [AMS] }
  const to = payments('full')
  const from = {
    sibling: host('payments-api', { at: '10.0.0.3', labels: 'app=payments env=prod role=api' }),
    dev: host('payments-dev', { at: '10.0.0.4', labels: 'app=payments env=dev' }),
    half: host('payments-half', { at: '10.0.0.5', labels: 'app=payments' }),
    ordering,
  }
  const prod = [scope('app=payments', 'env=prod')]

  const intra = within(prod, everyone)
  t.equal(decide({ policy: intra, from: from.sibling, to }), 'allowed')
  t.equal(decide({ policy: intra, from: from.ordering, to }), 'blocked')
  t.equal(decide({ policy: intra, from: from.dev, to }), 'blocked')
  t.equal(decide({ policy: intra, from: from.half, to }), 'blocked', 'half a label set is not in scope')

  const extra = within(prod, { ...everyone, unscoped_consumers: true })
  const orderingDb = host('ordering-db', { at: '10.0.0.6', labels: 'app=ordering env=prod', mode: 'full' })
  t.equal(decide({ policy: extra, from: from.ordering, to }), 'allowed')
  t.equal(decide({ policy: extra, from: to, to: orderingDb }), 'blocked', 'the provider stays in scope')

  const two = within([...prod, scope('app=ordering', 'env=prod')], everyone)
  t.equal(decide({ policy: two, from: from.ordering, to }), 'blocked', 'two scopes are not one')
  t.equal(decide({ policy: two, from: from.sibling, to }), 'allowed')

  const list = within(prod, { from: [BRANCHES], to: [AMS] })
  const single = within(prod, { from: [{ workload: { href: ordering.href } }], to: [AMS] })
  t.equal(decide({ policy: list, from: '10.60.1.1', to }), 'allowed', 'an IP list has no scope')
  t.equal(decide({ policy: single, from: from.ordering, to }), 'blocked', 'a single workload does')

  const inbound = { from: [ANY], to: [AMS] }
  const exceptProd = within([[{ ...is('env=prod'), exclusion: true }]], inbound)
  const nonprod = within([[{ label_group: { href: '/orgs/1/sec_policy/active/label_groups/nonprod' } }]], inbound)
  const test = host('t', { at: '10.0.0.7', labels: 'env=test', mode: 'full' })
  t.equal(decide({ policy: exceptProd, from: OUTSIDE, to }), 'blocked')
  t.equal(decide({ policy: exceptProd, from: OUTSIDE, to: test }), 'allowed')
  t.equal(decide({ policy: nonprod, from: OUTSIDE, to: test }), 'allowed', 'a group is its labels, in either version')
  t.equal(decide({ policy: nonprod, from: OUTSIDE, to }), 'blocked')
})

t.test('labels of one key are ORed, keys ANDed, excluded labels excluded', async (t) => {
  const reach = (providers: Actor[], labels: string) =>
    decide({
      policy: allow(rule({ from: [ANY], to: providers })),
      from: OUTSIDE,
      to: host('target', { at: '10.0.0.9', labels, mode: 'full' }),
    })

  const either = [is('app=pay'), is('app=payments'), is('env=prod')]
  t.equal(reach(either, 'app=payments env=prod'), 'allowed')
  t.equal(reach(either, 'app=pay env=prod'), 'allowed')
  t.equal(reach(either, 'app=payments env=dev'), 'blocked', 'another key must match too')
  t.equal(reach(either, 'app=payments'), 'blocked', 'a missing label matches nothing')
  t.equal(reach([is('app=pay'), is('app=nobody')], 'app=pay'), 'allowed', 'a label nobody bears is still of its key')

  const notDb = [is('app=payments'), isNot('role=db')]
  t.equal(reach(notDb, 'app=payments role=api'), 'allowed')
  t.equal(reach(notDb, 'app=payments role=db'), 'blocked')
  t.equal(reach(notDb, 'app=payments'), 'allowed', 'what has no role is not excluded by one')
  t.equal(reach([isNot('env=prod')], 'env=dev'), 'allowed')
  t.equal(reach([isNot('env=prod')], 'env=prod'), 'blocked')

  const group = (exclusion?: boolean): Actor => ({ label_group: { href: `${DRAFT}/label_groups/nonprod` }, exclusion })
  t.equal(reach([group(), is('env=prod')], 'env=prod'), 'allowed', 'a group ORs with the labels of its key')
  t.equal(reach([group()], 'env=prod'), 'blocked')
  t.equal(reach([group(true)], 'env=dev'), 'blocked')
  t.equal(reach([is('app=pay'), ANY], 'app=payments'), 'blocked', 'an IP list among the providers opens no workload')
  t.equal(reach([{ workload: { href: '/orgs/1/workloads/target' } }], ''), 'allowed')
  t.equal(reach([{ workload: { href: '/orgs/1/workloads/other' } }], ''), 'blocked')
  t.equal(reach([{ virtual_service: { href: '/orgs/1/virtual_services/1' } }], 'app=pay'), 'blocked')
})

t.test('an IP list is its ranges without its exclusions, and its names', async (t) => {
  const from = (ip: string) =>
    decide({ policy: allow(rule({ from: [BRANCHES], to: [AMS] })), from: ip, to: payments('full') })
  const below = ['10.59.255.255', '10.60.0.0', '10.60.8.255', '10.60.9.0']
  const above = ['10.60.9.127', '10.60.9.128', '10.60.255.255', '10.61.0.0']
  const inside = [...below, ...above].filter((ip) => from(ip) === 'allowed')
  t.same(inside, ['10.60.0.0', '10.60.8.255', '10.60.9.128', '10.60.255.255'])
  t.equal(from('fd00:60::1'), 'allowed')
  t.equal(from('fd00:61::1'), 'blocked')
  t.equal(from('::ffff:10.60.1.1'), 'allowed', 'a mapped address is the IPv4 one')

  const policy = allow(rule({ from: [AMS], to: [PARTNER] }))
  const out = (fqdn?: string) => {
    const to: Endpoint = { ip: '203.0.113.1', ...(fqdn === undefined ? {} : { fqdn }) }
    return decide({ policy, from: payments('full'), to, direction: 'outbound' })
  }
  t.equal(out('API.partner.example'), 'allowed')
  t.equal(out('api.partner.example.evil.test'), 'blocked')
  t.equal(out('apixpartner.example'), 'blocked', 'a dot is a dot')
  t.equal(out(), 'blocked', 'an address without a name')
})

t.test('services match by protocol, port range, ICMP type and process', async (t) => {
  const to = payments('full')
  const reach = (services: Rule['ingress_services'], call: Partial<Call>) =>
    decide({
      policy: allow(rule({ from: [ANY], to: [AMS], ingress_services: services })),
      from: OUTSIDE,
      to,
      ...call,
    })

  const ports = [442, 443, 444, 7999, 8000, 8099, 8100]
  t.same(
    ports.filter((port) => reach([WEB], { port }) === 'allowed'),
    [443, 8000, 8099],
  )
  t.equal(reach([WEB], { port: 443, proto: 17 }), 'blocked')
  t.equal(reach([{ port: 5000, to_port: 5010, proto: 6 }], { port: 5005 }), 'allowed')
  t.equal(reach([{ port: 5000, proto: 6 }], { port: 5001 }), 'blocked', 'no to_port is one port')
  t.equal(reach([{ port: 0, proto: 6 }], { port: 443 }), 'blocked', 'port 0 is not every port')
  t.equal(reach([ANY_TCP], { port: 1 }), 'allowed', 'no port is every port of the protocol')
  t.equal(reach([ANY_TCP], { port: 53, proto: 17 }), 'blocked')
  t.equal(reach([ALL], { proto: 1, icmp: [3, 1] }), 'allowed', 'All Services is every protocol')
  t.equal(reach([PING], { proto: 1, icmp: [8, 0] }), 'allowed')
  t.equal(reach([PING], { proto: 1, icmp: [0, 0] }), 'blocked')
  t.equal(reach([WEB, PING], { port: 443 }), 'allowed', 'several services OR')
  t.equal(reach([{ href: `${DRAFT}/services/404` }], {}), 'blocked', 'a service that is gone matches nothing')

  const windows = host('iis', { at: '10.0.0.1', os: 'win-x86_64-server', mode: 'full' })
  const w3wp = 'C:\\Windows\\System32\\inetsrv\\w3wp.exe'
  t.equal(reach([IIS], { to: windows, process: w3wp }), 'allowed')
  t.equal(reach([IIS], { to: windows, process: 'C:\\Temp\\other.exe' }), 'blocked')
  t.equal(reach([IIS], { to: windows, process: w3wp, port: 80 }), 'blocked')
  t.equal(reach([IIS], { to, process: w3wp }), 'blocked', 'a Windows service means nothing to Linux')

  const egress = rule({ from: [AMS], to: [ANY], ingress_services: [WEB], egress_services: [{ href: UPDATER.href }] })
  const out = (os: string, windowsService?: string) => {
    const from = host('laptop', { at: '10.0.0.2', os, mode: 'full' })
    return decide({ policy: allow(egress), from, to: OUTSIDE, windowsService, direction: 'outbound' })
  }
  t.equal(out('win-x86_64-client', 'wuauserv'), 'allowed')
  t.equal(out('win-x86_64-client', 'Spooler'), 'blocked')
  t.equal(out('ubuntu-x86_64-jammy'), 'allowed', 'elsewhere the rule is as wide as its ports')
})

t.test('a boundary blocks whatever no rule allows, regardless of scope', async (t) => {
  const boundary = (more: object = {}) => ({
    href: `${DRAFT}/enforcement_boundaries/1`,
    name: 'b',
    enabled: true,
    providers: [is('app=payments')],
    consumers: [AMS],
    ingress_services: [{ port: 443, proto: 6 }],
    ...more,
  })
  const judged = (mode: EnforcementMode, more: object, policy = view(), call: Partial<Call> = {}) => {
    const from = host('ordering-api', { at: '10.0.0.2', labels: 'app=ordering', mode })
    const boundaries = [boundary(more)]
    return judge({ policy: { ...policy, boundaries }, from, to: payments(mode), ...call })
  }
  const decided = (...of: Parameters<typeof judged>) => {
    const { decision, draftDecision } = judged(...of)
    return [decision, draftDecision]
  }
  const open = allow(rule({ from: [AMS], to: [AMS] }))
  t.same(decided('selective', {}), ['blocked', 'blocked_by_boundary'])
  t.same(decided('full', {}), ['blocked', 'blocked_by_boundary'])
  t.same(decided('visibility_only', {}), ['potentially_blocked', 'potentially_blocked_by_boundary'])
  t.same(decided('idle', {}), ['unknown', 'potentially_blocked_by_boundary'])
  t.same(decided('selective', {}, open), ['allowed', 'allowed_across_boundary'])
  t.same(decided('selective', {}, view(), { port: 80 }), ['allowed', 'allowed'], 'another port')
  t.same(decided('selective', { enabled: false }), ['allowed', 'allowed'])
  t.same(decided('selective', { providers: [is('app=ordering')] }), ['allowed', 'allowed'], 'the other way round')
  t.same(judged('selective', {}).denyRules, [boundary().href])
})

t.test('a virtual service is the workloads bound to it, on its own ports', async (t) => {
  const bound = payments('full')
  const unbound = host('other', { at: '10.0.0.9', labels: 'app=payments env=prod', mode: 'full' })
  const service = (more: object = {}) => ({
    href: `${DRAFT}/virtual_services/1`,
    labels: [label('app=shop').href],
    services: [{ port: 8443, proto: 6 }],
    bindings: [{ workload: bound.href, portOverrides: [] }],
    ...more,
  })
  const named: Actor = { virtual_service: { href: service().href } }
  const asServices = { providers: ['virtual_services'], consumers: ['workloads'] }
  const policyOf = (written: ReturnType<typeof rule>, more: object = {}, scopes: ScopeEntry[][] = [[]]) => ({
    ...view(ruleSet({ rules: [written], scopes })),
    virtualServices: [service(more)],
  })
  const offered = rule({ from: [ANY], to: [named], ingress_services: [] })
  const reach = (policy: PolicyView, to = bound, port = 8443) => decide({ policy, from: OUTSIDE, to, port })
  t.equal(reach(policyOf(offered)), 'allowed')
  t.equal(reach(policyOf(offered), bound, 443), 'blocked', 'no port of the service')
  t.equal(reach(policyOf(offered), unbound), 'blocked')
  t.equal(reach(policyOf(offered, { bindings: [] })), 'blocked')
  t.equal(reach(policyOf(offered, { services: [{ href: WEB.href }] }), bound, 8050), 'allowed', 'a service object')
  const moved = { bindings: [{ workload: bound.href, portOverrides: [{ port: 8443, proto: 6, new_port: 9443 }] }] }
  t.equal(reach(policyOf(offered, moved), bound, 9443), 'allowed', 'on this workload the port is another')
  t.equal(reach(policyOf(offered, moved)), 'blocked')
  const wide = rule({ from: [ANY], to: [named], ingress_services: [{ port: 443, proto: 6 }] })
  t.equal(reach(policyOf(wide), bound, 443), 'blocked', 'the services of the rule are for other providers')

  const shop = [[{ label: { href: label('app=shop').href } }]]
  const pay = [[{ label: { href: label('app=payments').href } }]]
  t.equal(reach(policyOf(offered, {}, shop)), 'allowed', 'its own labels place it in a scope')
  t.equal(reach(policyOf(offered, {}, pay)), 'blocked', 'those of its workloads do not')
  const labelled = rule({ from: [ANY], to: [is('app=shop')], resolve_labels_as: asServices })
  t.equal(reach(policyOf(labelled)), 'allowed')
  t.equal(reach(policyOf({ ...labelled, resolve_labels_as: rule({ from: [], to: [] }).resolve_labels_as })), 'blocked')

  const client = rule({ from: [named], to: [is('app=ordering')], unscoped_consumers: true })
  const target = host('ordering-db', { at: '10.0.0.6', labels: 'app=ordering', mode: 'full' })
  const fromBound = (from: typeof bound) =>
    decide({ policy: policyOf(client), from: { ...from, enforcement_mode: 'visibility_only' }, to: target })
  t.equal(fromBound(bound), 'allowed', 'as a consumer')
  t.equal(fromBound(unbound), 'blocked')
})
