/**
 * Changes of policy by chance, made through the API of a simulated PCE, described by compare-draft-active, and held against what
 * the simulator does with every connection before and after. Its evaluator shares no code with the tools.
 *
 * What else is provisioned decides whether a change matters, so each is tried beside nothing, beside a rule that allows everything
 * and beside one that denies everything: these tell apart the four things that rules can do to a connection at an end (override
 * deny, deny, nothing, allow). Whoever says nothing about a change that does the same one thing in all of them could have known.
 */
import fc from 'fast-check'
import type { Test } from 'tap'
import type { IpList } from '../../schemas/pce/ip-list.js'
import type { Label } from '../../schemas/pce/label.js'
import type { EnforcementBoundary, RuleSet } from '../../schemas/pce/rule-set.js'
import type { Service } from '../../schemas/pce/service.js'
import type { Workload } from '../../schemas/pce/workload.js'
import type { PolicyView } from '../../pce-simulator/model.js'
import { createEvaluator } from '../../pce-simulator/policy/evaluate.js'
import { startBench, type Bench, type Json } from './harness.js'
import { handMade, type HandMadeHost } from './hand-made.js'

const ROLES = ['a', 'b', '']
const APPS = ['x', 'y', '']
const ENVS = ['p', '']
const words = (role: string, app: string, env: string) =>
  [role && `role=${role}`, app && `app=${app}`, env && `env=${env}`].filter(Boolean).join(' ')

/** Workloads with every combination of labels: enforced ones outside the lists but for the halves of everything, others inside. */
function hosts(): Record<string, HandMadeHost> {
  const made: Record<string, HandMadeHost> = {}
  let n = 0
  for (const role of ROLES)
    for (const app of APPS)
      for (const env of ENVS) {
        n += 1
        const labels = words(role, app, env)
        made[`in-${n}`] = { ip: `172.16.0.${n}`, labels, mode: 'selective' }
        made[`out-${n}`] = { ip: `10.0.0.${n}`, labels, managed: false }
      }
  return made
}

/** One address of every part of the address space that the ranges below cut out. */
const ADDRESSES = [
  '198.51.100.1',
  '198.51.100.9',
  '198.51.100.200',
  '203.0.113.1',
  '10.0.0.200',
  '8.8.8.8',
  '192.0.2.1',
  '2001:db8::1',
  '2a00::1',
]
const RANGES = [
  { from_ip: '198.51.100.0/24' },
  { from_ip: '198.51.100.0/25' },
  { from_ip: '198.51.100.128', to_ip: '198.51.100.255' },
  { from_ip: '203.0.113.0/24' },
  { from_ip: '10.0.0.0/24' },
  { from_ip: '0.0.0.0/1' },
  { from_ip: '128.0.0.0/1' },
  { from_ip: '0.0.0.0/0' },
  { from_ip: '2001:db8::/32' },
  { from_ip: '::/0' },
]
const EXCEPTION = { from_ip: '198.51.100.9', exclusion: true }

export const PORTS = [
  { port: 1, proto: 6 },
  { port: 2, to_port: 3, proto: 6 },
  { port: 3, proto: 6 },
  { port: 1, to_port: 4, proto: 6 },
  { port: 1, proto: 17 },
]
/** A service of every part that these cut out, and one that is only in All Services. */
const SEEN = [...[1, 2, 3, 4].map((port) => ({ port, proto: 6 })), { port: 1, proto: 17 }, { proto: 47 }]

/** Everything a policy of the world may refer to, by name. */
export interface World extends Bench {
  refs: Record<string, object>
  hrefs: Record<string, string>
  labels: ReadonlyMap<string, Label>
  workloads: ReadonlyMap<string, Workload>
}

export async function startWorld(t: Test): Promise<World> {
  const estate = handMade({ hosts: hosts() })
  const bench = await startBench(t, { estate })
  const { pce } = bench
  const refs: World['refs'] = { ams: { actors: 'ams' } }
  const hrefs: World['hrefs'] = {}
  const labels = new Map(estate.labels.map((label) => [label.href, label]))
  const workloads = new Map(estate.workloads.map((workload) => [workload.href, workload]))
  for (const { href, key, value } of estate.labels) refs[`${key}=${value}`] = { label: { href } }
  for (const name of ['in-1', 'in-8', 'out-1']) {
    refs[name] = { workload: { href: estate.workloads.find((one) => one.name === name)!.href } }
  }
  for (const name of ['one', 'two']) {
    hrefs[name] = (await pce.ipLists.create({ name, ip_ranges: [RANGES[0]] })).href
    refs[name] = { ip_list: { href: hrefs[name] } }
  }
  const every = (await pce.ipLists.getAll()).find(({ name }) => name.startsWith('Any'))!
  hrefs.any = every.href
  refs.any = { ip_list: { href: every.href } }
  hrefs.served = (await pce.services.create({ name: 'served', service_ports: [PORTS[1]] })).href
  hrefs['All Services'] = (await pce.services.getAll()).find(({ name }) => name === 'All Services')!.href
  const role = (value: string) => (refs[`role=${value}`] as { label: object }).label
  hrefs.inner = (await pce.labelGroups.create({ name: 'inner', key: 'role', labels: [role('b')] })).href
  const outer = { name: 'outer', key: 'role', labels: [role('a')], sub_groups: [{ href: hrefs.inner }] }
  hrefs.outer = (await pce.labelGroups.create(outer)).href
  refs.inner = { label_group: { href: hrefs.inner } }
  refs.outer = { label_group: { href: hrefs.outer } }
  await pce.provisionPolicyChanges('the world', bench.simulator.state.pendingHrefs())
  return { ...bench, refs, hrefs, labels, workloads }
}

// What may change, in words of the world.

const LABELS = ['role=a', 'role=b', 'app=x', 'app=y', 'env=p']
const anyActor = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom(...LABELS) },
  { weight: 2, arbitrary: fc.constantFrom(...LABELS, 'outer').map((name) => `!${name}`) },
  { weight: 2, arbitrary: fc.constantFrom('inner', 'outer') },
  { weight: 2, arbitrary: fc.constant('ams') },
  { weight: 3, arbitrary: fc.constantFrom('one', 'two', 'any') },
  { weight: 2, arbitrary: fc.constantFrom('in-1', 'in-8', 'out-1') },
)
/** All workloads next to an exception is refused by no schema and defined by no document. */
const isDefined = (end: string[]) => !(end.includes('ams') && end.some((name) => name.startsWith('!')))
const anyEnd = fc.uniqueArray(anyActor, { minLength: 1, maxLength: 3 }).filter(isDefined)
const anyServices = fc.subarray<object | string>([...PORTS, 'served', 'All Services'], { minLength: 1, maxLength: 3 })
export const anyRule = fc.record({
  enabled: fc.constantFrom(true, true, true, true, false),
  providers: anyEnd,
  consumers: anyEnd,
  services: anyServices,
  unscoped: fc.boolean(),
  kind: fc.constantFrom<'allow' | 'deny' | 'override'>('allow', 'allow', 'deny', 'override'),
})
export type RuleModel = typeof anyRule extends fc.Arbitrary<infer T> ? T : never
const anyCondition = fc.tuple(fc.constantFrom(...LABELS, 'inner', 'outer'), fc.constantFrom('', '', '', '!'))
const keyOf = (name: string) => (name.includes('=') ? name.slice(0, name.indexOf('=')) : 'role')
const anyScope = fc
  .uniqueArray(anyCondition, { maxLength: 2, selector: ([name]) => keyOf(name) })
  .map((scope) => scope.map(([name, not]) => `${not}${name}`))
export const anyScopes = fc.array(anyScope, { minLength: 1, maxLength: 2 })

/** How a part of a policy changes: mostly by what is added or taken away. */
const grown = <T>(items: fc.Arbitrary<T[]>): fc.Arbitrary<(before: T[]) => T[]> =>
  fc.tuple(items, fc.constantFrom('more', 'less', 'other')).map(([other, how]) => (before: T[]) => {
    const known = new Set(before.map((one) => JSON.stringify(one)))
    if (how === 'more') return [...before, ...other.filter((one) => !known.has(JSON.stringify(one)))]
    return how === 'less' && before.length > 1 ? before.slice(1) : other
  })
const often = <T>(change: fc.Arbitrary<(before: T[]) => T[]>) =>
  fc.oneof(
    fc.constant((before: T[]) => before),
    change,
  )

export const anyEdit = fc
  .record({
    providers: often(grown(anyEnd)),
    consumers: often(grown(anyEnd)),
    services: often(grown(anyServices)),
    flag: fc.constantFrom<keyof RuleModel | 'override' | ''>('', '', '', '', '', 'unscoped', 'enabled', 'override'),
  })
  .map(({ providers, consumers, services, flag }) => (rule: RuleModel): RuleModel | null => {
    const next = {
      ...rule,
      providers: providers(rule.providers),
      consumers: consumers(rule.consumers),
      services: services(rule.services),
      ...(flag === 'unscoped' && { unscoped: !rule.unscoped }),
      ...(flag === 'enabled' && { enabled: !rule.enabled }),
      ...(flag === 'override' &&
        rule.kind !== 'allow' && { kind: rule.kind === 'deny' ? ('override' as const) : ('deny' as const) }),
    }
    return isDefined(next.providers) && isDefined(next.consumers) ? next : rule
  })
const gone = fc.constant((): RuleModel | null => null)

const part = <K extends string, T>(kind: K, change: fc.Arbitrary<T>) => change.map((value) => ({ kind, value }))
export const anyRanges = fc
  .tuple(fc.subarray(RANGES, { minLength: 1, maxLength: 3 }), fc.constantFrom(false, false, true))
  .map(([ranges, but]): object[] => (but ? [...ranges, EXCEPTION] : ranges))
export const anyMembers = fc.subarray(['role=a', 'role=b'], { minLength: 1 })

/** A policy and one change of it. */
export const anyChange = fc.record({
  scopes: anyScopes,
  rules: fc.array(anyRule, { minLength: 1, maxLength: 3 }),
  enabled: fc.constantFrom(true, true, true, true, true, false),
  objects: fc.record({
    one: anyRanges,
    two: anyRanges,
    served: fc.subarray(PORTS, { minLength: 1 }),
    inner: anyMembers,
  }),
  change: fc.oneof(
    { weight: 6, arbitrary: part('edit a rule', anyEdit) },
    { weight: 1, arbitrary: part('edit a rule', gone) },
    { weight: 2, arbitrary: part('add a rule', anyRule) },
    { weight: 4, arbitrary: part('scopes', grown(anyScopes)) },
    { weight: 1, arbitrary: part('switch', fc.constant(null)) },
    { weight: 1, arbitrary: part('create', fc.constant(null)) },
    { weight: 1, arbitrary: part('delete', fc.constant(null)) },
    { weight: 2, arbitrary: part('one', grown(anyRanges)) },
    { weight: 1, arbitrary: part('two', grown(anyRanges)) },
    { weight: 2, arbitrary: part('served', grown(fc.subarray(PORTS, { minLength: 1 }))) },
    { weight: 2, arbitrary: part('inner', grown(anyMembers)) },
    { weight: 1, arbitrary: part('boundary', fc.tuple(anyRule, anyEdit)) },
  ),
})
export type ChangeModel = typeof anyChange extends fc.Arbitrary<infer T> ? T : never

// What it is to a PCE.

const actorsOf = ({ refs }: World, names: string[]) =>
  names.map((name) => (name.startsWith('!') ? { ...refs[name.slice(1)], exclusion: true } : refs[name]!))

function sides(world: World, { providers, consumers, services }: RuleModel) {
  return {
    providers: actorsOf(world, providers),
    consumers: actorsOf(world, consumers),
    ingress_services: services.map((one) => (typeof one === 'string' ? { href: world.hrefs[one]! } : one)),
  }
}

export function bodyOf(world: World, rule: RuleModel) {
  return {
    ...sides(world, rule),
    enabled: rule.enabled,
    unscoped_consumers: rule.unscoped,
    ...(rule.kind === 'allow'
      ? { resolve_labels_as: { providers: ['workloads'], consumers: ['workloads'] } }
      : { override: rule.kind === 'override' }),
  }
}

export const api = (world: World, kind: string) => (kind === 'allow' ? world.pce.rules : world.pce.denyRules)
export const scopesOf = (world: World, scopes: string[][]) => scopes.map((scope) => actorsOf(world, scope))
const put = (world: World, href: string, json: object) => world.pce.put(href, { includeOrg: false, json })

export function objectBody(world: World, name: string, parts: unknown[]): object {
  if (name === 'served') return { service_ports: parts }
  if (name === 'inner')
    return { labels: actorsOf(world, parts as string[]).map((one) => (one as { label: object }).label) }
  return { ip_ranges: parts }
}

async function createRuleSet(
  world: World,
  { scopes, rules, enabled }: Pick<ChangeModel, 'scopes' | 'rules' | 'enabled'>,
) {
  const { href } = await world.pce.ruleSets.create({
    name: 'judged',
    scopes: scopesOf(world, scopes),
    enabled,
  })
  const hrefs: string[] = []
  for (const rule of rules) hrefs.push((await api(world, rule.kind).create(bodyOf(world, rule), href)).href)
  return { href, rules: hrefs }
}

const provision = async (world: World) => {
  const pending = world.simulator.state.pendingHrefs()
  if (pending.length > 0) await world.pce.provisionPolicyChanges('so far', pending)
}

/** Provisions the policy, makes the change in the draft, and hands over what the tool says of it with both versions. */
async function applyChange(world: World, model: ChangeModel) {
  const { pce } = world
  const { change } = model
  for (const [name, parts] of Object.entries(model.objects))
    await put(world, world.hrefs[name]!, objectBody(world, name, parts))
  let made = change.kind === 'create' || change.kind === 'boundary' ? undefined : await createRuleSet(world, model)
  const body = ([rule]: readonly [RuleModel, unknown]) => ({ ...sides(world, rule), enabled: rule.enabled })
  let boundary: string | undefined
  if (change.kind === 'boundary') {
    const [rule] = change.value
    const plain = (names: string[]) => names.filter((name) => !name.startsWith('!'))
    const fit = {
      ...rule,
      providers: [...plain(rule.providers), 'role=a'],
      consumers: [...plain(rule.consumers), 'role=b'],
    }
    boundary = (await pce.enforcementBoundaries.create({ name: 'judged', ...body([fit, null]) })).href
  }
  await provision(world)
  const before = readView(world, 'active')

  switch (change.kind) {
    case 'edit a rule': {
      const [rule] = model.rules as [RuleModel]
      const next = change.value(rule)
      if (next === null) await pce.delete(made!.rules[0]!, { includeOrg: false })
      else await put(world, made!.rules[0]!, bodyOf(world, next))
      break
    }
    case 'add a rule':
      await api(world, change.value.kind).create(bodyOf(world, change.value), made!.href)
      break
    case 'scopes':
      await put(world, made!.href, { scopes: scopesOf(world, change.value(model.scopes)) })
      break
    case 'switch':
      await put(world, made!.href, { enabled: !model.enabled })
      break
    case 'create':
      made = await createRuleSet(world, model)
      break
    case 'delete':
      await pce.delete(made!.href, { includeOrg: false })
      break
    case 'boundary': {
      const [rule, edit] = change.value
      const next = edit({ ...rule, kind: 'deny' })
      const plain = (names: string[]) => names.filter((name) => !name.startsWith('!'))
      if (next === null) break
      const fit = {
        ...next,
        providers: [...plain(next.providers), 'role=a'],
        consumers: [...plain(next.consumers), 'role=b'],
      }
      await put(world, boundary!, body([fit, null]))
      break
    }
    default: {
      const known = model.objects as Record<string, unknown[]>
      const next = (change.value as (before: unknown[]) => unknown[])(known[change.kind]!)
      await put(world, world.hrefs[change.kind]!, objectBody(world, change.kind, next))
    }
  }
  const answer = await world.ok('compare-draft-active')
  const rows = Object.values(answer.changes as Record<string, Json[]>).flat()
  const result = { rows, before, after: readView(world, 'draft') }
  await pce.discardPendingPolicyChanges()
  for (const href of [made?.href, boundary]) {
    if (href === undefined) continue
    if (world.simulator.state.find(href) !== undefined) await pce.delete(href, { includeOrg: false })
  }
  await provision(world)
  return result
}

/** The judged objects of one version, as the PCE shows them. */
function readView({ simulator, hrefs }: World, version: 'draft' | 'active'): PolicyView {
  const find = <T>(href: string) => simulator.state.find(href.replace('/draft/', `/${version}/`)) as T | undefined
  const list = <T extends { name?: string; update_type?: string | null }>(kind: string) =>
    ((simulator.state.find(`/orgs/1/sec_policy/${version}/${kind}`) ?? []) as unknown as T[]).filter(
      (one) => one.name === 'judged' && one.update_type !== 'delete',
    )
  const named = <T>(names: string[]) => new Map(names.map((name) => [hrefs[name]!, find<T>(hrefs[name]!)!]))
  const members = (href: string): string[] => {
    const group = find<{ labels?: { href: string }[]; sub_groups?: { href: string }[] }>(href)!
    return [
      ...(group.labels ?? []).map((one) => one.href),
      ...(group.sub_groups ?? []).flatMap((one) => members(one.href)),
    ]
  }
  return {
    ruleSets: list<RuleSet>('rule_sets'),
    boundaries: list<EnforcementBoundary>('enforcement_boundaries'),
    ipLists: named<IpList>(['one', 'two', 'any']),
    services: named<Service>(['served', 'All Services']),
    labelGroups: new Map(['inner', 'outer'].map((name) => [hrefs[name]!, members(hrefs[name]!)])),
  }
}

// What it truly does.

/** Rules beside the judged ones: none, one that allows everything, one that denies everything. */
function surroundings({ refs, hrefs }: World): RuleSet[][] {
  const everyone = [refs.ams, refs.any]
  const rule = {
    href: '/surrounding',
    enabled: true,
    providers: everyone,
    consumers: everyone,
    unscoped_consumers: true,
  }
  const services = { ingress_services: [{ href: hrefs['All Services'] }] }
  const resolved = { resolve_labels_as: { providers: ['workloads'], consumers: ['workloads'] } }
  const set = { href: '/surroundings', name: 's', enabled: true, scopes: [[]] }
  return [
    [],
    [{ ...set, rules: [{ ...rule, ...services, ...resolved }] }],
    [{ ...set, deny_rules: [{ ...rule, ...services, override: false }] }],
  ] as unknown as RuleSet[][]
}

/** Whether the change opens connections, and whether it closes some, in any surroundings. */
export function truthOf(world: World, before: PolicyView, after: PolicyView) {
  const truth = { opens: false, closes: false }
  const ends = [
    ...[...world.workloads.values()].map(({ href, interfaces }) => ({ workload: href, ip: interfaces![0]!.address! })),
    ...ADDRESSES.map((ip) => ({ ip })),
  ]
  for (const around of surroundings(world)) {
    const [was, is] = [before, after].map((view) =>
      createEvaluator({ ...view, ruleSets: [...view.ruleSets, ...around] }, world.workloads, world.labels),
    ) as [ReturnType<typeof createEvaluator>, ReturnType<typeof createEvaluator>]
    for (const src of ends)
      for (const dst of ends) {
        if (src === dst) continue
        for (const service of SEEN) {
          const connection = { src, dst, service, flowDirection: 'inbound' as const }
          const [a, b] = [was(connection).decision, is(connection).decision]
          if (a !== b) truth[b === 'allowed' ? 'opens' : 'closes'] = true
        }
      }
    if (truth.opens && truth.closes) break
  }
  return truth
}

/** What the tool said of a change beside what is true. */
export interface Judged {
  /** undefined: undecided. */
  said: string | undefined
  /** undefined: it opens and closes, which of them depends on the other rules. */
  truth: 'widening' | 'narrowing' | 'neutral' | undefined
  verdict: 'right' | 'rightly open' | 'contradiction' | 'overstated' | 'undecided'
}

/** Judges one change; undefined where the change left the draft as it was. */
export async function judgeChange(world: World, model: ChangeModel): Promise<Judged | undefined> {
  const { rows, before, after } = await applyChange(world, model)
  if (rows.length === 0) return undefined
  if (rows.length > 1 || rows[0].diff_error !== undefined) throw new Error(JSON.stringify(rows))
  const said = rows[0].effect as string | undefined
  const { opens, closes } = truthOf(world, before, after)
  const truth = opens && closes ? undefined : opens ? 'widening' : closes ? 'narrowing' : 'neutral'
  const verdict = () => {
    if (said === truth) return said === undefined ? 'rightly open' : 'right'
    if (said === undefined) return 'undecided'
    return truth === 'neutral' ? 'overstated' : 'contradiction'
  }
  return { said, truth, verdict: verdict() }
}

/** Judges changes by chance until there are enough, counts them and prints the counts; of what is not right, the change as well. */
export async function measureEffects(t: Test, world: World, { changes, seed }: { changes: number; seed: number }) {
  const counts = { changes: 0, right: 0, 'rightly open': 0, contradiction: 0, overstated: 0, undecided: 0 }
  const truths: Record<string, number> = {}
  for (const model of fc.sample(anyChange, { seed, numRuns: 2 * changes })) {
    if (counts.changes >= changes) break
    const judged = await judgeChange(world, model)
    if (judged === undefined) continue
    counts.changes += 1
    counts[judged.verdict] += 1
    const truth = judged.truth ?? 'open'
    truths[truth] = (truths[truth] ?? 0) + 1
    if (!/^right/u.test(judged.verdict)) console.error(`${JSON.stringify(judged)} ${fc.stringify(model)}`)
  }
  console.error(`${t.name}: ${JSON.stringify({ ...counts, truths })}`)
  return { ...counts, truths }
}
