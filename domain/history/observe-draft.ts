import { ToolError } from '../../schemas/errors.js'
import type { RuleSet } from '../../schemas/pce/rule-set.js'
import type { ToolContext } from '../call.js'
import {
  judgeGroups,
  OBSERVED_DAYS,
  selectGroups,
  type ObservedGroup,
  type ObservedPair,
} from '../drafts/observe-change.js'
import type { NamedObject } from '../inventory/find-object.js'
import { loadLabels, type LabelIndex } from '../inventory/labels.js'
import { parseHref, toDraftHref } from '../inventory/parse-href.js'
import { loadReferenceNames } from '../inventory/reference-names.js'
import { createConcern, CUT_FATES, type ComparedPolicies, type CutFate, type JudgeOf } from '../policy/judge-cut.js'
import { nameRule } from '../policy/name-rule.js'
import { createPresentModes, type PresentModes } from '../policy/present-modes.js'
import { trafficOfRules } from '../policy/traffic-of-rules.js'
import { quote } from '../text/escape-text.js'
import { workInTurns, type Steps } from '../text/pace-work.js'
import { portColumn, protocolColumn, wholeEndColumn } from '../traffic/columns.js'
import { createFlowEncoder } from '../traffic/encode-flow.js'
import { endsOf } from '../traffic/flow-ends.js'
import { groupRows } from '../traffic/group-rows.js'
import { createConversationReader, type FlowsRead } from '../traffic/read-flows.js'
import { lookbackWindow } from '../traffic/traffic-window.js'
import { READ_TYPES, type WholePolicy } from './load-policy.js'
import { createReviews, type ReviewedPolicies, type ReviewOf } from './review-policies.js'
import { shareJudges, type ReviewedRule, type ReviewedRules } from './review-rules.js'

/** Maximum number of traffic rows that are read for all changes together. */
const MOST_ROWS = 100_000
/** Maximum time that the PCE gets for the traffic query, in seconds. */
const MOST_SECONDS = 120
/** Maximum number of comparisons of a changed rule with a kind of traffic, for all changes together. */
const MOST_COMPARISONS = 3_000_000
const TOO_MANY =
  'there are more changed rules, or is more traffic, than a call compares; call review-draft with its href'

/** Traffic on one side of a change: what the change takes away, or what it allows. */
export interface SideEvidence {
  connections: Readonly<Record<CutFate, number>>
  pairs: readonly ObservedPair[]
}

/**
 * What observed traffic says about a pending change or about the change of one rule. `not_judged`: traffic was not
 * examined; unless `why` gives another reason, changes of this type are never judged. `no_rules`: no rule in force
 * depends on the change.
 */
export type TrafficEvidence =
  | { kind: 'not_judged' | 'no_rules'; why?: string }
  | { kind: 'judged'; taking: SideEvidence; giving: SideEvidence; undecided: string; assumes: readonly string[] }

/** What observed traffic says about a pending change and, if a rule set changes, about each of its rules. */
export type ChangeEvidence = TrafficEvidence & { rules?: RulesEvidence }

/** What observed traffic says about the changed rules of a rule set. */
export interface RulesEvidence extends Omit<ReviewedRules, 'changed'> {
  changed: readonly RuleEvidence[]
  /** Number of changed rules that the caller did not ask about and that were therefore not judged. */
  others: number
}

/** A changed rule of a rule set, with what observed traffic says about it. */
export interface RuleEvidence extends Omit<ReviewedRule, 'review' | 'becomes'> {
  /** The rule in one line, as `nameRule` names it. */
  line: string
  /** The rule in one line after the change; absent if the line stays the same. */
  newLine?: string
  evidence: TrafficEvidence
}

/** What observed traffic says about pending changes. */
export interface DraftEvidence {
  /** By draft href of the change. */
  changes: ReadonlyMap<string, ChangeEvidence>
  /** The traffic that was read; null if no change needed any. */
  read: FlowsRead | null
  /** Notes about workloads whose present mode is not known. */
  modes: readonly string[]
}

type Context = Pick<ToolContext<true>, 'pce' | 'progress' | 'signal' | 'beforeWriting' | 'limits' | 'now'>
type Change = { href: string; type: string }

/** Both versions of the policy, as the caller has read them. */
export interface BothPolicies {
  active: WholePolicy
  draft: WholePolicy
}

/**
 * Determines for each of these pending changes which traffic of the last 30 days depends on what the change takes away,
 * and which traffic requested what it allows. One traffic query serves all changes. Each is judged by comparing the
 * policies with and without this change alone, both in the present modes of the two ends and in stricter ones. The
 * decisions that the PCE recorded are ignored. The changed rules of a rule set are also judged one by one.
 * @param only draft href of the only rule of a rule set that is judged; the others are left out, and the evidence of
 * the change is that of this rule.
 * @throws {ToolError} not_found if neither version of the policy has this rule.
 * @throws the errors of the PCE client and of traffic queries.
 */
export async function observeDraft(
  outer: Context,
  changes: readonly Change[],
  { active, draft }: BothPolicies,
  only?: string,
): Promise<DraftEvidence> {
  if (only !== undefined) requireRule(only, [active, draft])
  const labels = await loadLabels(outer.pce, outer)
  const wanted = changes.map(({ type, href }) => ({ type, href: toDraftHref(href) }))
  const reviewOf = createReviews(active, draft, labels, wanted)
  const reviews = await workInTurns(reviewEach(wanted, reviewOf), outer.signal)
  const named = [active, draft].flatMap((policy) =>
    READ_TYPES.flatMap((type) => [...policy[type].values()] as NamedObject[]),
  )
  return observeReviews(outer, labels, reviews, 'mcp-review-draft', { only, named })
}

function requireRule(href: string, policies: readonly WholePolicy[]): void {
  const sets = policies.flatMap((policy) => [...policy.rule_sets.values()] as RuleSet[])
  const isThere = sets.some(({ rules, deny_rules: denies, ip_tables_rules: ipTables }) =>
    [rules, denies, ipTables].some((list) => (list ?? []).some((rule) => toDraftHref(rule.href) === href)),
  )
  if (isThere) return
  const text = `href: neither the draft nor the active policy has a rule ${quote(href)}.`
  throw new ToolError('not_found', text, { argument: 'href', href })
}

/** Returns the assumptions about the PCE on which the evidence of a change and of its rules depends. */
export const assumesOf = (found: ChangeEvidence): string[] =>
  [found, ...(found.rules?.changed ?? []).map(({ evidence }) => evidence)].flatMap((one) =>
    one.kind === 'judged' ? one.assumes : [],
  )

function* reviewEach(
  changes: readonly Change[],
  reviewOf: ReviewOf,
): Steps<{ href: string; review: ReviewedPolicies | null }[]> {
  const reviews = []
  for (const { type, href } of changes) {
    reviews.push({ href, review: reviewOf(type, href) })
    yield
  }
  return reviews
}

/**
 * The draft href of the only rule to judge, if the caller asked for one; and objects whose names are already known, so
 * that they need not be looked up to name the rules.
 */
interface RulesAsked {
  only?: string | undefined
  named?: readonly NamedObject[]
}

/**
 * Determines for each of these changes which traffic depends on what the change takes away, and which traffic requested
 * what it allows. A single traffic query with the given name serves all changes.
 * @throws the errors of the PCE client and of traffic queries.
 */
export async function observeReviews(
  outer: Context,
  labels: LabelIndex,
  reviews: readonly { href: string; review: ReviewedPolicies | null }[],
  name: string,
  asked: RulesAsked = {},
): Promise<DraftEvidence> {
  const { limits, signal } = outer
  const trafficQueryTimeoutSeconds = Math.min(limits.trafficQueryTimeoutSeconds, MOST_SECONDS)
  const ctx = { ...outer, limits: { ...limits, trafficQueryTimeoutSeconds } }
  const all = reviews.flatMap(({ review }) => review?.rules ?? [])
  if (all.length === 0) {
    const judged = reviews.map(({ href, review }): [string, Judged] => [href, withoutTraffic(review, asked)])
    return { changes: await nameRules(outer, judged, asked), read: null, modes: [] }
  }
  const encoder = createFlowEncoder(labels)
  const groups = groupRows<ObservedGroup>({
    source: wholeEndColumn(encoder, 'src'),
    destination: wholeEndColumn(encoder, 'dst'),
    port: portColumn,
    proto: protocolColumn,
  })
  const request = {
    name,
    window: lookbackWindow(ctx.now(), OBSERVED_DAYS),
    ...trafficOfRules(all),
    excludeWorkloadsFromIpListQuery: false,
    maxResults: MOST_ROWS,
  }
  const flows = await createConversationReader(ctx, encoder)(request, (row) => void groups.add(row))
  const concerned = await workInTurns(selectGroups(groups, createConcern(all)), signal)
  const present = createPresentModes({ pce: ctx.pce, signal })
  await present.look(endsOf(concerned))
  const { judgeOf, forget } = shareJudges()
  const judge = createRuleJudge({ modeOf: present.modeOf, signal, judgeOf, ...asked })
  const found: [string, Judged][] = []
  for (const { href, review } of reviews)
    if (review === null || review.rules.length === 0) found.push([href, withoutTraffic(review, asked)])
    else {
      const own = await workInTurns(selectGroups(concerned, createConcern(review.rules)), signal)
      found.push([href, await judge(review, own)])
      forget(review.own ?? [])
    }
  return { changes: await nameRules(outer, found, asked), read: flows, modes: present.notes() }
}

const IP_TABLES = 'rules in the words of iptables are not followed to traffic'
const UNCHANGED = 'this rule is not changed'

type Judged = TrafficEvidence & { rules?: Omit<RulesEvidence, 'changed'> & { changed: JudgedRule[] } }
type JudgedRule = Omit<ReviewedRule, 'review'> & Pick<RuleEvidence, 'evidence'>
type Groups = Parameters<typeof judgeGroups>[1]
type Judgement = ReturnType<typeof judgeGroups> extends Steps<infer T> ? T : never

const isAsked = ({ href }: { href: string }, { only }: RulesAsked): boolean => only === undefined || only === href

/** Returns the evidence of the only rule that was asked for. `rule` is undefined if it is not among the changed rules. */
function evidenceOfOnly(rule: JudgedRule | undefined, only: string): TrafficEvidence {
  if (rule !== undefined) return rule.evidence
  const isIpTables = parseHref(only)?.kind === 'ip_tables_rules'
  return isIpTables ? { kind: 'not_judged', why: IP_TABLES } : { kind: 'no_rules', why: UNCHANGED }
}

/** Returns the evidence of a change that cannot affect any traffic. */
function withoutTraffic(review: ReviewedPolicies | null, asked: RulesAsked): Judged {
  if (review === null) return { kind: 'not_judged' }
  if (review.each === undefined) return { kind: 'no_rules' }
  const all = [...review.each.changed]
  const changed = all
    .filter((rule) => isAsked(rule, asked))
    .map(({ review: why, ...rule }): JudgedRule => ({
      ...rule,
      evidence: { kind: 'no_rules', ...(typeof why === 'string' && { why }) },
    }))
  const whole: TrafficEvidence =
    review.each.ipTables > 0 ? { kind: 'not_judged', why: IP_TABLES } : { kind: 'no_rules' }
  return {
    ...(asked.only === undefined ? whole : evidenceOfOnly(changed[0], asked.only)),
    rules: { ...review.each, others: all.length - changed.length, changed },
  }
}

/** Creates the function that judges a change, and each of its rules, by the groups of traffic that it can affect. */
function createRuleJudge({
  modeOf,
  judgeOf,
  signal,
  ...asked
}: RulesAsked & { modeOf: PresentModes['modeOf']; judgeOf: JudgeOf; signal: AbortSignal }) {
  let left = MOST_COMPARISONS
  const judgeSides = async (
    { taking, giving }: { taking: ComparedPolicies | null; giving: ComparedPolicies | null },
    groups: Groups,
  ): Promise<TrafficEvidence> => {
    const side = async (policies: ComparedPolicies | null): Promise<Judgement> =>
      policies === null ? NOTHING : workInTurns(judgeGroups(policies, groups, modeOf, judgeOf), signal)
    const [taken, given] = [await side(taking), await side(giving)]
    const assumes = [...new Set([...taken.assumes, ...given.assumes])].sort()
    const undecided = taken.undecided === '' ? given.undecided : taken.undecided
    return { kind: 'judged', taking: taken, giving: given, undecided, assumes }
  }
  return async (review: ReviewedPolicies, groups: Groups): Promise<Judged> => {
    if (review.each === undefined) return judgeSides(review, groups)
    const changed: JudgedRule[] = []
    let others = 0
    for (const { review: own, ...rule } of review.each.changed) {
      if (!isAsked(rule, asked)) others++
      else if (typeof own === 'string') changed.push({ ...rule, evidence: { kind: 'no_rules', why: own } })
      else if (left < groups.length) changed.push({ ...rule, evidence: { kind: 'not_judged', why: TOO_MANY } })
      else {
        left -= groups.length
        const concerned = await workInTurns(selectGroups(groups, createConcern(own.rules)), signal)
        changed.push({ ...rule, evidence: await judgeSides(own, concerned) })
      }
    }
    const { only } = asked
    const whole = only === undefined ? await judgeSides(review, groups) : evidenceOfOnly(changed[0], only)
    return { ...whole, rules: { ...review.each, changed, others } }
  }
}

/** The judgement of a side that a change does not have, such as what a new allow rule takes away. */
const NOTHING: Judgement = {
  connections: Object.fromEntries(CUT_FATES.map((fate) => [fate, 0])) as Record<CutFate, number>,
  pairs: [],
  undecided: '',
  assumes: [],
}

/** Describes each rule in one line, and a changed rule in two: before and after the change. */
async function nameRules(
  ctx: Context,
  judged: readonly [string, Judged][],
  { named = [] }: RulesAsked,
): Promise<Map<string, ChangeEvidence>> {
  const rules = judged.flatMap(([, one]) => one.rules?.changed ?? [])
  const names = await loadReferenceNames(
    ctx.pce,
    rules.map(({ rule, becomes }) => [rule, becomes]),
    ctx,
    'draft',
    named,
  )
  return new Map(
    judged.map(([href, { rules: own, ...evidence }]) => {
      if (own === undefined) return [href, evidence]
      const changed = own.changed.map(({ becomes, ...one }) => {
        const [is, will] = [nameRule(one.rule, names), becomes && nameRule(becomes, names)]
        return { ...one, line: is, ...(will !== undefined && will !== is && { newLine: will }) }
      })
      return [href, { ...evidence, rules: { ...own, changed } }]
    }),
  )
}
