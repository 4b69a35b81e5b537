import { PceError } from '../../pce-client/index.js'
import { ToolError } from '../../schemas/errors.js'
import type { ToolContext } from '../call.js'
import { isUnread } from '../inventory/fetch-every.js'
import { loadLabels } from '../inventory/labels.js'
import { portName } from '../inventory/protocols.js'
import { applyChange, type PolicyChange } from '../policy/apply-change.js'
import { collectAssumedFacts } from '../policy/assumed-facts.js'
import {
  createConcern,
  CUT_FATES,
  createCutJudge,
  type ComparedPolicies,
  type CutFate,
  type JudgeOf,
} from '../policy/judge-cut.js'
import { loadSnapshot, pendingHolders, withDenyRules } from '../policy/load-snapshot.js'
import { createPresentModes, type PresentModes } from '../policy/present-modes.js'
import { provisionAlone } from '../policy/provision-alone.js'
import { undecidedBecause, type Answer } from '../policy/three-valued.js'
import { trafficOfRules } from '../policy/traffic-of-rules.js'
import { compareTexts } from '../text/compare-texts.js'
import { workInTurns, type Steps } from '../text/pace-work.js'
import { nameEnds } from '../traffic/applications.js'
import { portColumn, protocolColumn, wholeEndColumn } from '../traffic/columns.js'
import { createFlowEncoder } from '../traffic/encode-flow.js'
import { endsOf, type FlowEnd } from '../traffic/flow-ends.js'
import { groupRows, type Group as RowGroup } from '../traffic/group-rows.js'
import { createConversationReader, type FlowsRead } from '../traffic/read-flows.js'
import { lookbackWindow } from '../traffic/traffic-window.js'

/** Number of days of traffic that are read, the same as for a ringfence. */
export const OBSERVED_DAYS = 30
/** Maximum number of traffic rows that are read. */
const MOST_ROWS = 100_000
/** Time limit for the traffic query, in seconds. */
const MOST_SECONDS = 120

/** The effects that a change can have on traffic, worst first, without `not_affected`. */
export type CutEffect = Exclude<CutFate, 'not_affected'>

/** Traffic from one application, host or address to another that a change may cut. */
export interface ObservedPair {
  source: string
  destination: string
  effect: CutEffect
  connections: number
  /** The ports of this traffic, such as `443/tcp`, the busiest first. */
  ports: string[]
  /** The time (RFC 3339, UTC) at which this traffic was last seen; null if the PCE did not say. */
  lastSeen: string | null
}

/** The effect of a change of the draft on observed traffic. */
export interface ObservedChange {
  read: FlowsRead
  /** Number of connections to which the changed rules may apply, by the effect of the change on them. */
  connections: Record<CutFate, number>
  /**
   * The pairs of source and destination whose traffic the change may cut: first those that certainly lose traffic, then
   * those that may. Within each of these groups, the busiest pairs come first.
   */
  pairs: readonly ObservedPair[]
  /** True if the change cuts traffic by a deny rule; false if it only permits less than before. */
  isDenied: boolean
  /** True if the draft has other changes that are not provisioned. */
  hasPending: boolean
  /** A phrase like `undecided because of …`; empty if nothing is undecided. */
  undecided: string
  /** The unconfirmed assumptions about the PCE on which the result depends. */
  assumes: readonly string[]
  /** Notes about workloads whose present mode is not known. */
  modes: readonly string[]
}

/**
 * The effect of a change on observed traffic, or a sentence that says why it is not known; null if the change cannot
 * cut anything.
 */
export type Observed = ObservedChange | string | null

type Context = Pick<
  ToolContext<true>,
  'pce' | 'progress' | 'signal' | 'beforeWriting' | 'limits' | 'now' | 'isBindingOnly'
>

/**
 * Determines which traffic of the last 30 days a change of the draft would cut once it is provisioned. Each traffic row
 * is evaluated with the draft before and after the change and, if other changes are pending, also with the active
 * policy before and after this change alone. The decisions that the PCE recorded are ignored. The function is for dry
 * runs and must not make them fail: if the policy or the traffic cannot be read, it resolves with a sentence that says
 * so. Rejects if the call is cancelled.
 */
export async function observeChange(outer: Context, change: PolicyChange): Promise<Observed> {
  if (outer.isBindingOnly === true) return null
  const { limits, beforeWriting: signal } = outer
  const trafficQueryTimeoutSeconds = Math.min(limits.trafficQueryTimeoutSeconds, MOST_SECONDS)
  const ctx = { ...outer, signal, limits: { ...limits, trafficQueryTimeoutSeconds } }
  try {
    const labels = await loadLabels(ctx.pce, ctx)
    const was = await withDenyRules(ctx, await loadSnapshot(ctx, 'draft', labels, change))
    const changed = applyChange(was, change)
    if (changed === null) return `${NOT_KNOWN}: the rule set is not in the draft.`
    const hasPending = pendingHolders(was).length > 0 || was.pendingObjects.size > 0
    const active = hasPending ? await withDenyRules(ctx, await loadSnapshot(ctx, 'active', labels, change)) : null
    const alone = active === null ? null : provisionAlone(active, was, change)
    const changedAlone = alone === null ? null : applyChange(alone, change)
    const cutting = [...changed.cutting, ...(changedAlone?.cutting ?? [])]
    if (cutting.length === 0) return null
    const pending = active && alone && changedAlone && { active, was: alone, is: changedAlone.policy }
    const encoder = createFlowEncoder(labels)
    const groups = groupRows<Group>({
      source: wholeEndColumn(encoder, 'src'),
      destination: wholeEndColumn(encoder, 'dst'),
      port: portColumn,
      proto: protocolColumn,
    })
    const request = {
      name: 'mcp-observed-change',
      window: lookbackWindow(ctx.now(), OBSERVED_DAYS),
      ...trafficOfRules(cutting),
      excludeWorkloadsFromIpListQuery: false,
      maxResults: MOST_ROWS,
    }
    const read = await createConversationReader(ctx, encoder)(request, (row) => void groups.add(row))
    const concerned = await workInTurns(selectGroups(groups, createConcern(cutting)), signal)
    const present = createPresentModes({ pce: ctx.pce, signal })
    await present.look(endsOf(concerned))
    const { pairs, ...judged } = await workInTurns(
      judgeGroups({ was, is: changed.policy, pending }, concerned, present.modeOf),
      signal,
    )
    return {
      read,
      ...judged,
      pairs,
      modes: present.notes(),
      isDenied: cutting.some(({ type }) => type !== 'allow'),
      hasPending,
    }
  } catch (error) {
    const isExpected = isUnread(error) || error instanceof PceError || error instanceof ToolError
    if (!isExpected || signal.aborted) throw error
    return `${NOT_KNOWN}: ${error.message}`
  }
}

/** The fields that have no effect on traffic. */
export const PLAIN_FIELDS = new Set(['name', 'description', 'external_data_set', 'external_data_reference'])

/**
 * Calls `observeChange` for a tool that updates or deletes an object, given the tool's answer. Resolves with null if
 * the call is not a dry run, or if it would send nothing that affects traffic.
 */
export async function observeDryRun(
  ctx: Context,
  answer: { dry_run?: boolean; requests?: readonly object[]; previous?: Record<string, unknown> },
  change: PolicyChange,
): Promise<Observed> {
  const { dry_run: isDryRun, requests = [], previous } = answer
  if (isDryRun !== true || requests.length === 0) return null
  if (previous !== undefined && Object.keys(previous).every((field) => PLAIN_FIELDS.has(field))) return null
  return observeChange(ctx, change)
}

const NOT_KNOWN = 'What this would cut of the observed traffic is not known'

/**
 * The columns by which traffic is grouped before a change is judged. Nothing that judges a change distinguishes rows
 * any further.
 */
export interface ObservedGroup {
  source: FlowEnd
  destination: FlowEnd
  port: number | null
  proto: number | null
}
type Group = ObservedGroup

/** Selects the groups of traffic rows to which the changed rules may apply. */
export function* selectGroups(
  groups: Iterable<RowGroup<Group>>,
  concerns: ReturnType<typeof createConcern>,
): Steps<RowGroup<Group>[]> {
  const selected = []
  for (const group of groups) {
    if (concerns(group.keys)) selected.push(group)
    yield
  }
  return selected
}

/** Judges groups of traffic rows by the policies without and with a change, and adds up the effects. */
export function* judgeGroups(
  policies: ComparedPolicies,
  groups: readonly RowGroup<Group>[],
  modeOf: PresentModes['modeOf'],
  judgeOf?: JudgeOf,
): Steps<Pick<ObservedChange, 'connections' | 'pairs' | 'undecided' | 'assumes'>> {
  const judge = createCutJudge(policies, modeOf, judgeOf)
  const connections: ObservedChange['connections'] = {
    cut: 0,
    cut_once_enforced: 0,
    cut_if_alone: 0,
    undecided: 0,
    draft_only: 0,
    not_affected: 0,
  }
  const pairs = new Map<string, ObservedPair & { byPort: Map<string, number> }>()
  const answers = new Set<Answer>()
  const assumed = collectAssumedFacts()
  for (const { keys, measures } of groups) {
    yield
    const { fate, undecided } = judge(keys)
    connections[fate] += measures.connections
    assumed.add(undecided, keys.source, keys.destination)
    answers.add(undecided)
    if (fate === 'not_affected') continue
    const [source, destination] = nameEnds(keys)
    const id = JSON.stringify([fate, source, destination])
    const pair = pairs.get(id) ?? {
      source,
      destination,
      effect: fate,
      connections: 0,
      ports: [],
      lastSeen: null,
      byPort: new Map<string, number>(),
    }
    pairs.set(id, pair)
    pair.connections += measures.connections
    pair.lastSeen = later(pair.lastSeen, measures.last_detected)
    const port = portName(keys)
    pair.byPort.set(port, (pair.byPort.get(port) ?? 0) + measures.connections)
  }
  return {
    connections,
    pairs: [...pairs.values()].map(withPorts).sort(worstFirst),
    undecided: undecidedBecause(answers),
    assumes: assumed.list(),
  }
}

/** Returns the later of two times in the form of the PCE, of which either may be missing. */
const later = (a: string | null, b: string | null): string | null =>
  a === null || (b !== null && Date.parse(b) > Date.parse(a)) ? b : a

const withPorts = ({ byPort, ...pair }: ObservedPair & { byPort: ReadonlyMap<string, number> }): ObservedPair => ({
  ...pair,
  ports: [...byPort].sort(([a, m], [b, n]) => n - m || compareTexts(a, b)).map(([port]) => port),
})

const worstFirst = (a: ObservedPair, b: ObservedPair): number =>
  CUT_FATES.indexOf(a.effect) - CUT_FATES.indexOf(b.effect) ||
  b.connections - a.connections ||
  compareTexts(a.source, b.source) ||
  compareTexts(a.destination, b.destination)
