import type { PolicyVersionSelector } from '../../schemas/common.js'
import { ToolError } from '../../schemas/errors.js'
import type { Service } from '../../schemas/pce/service.js'
import type { Actor } from '../../schemas/pce/rule-set.js'
import type { ToolContext } from '../call.js'
import type { ActorReference } from '../drafts/resolve-actors.js'
import { toWire } from '../drafts/resolve-actors.js'
import { resolveService, type ResolvedService, type ServiceReference } from '../drafts/resolve-services.js'
import { createPolicyLookups, type PolicyLookups } from '../inventory/find-object.js'
import { loadLabels, type LabelIndex, type LabelReference } from '../inventory/labels.js'
import { isAddress } from '../inventory/parse-addresses.js'
import { toActiveHref } from '../inventory/parse-href.js'
import { workInTurns, type Steps } from '../text/pace-work.js'
import type { PolicyCatalog } from '../policy/load-snapshot.js'
import type { RuleType } from '../policy/rule-type.js'
import { anyOf, both, isUnknown, type Answer, type Reason } from '../policy/three-valued.js'
import { findActor, namesActor, testService, type Side } from './name-tests.js'
import { inOrder, loadCatalog, readBoundaries, readEveryRule, searchRules, type PlacedRule } from './read-rules.js'
import { findTarget, namesTarget, type Target } from './find-target.js'
import { testEnd } from './test-end.js'
import { createAuthorTest, type Authors } from './find-authors.js'

/** The criteria of a rule search. A rule must meet all given criteria. */
export interface RuleSearch {
  version: PolicyVersionSelector
  /**
   * The actors that the rule must name: on either side (`actor`), as destination (`provider`), or as source
   * (`consumer`). An address matches every IP list that contains it.
   */
  ends: Partial<Record<'actor' | 'provider' | 'consumer', ActorReference>>
  service?: ServiceReference | undefined
  /** Text that must occur in the name of a process or Windows service to which the rule is limited. */
  process?: string | undefined
  /**
   * Text that must occur in the description of the rule, or in the name or description of its rule set. Upper and lower
   * case are treated as equal.
   */
  text?: string | undefined
  /**
   * The rule must have ended before this day (`YYYY-MM-DD` in UTC), or before the present day if the value is `today`.
   */
  endsBefore?: string | undefined
  types?: readonly RuleType[] | undefined
  /** If true, the rule must be enabled in an enabled rule set. If false, the rule or its rule set must be disabled. */
  enabled?: boolean | undefined
  pending?: 'create' | 'update' | 'delete' | 'any' | 'none' | undefined
  author?: string | undefined
  /**
   * A workload by name or href, an address, or labels. The search finds the rules that apply to this target, taking the
   * scopes of rule sets into account.
   */
  appliesTo?: string | readonly LabelReference[] | undefined
  /**
   * The side on which the target in `appliesTo` must be: `consumer` is the source, `provider` the destination. If
   * absent, the rule may apply on either side.
   */
  as?: 'provider' | 'consumer' | undefined
}

export interface FoundRule extends PlacedRule {
  /**
   * The sides of the rule that matched the search; undefined if the search named neither a source nor a destination.
   */
  sides?: Side[]
  /**
   * The matching sides that include the workload only by its address, so that the PCE does not send the rule to the
   * workload.
   */
  byAddress: Side[]
  /** The reasons why it is uncertain whether the rule matches; empty if it certainly matches. */
  uncertain: readonly Reason[]
}

export interface RuleSearchResult {
  found: FoundRule[]
  /** Number of rules that were examined; present only if all rules were read. */
  searched?: number
  engine: 'rule_search' | 'own'
  /**
   * The reason why the PCE's search was tried but all rules had to be read instead; absent if that search was not tried
   * or succeeded.
   */
  instead?: string
  /** A description of the workload, address or labels that `appliesTo` names. */
  target?: string
  unread: string[]
  authors: Authors
  labels: LabelIndex
}

type Context = Pick<ToolContext<true>, 'pce' | 'signal' | 'now'>

/**
 * Finds rules. If the criteria name a source, destination, service or pending change exactly and the PCE has a rule
 * search, only the rules that this search finds are read. This server then tests every rule that was read, so the
 * result is the same with and without the PCE's search (D181). Throws an error if a referenced object cannot be found.
 */
export async function findRules(ctx: Context, search: RuleSearch): Promise<RuleSearchResult> {
  const hasEnded = search.endsBefore === undefined ? undefined : testEnd(search.endsBefore, ctx.now())
  const labels = await loadLabels(ctx.pce, ctx)
  const resolved = await resolve(ctx, search, labels)
  const authors = await createAuthorTest(ctx, search.author)
  const queries = queriesOf(search, resolved)
  const asked = queries === null ? undefined : await searchRules(ctx, search.version as 'draft', queries)
  const read =
    asked === undefined || typeof asked === 'string'
      ? await readEveryRule(ctx, search.version)
      : { rules: inOrder([...asked, ...(await readBoundaries(ctx, search.version))]), unread: [UNSEARCHED_TABLES] }
  const catalog = await loadCatalog(ctx, search.version, labels, needsOf(resolved, search))
  const test = createTest(search, resolved, catalog, authors, hasEnded)
  return {
    found: await workInTurns(testEach(read.rules, test), ctx.signal),
    unread: read.unread,
    engine: Array.isArray(asked) ? 'rule_search' : 'own',
    ...(!Array.isArray(asked) && { searched: read.rules.length }),
    ...(typeof asked === 'string' && { instead: asked }),
    ...(resolved.target !== undefined && { target: resolved.target.name }),
    authors,
    labels,
  }
}

function* testEach(rules: readonly PlacedRule[], test: (rule: PlacedRule) => FoundRule | null): Steps<FoundRule[]> {
  const found: FoundRule[] = []
  for (const [at, rule] of rules.entries()) {
    const one = test(rule)
    if (one !== null) found.push(one)
    if (at % 20 === 0) yield
  }
  return found
}

/**
 * The note for results of the PCE's rule search, which does not find iptables rules. The rule sets that contain such
 * rules are not read, so their number is not known.
 */
const UNSEARCHED_TABLES = 'Rules in the words of iptables are not searched, and how many there are is not known.'

/** A requested source or destination of a rule: an actor identified by its href, or an address. */
type WantedEnd = { actor: Actor } | { address: string }

interface Resolved {
  ends: { wanted: WantedEnd; sides: readonly Side[] }[]
  service?: ResolvedService
  target?: Target
}

const SIDES = {
  actor: ['providers', 'consumers'],
  provider: ['providers'],
  consumer: ['consumers'],
} as const satisfies Record<string, readonly Side[]>

async function resolve(ctx: Context, search: RuleSearch, labels: LabelIndex): Promise<Resolved> {
  const lookups = createPolicyLookups(ctx.pce, labels, search.version === 'active' ? 'active' : 'draft', ctx.signal)
  const ends = []
  for (const name of Object.keys(SIDES) as (keyof typeof SIDES)[]) {
    const reference = search.ends[name]
    if (reference !== undefined) ends.push({ wanted: await findEnd(lookups, reference, name), sides: SIDES[name] })
  }
  if (search.as !== undefined && search.appliesTo === undefined) {
    const text = 'as says at which end applies_to is meant; give applies_to with it.'
    throw new ToolError('invalid_argument', text, { argument: 'as' })
  }
  return {
    ends,
    ...(search.service !== undefined && { service: await resolveService(lookups, search.service, 'service') }),
    ...(search.appliesTo !== undefined && { target: await findTarget(ctx, labels, search.appliesTo) }),
  }
}

async function findEnd(
  lookups: PolicyLookups,
  reference: ActorReference,
  side: keyof typeof SIDES,
): Promise<WantedEnd> {
  const text = typeof reference === 'string' ? reference.trim() : ''
  return isAddress(text) ? { address: text } : { actor: await findActor(lookups, reference, side) }
}

const isEgress = ({ windows_egress_services: listed }: Service) => (listed?.length ?? 0) > 0

/**
 * Returns queries for the PCE's rule search whose results together contain every requested rule. Returns null if the
 * PCE's search cannot help: it does not search past versions, it matches strings and authors differently from this
 * server, and it does not find a service by a port inside one of its port ranges (D98).
 */
function queriesOf(
  { version, text, pending, appliesTo, endsBefore }: RuleSearch,
  { ends, service }: Resolved,
): object[] | null {
  const isOwn = text !== undefined || appliesTo !== undefined || endsBefore !== undefined
  if (typeof version === 'number' || isOwn) return null
  const inVersion = <T>(value: T): T => (version === 'active' ? mapHrefs(value) : value)
  const sides: object[][] = ends.flatMap(({ wanted, sides: of }) =>
    'actor' in wanted ? [of.map((side) => ({ [side]: inVersion(toWire([withoutExclusion(wanted.actor)])) }))] : [],
  )
  const exact = {
    ...(service !== undefined &&
      'service' in service &&
      !isEgress(service.service) && { ingress_services: [inVersion({ href: service.service.href })] }),
    ...(pending !== undefined && pending !== 'any' && pending !== 'none' && { update_type: pending }),
  }
  if (sides.length === 0 && Object.keys(exact).length === 0) return null
  // A query for one side of the rules narrows the result enough; this server tests the other side.
  const narrowest = sides.sort((a, b) => a.length - b.length)[0] ?? [{}]
  return narrowest.map((side) => ({ ...side, ...exact }))
}

const withoutExclusion = ({ exclusion: _exclusion, ...actor }: Actor): Actor => actor

const mapHrefs = <T>(value: T): T =>
  JSON.parse(JSON.stringify(value), (field, inner: unknown) =>
    field === 'href' && typeof inner === 'string' ? toActiveHref(inner) : inner,
  ) as T

function needsOf({ ends, service, target }: Resolved, { process }: RuleSearch) {
  const needs = new Set<'services' | 'ipLists' | 'labelGroups'>()
  if (process !== undefined || (service !== undefined && 'ports' in service)) needs.add('services')
  if (target !== undefined) needs.add('labelGroups').add('ipLists')
  if (ends.some(({ wanted }) => 'address' in wanted)) needs.add('ipLists')
  return needs
}

/**
 * Creates a function that tests rules against all criteria. It returns null for a rule that certainly does not match.
 */
function createTest(
  search: RuleSearch,
  { ends, service, target }: Resolved,
  catalog: PolicyCatalog,
  { isAuthor }: Authors,
  hasEnded: ReturnType<typeof testEnd> | undefined,
): (rule: PlacedRule) => FoundRule | null {
  const isPlain = testPlainly(search, service, catalog, isAuthor)
  const sidesAsked: readonly Side[] = search.as === undefined ? SIDES.actor : SIDES[search.as]
  return (placed) => {
    if (!isPlain(placed)) return null
    const sides = new Set<Side>()
    const answers: Answer[] = hasEnded === undefined ? [] : [hasEnded(placed.rule)]
    if (answers[0] === 'no') return null
    for (const { wanted, sides: of } of ends) {
      const bySide = of.map((side) => namesEnd(placed, side, wanted, catalog))
      of.forEach((side, at) => bySide[at] !== 'no' && sides.add(side))
      answers.push(anyOf(bySide))
    }
    const byAddress: Side[] = []
    if (target !== undefined) {
      if (placed.holder.update_type === 'delete' && search.pending === undefined) return null
      const namings = sidesAsked.map((side) => namesTarget(placed, side, target, catalog))
      for (const [at, { any, asWorkload }] of namings.entries()) {
        const side = sidesAsked[at] as Side
        if (any === 'no') continue
        sides.add(side)
        if (asWorkload === 'no' && target.isWorkload) byAddress.push(side)
      }
      answers.push(anyOf(namings.map(({ any }) => any)))
    }
    const answer = answers.reduce(both, 'yes')
    if (answer === 'no') return null
    return {
      ...placed,
      ...(sides.size > 0 && { sides: [...sides] }),
      byAddress,
      uncertain: isUnknown(answer) ? answer.unknown : [],
    }
  }
}

function namesEnd({ rule }: PlacedRule, side: Side, wanted: WantedEnd, { covers }: PolicyCatalog): Answer {
  if ('actor' in wanted) return namesActor(rule, side, wanted.actor) ? 'yes' : 'no'
  const end = { ip: wanted.address, fqdn: null }
  return anyOf(rule[side].flatMap(({ ip_list: list }) => (list === undefined ? [] : [covers(list.href, end)])))
}

/** Creates a function that tests rules against all criteria except those for sources and destinations. */
function testPlainly(
  { text, process, types, enabled, pending, appliesTo }: RuleSearch,
  service: ResolvedService | undefined,
  catalog: PolicyCatalog,
  isAuthor: Authors['isAuthor'],
): (rule: PlacedRule) => boolean {
  const tests: ((placed: PlacedRule) => boolean)[] = []
  if (types !== undefined) tests.push(({ type }) => types.includes(type))
  const wantsEnabled = enabled ?? (appliesTo === undefined ? undefined : true)
  if (wantsEnabled !== undefined)
    tests.push(({ rule, holder }) => (rule.enabled !== false && holder.enabled !== false) === wantsEnabled)
  if (pending !== undefined) tests.push(({ rule }) => isPendingAs(rule.update_type ?? null, pending))
  else if (appliesTo !== undefined) tests.push(({ rule }) => rule.update_type !== 'delete')
  if (isAuthor !== undefined) tests.push(({ rule }) => isAuthor(rule))
  if (text !== undefined) {
    const part = text.toLowerCase()
    const holds = (value: string | null | undefined) => value?.toLowerCase().includes(part) === true
    tests.push(({ rule, holder }) => holds(rule.description) || holds(holder.name) || holds(holder.description))
  }
  if (service !== undefined) {
    const covers = testService(service, catalog)
    tests.push(({ rule }) => covers(rule))
  }
  if (process !== undefined) {
    const part = process.toLowerCase()
    tests.push(({ rule }) =>
      [...rule.ingress_services, ...(rule.egress_services ?? [])].some((one) => {
        const object = 'href' in one ? catalog.serviceOf(one.href) : undefined
        return object !== undefined && programsOf(object).some((name) => name.toLowerCase().includes(part))
      }),
    )
  }
  return (placed) => tests.every((test) => test(placed))
}

function isPendingAs(updateType: string | null, pending: NonNullable<RuleSearch['pending']>): boolean {
  if (pending === 'any') return updateType !== null
  return pending === 'none' ? updateType === null : updateType === pending
}

const programsOf = ({ process_name: process, windows_services: inbound, windows_egress_services: outbound }: Service) =>
  [process, ...[...(inbound ?? []), ...(outbound ?? [])].flatMap((one) => [one.process_name, one.service_name])].filter(
    (name) => name != null,
  )
