/**
 * Nobody reaches beyond their scopes: over random sequences of calls of scoped callers, with provisioning and what is
 * confirmed, the simulator never decides otherwise about a flow that has no end inside the caller's scopes. The callers
 * are admins, so only their scopes stop them; the calls are aimed at everything, inside and outside. `SEQUENCES=2000`
 * runs more of them.
 */
import fc from 'fast-check'
import t from 'tap'
import { createPceClient } from '../../pce-client/index.js'
import type { SharedConfig } from '../../schemas/config.js'
import type { TrafficFlow } from '../../schemas/pce/traffic.js'
import type { Json } from '../contract/authenticated-service.js'
import { handMade, type HandMadeFlow } from '../tools/hand-made.js'
import { startScoped } from './scoped-service.js'

const SEQUENCES = Number(process.env.SEQUENCES ?? 100)
const APPS = ['payments', 'shop', 'hr']
const ENVS = ['prod', 'dev']
const GROUPS = {
  payments: { scopes: [{ app: 'payments' }], extra: true, create: ['ip_lists', 'services', 'label_groups'] },
  shop: { scopes: [{ app: 'shop', env: 'prod' }] },
}
type Group = keyof typeof GROUPS

/** Whether the labels of an end are inside the group's scope. */
const isInside = (group: Group, labels: Record<string, string>) =>
  group === 'payments' ? labels.app === 'payments' : labels.app === 'shop' && labels.env === 'prod'

const hosts = Object.fromEntries(
  APPS.flatMap((app, a) =>
    ENVS.map((env, e) => [
      `${app}-${env}`,
      {
        ip: `10.${a}.${e}.1`,
        labels: `app=${app} env=${env}`,
        mode: (['full', 'selective', 'full', 'visibility_only'] as const)[(a + e) % 4],
      },
    ]),
  ),
)
const NAMES = Object.keys(hosts)
const PORTS = [443, 5432]
const flows: HandMadeFlow[] = [...NAMES, '192.0.2.7'].flatMap((from) =>
  [...NAMES, '192.0.2.7'].flatMap((to) => (from === to ? [] : PORTS.map((port) => ({ from, to, port })))),
)
const ruleSets = [
  { name: 'payments own', scope: 'app=payments env=prod', allow: [{ from: 'ams', to: 'ams' }] },
  { name: 'shop own', scope: 'app=shop env=prod', allow: [{ from: 'ams', to: 'ams', extra: true }] },
  { name: 'hr own', scope: 'app=hr env=prod', allow: [{ from: 'any', to: 'ams' }] },
  { name: 'payments reaching', scope: 'app=payments env=dev', allow: [{ from: 'ams', to: 'host:hr-prod' }] },
  { name: 'everything', scope: '', allow: [{ from: 'app=hr', to: 'app=shop', services: [{ port: 5432, proto: 6 }] }] },
]

const one = <T>(...values: T[]) => fc.constantFrom(...values)
const app = one(...APPS)
const env = one(...ENVS)
const labels = fc.tuple(app, env).map(([a, e]) => [`app=${a}`, `env=${e}`])
const scope = fc.oneof(
  { weight: 4, arbitrary: labels },
  app.map((a) => [`app=${a}`]),
  env.map((e) => [`env=${e}`]),
  fc.tuple(app, env).map(([a, e]) => [`!app=${a}`, `env=${e}`]),
  fc.constant<string[]>([]),
)
const scopes = fc.array(scope, { minLength: 1, maxLength: 2 })
const end = fc.oneof(
  one('ams', 'iplist:Any (0.0.0.0/0 and ::/0)', 'iplist:own'),
  app.map((a) => `app=${a}`),
  one(...NAMES).map((name) => `workload:${name}`),
)
const ends = fc.array(end, { minLength: 1, maxLength: 2 })
const host = one(...NAMES)
const ruleSetName = one(...ruleSets.map(({ name }) => name), 'new 1', 'new 2')
const rule = fc.record(
  {
    providers: ends,
    consumers: ends,
    ingress_services: fc.array(
      one(...PORTS).map((port) => ({ port, proto: 'tcp' })),
      { minLength: 1, maxLength: 1 },
    ),
    unscoped_consumers: fc.boolean(),
  },
  { requiredKeys: ['providers', 'consumers', 'ingress_services'] },
)
const mode = one('visibility_only', 'selective', 'full')

type Call = [tool: string, args: object]
const called = (tool: string, args: fc.Arbitrary<object>): fc.Arbitrary<Call> => args.map((given) => [tool, given])
const call: fc.Arbitrary<Call> = fc.oneof(
  { weight: 3, arbitrary: called('create-ruleset', fc.record({ name: one('new 1', 'new 2'), scopes })) },
  {
    weight: 2,
    arbitrary: called(
      'update-ruleset',
      fc.record({ name: ruleSetName, enabled: fc.boolean(), scopes }, { requiredKeys: ['name'] }),
    ),
  },
  called('delete-ruleset', fc.record({ name: ruleSetName })),
  {
    weight: 6,
    arbitrary: called(
      'create-rule',
      fc.tuple(ruleSetName, rule).map(([name, given]) => ({ ruleset_name: name, ...given })),
    ),
  },
  {
    weight: 3,
    arbitrary: called(
      'create-deny-rule',
      fc
        .tuple(ruleSetName, rule, fc.boolean())
        .map(([name, given, override]) => ({ ruleset_name: name, ...given, override })),
    ),
  },
  { weight: 2, arbitrary: called('update-workload', fc.record({ name: host, labels })) },
  called('update-workload', fc.record({ name: host, enforcement_mode: mode })),
  called(
    'create-workload',
    fc.record({
      name: one('extra 1', 'extra 2'),
      labels,
      ip_addresses: fc.array(one('10.2.0.1', '10.9.9.9'), { minLength: 1, maxLength: 1 }),
    }),
  ),
  called('delete-workload', fc.record({ name: one('extra 1', 'extra 2', ...NAMES) })),
  called('label-workloads', fc.record({ workloads: fc.array(host, { minLength: 1, maxLength: 2 }), set: labels })),
  called('set-enforcement-mode', fc.record({ app_name: app, env_name: env, enforcement_mode: mode })),
  called('create-iplist', fc.constant({ name: 'own', ip_ranges: [{ from_ip: '192.0.2.0/24' }] })),
  called('update-iplist', fc.constant({ name: 'own', ip_ranges: [{ from_ip: '10.0.0.0/8' }] })),
  called('discard-draft-changes', fc.constant({ all: true })),
  called('restore-policy-version', fc.constant({ version: 1 })),
  { weight: 2, arbitrary: called('provision-policy', fc.constant({ all_pending: true, include_dependencies: true })) },
)
const sequence = fc.record({
  group: one<Group>('payments', 'shop'),
  calls: fc.array(call, { minLength: 2, maxLength: 5 }),
})

t.test('no decision changes on a flow without an end inside the scopes of the caller', async (t) => {
  const estate = () => handMade({ hosts, flows, ruleSets })
  let service = await startScoped(t, GROUPS, estate())
  let pce = clientOf(service)
  const outcomes: Record<string, number> = {}
  const decisions = async () =>
    new Map((await everyFlow(pce)).map((flow) => [idOf(flow), { flow, is: flow.policy_decision }] as const))
  let before = await decisions()
  t.equal(new Set([...before.values()].map(({ is }) => is)).size > 1 && before.size > 80, true, `${before.size} flows`)
  let at = 0
  for (const { group, calls } of fc.sample(sequence, { numRuns: SEQUENCES, seed: 20261129 })) {
    // A new estate now and then, so that what is written does not bury what could be reached.
    if (at > 0 && at % 25 === 0) {
      await service.app.close()
      service = await startScoped(t, GROUPS, estate())
      pce = clientOf(service)
      before = await decisions()
    }
    at += 1
    const said: string[] = []
    for (const [tool, args] of [
      ...calls,
      ['provision-policy', { all_pending: true, include_dependencies: true }] as Call,
    ]) {
      const answer: Json = await service.call(group, tool, args)
      const outcome = String(answer.error?.code ?? answer.error ?? 'ok')
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1
      said.push(`${tool} ${JSON.stringify(args)}: ${outcome}`)
    }
    const after = await decisions()
    const changed = [...before].flatMap(([id, { flow, is }]) => {
      const now = after.get(id)?.is
      const isOwn = [flow.src, flow.dst].some((side) => isInside(group, labelsOf(side)))
      return isOwn || now === is ? [] : [`${id}: ${is} → ${now}`]
    })
    t.same(changed, [], `${group}: ${said.join('\n')}`)
    if (changed.length > 0) break
    before = after
  }
  process.stderr.write(`${JSON.stringify(outcomes)} of ${before.size} flows\n`)
  t.ok((outcomes.ok ?? 0) > SEQUENCES && (outcomes.out_of_scope ?? 0) > SEQUENCES, JSON.stringify(outcomes))
})

const labelsOf = ({ workload }: TrafficFlow['src']): Record<string, string> =>
  Object.fromEntries((workload?.labels ?? []).map(({ key, value }) => [key, value]))

const idOf = ({ src, dst, service: { port, proto }, flow_direction: direction }: TrafficFlow) =>
  [src.ip, dst.ip, port, proto, direction].join()

/** A client of the service's PCE with its own key. */
function clientOf({ config, pce: { simulator } }: Awaited<ReturnType<typeof startScoped>>) {
  const { pce } = config as SharedConfig
  const client = createPceClient({ url: '127.0.0.1', port: Number(pce.port) })
  client.setCredentials(simulator.credentials.key, simulator.credentials.secret)
  client.setTlsSettings(pce.tls.caFile ?? true)
  return client
}

const everyFlow = (pce: ReturnType<typeof clientOf>): Promise<TrafficFlow[]> =>
  pce.getTrafficFlowsAsync('reach', {
    start_date: '2026-05-16T00:00:00Z',
    end_date: '2026-06-15T23:59:59Z',
    sources: { include: [[]], exclude: [] },
    destinations: { include: [[]], exclude: [] },
    services: { include: [], exclude: [] },
    policy_decisions: [],
  })
