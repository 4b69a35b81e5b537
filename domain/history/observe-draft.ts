import type { ToolContext } from '../call.js'
import {
  judgeGroups,
  OBSERVED_DAYS,
  selectGroups,
  type ObservedGroup,
  type ObservedPair,
} from '../drafts/observe-change.js'
import { loadLabels, type LabelIndex } from '../inventory/labels.js'
import { toDraftHref } from '../inventory/parse-href.js'
import { createConcern, keepJudges, type CutFate } from '../policy/judge-cut.js'
import { createPresentModes } from '../policy/present-modes.js'
import { trafficOfRules } from '../policy/traffic-of-rules.js'
import { workInTurns, type Steps } from '../text/pace-work.js'
import { portColumn, protocolColumn, wholeEndColumn } from '../traffic/columns.js'
import { createFlowEncoder } from '../traffic/encode-flow.js'
import { endsOf } from '../traffic/flow-ends.js'
import { groupRows } from '../traffic/group-rows.js'
import { createConversationReader, type FlowsRead } from '../traffic/read-flows.js'
import { lookbackWindow } from '../traffic/traffic-window.js'
import type { WholePolicy } from './load-policy.js'
import { createReviews, type ReviewedPolicies, type ReviewOf } from './review-policies.js'

/** Maximum number of traffic rows that are read for all changes together. */
const MOST_ROWS = 100_000
/** Maximum time that the PCE gets for the traffic query, in seconds. */
const MOST_SECONDS = 120

/** Traffic on one side of a change: what it takes away, or what it lets pass. */
export interface SideEvidence {
  connections: Readonly<Record<CutFate, number>>
  pairs: readonly ObservedPair[]
}

/**
 * What observed traffic says about one pending change. `not_judged`: changes of this type are not followed to traffic.
 * `no_rules`: no rule in force depends on it.
 */
export type ChangeEvidence =
  | { kind: 'not_judged' | 'no_rules' }
  | { kind: 'judged'; taking: SideEvidence; giving: SideEvidence; undecided: string; assumes: readonly string[] }

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
 * Determines for each of these pending changes which traffic of the last 30 days depends on what it takes away, and
 * which asked for what it lets pass. All are judged by one query of traffic, each by the policies with and without it
 * alone, in the present modes of both ends and in stricter ones. What the PCE recorded is ignored.
 * @throws the errors of the PCE client and of traffic queries.
 */
export async function observeDraft(
  outer: Context,
  changes: readonly Change[],
  { active, draft }: BothPolicies,
): Promise<DraftEvidence> {
  const labels = await loadLabels(outer.pce, outer)
  const reviewOf = createReviews(active, draft, labels)
  const reviews = await workInTurns(reviewEach(changes, reviewOf), outer.signal)
  return observeReviews(outer, labels, reviews, 'mcp-review-draft')
}

function* reviewEach(
  changes: readonly Change[],
  reviewOf: ReviewOf,
): Steps<{ href: string; review: ReviewedPolicies | null }[]> {
  const reviews = []
  for (const { type, href } of changes) {
    reviews.push({ href: toDraftHref(href), review: reviewOf(type, toDraftHref(href)) })
    yield
  }
  return reviews
}

/**
 * Determines for each of these changes which traffic depends on what it takes away, and which asked for what it lets
 * pass, by one query of traffic with the given name.
 * @throws the errors of the PCE client and of traffic queries.
 */
export async function observeReviews(
  outer: Context,
  labels: LabelIndex,
  reviews: readonly { href: string; review: ReviewedPolicies | null }[],
  name: string,
): Promise<DraftEvidence> {
  const { limits, signal } = outer
  const trafficQueryTimeoutSeconds = Math.min(limits.trafficQueryTimeoutSeconds, MOST_SECONDS)
  const ctx = { ...outer, limits: { ...limits, trafficQueryTimeoutSeconds } }
  const all = reviews.flatMap(({ review }) => review?.rules ?? [])
  const found = new Map<string, ChangeEvidence>()
  for (const { href, review } of reviews) {
    if (review === null) found.set(href, { kind: 'not_judged' })
    else if (review.rules.length === 0) found.set(href, { kind: 'no_rules' })
  }
  if (all.length === 0) return { changes: found, read: null, modes: [] }
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
  const judgeOf = keepJudges()
  for (const { href, review } of reviews) {
    if (review === null || review.rules.length === 0) continue
    const own = await workInTurns(selectGroups(concerned, createConcern(review.rules)), signal)
    const taking = await workInTurns(judgeGroups(review.taking, own, present.modeOf, judgeOf), signal)
    const giving = await workInTurns(judgeGroups(review.giving, own, present.modeOf, judgeOf), signal)
    const assumes = [...new Set([...taking.assumes, ...giving.assumes])].sort()
    const undecided = taking.undecided === '' ? giving.undecided : taking.undecided
    found.set(href, { kind: 'judged', taking, giving, undecided, assumes })
  }
  return { changes: found, read: flows, modes: present.notes() }
}
