import { PceApiError, PceError, type PceClient } from '../../pce-client/index.js'
import type { IpList } from '../../schemas/pce/ip-list.js'
import type { LabelGroup, LabelRef } from '../../schemas/pce/label.js'
import type { DenyRule, EnforcementBoundary, Rule, RuleSet, ScopeEntry } from '../../schemas/pce/rule-set.js'
import type { Service } from '../../schemas/pce/service.js'
import { fetchUpTo, type ListQuery } from '../inventory/fetch-every.js'
import type { ToolContext } from '../call.js'
import type { LabelIndex } from '../inventory/labels.js'
import { toDraftHref } from '../inventory/parse-href.js'
import { loadDenyRules } from '../inventory/read-rules.js'
import {
  readableEnds,
  readableScopes,
  readEnds,
  readRuleSets,
  requireServiceShapes,
} from '../inventory/require-rule-shape.js'
import { saysTheSame } from '../drafts/warn-of-repetition.js'
import type { PolicyContents } from '../policy/load-contents.js'
import { catalogOf, isInForce } from '../policy/load-snapshot.js'
import type { AnyRule } from '../policy/rule-in-force.js'
import { DECIDING_ORDER, denyType, type RuleType } from '../policy/rule-type.js'
import { countOf } from '../text/describe-numbers.js'
import { type Steps, workInTurns } from '../text/pace-work.js'
import { quote } from '../text/escape-text.js'
import { findRedundantAmong, type Redundancy } from './find-redundant.js'
import { holdRules, type HeldRule } from './judge-rules.js'

interface Source extends Pick<ToolContext, 'isBindingOnly'> {
  pce: PceClient
  signal: AbortSignal
}

/** The rules that a call is about to write, and the scopes of their rule set. */
export interface RulesToCome {
  scopes: RuleSet['scopes']
  rules: readonly { type: RuleType; body: Pick<AnyRule, 'providers' | 'consumers' | 'ingress_services'> }[]
  /** The href of the existing rule, if a rule is changed rather than created. */
  own?: string
}

/** The policy with the existing rules. `contents` must include the objects to which these rules refer. */
export interface StandingPolicy {
  ruleSets: readonly RuleSet[]
  boundaries: readonly EnforcementBoundary[]
  contents: PolicyContents
  /** Sentences that say which parts of the policy are missing. */
  unread: readonly string[]
}

/**
 * Warnings about each planned rule, in the order of the rules, and general warnings about objects that were not
 * examined.
 */
export interface CoveredWarnings {
  byRule: string[][]
  general: string[]
}

/** Maximum number of objects of each type that are read: the most that a PCE sends in one answer (P8). */
const MOST_OBJECTS = 500
/** Maximum number of rule sets whose deny rules are read separately, if the release of the PCE requires this. */
const MOST_APART = 20
/** Maximum number of existing rules with which new rules are compared. */
const MOST_RULES = 400
/** Maximum number of workloads whose labels are read. Other workloads are compared as if they might have any labels. */
const MOST_WORKLOADS = 5
/** Maximum number of covering rules named in a warning. */
const MOST_NAMED = 3

/**
 * Warns of rules that change nothing because existing draft rules, in any rule set, already decide about all their
 * connections. The number of requests and of compared objects is limited, and a warning says what was not examined.
 * Whatever the PCE does not send counts as unknown and is not an error. Returns no warnings if the caller needs only
 * the digest of what the call would write.
 */
export async function warnOfCovered(source: Source, labels: LabelIndex, coming: RulesToCome): Promise<CoveredWarnings> {
  const nothing = coming.rules.map((): string[] => [])
  if (coming.rules.length === 0 || source.isBindingOnly === true) return { byRule: nothing, general: [] }
  try {
    const read = readComing(coming)
    return await warnOfCoveredBy(await readStanding(source, labels, read), read, source.signal)
  } catch (error) {
    if (!(error instanceof PceError) || source.signal.aborted) throw error
    return {
      byRule: nothing,
      general: [`Whether other rules decide all of this already is not known: ${error.message}`],
    }
  }
}

/**
 * Converts the planned rules to the form that rule matching needs. A changed rule may still contain null selectors as
 * the PCE sent them.
 */
function readComing({ scopes, rules, own }: RulesToCome): RulesToCome {
  const bodies = rules.map(({ body }) => body as Rule)
  const [read] = readRuleSets([{ href: own ?? 'the new rule set', scopes, rules: bodies } as RuleSet])
  return {
    scopes: read?.scopes ?? scopes,
    rules: rules.map(({ type, body }, at) => ({ type, body: read?.rules?.[at] ?? body })),
    ...(own !== undefined && { own }),
  }
}

/**
 * Works like `warnOfCovered`, but for a rule that is changed or enabled. `change` contains the fields to replace;
 * undefined fields stay as they are.
 */
export async function warnOfBecomingCovered(
  source: Source,
  labels: LabelIndex,
  ruleSet: RuleSet,
  { rule, change }: { rule: Rule | DenyRule; change: object },
): Promise<string[]> {
  const given = Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined))
  const body: Rule | DenyRule = { ...rule, ...given }
  const isSwitchedOn = rule.enabled === false && body.enabled !== false
  if (body.enabled === false || ruleSet.update_type === 'delete') return []
  if (saysTheSame(rule, body) && !isSwitchedOn) return []
  const type = rule.href.includes('/deny_rules/') ? denyType(rule as DenyRule) : 'allow'
  const planned = { type, body: { ...body, ...readableEnds(body) } }
  const coming = { scopes: readableScopes(ruleSet.scopes), rules: [planned], own: toDraftHref(rule.href) }
  return tellCovered(await warnOfCovered(source, labels, coming))
}

/**
 * Returns the warnings about all rules as one list. If the call has several rules, each warning names the index of its
 * rule.
 */
export const tellCovered = ({ byRule, general }: CoveredWarnings, isOfSeveral = false): string[] => [
  ...byRule.flatMap((warnings, at) => warnings.map((text) => (isOfSeveral ? `Rule ${at}: ${text}` : text))),
  ...general,
]

/** Works like `warnOfCovered`, but uses a policy that has already been read. */
export async function warnOfCoveredBy(
  { ruleSets, boundaries, contents, unread }: StandingPolicy,
  { scopes, rules, own }: RulesToCome,
  signal: AbortSignal,
): Promise<CoveredWarnings> {
  const planned = rules.map(({ type, body }, at): HeldRule => {
    const href = `planned/${at}`
    const holder = { href, name: '' }
    // Of two equal rules, the newer one is redundant, and the planned rules are newer than the existing ones.
    return { type, rule: { ...body, href } as AnyRule, scopes, contents, since: '~', holder, isBoundary: false }
  })
  const near = await workInTurns(findNear({ ruleSets, boundaries, contents }, planned, own), signal)
  const standing = near.slice(0, MOST_RULES)
  const all = [...standing, ...planned]
  const examined = planned.map((_, at) => standing.length + at)
  const { redundant, undecided } = await workInTurns(findRedundantAmong(all, examined), signal)
  const byRule = rules.map((_, at) => {
    const index = standing.length + at
    const found = redundant.find(({ rule }) => rule === index)
    if (found !== undefined) return describe(found, all, standing.length)
    return undecided.flatMap(({ rule, because }) => (rule === index ? [UNDECIDED[because]] : []))
  })
  const left = near.length - standing.length
  const general = [
    ...unread,
    ...(left > 0
      ? [
          `${countOf(left, 'more rule')} that may decide about the same ${left === 1 ? 'was' : 'were'} not compared: ${COMPARE_MORE}`,
        ]
      : []),
  ]
  return { byRule, general }
}

/**
 * Advice for a caller when rules were not compared. A rule with narrower sides has fewer existing rules to be compared
 * with.
 */
const COMPARE_MORE =
  'labels that narrow its ends leave fewer to compare, and find-redundant-rules compares all once it is written.'

const UNDECIDED = {
  unclear:
    'Whether other rules decide all of this already is undecided: it hangs on facts about the PCE that no source settles (P65, P107).',
  size: 'Whether other rules decide all of this already is undecided: too many overlap with it to compare them all.',
} as const

const precedes = (standing: RuleType, planned: RuleType) =>
  DECIDING_ORDER.indexOf(standing) <= DECIDING_ORDER.indexOf(planned)

const SIDES = ['providers', 'consumers'] as const
/** Number of rules processed in one step of work. A step takes less than a millisecond. */
const RULES_PER_STEP = 20

/**
 * Finds the existing rules, except `own`, that may apply to a connection of a planned rule and that have its type or a
 * type that takes precedence. This cheap test excludes most rules from the comparison.
 */
function* findNear(
  { ruleSets, boundaries, contents }: Omit<StandingPolicy, 'unread'>,
  planned: readonly HeldRule[],
  own: string | undefined,
): Steps<HeldRule[]> {
  const ends = planned.map((one) => demandsOf(one))
  const near: HeldRule[] = []
  let looked = 0
  for (const part of [
    ...ruleSets.map((ruleSet) => ({ ruleSets: [ruleSet], boundaries: [] })),
    { ruleSets: [], boundaries },
  ])
    for (const one of holdRules(part, contents)) {
      if (looked++ % RULES_PER_STEP === 0) yield
      if (own !== undefined && toDraftHref(one.rule.href) === own) continue
      const demands = demandsOf(one)
      if (planned.some((rule, at) => precedes(one.type, rule.type) && mayMeet(demands, ends[at]!))) near.push(one)
    }
  return near
}

/** Returns the labels that a rule requires of its providers and of its consumers. */
const demandsOf = (rule: HeldRule) => SIDES.map((side) => endsOf(rule, side))

/**
 * Returns false if two rules have no connection in common, because on one side they require different labels with the
 * same key.
 */
const mayMeet = (a: readonly Demand[][], b: readonly Demand[][]): boolean =>
  a.every((ours, at) => ours.some((one) => b[at]!.some((other) => mayBeSame(one, other))))

/**
 * The labels that a rule requires on one side, by key. A key is absent if it is uncertain which of its labels are
 * required.
 */
type Demand = ReadonlyMap<string, ReadonlySet<string>>

/**
 * Returns, for each scope, the labels that one side of a rule requires. If the side contains anything other than
 * labels, only the labels of the scope are required.
 */
function endsOf({ rule, scopes, contents }: HeldRule, side: (typeof SIDES)[number]): Demand[] {
  const actors = rule[side]
  const isByLabels = actors.every(({ label, exclusion }) => label !== undefined && exclusion !== true)
  const own = isByLabels ? demandOf(actors, contents) : []
  const isFree = side === 'consumers' && rule.unscoped_consumers === true
  // A side with IP lists is not limited by the scope, because addresses have no labels.
  const isBound = !isFree && actors.every(({ ip_list: list }) => list === undefined)
  return (isBound && scopes.length > 0 ? scopes : [[]]).map((scope) => join([...demandOf(scope, contents), ...own]))
}

type Condition = readonly [key: string, hrefs: ReadonlySet<string>]

function demandOf(entries: readonly ScopeEntry[], { keyOf }: Pick<PolicyContents, 'keyOf'>): Condition[] {
  const byKey = new Map<string, Set<string>>()
  const open = new Set<string | undefined>()
  for (const { label, label_group: group, exclusion } of entries) {
    const key = keyOf(label?.href ?? group?.href ?? '')
    if (key === undefined || label === undefined || exclusion === true) open.add(key)
    else byKey.set(key, (byKey.get(key) ?? new Set()).add(label.href))
  }
  return open.has(undefined) ? [] : [...byKey].filter(([key]) => !open.has(key))
}

/**
 * Joins conditions that must all be met. If two conditions have the same key, only the first is kept. The result may
 * therefore match too much, but never too little.
 */
function join(conditions: readonly Condition[]): Demand {
  const joined = new Map<string, ReadonlySet<string>>()
  for (const [key, hrefs] of conditions) if (!joined.has(key)) joined.set(key, hrefs)
  return joined
}

const mayBeSame = (a: Demand, b: Demand): boolean =>
  [...a].every(([key, hrefs]) => {
    const others = b.get(key)
    return others === undefined || [...hrefs].some((href) => others.has(href))
  })

function describe({ kind, rule, by }: Redundancy, all: readonly HeldRule[], standing: number): string[] {
  // Other functions warn about a rule that selects no workload, or that is exactly equal to another rule of the call.
  // Therefore this function does not warn about such rules.
  if (kind === 'names_nobody') return []
  const own = all[rule] as HeldRule
  if (by.every((at) => at >= standing && saysTheSame((all[at] as HeldRule).rule, own.rule))) return []
  const named = by.slice(0, MOST_NAMED).map((at) => nameOf(all[at] as HeldRule, at - standing))
  const more = by.length > named.length ? [countOf(by.length - named.length, 'more rule')] : []
  const list = [...named, ...more].join(' and ')
  const verb = by.length === 1 ? 'decides' : 'decide together'
  const texts = {
    duplicate: `${list} is the same rule: a second one changes nothing.`,
    covered: `${list} ${verb} all of this already: the rule changes nothing.`,
    always_denied: `It allows nothing: ${list} ${by.length === 1 ? 'denies' : 'deny together'} all of it, which comes first.`,
    always_allowed: `It blocks nothing: ${list} ${verb} all of it, which comes first.`,
  }
  const text = texts[kind]
  return [text.charAt(0).toUpperCase() + text.slice(1)]
}

/** Returns a string by which a reader can find a rule. A planned rule has no href yet, so its index is used. */
function nameOf({ type, rule, holder, isBoundary }: HeldRule, planned: number): string {
  if (planned >= 0) return `rule ${planned} of this call`
  const pending = pendingOf(rule) !== null || pendingOf(holder) === 'create' ? ' (not provisioned yet)' : ''
  const around = pending === '' && pendingOf(holder) !== null ? ' (which has changes that are not provisioned)' : ''
  if (isBoundary) return `the enforcement boundary ${quote(holder.name)} (${toDraftHref(rule.href)})${pending}${around}`
  return `the ${type.replace('_', ' ')} rule ${toDraftHref(rule.href)}${pending} of the rule set ${quote(holder.name)}${around}`
}

const pendingOf = (object: { update_type?: string | null } | object): string | null =>
  ('update_type' in object ? object.update_type : null) ?? null

async function readStanding(source: Source, labels: LabelIndex, coming: RulesToCome): Promise<StandingPolicy> {
  const { pce, signal } = source
  const unread: string[] = []
  const readUpTo = async <T extends object>(
    what: string,
    query: Pick<ListQuery<T>, 'api'>,
    isOptional = false,
  ): Promise<T[]> => {
    try {
      const { items, totalCount } = await fetchUpTo({ ...query, params: {}, signal }, MOST_OBJECTS)
      const total = totalCount ?? items.length
      if (items.length >= MOST_OBJECTS && total > items.length)
        unread.push(
          `Only ${items.length} of ${total} ${what} were looked at for rules that decide all of this already.`,
        )
      return items
    } catch (error) {
      if (isOptional && error instanceof PceApiError && error.status === 404) return []
      throw error
    }
  }
  const listed = (await readUpTo<RuleSet>('rule sets', { api: pce.ruleSets })).filter(isInForce)
  const known = await workInTurns(
    flatMapInSteps(listed, (one) => readable(() => readRuleSets([one]))),
    signal,
  )
  const missing = listed.length - known.length
  if (missing > 0) unread.push(`${countOf(missing, 'rule set')} could not be read and was not compared.`)
  const bounds = coming.rules.some(({ type }) => type === 'deny')
    ? await readUpTo<EnforcementBoundary>('enforcement boundaries', { api: pce.enforcementBoundaries }, true)
    : []
  const boundaries = bounds.flatMap((one) => readable(() => readEnds([one], one.href)))
  const ruleSets = await addDenyRules(source, known, coming, labels, unread)
  const mentioned = await workInTurns(findMentioned([...ruleSets, ...boundaries, coming]), signal)
  const services = mentioned.has('services') ? await readUpTo<Service>('services', { api: pce.services }) : []
  // A service with an unexpected shape is left out here, so it counts as equal only to itself.
  const compared = await workInTurns(
    flatMapInSteps(services, (one) => readable(() => (requireServiceShapes([one]), [one]))),
    signal,
  )
  const lists = mentioned.has('ip_lists') ? await readUpTo<IpList>('IP lists', { api: pce.ipLists }) : []
  const groups = mentioned.has('label_groups')
    ? await readUpTo<LabelGroup>('label groups', { api: pce.labelGroups })
    : []
  const workloads = new Map<string, readonly LabelRef[]>()
  for (const href of workloadsOf(coming).slice(0, MOST_WORKLOADS))
    workloads.set(href, (await pce.workloads.getByReference(href, { signal })).labels ?? [])
  const contents = {
    ...catalogOf({ labels, services: compared, lists, groups }),
    labelsOf: (href: string) => workloads.get(href),
  }
  return { ruleSets, boundaries, contents, unread }
}

/** Works like `flatMap`, but yields before each item so that other work can run. */
function* flatMapInSteps<T, R>(items: readonly T[], work: (item: T) => R[]): Steps<R[]> {
  const results: R[] = []
  for (const item of items) {
    yield
    results.push(...work(item))
  }
  return results
}

/** Finds the services, IP lists and label groups to which the given objects refer by href. */
function* findMentioned(objects: readonly object[]): Steps<ReadonlySet<string>> {
  const kinds = ['services', 'ip_lists', 'label_groups']
  const mentioned = new Set<string>()
  for (const object of objects) {
    yield
    const text = JSON.stringify(object)
    for (const kind of kinds) if (text.includes(`/${kind}/`)) mentioned.add(kind)
    if (mentioned.size === kinds.length) break
  }
  return mentioned
}

/** Returns the result of `read`, or an empty list if `read` throws because the object is malformed. */
function readable<T>(read: () => T[]): T[] {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof PceError)) throw error
    return []
  }
}

/**
 * Adds the existing deny rules, if a new deny rule must be compared with them and the PCE sends them separately. They
 * are read for a limited number of rule sets whose scopes may overlap that of the new rule.
 */
async function addDenyRules(
  { pce, signal }: Source,
  ruleSets: readonly RuleSet[],
  coming: RulesToCome,
  labels: LabelIndex,
  unread: string[],
): Promise<RuleSet[]> {
  const isDeny = coming.rules.some(({ type }) => type !== 'allow')
  const contents = catalogOf({ labels, services: [], lists: [], groups: [] })
  const meets = ({ scopes }: RuleSet) =>
    scopes.some((scope) =>
      coming.scopes.some((other) => mayBeSame(join(demandOf(scope, contents)), join(demandOf(other, contents)))),
    )
  const apart = ruleSets.filter((set) => isDeny && set.deny_rules === undefined && meets(set))
  const read = await loadDenyRules(pce, apart.slice(0, MOST_APART), signal)
  const failed = read.filter(({ error }) => error !== undefined).length + Math.max(0, apart.length - MOST_APART)
  if (failed > 0) unread.push(`The deny rules of ${countOf(failed, 'rule set')} were not compared.`)
  const complete = new Map(read.map(({ ruleSet }) => [ruleSet.href, ruleSet]))
  return ruleSets.map((set) => complete.get(set.href) ?? set)
}

const workloadsOf = ({ rules }: RulesToCome): string[] => [
  ...new Set(
    rules.flatMap(({ body }) => [...body.providers, ...body.consumers].flatMap(({ workload }) => workload?.href ?? [])),
  ),
]
