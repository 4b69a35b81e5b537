/**
 * Histories by chance: changes of every kind are made and provisioned, and after each the policy is written down as the simulator has it. What the
 * tools say of any two versions, of a restoration and of a discard is held against these records, with a comparison that shares nothing with theirs,
 * and against what the simulator decides about every connection.
 */
import fc from 'fast-check'
import t, { type Test } from 'tap'
import type { PolicyView } from '../../pce-simulator/model.js'
import type { Json } from './harness.js'
import {
  anyEdit,
  anyMembers,
  anyRanges,
  anyRule,
  anyScopes,
  api,
  bodyOf,
  objectBody,
  PORTS,
  type RuleModel,
  scopesOf,
  startWorld,
  truthOf,
  type World,
} from './random-changes.js'

const KINDS = ['rule_sets', 'ip_lists', 'services', 'label_groups'] as const

/** A policy as a record: objects by draft href, each as text without stamps, its rules apart. */
type Recorded = Map<string, { type: string; fields: Map<string, string>; rules: Map<string, Map<string, string>> }>

const STAMPS = /^(?:href|created_|updated_|deleted_|update_type|caps|rules$|deny_rules$)/

/** Order in lists means nothing, and nothing is as good as null, empty or false. */
function canonical(value: unknown): unknown {
  if (Array.isArray(value))
    return value
      .map(canonical)
      .map((one) => JSON.stringify(one))
      .sort()
  if (typeof value !== 'object' || value === null) return value
  const { href, ...rest } = value as { href?: string }
  if (href !== undefined) return href.replace(/sec_policy\/[^/]+\//, 'sec_policy/draft/')
  return Object.entries(rest)
    .filter(([, inner]) => inner !== null && inner !== false)
    .map(([field, inner]) => [field, canonical(inner)])
    .sort()
}

const fieldsOf = (object: object) =>
  new Map(
    Object.entries(object)
      .filter(
        ([field, value]) =>
          !STAMPS.test(field) && value !== null && value !== '' && !(Array.isArray(value) && value.length === 0),
      )
      .map(([field, value]) => [field, JSON.stringify(canonical(value))]),
  )

const draftOf = (href: string) => href.replace(/sec_policy\/[^/]+\//, 'sec_policy/draft/')

function record({ simulator }: World, version: number | 'draft'): Recorded {
  const recorded: Recorded = new Map()
  for (const type of KINDS) {
    const objects = simulator.state.find(`/orgs/1/sec_policy/${version}/${type}`) as unknown as Json[]
    for (const object of objects.filter(({ update_type: marked }) => marked !== 'delete')) {
      const rules = [...(object.rules ?? []), ...(object.deny_rules ?? [])].filter(
        ({ update_type: marked }: Json) => marked !== 'delete',
      )
      recorded.set(draftOf(object.href), {
        type,
        fields: fieldsOf(object),
        rules: new Map(rules.map((rule: Json) => [draftOf(rule.href), fieldsOf(rule)])),
      })
    }
  }
  return recorded
}

const asText = (recorded: Recorded) =>
  JSON.stringify(
    [...recorded]
      .sort()
      .map(([href, { fields, rules }]) => [
        href,
        [...fields].sort(),
        [...rules].sort().map(([rule, own]) => [rule, [...own].sort()]),
      ]),
  )

const differing = (a: Map<string, string> | undefined, b: Map<string, string> | undefined) =>
  [...new Set([...(a?.keys() ?? []), ...(b?.keys() ?? [])])].filter((field) => a?.get(field) !== b?.get(field)).sort()

/** Every object that differs, with how, the fields, and the rules with theirs, as one text a line. */
function expected(before: Recorded, after: Recorded): string[] {
  const lines: string[] = []
  for (const href of new Set([...before.keys(), ...after.keys()])) {
    const [was, is] = [before.get(href), after.get(href)]
    const fields = differing(was?.fields, is?.fields)
    const rules = [...new Set([...(was?.rules.keys() ?? []), ...(is?.rules.keys() ?? [])])].flatMap((rule) => {
      const [old, now] = [was?.rules.get(rule), is?.rules.get(rule)]
      const own = differing(old, now)
      const change = old === undefined ? 'added' : now === undefined ? 'removed' : 'changed'
      return own.length === 0 ? [] : [`${rule} ${change} ${own.join()}`]
    })
    if (fields.length === 0 && rules.length === 0) continue
    const change = was === undefined ? 'created' : is === undefined ? 'deleted' : 'updated'
    lines.push(`${href} ${change} ${fields.join()} [${rules.sort().join('; ')}]`)
  }
  return lines.sort()
}

const told = (changes: Json[]): string[] =>
  changes
    .map(({ href, change, fields, rules = [] }) => {
      const names = (list: Json[]) =>
        list
          .map(({ field }) => field)
          .sort()
          .join()
      const own = rules.map((rule: Json) => `${rule.href} ${rule.change} ${names(rule.fields)}`).sort()
      return `${href} ${change} ${names(fields)} [${own.join('; ')}]`
    })
    .sort()

// What may happen to a policy.

const anyStep = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('create' as const),
      scopes: anyScopes,
      rules: fc.array(anyRule, { maxLength: 3 }),
    }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('edit' as const), at: fc.nat(), edit: anyEdit }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('add' as const), at: fc.nat(), rule: anyRule }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('drop' as const), at: fc.nat() }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('scopes' as const), at: fc.nat(), scopes: anyScopes }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('switch' as const), at: fc.nat(), enabled: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('delete' as const), at: fc.nat() }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('one' as const), parts: anyRanges }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('two' as const), parts: anyRanges }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('served' as const), parts: fc.subarray(PORTS, { minLength: 1 }) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('inner' as const), parts: anyMembers }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('list' as const), parts: anyRanges }) },
)
type Step = typeof anyStep extends fc.Arbitrary<infer T> ? T : never

/** The rule sets and rules of the draft that may still be changed, with the model of each rule. */
class Draft {
  readonly #world: World
  readonly #models = new Map<string, RuleModel>()
  #made = 0

  constructor(world: World) {
    this.#world = world
  }

  #sets(): Json[] {
    const sets = this.#world.simulator.state.find('/orgs/1/sec_policy/draft/rule_sets') as unknown as Json[]
    return sets.filter(({ name, update_type: marked }) => name.startsWith('set ') && marked !== 'delete')
  }

  #rules(): { href: string; model: RuleModel }[] {
    return this.#sets().flatMap(({ rules, deny_rules: denies }) =>
      [...rules, ...denies].flatMap(({ href, update_type: marked }: Json) => {
        const model = this.#models.get(href)
        return marked === 'delete' || model === undefined ? [] : [{ href, model }]
      }),
    )
  }

  async apply(step: Step): Promise<void> {
    const world = this.#world
    const { pce } = world
    const put = (href: string, json: object) => pce.put(href, { includeOrg: false, json })
    const pick = <T>(list: T[], at: number) => list[at % Math.max(1, list.length)]
    const add = async (rule: RuleModel, parent: string) => {
      const { href } = await api(world, rule.kind).create(bodyOf(world, rule), parent)
      this.#models.set(href, rule)
    }
    switch (step.do) {
      case 'create': {
        const set = { name: `set ${(this.#made += 1)}`, scopes: scopesOf(world, step.scopes) }
        const { href } = await pce.ruleSets.create(set)
        for (const rule of step.rules) await add(rule, href)
        return
      }
      case 'edit': {
        const found = pick(this.#rules(), step.at)
        const next = found && step.edit(found.model)
        if (!found || !next || next.kind !== found.model.kind) return
        await put(found.href, bodyOf(world, next))
        this.#models.set(found.href, next)
        return
      }
      case 'add': {
        const set = pick(this.#sets(), step.at)
        if (set) await add(step.rule, set.href)
        return
      }
      case 'drop': {
        const found = pick(this.#rules(), step.at)
        if (found) await pce.delete(found.href, { includeOrg: false })
        return
      }
      case 'scopes': {
        const set = pick(this.#sets(), step.at)
        if (set) await put(set.href, { scopes: scopesOf(world, step.scopes) })
        return
      }
      case 'switch': {
        const set = pick(this.#sets(), step.at)
        if (set) await put(set.href, { enabled: step.enabled })
        return
      }
      case 'delete': {
        const set = pick(this.#sets(), step.at)
        if (set) await pce.delete(set.href, { includeOrg: false })
        return
      }
      case 'list': {
        // A rule set of its own that uses it, so that the one depends on the other.
        const { href } = await pce.ipLists.create({ name: `list ${(this.#made += 1)}`, ip_ranges: step.parts as never })
        const set = await pce.ruleSets.create({ name: `set ${(this.#made += 1)}`, scopes: [[]] })
        await pce.rules.create(
          {
            enabled: true,
            providers: [{ actors: 'ams' }],
            consumers: [{ ip_list: { href } }],
            ingress_services: [PORTS[0]],
            resolve_labels_as: { providers: ['workloads'], consumers: ['workloads'] },
            unscoped_consumers: true,
          },
          set.href,
        )
        return
      }
      default:
        await put(world.hrefs[step.do]!, objectBody(world, step.do, step.parts))
    }
  }
}

/** A world with some versions, and the record of each by its number. */
async function startHistory(t: Test, seed: number, versions: number) {
  const world = await startWorld(t)
  const draft = new Draft(world)
  const { simulator, pce } = world
  const records = new Map([[simulator.state.policyVersion, record(world, simulator.state.policyVersion)]])
  const provision = async () => {
    const pending = simulator.state.pendingHrefs()
    if (pending.length === 0) return
    await pce.provisionPolicyChanges('by chance', pending)
    records.set(simulator.state.policyVersion, record(world, simulator.state.policyVersion))
  }
  for (const steps of fc.sample(fc.array(anyStep, { minLength: 1, maxLength: 4 }), { seed, numRuns: versions })) {
    for (const step of steps) await draft.apply(step)
    await provision()
  }
  return { world, draft, records, provision }
}

/** What a version permits, for the simulator's own evaluator. */
function viewOf({ simulator }: World, version: number | 'draft'): PolicyView {
  const list = (kind: string) => {
    const found = simulator.state.find(`/orgs/1/sec_policy/${version}/${kind}`)
    const text = JSON.stringify(found ?? []).replace(/sec_policy\/\w+\//g, 'sec_policy/draft/')
    return (JSON.parse(text) as Json[]).filter(({ update_type: marked }) => marked !== 'delete')
  }
  const byHref = (kind: string) => new Map(list(kind).map((one) => [one.href, one]))
  const groups = byHref('label_groups')
  const members = (href: string): string[] => [
    ...(groups.get(href)?.labels ?? []).map((one: Json) => one.href),
    ...(groups.get(href)?.sub_groups ?? []).flatMap((one: Json) => members(one.href)),
  ]
  return {
    ruleSets: list('rule_sets').map((set) => ({
      ...set,
      rules: set.rules.filter(({ update_type: marked }: Json) => marked !== 'delete'),
      deny_rules: set.deny_rules.filter(({ update_type: marked }: Json) => marked !== 'delete'),
    })),
    boundaries: [],
    ipLists: byHref('ip_lists'),
    services: byHref('services'),
    labelGroups: new Map([...groups.keys()].map((href) => [href, members(href)])),
  }
}

async function compareAll(world: World, args: object): Promise<Json[]> {
  const changes: Json[] = []
  for (let cursor: string | undefined; ;) {
    const page = await world.ok('compare-policy-versions', {
      ...args,
      detail_level: 'full',
      max_results: 3,
      ...(cursor && { cursor }),
    })
    changes.push(...page.changes)
    if (!page.truncated) {
      if (changes.length !== page.total_changes) throw new Error(`${changes.length} of ${page.total_changes}`)
      return changes
    }
    cursor = page.next_cursor
  }
}

for (const seed of [12]) {
  t.test(`versions from seed ${seed}`, async (t) => {
    const { world, draft, records } = await startHistory(t, seed, 24)
    const numbers = [...records.keys()]
    const pairs = fc.sample(fc.tuple(fc.constantFrom(...numbers), fc.constantFrom(...numbers)), { seed, numRuns: 40 })
    const counts = { pairs: 0, changes: 0, widening: 0, narrowing: 0, neutral: 0, undecided: 0, decided: 0 }
    for (const [from, to] of pairs.filter(([a, b]) => a !== b)) {
      const changes = await compareAll(world, { from, to })
      t.same(
        told(changes),
        expected(records.get(from)!, records.get(to)!),
        `${from} to ${to}: the net effect of what was done between`,
      )
      counts.pairs += 1
      counts.changes += changes.length
      const effects = new Set(changes.map(({ effect }) => effect ?? 'undecided'))
      for (const { effect } of changes) counts[(effect ?? 'undecided') as 'neutral'] += 1
      if (effects.has('undecided') || (effects.has('widening') && effects.has('narrowing'))) continue
      counts.decided += 1
      const { opens, closes } = truthOf(world, viewOf(world, from), viewOf(world, to))
      if (!effects.has('narrowing')) t.notOk(closes, `${from} to ${to}: nothing narrows, so nothing is closed`)
      if (!effects.has('widening')) t.notOk(opens, `${from} to ${to}: nothing widens, so nothing is opened`)
    }
    console.error(`${t.name}: ${JSON.stringify(counts)}`)
    t.ok(counts.changes > 100 && counts.decided >= 3, 'and enough of each')

    for (const step of fc.sample(anyStep, { seed, numRuns: 4 })) await draft.apply(step)
    const now = record(world, 'draft')
    for (const from of numbers.slice(-3)) {
      t.same(
        told(await compareAll(world, { from, to: 'draft' })),
        expected(records.get(from)!, now),
        `${from} to the draft`,
      )
      t.same(told(await compareAll(world, { from: 'draft', to: from })), expected(now, records.get(from)!), 'and back')
    }
  })

  t.test(`restorations from seed ${seed}`, async (t) => {
    const { world, draft, records, provision } = await startHistory(t, seed, 16)
    const { simulator } = world
    const runs = fc.sample(fc.tuple(fc.nat(), fc.array(anyStep, { maxLength: 3 })), { seed, numRuns: 14 })
    let changed = 0
    for (const [at, steps] of runs) {
      for (const step of steps) await draft.apply(step)
      const version = [...records.keys()][at % records.size]!
      const inForce = simulator.state.policyVersion
      const dropped = simulator.state.pendingHrefs()
      const planned = await world.ok('restore-policy-version', {
        version,
        dry_run: true,
        ...(dropped.length > 0 && { drop_pending: dropped }),
      })
      t.same(simulator.state.pendingHrefs(), dropped, 'a dry run writes nothing')
      const answer = await world.ok('restore-policy-version', {
        version,
        ...(dropped.length > 0 && { drop_pending: dropped }),
      })
      if (answer.status !== 'no_changes') t.equal(answer.verified, true, answer.message)
      t.equal(asText(record(world, 'draft')), asText(records.get(version)!), `the draft is version ${version}`)
      t.equal(simulator.state.policyVersion, inForce, 'nothing was provisioned')
      const wanted = expected(records.get(inForce)!, records.get(version)!)
      t.same(told(planned.changes ?? []), wanted, 'and it was what the dry run said')
      t.equal(simulator.state.pendingHrefs().length, wanted.length)
      if (wanted.length > 0) changed += 1
      if (version !== inForce && wanted.length > 0) t.same(await compareAll(world, { from: version, to: 'draft' }), [])
      await provision()
      t.equal(
        asText(records.get(simulator.state.policyVersion)!),
        asText(records.get(version)!),
        'provisioned, it is again',
      )
    }
    t.ok(changed > 6)
  })

  t.test(`discards from seed ${seed}`, async (t) => {
    const { world, draft } = await startHistory(t, seed, 6)
    const { simulator } = world
    const bodies = () =>
      new Map(simulator.state.pendingHrefs().map((href) => [href, JSON.stringify(simulator.state.find(href))]))
    const runs = fc.sample(
      fc.tuple(fc.array(anyStep, { minLength: 2, maxLength: 8 }), fc.infiniteStream(fc.boolean())),
      { seed, numRuns: 14 },
    )
    let along = 0
    for (const [steps, coins] of runs) {
      for (const step of steps) await draft.apply(step)
      const before = bodies()
      const chosen = [...before.keys()].filter(() => coins.next().value)
      if (chosen.length === 0) continue
      const answer = await world.ok('discard-draft-changes', { hrefs: chosen, include_dependencies: true })
      const gone = new Set<string>(answer.discarded_hrefs)
      along += answer.dependencies_included?.length ?? 0
      t.same(
        chosen.filter((href) => !gone.has(href)),
        [],
        'all that were named',
      )
      t.equal(gone.size, chosen.length + (answer.dependencies_included?.length ?? 0), 'and what needs them')
      t.same(
        [...bodies()],
        [...before].filter(([href]) => !gone.has(href)),
        'exactly the others are left, as they were',
      )
      for (const href of gone) {
        const [now, active] = [simulator.state.find(href), simulator.state.find(href.replace('/draft/', '/active/'))]
        t.equal(now === undefined, active === undefined)
        if (now !== undefined)
          t.equal(JSON.stringify([...fieldsOf(now)]), JSON.stringify([...fieldsOf(active!)]), `${href} is as in force`)
      }
      t.equal(answer.losses.length, gone.size)
      t.notOk('warnings' in answer && answer.warnings.some((text: string) => !/stays pending/.test(text)))
    }
    t.ok(along > 0, 'some had to go along')
    const rest = simulator.state.pendingHrefs()
    if (rest.length > 0)
      t.same((await world.ok('discard-draft-changes', { all: true })).discarded_hrefs.toSorted(), rest.toSorted())
    t.same(simulator.state.pendingHrefs(), [])
  })
}
