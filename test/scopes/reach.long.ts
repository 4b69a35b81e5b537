/**
 * Nobody reaches beyond their scopes: over random sequences of calls of scoped callers, with provisioning and what is
 * confirmed or approved by a person, at once or after other calls, the simulator never decides otherwise about a flow
 * that has no end inside the caller's scopes. The callers are admins, so only their scopes stop them; their calls are
 * aimed at everything, more often at what is theirs. What the platform team does in between may change any decision.
 * The decisions are the simulator's own, of all flows, after each call that sent a write.
 */
import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import t from 'tap'
import type { TrafficFlow } from '../../schemas/pce/traffic.js'
import type { Json } from '../contract/authenticated-service.js'
import { handMade, type HandMadeFlow, type HandMadeHost } from '../tools/hand-made.js'
import { isAsked, isWrite, startScoped } from './scoped-service.js'

/** `SEQUENCES=2000` runs more of them, which takes several minutes of processor time. */
const SEQUENCES = Number(process.env.SEQUENCES ?? 300)
/** Sequences on one estate, so that what is written does not bury what could be reached. */
const ON_ONE_ESTATE = 50
const APPS = ['payments', 'shop', 'hr']
const ENVS = ['prod', 'dev']
const GROUPS = {
  payments: { scopes: [{ app: 'payments' }], extra: true, create: ['ip_lists', 'services', 'label_groups'] },
  shop: { scopes: [{ app: 'shop', env: 'prod' }] },
  core: { scopes: '*' },
}
type Group = keyof typeof GROUPS

/** Whether an end with these labels is inside the group's scope. */
const isInside = (group: Group, labels: Record<string, string>) =>
  group === 'core' || (labels.app === group && (group === 'payments' || labels.env === 'prod'))

const hosts: Record<string, HandMadeHost> = {
  'payments-prod': { ip: '10.0.0.1', labels: 'app=payments env=prod', mode: 'full' },
  'payments-prod-2': { ip: '10.0.0.2', labels: 'app=payments env=prod', mode: 'selective' },
  'payments-dev': { ip: '10.0.1.1', labels: 'app=payments env=dev', mode: 'visibility_only' },
  'shop-prod': { ip: '10.1.0.1', labels: 'app=shop env=prod', mode: 'full' },
  'shop-prod-2': { ip: '10.1.0.2', labels: 'app=shop env=prod', mode: 'visibility_only' },
  'shop-dev': { ip: '10.1.1.1', labels: 'app=shop env=dev', mode: 'selective' },
  'hr-prod': { ip: '10.2.0.1', labels: 'app=hr env=prod', mode: 'full' },
}
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
/** Virtual services that the platform team offers, and the workload bound to each. `vs:NAME` is one as the end of a rule. */
const OFFERED = {
  'payments vs': { labels: ['app=payments', 'env=dev'], workload: 'payments-dev' },
  'shop vs': { labels: ['app=shop', 'env=prod'], workload: 'shop-prod' },
  'shared vs': { labels: ['app=payments', 'env=prod'], workload: 'hr-prod' },
}

type Call = [tool: string, args: object]
const PROVISION: Call = ['provision-policy', { all_pending: true, include_dependencies: true }]

const one = <T>(...values: T[]) => fc.constantFrom(...values)
const called = (tool: string, args: fc.Arbitrary<object>): fc.Arbitrary<Call> => args.map((given) => [tool, given])
const some = <T>(values: fc.Arbitrary<T>) => fc.array(values, { minLength: 1, maxLength: 2 })

/** Calls aimed at everything, three times as often at the application. */
function callsAimedAt(own: string): fc.Arbitrary<Call> {
  const mostly = (all: readonly string[], isOwn: (name: string) => boolean) =>
    fc.oneof({ weight: 3, arbitrary: one(...all.filter(isOwn)) }, one(...all))
  const app = mostly(APPS, (name) => name === own)
  const env = mostly(ENVS, (name) => name === 'prod')
  const host = mostly(NAMES, (name) => name.startsWith(own))
  const ruleSetName = mostly(
    [...ruleSets.map(({ name }) => name), 'new 1', 'new 2'],
    (name) => name.startsWith(own) || name.startsWith('new'),
  )
  const virtual = mostly([...Object.keys(OFFERED), 'new vs'], (name) => name.startsWith(own) || name === 'new vs')
  const labels = fc.tuple(app, env).map(([a, e]) => [`app=${a}`, `env=${e}`])
  const scope = fc.oneof(
    { weight: 6, arbitrary: labels },
    app.map((a) => [`app=${a}`]),
    env.map((e) => [`env=${e}`]),
    fc.tuple(app, env).map(([a, e]) => [`!app=${a}`, `env=${e}`]),
    fc.constant<string[]>([]),
  )
  const scopes = some(scope)
  const end = fc.oneof(
    { weight: 4, arbitrary: fc.constant('ams') },
    one('iplist:Any (0.0.0.0/0 and ::/0)', 'iplist:own', 'labelgroup:mine'),
    app.map((a) => `app=${a}`),
    host.map((name) => `workload:${name}`),
    mostly(Object.keys(OFFERED), (name) => name.startsWith(own)).map((name) => `vs:${name}`),
  )
  const rule = fc.record(
    {
      providers: some(end),
      consumers: some(end),
      ingress_services: one(...PORTS).map((port) => [{ port, proto: 'tcp' }]),
      unscoped_consumers: fc.boolean(),
    },
    { requiredKeys: ['providers', 'consumers', 'ingress_services'] },
  )
  const mode = one('visibility_only', 'selective', 'full')
  const addresses = one(...Object.values(hosts).map(({ ip }) => ip), '10.9.9.9').map((ip) => [ip])
  return fc.oneof(
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
      weight: 8,
      arbitrary: called(
        'create-rule',
        fc.tuple(ruleSetName, rule).map(([name, given]) => ({ ruleset_name: name, ...given })),
      ),
    },
    {
      weight: 4,
      arbitrary: called(
        'create-deny-rule',
        fc
          .tuple(ruleSetName, rule, fc.boolean())
          .map(([name, given, override]) => ({ ruleset_name: name, ...given, override })),
      ),
    },
    { weight: 2, arbitrary: called('update-workload', fc.record({ name: host, labels })) },
    called('update-workload', fc.record({ name: host, enforcement_mode: mode })),
    called('create-workload', fc.record({ name: one('extra 1', 'extra 2'), labels, ip_addresses: addresses })),
    called('delete-workload', fc.record({ name: one('extra 1', 'extra 2', ...NAMES) })),
    called('label-workloads', fc.record({ workloads: some(host), set: labels })),
    called('set-enforcement-mode', fc.record({ app_name: app, env_name: env, enforcement_mode: mode })),
    called('create-iplist', fc.constant({ name: 'own', ip_ranges: [{ from_ip: '192.0.2.0/24' }] })),
    called('update-iplist', fc.constant({ name: 'own', ip_ranges: [{ from_ip: '10.0.0.0/8' }] })),
    called('create-label-group', fc.record({ name: fc.constant('mine'), labels: some(app.map((a) => `app=${a}`)) })),
    called(
      'create-virtual-service',
      fc.record({
        name: fc.constant('new vs'),
        labels,
        service_ports: fc.constant([{ port: 443, proto: 'tcp' }]),
        service_addresses: addresses.map(([ip]) => [{ ip }]),
      }),
    ),
    called('update-virtual-service', fc.record({ name: virtual, labels })),
    called('bind-workloads', fc.record({ virtual_service: virtual, workloads: some(host), unbind: fc.boolean() })),
    called('discard-draft-changes', fc.constant({ all: true })),
    called('restore-policy-version', fc.constant({ version: 1 })),
    { weight: 2, arbitrary: fc.constant(PROVISION) },
  )
}

/** A call; `late` if it runs after the others of its sequence, confirmed before them. `approver` decides on the page. */
interface Step {
  group: Group
  call: Call
  late: boolean
  approver: Group
}
const stepOf = (group: Group, aim: string): fc.Arbitrary<Step> =>
  fc.record({
    group: fc.constant(group),
    call: callsAimedAt(aim),
    late: fc.boolean(),
    approver: one<Group>('payments', 'shop', 'core'),
  })
const step = fc.oneof(
  { weight: 5, arbitrary: stepOf('payments', 'payments') },
  { weight: 5, arbitrary: stepOf('shop', 'shop') },
  stepOf('core', 'payments'),
)

/** On every other estate, a person on the page approves these calls, beside those that are always confirmed. */
const APPROVED = {
  approval: { method: 'page', ttlSeconds: 900, maxAgeSeconds: 0 } as const,
  tools: ['create-rule', 'create-ruleset', 'update-ruleset', 'delete-ruleset', 'update-workload'],
}
type Service = Awaited<ReturnType<typeof startScoped>>

const SEQUENCES_OF = fc.sample(fc.array(step, { minLength: 2, maxLength: 3 }), { numRuns: SEQUENCES, seed: 20261129 })
const outcomes: Record<string, number> = {}
/** The decisions that limited callers changed on flows of their own. */
const reached = { confirmed: 0, approved: 0 }

t.setTimeout(0)
for (const way of ['confirmed', 'approved'] as const)
  t.test(`no decision changes on a flow without an end inside the scopes of the caller, ${way}`, async (t) => {
    const service = await startScoped(t, GROUPS, handMade({ hosts, flows, ruleSets }), undefined, {
      tls: undefined,
      isSilent: true,
      ...(way === 'approved' && { confirmed: APPROVED }),
    })
    const begun = decisionsOf(service)
    t.equal(begun.size, flows.length)
    let faults = 0
    let named: Naming | undefined
    let before = begun
    for (const [at, sequence] of SEQUENCES_OF.entries()) {
      if (Math.floor(at / ON_ONE_ESTATE) % 2 !== (way === 'confirmed' ? 0 : 1)) continue
      if (named === undefined || at % ON_ONE_ESTATE === 0) {
        if (named !== undefined) await service.pce.renew()
        if (!isDeepStrictEqual(decisionsOf(service), begun)) t.fail('another estate than in the beginning')
        named = await offerVirtualServices(service)
        before = decisionsOf(service)
      }
      const { simulator } = service.pce
      const said: string[] = []
      const judge = ({ group }: Step, [tool, args]: Call, answer: Json) => {
        const outcome = String(answer.error?.code ?? answer.error ?? 'ok')
        outcomes[outcome] = (outcomes[outcome] ?? 0) + 1
        said.push(`${group} ${tool} ${JSON.stringify(args)}: ${outcome}`)
        if (!simulator.requests.some(isWrite)) return
        simulator.clearRequests()
        const after = decisionsOf(service)
        const changed = [...before].filter(([id, { is }]) => after.get(id)?.is !== is)
        if (group !== 'core') reached[way] += changed.length
        const outside = changed.filter(([, { ends }]) => !ends.some((labels) => isInside(group, labels)))
        before = after
        if (outside.length > 0) t.fail(outside.map(([id, { is }]) => `${id} was ${is}`).join(), { number: at, said })
        faults += outside.length
      }
      const waiting: (() => Promise<void>)[] = []
      for (const step of [...sequence, provisioningAfter(sequence)]) {
        if (step.call === PROVISION && simulator.state.pendingHrefs().length === 0) continue
        const call = named(step.call)
        const token = await service.tokenOf(step.group)
        const answer: Json = await service.sendCall(token, ...call)
        if (!isAsked(answer)) {
          judge(step, call, answer)
          continue
        }
        const given = await service.confirmAs(step.group, answer, step.approver)
        const repeat = async () => judge(step, call, await service.sendCall(token, ...call, given))
        if (step.late) waiting.push(repeat)
        else await repeat()
      }
      for (const repeat of waiting) await repeat()
      // What is left pending outside is judged with each further provisioning, which takes most of the time.
      if (simulator.state.pendingHrefs().length > 2) {
        await service.call('core', 'discard-draft-changes', { all: true })
        simulator.clearRequests()
        before = decisionsOf(service)
      }
    }
    t.equal(faults, 0)
  })

t.test('the calls reach what is inside, in both ways, and are refused outside', (t) => {
  process.stderr.write(`${JSON.stringify({ sequences: SEQUENCES, outcomes, reached })}\n`)
  const { ok = 0, out_of_scope: refused = 0 } = outcomes
  t.ok(ok > SEQUENCES && refused > SEQUENCES / 2, 'calls inside and outside')
  t.ok(reached.confirmed > SEQUENCES / 4, 'decisions inside change with calls that are confirmed')
  t.ok(reached.approved > SEQUENCES / 4, 'and with calls that a person approves')
  t.end()
})

/** The provisioning with which a sequence ends, by the last limited group that called. */
function provisioningAfter(sequence: readonly Step[]): Step {
  const { group = 'payments', approver = 'core' } = sequence.findLast((step) => step.group !== 'core') ?? {}
  return { group, call: PROVISION, late: false, approver }
}

/** Creates the virtual services that are offered. Returns what puts their hrefs into a call, as the ends of rules. */
type Naming = (call: Call) => Call
async function offerVirtualServices(service: Service): Promise<Naming> {
  const hrefs = new Map<string, string>()
  const done = async (...call: Call): Promise<Json> => {
    const answer = await service.call('core', ...call)
    if (answer.error !== undefined) throw new Error(`${call[0]}: ${JSON.stringify(answer)}`)
    return answer
  }
  for (const [name, { labels }] of Object.entries(OFFERED)) {
    const given = { name, labels, service_ports: [{ port: 443, proto: 'tcp' }] }
    hrefs.set(name, (await done('create-virtual-service', given)).href as string)
  }
  await done(...PROVISION)
  for (const [name, { workload }] of Object.entries(OFFERED))
    await done('bind-workloads', { virtual_service: name, workloads: [workload] })
  return ([tool, args]) => {
    const text = JSON.stringify(args).replaceAll(/"vs:([^"]+)"/g, (_, name: string) => JSON.stringify(hrefs.get(name)))
    return [tool, JSON.parse(text) as object]
  }
}

/** The simulator's decision on each flow of this moment, with the labels of its ends. */
const decisionsOf = ({ pce: { simulator } }: Service) =>
  new Map(
    simulator.state
      .flows()
      .map((flow) => [idOf(flow), { is: flow.policy_decision, ends: [flow.src, flow.dst].map(labelsOf) }] as const),
  )

const labelsOf = ({ workload }: TrafficFlow['src']): Record<string, string> =>
  Object.fromEntries((workload?.labels ?? []).map(({ key, value }) => [key, value]))

const idOf = ({ src, dst, service: { port, proto }, flow_direction: direction }: TrafficFlow) =>
  [src.ip, dst.ip, port, proto, direction].join()
