/** Whether an allow rule lets through what the PCE calls allowed, at ends in selective mode. */
import t from 'tap'
import type { IngressService, RuleSet } from '../../schemas/pce/rule-set.js'
import { indexLabels } from '../../domain/inventory/labels.js'
import { createAllowedJudge, type AllowedFlow } from '../../domain/policy/judge-allowed.js'
import { catalogOf, type PolicySnapshot } from '../../domain/policy/load-snapshot.js'
import { someWorkloadWith } from '../../domain/policy/match-rules.js'
import { unknown } from '../../domain/policy/three-valued.js'
import type { FlowEnd } from '../../domain/traffic/flow-ends.js'

const label = (key: string, value: string) => ({ href: `/orgs/1/labels/${value}`, key, value })
const [APP, WEB, DB] = [label('app', 'shop'), label('role', 'web'), label('role', 'db')]
const HTTPS: IngressService = { port: 443, proto: 6 }
const ALL = { href: '/orgs/1/sec_policy/active/services/1', name: 'All Services', service_ports: [{ proto: -1 }] }
const PROGRAM = {
  href: '/orgs/1/sec_policy/active/services/2',
  name: 'nginx',
  windows_services: [{ process_name: 'nginx.exe' }],
}

type Rule = { to: typeof WEB; services: IngressService[] }
const written = ({ to, services }: Rule) => ({
  href: '/rule',
  enabled: true,
  providers: [{ label: { href: to.href } }],
  consumers: [{ actors: 'ams' }],
  ingress_services: services,
  unscoped_consumers: true,
})

function policyOf({ allow = [], deny = [] }: { allow?: Rule[]; deny?: Rule[] }): PolicySnapshot {
  const ruleSet = { name: 'set', href: '/set', enabled: true, scopes: [[]], rules: allow.map(written) }
  const labels = indexLabels([APP, WEB, DB])
  return {
    ...catalogOf({ labels, services: [ALL, PROGRAM] as never, lists: [], groups: [] }),
    version: 'active',
    ruleSets: [{ ...ruleSet, deny_rules: deny.map(written) } as unknown as RuleSet],
    boundaries: [],
    unread: new Map(),
    pendingObjects: new Map(),
  }
}

const end = (name: string, ...labels: (typeof APP)[]): FlowEnd => ({
  ...someWorkloadWith(labels),
  workload: `/orgs/1/workloads/${name}`,
  ip: null,
  fqdn: null,
  hostname: name,
  name,
  managed: true,
  mode: 'selective',
  lists: [],
  labelHrefOf: {},
})
const flowTo = (destination: FlowEnd, more: Partial<AllowedFlow> = {}): AllowedFlow => ({
  source: end('client'),
  destination,
  sourceMode: null,
  destinationMode: 'selective',
  port: 443,
  proto: 6,
  ...more,
})
const [web, db] = [end('web', APP, WEB), end('db', APP, DB)]

t.test('judges each destination by its own labels, in any order', async (t) => {
  const policy = policyOf({ allow: [{ to: WEB, services: [HTTPS] }] })
  for (const order of [
    [web, db],
    [db, web],
  ]) {
    const judge = createAllowedJudge(policy)
    const found = Object.fromEntries(order.map((one) => [one.hostname, judge(flowTo(one))]))
    t.same(found, { web: 'yes', db: 'no' })
  }
})

t.test('a matching deny rule proves an undecided allow rule and contradicts its absence', async (t) => {
  const [program, everything]: [Rule, Rule] = [
    { to: WEB, services: [{ href: PROGRAM.href }] },
    { to: WEB, services: [{ href: ALL.href }] },
  ]
  const judge = (policy: Parameters<typeof policyOf>[0]) => createAllowedJudge(policyOf(policy))(flowTo(web))
  t.equal(judge({ allow: [program] }), unknown('process'))
  t.equal(judge({ allow: [program], deny: [everything] }), 'yes')
  t.equal(judge({ deny: [everything] }), unknown('contradiction'))
  t.equal(judge({ deny: [program] }), 'no', 'a deny rule that cannot be decided proves nothing')
  t.equal(judge({ allow: [program], deny: [program] }), unknown('process'))
  t.equal(judge({ deny: [{ to: WEB, services: [{ port: 0, to_port: 65535, proto: 17 }] }] }), 'no', 'UDP alone')
})

t.test('only ends in selective mode need a rule, and not if the other end has one', async (t) => {
  const judge = createAllowedJudge(policyOf({}))
  const modes: [string | null, string | null][] = [
    [null, 'selective'],
    ['selective', null],
    ['idle', 'selective'],
    ['full', 'selective'],
    ['selective', 'visibility_only'],
    [null, 'full'],
  ]
  t.same(
    modes.map(([sourceMode, destinationMode]) => judge(flowTo(web, { sourceMode, destinationMode }))),
    ['no', 'no', 'no', 'yes', 'yes', 'yes'],
  )
  t.equal(createAllowedJudge(null)(flowTo(web)), unknown('unread_policy'))
  t.equal(createAllowedJudge(null)(flowTo(web, { destinationMode: 'full' })), 'yes')
})

t.test('a rule for the corporate network is undecided where an end is off it', (t) => {
  const judge = createAllowedJudge(policyOf({ allow: [{ to: WEB, services: [HTTPS] }] }))
  const away = (one: FlowEnd): FlowEnd => ({ ...one, offNetwork: 'yes' })
  for (const order of [
    [web, away(web)],
    [away(web), web],
  ])
    t.same(
      order.map((one) => judge(flowTo(one))),
      order.map(({ offNetwork }) => (offNetwork === 'yes' ? unknown('off_network') : 'yes')),
      'in any order, although the labels are the same',
    )
  t.equal(judge(flowTo(web, { source: away(end('client')) })), unknown('off_network'))
  t.end()
})
