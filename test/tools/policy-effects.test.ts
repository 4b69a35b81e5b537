/**
 * Whether widening, narrowing and neutral are true: changes by chance, judged by the tool from their fields, and by the simulated
 * PCE from what it does with every connection before and after.
 */
import fc from 'fast-check'
import t from 'tap'
import type { IpList } from '../../schemas/pce/ip-list.js'
import type { Label } from '../../schemas/pce/label.js'
import type { PceObject } from '../../schemas/pce/reference.js'
import type { RuleSet } from '../../schemas/pce/rule-set.js'
import type { Service } from '../../schemas/pce/service.js'
import type { Workload } from '../../schemas/pce/workload.js'
import { diffRuleSet } from '../../domain/policy/diff-rule-set.js'
import { findUses } from '../../domain/inventory/find-uses.js'
import { judgeObject } from '../../domain/policy/judge-object.js'
import type { PolicyFacts } from '../../domain/policy/load-snapshot.js'
import type { PolicyView } from '../../pce-simulator/model.js'
import { createEvaluator } from '../../pce-simulator/policy/evaluate.js'

const DRAFT = '/orgs/1/sec_policy/draft'
const label = (key: string, value: string) => ({ href: `/orgs/1/labels/${key}-${value}`, key, value })
const LABELS = [label('role', 'a'), label('role', 'b'), label('app', 'x'), label('app', 'y'), label('env', 'p')]
const labels = new Map(LABELS.map((one) => [one.href, one as Label]))

/** Workloads with every combination of labels, enforced either way. */
const workloads = new Map<string, Workload>()
for (const mode of ['full', 'selective']) {
  for (let bits = 0; bits < 12; bits++) {
    const [role, app, env] = [LABELS[bits % 2], LABELS[2 + (Math.floor(bits / 2) % 2)], LABELS[4]]
    const own = [role, ...(bits < 8 ? [app] : []), ...(bits >= 4 ? [env] : [])]
    const href = `/orgs/1/workloads/${mode}-${bits}`
    const interfaces = [{ name: 'eth0', address: `10.0.${mode === 'full' ? 0 : 1}.${bits}` }]
    const workload = {
      href,
      name: href,
      managed: true,
      ven: { href: '/v' },
      enforcement_mode: mode,
      labels: own,
      interfaces,
    }
    workloads.set(href, workload as unknown as Workload)
  }
}
const endpoints = [
  ...[...workloads.values()].map(({ href, interfaces }) => ({ workload: href, ip: interfaces![0]!.address! })),
  { ip: '198.51.100.1' },
  { ip: '198.51.100.9' },
  { ip: '203.0.113.1' },
]

const range = (from_ip: string, exclusion = false) => ({ from_ip, exclusion })
const RANGES = [range('198.51.100.0/24'), range('203.0.113.0/24'), range('10.0.0.0/24'), range('198.51.100.9', true)]
const PORTS = [
  { port: 1, proto: 6 },
  { port: 2, to_port: 3, proto: 6 },
  { port: 3, proto: 6 },
  { port: 1, proto: 17 },
]
const list = (name: string, ranges: object[]) =>
  ({ href: `${DRAFT}/ip_lists/${name}`, name, ip_ranges: ranges }) as unknown as IpList
const service = (name: string, ports: object[]) =>
  ({ href: `${DRAFT}/services/${name}`, name, service_ports: ports }) as unknown as Service
const group = (members: object[]) =>
  ({ href: `${DRAFT}/label_groups/g`, name: 'g', key: 'role', labels: members }) as unknown as PceObject
const ALL_SERVICES = service('all', [{ proto: -1 }])
const facts: PolicyFacts = {
  isAnyList: () => false,
  isAllServices: (href) => href === ALL_SERVICES.href,
  serviceOf: () => undefined,
  keyOf: (href) => (href.includes('label_groups') ? 'role' : labels.get(href)?.key),
}

const some = <T>(...items: T[]) => fc.subarray(items, { minLength: 1 })
const anyRanges = fc.subarray(RANGES, { minLength: 1 })
const anyPorts = fc.subarray(PORTS, { minLength: 1 })
const anyMembers = fc.subarray(LABELS.slice(0, 2))
const reference = ({ href }: { href: string }) => ({ href })
const anyActor = fc.oneof(
  fc.constantFrom(...LABELS).map((one) => ({ label: reference(one) })),
  fc.constantFrom(...LABELS).map((one) => ({ label: reference(one), exclusion: true })),
  fc.constant({ label_group: { href: `${DRAFT}/label_groups/g` } }),
  fc.constant({ actors: 'ams' }),
  fc.constantFrom('one', 'two').map((name) => ({ ip_list: { href: `${DRAFT}/ip_lists/${name}` } })),
  fc.constantFrom(...workloads.keys()).map((href) => ({ workload: { href } })),
)
const anyEnd = fc.uniqueArray(anyActor, { minLength: 1, maxLength: 3, selector: (actor) => JSON.stringify(actor) })
const anyServices = some<object>(...PORTS, { href: `${DRAFT}/services/s` }, { href: ALL_SERVICES.href })
const anyRule = fc.record({
  enabled: fc.constantFrom(true, true, false),
  providers: anyEnd,
  consumers: anyEnd,
  ingress_services: anyServices,
  unscoped_consumers: fc.boolean(),
  override: fc.boolean(),
})
type RuleBody = typeof anyRule extends fc.Arbitrary<infer T> ? T : never
/** At most one condition of a key, as the PCE demands. */
const anyScope = fc
  .uniqueArray(fc.constantFrom(...LABELS), { maxLength: 3, selector: ({ key }) => key })
  .chain((own) => fc.tuple(...own.map((one) => fc.boolean().map((exclusion) => ({ label: one, exclusion })))))
const anyScopes = fc.array(anyScope, { minLength: 1, maxLength: 2 })
/** A list that became another: mostly by what was added or taken away. */
const grown = <T>(items: fc.Arbitrary<T[]>, more: fc.Arbitrary<T[]>) =>
  fc
    .tuple(items, more, fc.constantFrom('kept', 'kept', 'more', 'less', 'other'))
    .map(([before, extra, how]): [T[], T[]] => {
      if (how === 'more') return [before, [...before, ...extra]]
      if (how === 'less') return [[...before, ...extra], before]
      return how === 'other' ? [before, extra] : [before, before]
    })
const anyPair = fc
  .record({
    before: anyRule,
    ends: fc.tuple(grown(anyEnd, anyEnd), grown(anyEnd, anyEnd)),
    services: grown(anyServices, anyServices),
    after: anyRule,
  })
  .chain(({ before, ends: [providers, consumers], services, after }) => {
    const rule = (side: 0 | 1, other: RuleBody): RuleBody => ({
      ...other,
      providers: providers[side],
      consumers: consumers[side],
      ingress_services: services[side],
    })
    const same = { enabled: before.enabled, unscoped_consumers: before.unscoped_consumers, override: before.override }
    return fc.record({
      before: fc.constant(rule(0, before)),
      after: fc.constantFrom(rule(1, { ...before, ...same }), rule(1, after), null),
      isAllow: fc.boolean(),
      isNew: fc.constantFrom(false, false, false, true),
    })
  })
const anyRules = fc.array(anyPair, { minLength: 1, maxLength: 2 })

interface RuleSetChange {
  rules: { before: RuleBody; after: RuleBody | null; isAllow: boolean; isNew: boolean }[]
  scopes: readonly object[][][]
  enabled: readonly boolean[]
}

/** One side of a change: with hrefs as that version of the policy has them. */
function ruleSetOf({ rules, scopes, enabled }: RuleSetChange, side: 0 | 1): RuleSet {
  const href = `${side === 0 ? DRAFT.replace('draft', 'active') : DRAFT}/rule_sets/1`
  const made = rules.flatMap(({ before, after, isAllow, isNew }, at) => {
    const body = side === 1 ? after : isNew ? null : before
    if (body === null) return []
    const { override, ...rest } = body
    const rule = { ...rest, href: `${href}/${isAllow ? 'sec_rules' : 'deny_rules'}/${at}` }
    return [
      isAllow
        ? { ...rule, resolve_labels_as: { providers: ['workloads'], consumers: ['workloads'] } }
        : { ...rule, override },
    ]
  })
  const of = (kind: string) => made.filter((rule) => rule.href.includes(kind))
  const body = {
    href,
    name: 'r',
    enabled: enabled[side],
    scopes: scopes[side],
    rules: of('sec_rules'),
    deny_rules: of('deny_rules'),
  }
  return body as unknown as RuleSet
}

const OBJECTS = {
  ipLists: [list('one', [RANGES[0]!]), list('two', [RANGES[1]!, RANGES[3]!])],
  services: [service('s', [PORTS[1]!]), ALL_SERVICES],
  group: group([LABELS[0]!]),
}

function viewOf(ruleSets: RuleSet[], objects: typeof OBJECTS = OBJECTS): PolicyView {
  const byHref = <T extends { href: string }>(items: T[]) => new Map(items.map((item) => [item.href, item]))
  const members = (objects.group.labels as { href: string }[]).map(({ href }) => href)
  return {
    ruleSets,
    ipLists: byHref(objects.ipLists),
    services: byHref(objects.services),
    labelGroups: new Map([[objects.group.href, members]]),
  }
}

const SERVICES = [
  { port: 1, proto: 6 },
  { port: 2, proto: 6 },
  { port: 3, proto: 6 },
  { port: 4, proto: 6 },
  { port: 1, proto: 17 },
]
/** Every connection there is. */
const CONNECTIONS = endpoints.flatMap((src) =>
  endpoints.flatMap((dst) =>
    src === dst ? [] : SERVICES.map((one) => ({ src, dst, service: one, flowDirection: 'inbound' as const })),
  ),
)

/** What a change truly does, over all connections: whether it opens some and closes some. */
function truthOf(before: PolicyView, after: PolicyView): { opens: boolean; closes: boolean } {
  const [was, is] = [createEvaluator(before, workloads, labels), createEvaluator(after, workloads, labels)]
  const truth = { opens: false, closes: false }
  for (const connection of CONNECTIONS) {
    const [a, b] = [was(connection).decision, is(connection).decision]
    if (a === b) continue
    truth[b === 'allowed' ? 'opens' : 'closes'] = true
  }
  return truth
}

const RUNS = 200
const agrees = (effect: string | undefined, { opens, closes }: { opens: boolean; closes: boolean }) =>
  effect === undefined ||
  (effect === 'neutral' && !opens && !closes) ||
  (effect === 'widening' && !closes) ||
  (effect === 'narrowing' && !opens)

/** A rule set that is the same before and after, so that allow, deny and default meet. */
const BACKGROUND = ruleSetOf(
  {
    scopes: [[[]], [[]]],
    enabled: [true, true],
    rules: [
      { isAllow: true, isNew: false, before: ruleOf([{ label: reference(LABELS[0]!) }], [PORTS[0]!]), after: null },
      { isAllow: false, isNew: false, before: ruleOf([{ label: reference(LABELS[1]!) }], [PORTS[1]!]), after: null },
    ],
  },
  0,
)

function ruleOf(consumers: object[], services: object[]): RuleBody {
  const rest = { enabled: true, unscoped_consumers: true, override: false, ingress_services: services }
  return { providers: [{ actors: 'ams' }], consumers, ...rest } as RuleBody
}

t.test('changes of rules and scopes', async (t) => {
  const said: Record<string, number> = {}
  fc.assert(
    fc.property(
      fc.record({
        rules: anyRules,
        scopes: grown(anyScopes, anyScopes),
        enabled: fc.constantFrom(
          [true, true],
          [true, true],
          [true, true],
          [true, false],
          [false, true],
          [false, false],
        ),
      }),
      (change) => {
        const [active, draft] = [ruleSetOf(change, 0), ruleSetOf(change, 1)]
        const { effect } = diffRuleSet(draft, active, facts)
        const key = effect ?? 'undecided'
        said[key] = (said[key] ?? 0) + 1
        return agrees(effect, truthOf(viewOf([active, BACKGROUND]), viewOf([draft, BACKGROUND])))
      },
    ),
    { numRuns: RUNS, seed: 7 },
  )
  for (const effect of ['widening', 'narrowing', 'neutral'])
    t.ok((said[effect] ?? 0) > RUNS / 50, `${effect}: ${said[effect]} times`)
})

/** Services and scopes of which one holds the other although no entry is the same. */
const anyStretch = fc.oneof(
  fc
    .constantFrom<[object, object]>(
      [PORTS[2]!, PORTS[1]!],
      [PORTS[1]!, { port: 1, to_port: 4, proto: 6 }],
      [PORTS[0]!, reference(ALL_SERVICES)],
    )
    .map((services) => ({ services, scopes: [[], []] as [object[], object[]] })),
  anyScope
    .filter(({ length }) => length > 0)
    .map((scope) => ({ services: [PORTS[1]!, PORTS[1]!] as [object, object], scopes: [scope, scope.slice(1)] })),
)

t.test('one port or one scope that widens or narrows', async (t) => {
  const said: Record<string, number> = {}
  fc.assert(
    fc.property(anyRule, anyStretch, fc.boolean(), fc.boolean(), (rule, { services, scopes }, isAllow, opens) => {
      const order = opens ? [0, 1] : [1, 0]
      const [before, after] = order.map((at) => ({ ...rule, enabled: true, ingress_services: [services[at]!] }))
      const change = {
        rules: [{ before: before!, after: after!, isAllow, isNew: false }],
        scopes: order.map((at) => [scopes[at]!]),
        enabled: [true, true],
      }
      const [active, draft] = [ruleSetOf(change, 0), ruleSetOf(change, 1)]
      const { effect } = diffRuleSet(draft, active, facts)
      const key = effect ?? 'undecided'
      said[key] = (said[key] ?? 0) + 1
      return agrees(effect, truthOf(viewOf([active, BACKGROUND]), viewOf([draft, BACKGROUND])))
    }),
    { numRuns: RUNS / 2, seed: 7 },
  )
  t.strictSame(Object.keys(said).sort(), ['narrowing', 'widening'], 'it is always told')
})

t.test('changes of what rules refer to', async (t) => {
  const said: Record<string, number> = {}
  await fc.assert(
    fc.asyncProperty(
      anyRules,
      anyScopes,
      fc.oneof(
        grown(anyRanges, anyRanges).map((sides) => ['ip_lists', sides] as const),
        grown(anyPorts, anyPorts).map((sides) => ['services', sides] as const),
        grown(anyMembers, anyMembers).map((sides) => ['label_groups', sides] as const),
      ),
      async (rules, scopes, [type, [before, after]]) => {
        const ruleSet = ruleSetOf(
          { rules: rules.map((rule) => ({ ...rule, isNew: false })), scopes: [scopes, scopes], enabled: [true, true] },
          0,
        )
        const make = (parts: object[]): [PceObject, typeof OBJECTS] => {
          if (type === 'ip_lists')
            return withOne(list('one', parts), (one) => ({ ...OBJECTS, ipLists: [one as IpList, OBJECTS.ipLists[1]!] }))
          if (type === 'services')
            return withOne(service('s', parts), (one) => ({ ...OBJECTS, services: [one as Service, ALL_SERVICES] }))
          return withOne(group(parts), (one) => ({ ...OBJECTS, group: one }))
        }
        const [[active, was], [draft, is]] = [make(before), make(after)]
        const users = { ruleSets: [ruleSet], boundaries: [], others: [] }
        const effect = await judgeObject(type, draft, active, facts, async (href) => findUses(users, href))
        const key = effect ?? 'undecided'
        said[key] = (said[key] ?? 0) + 1
        return agrees(effect, truthOf(viewOf([ruleSet, BACKGROUND], was), viewOf([ruleSet, BACKGROUND], is)))
      },
    ),
    { numRuns: RUNS, seed: 7 },
  )
  for (const effect of ['widening', 'narrowing', 'neutral'])
    t.ok((said[effect] ?? 0) > RUNS / 50, `${effect}: ${said[effect]} times`)
})

function withOne<T>(object: PceObject, objects: (object: PceObject) => T): [PceObject, T] {
  return [object, objects(object)]
}
