import type { TrafficQuery } from '../../schemas/pce/traffic.js'
import { isEnforcing, type EndMode } from '../../schemas/pce/enforcement-modes.js'
import type { ToolContext } from '../call.js'
import { isUnread } from '../inventory/fetch-every.js'
import { loadLabels } from '../inventory/labels.js'
import { compareRecord, type Disagreement } from '../policy/compare-record.js'
import { createConnectionJudge, dropsBy, type EndJudge } from '../policy/judge-connection.js'
import { directionOf, type ModeChange } from '../policy/judge-mode.js'
import { createPresentModes, type PresentModes } from '../policy/present-modes.js'
import { anyOf, both, isUnknown, unknown, type Answer } from '../policy/three-valued.js'
import { workInTurns, type Steps } from '../text/pace-work.js'
import { anything } from '../traffic/applications.js'
import { portColumn, protocolColumn, textColumn, wholeEndColumn, type Side } from '../traffic/columns.js'
import { createFlowEncoder, type FlowRow } from '../traffic/encode-flow.js'
import { endsOf, type FlowEnd } from '../traffic/flow-ends.js'
import { groupRows, type Grouping } from '../traffic/group-rows.js'
import type { BothWays } from '../traffic/read-both-ways.js'
import { createConversationReader } from '../traffic/read-flows.js'
import type { TrafficWindow } from '../traffic/traffic-window.js'
import { readPolicyInForce } from './tally-decisions.js'

/**
 * The change of the enforcement mode at one end of a flow. `isVague`: the end, such as a virtual service, stands for
 * workloads that are not known individually. `isUntold`: the PCE does not report the workload's current mode.
 */
export interface EndChange extends ModeChange {
  isVague?: true
  isUntold?: true
}

/**
 * The workloads whose modes change: a filter for their traffic, a function that recognises them as ends of flows, and a
 * function that returns the mode change of each.
 */
export interface ChangedEnds {
  filter: TrafficQuery['sources']
  /** Returns true if an end of a flow is one of these workloads, whether or not its mode changes. */
  isOwn: (end: FlowEnd) => boolean
  /** Returns the mode change of an end; null if its mode stays the same or if it has no mode. */
  changeOf: (end: FlowEnd) => EndChange | null
  /** The modes, by href, of workloads that were already read and whose mode stays the same. */
  known?: ReadonlyMap<string, EndMode>
  /**
   * Returns the form in which policy sees an end after the change, if that differs from before; otherwise null. For
   * example, an unpaired workload becomes a mere address. As a result, other rules may apply at the opposite end.
   */
  seenAfter?: (end: FlowEnd) => FlowEnd | null
}

/**
 * The possible effects of the new modes on traffic. `opened`: the traffic is blocked now and would pass.
 * `stays_undecided`: the new modes make no difference to the traffic, but it is undecided whether it passes.
 */
export const MODE_EFFECTS = [
  'cut',
  'opened',
  'possibly_cut',
  'possibly_opened',
  'stays_allowed',
  'stays_blocked',
  'stays_undecided',
] as const
export type ModeEffect = (typeof MODE_EFFECTS)[number]

/** Connections with the same source, destination, port and policy decision, and what the new modes do to them. */
export interface JudgedFlow {
  /** The direction as seen from the workloads whose mode changes. `intra` is traffic between two of these workloads. */
  direction: 'inbound' | 'outbound' | 'intra'
  source: FlowEnd
  destination: FlowEnd
  port: number | null
  proto: number | null
  connections: number
  effect: ModeEffect
  /** The ends whose mode change causes the effect; empty if nothing changes. */
  by: readonly FlowEnd[]
  /** If the effect is only possible, or undecided, the reason for the doubt. */
  undecided: Answer
  /** True if the effect depends on rules, too, not only on modes. */
  isByRules: boolean
  /** How the recorded decision contradicts the present rules. */
  disagreement: Disagreement
}

type Keys = Pick<JudgedFlow, 'source' | 'destination' | 'port' | 'proto'> & { decision: string | null }
type Fate = Pick<JudgedFlow, 'effect' | 'by' | 'undecided' | 'isByRules' | 'disagreement'>

/** The results of the queries in both directions, and notes about workloads whose present mode is not known. */
export interface JudgedReads extends BothWays {
  modes: readonly string[]
}

export type JudgingContext = Pick<ToolContext<true>, 'pce' | 'progress' | 'signal' | 'limits' | 'now'>

/**
 * Reads the traffic, in a time window, of the workloads whose mode changes. Passes each group of rows to `take`,
 * together with the effect of the new modes, which is derived from the active policy and the present modes alone. The
 * decision that follows from these is compared with the one that the PCE recorded (D78). Resolves with the details of
 * the inbound and the outbound query. If the traffic could not be read, resolves with a sentence that says why, and
 * `take` is not called. Rejects if the call is cancelled.
 *
 * @param complete the option `complete` of `createConversationReader`
 */
export async function judgeChangedFlows(
  ctx: JudgingContext,
  ends: ChangedEnds,
  { name, window, complete }: { name: string; window: TrafficWindow; complete: boolean | undefined },
  take: (flow: JudgedFlow) => void,
): Promise<JudgedReads | string> {
  const { pce, signal } = ctx
  const { filter, isOwn } = ends
  try {
    const labels = await loadLabels(pce, ctx)
    const encoder = createFlowEncoder(labels)
    const decision = textColumn(encoder, 'decision')
    const group = () =>
      groupRows<Keys>({
        source: wholeEndColumn(encoder, 'src'),
        destination: wholeEndColumn(encoder, 'dst'),
        port: portColumn,
        proto: protocolColumn,
        decision,
      })
    const paths = { dst: group(), src: group() }
    const keep = (side: Side, row: FlowRow) => void paths[side].add(row)
    // Both queries return the traffic between two of the changed workloads. It must count only once, as in
    // `readBothWays`.
    const destinations = new Set<number>()
    let repeated = 0
    const read = createConversationReader(ctx, encoder, complete)
    const request = { name, window }
    const inbound = await read({ ...request, filters: { sources: anything(), destinations: filter } }, (row) => {
      destinations.add(row.dst)
      keep('dst', row)
    })
    const outbound = await read({ ...request, filters: { sources: filter, destinations: anything() } }, (row) => {
      if (destinations.has(row.dst)) repeated += row.reports
      else keep('src', row)
    })
    const isSeen = paths.dst.size + paths.src.size > 0
    const policy = isSeen ? await readPolicyInForce(pce, signal, labels) : null
    // If a workload's mode changes, the present mode is already known from the change. So only other workloads are
    // looked up.
    const present = createPresentModes({ pce, signal }, { known: ends.known ?? new Map() })
    await present.look(staying(paths, ends))
    const judge = createFateJudge(createConnectionJudge(policy), ends, present.modeOf)

    function* judgeAll(): Steps<void> {
      for (const [side, groups] of Object.entries(paths) as [Side, (typeof paths)[Side]][]) {
        for (const { keys, measures } of groups) {
          yield
          const isInside = isOwn(keys.source) && isOwn(keys.destination)
          const { decision: _decided, ...flow } = keys
          const direction = isInside ? 'intra' : side === 'src' ? 'outbound' : 'inbound'
          take({ ...flow, direction, connections: measures.connections, ...judge(keys) })
        }
      }
    }

    await workInTurns(judgeAll(), signal)
    return { inbound, outbound, repeated, modes: present.notes() }
  } catch (error) {
    if (!isUnread(error) || signal.aborted) throw error
    return `The traffic could not be read, so what would be cut is not known: ${error.message}`
  }
}

/** Iterates over the ends whose mode stays the same. */
function* staying(
  { src, dst }: Record<Side, Grouping<Keys>>,
  { changeOf }: Pick<ChangedEnds, 'changeOf'>,
): Generator<FlowEnd> {
  for (const end of endsOf(dst, src)) if (changeOf(end) === null) yield end
}

/**
 * One end of a connection, and whether it drops the connection before and after the change. `cause` is the end whose
 * change decides this: the end itself or, if policy sees the opposite end in another form, that one.
 */
interface MovedEnd {
  cause: FlowEnd
  isRejudged: boolean
  change: EndChange | null
  now: Answer
  after: Answer
}

/** Creates the function that determines the effect on a group of rows from its ends and its service. */
function createFateJudge(
  judgeOf: ReturnType<typeof createConnectionJudge>,
  { changeOf, seenAfter = () => null }: Pick<ChangedEnds, 'changeOf' | 'seenAfter'>,
  modeOf: PresentModes['modeOf'],
): (keys: Keys) => Fate {
  const dropsAt = (judges: { now: EndJudge; after: EndJudge }, end: FlowEnd, other: FlowEnd, side: Side): MovedEnd => {
    const change = changeOf(end)
    const drops = (mode: EndMode, when: keyof typeof judges) => dropsBy(judges[when](side, mode))
    if (change === null) {
      const mode = modeOf(end)
      const isRejudged = seenAfter(other) !== null
      const now = drops(mode, 'now')
      const after = isRejudged ? drops(mode, 'after') : now
      return { cause: isRejudged ? other : end, isRejudged, change, now, after }
    }
    const own = { cause: end, isRejudged: false, change }
    if (change.isVague !== true)
      return { ...own, now: drops(presentMode(change), 'now'), after: drops(change.to, 'after') }
    // A vague end stands for several workloads, which may be in any mode now, and some of which may keep their mode.
    const some = (mode: EndMode, when: keyof typeof judges) => both(drops(mode, when), unknown('virtual_service'))
    return { ...own, now: some('full', 'now'), after: some(change.to, 'after') }
  }

  return (keys) => {
    const { source, destination, decision } = keys
    const judge = judgeOf(keys)
    const [newSource, newDestination] = [seenAfter(source), seenAfter(destination)]
    const isSame = newSource === null && newDestination === null
    const judges = {
      now: judge,
      after: isSame
        ? judge
        : judgeOf({ ...keys, source: newSource ?? source, destination: newDestination ?? destination }),
    }
    const ends = [dropsAt(judges, source, destination, 'src'), dropsAt(judges, destination, source, 'dst')]
    const modes = [source, destination].map((end, at) => {
      const { change } = ends[at] as MovedEnd
      return change === null ? modeOf(end) : presentMode(change)
    })
    const present = [judge('src', modes[0] as EndMode), judge('dst', modes[1] as EndMode)]
    const isByRules = [...modes, ...ends.flatMap(({ change }) => change?.to ?? [])].some(
      (mode) => mode === 'unknown' || isEnforcing(mode),
    )
    return { ...fateOf(ends), isByRules, disagreement: compareRecord(decision, present) }
  }
}

/** Derives the effect from whether each end drops the connection before and after the change. */
function fateOf(ends: readonly MovedEnd[]): Pick<Fate, 'effect' | 'by' | 'undecided'> {
  const now = anyOf(ends.map((one) => one.now))
  const after = anyOf(ends.map((one) => one.after))
  const closing = ends.filter((one) => mayTurn(one, 'stricter') && one.now !== 'yes' && one.after !== 'no')
  const opening = ends.filter((one) => mayTurn(one, 'looser') && one.now !== 'no' && one.after !== 'yes')
  const turns =
    now !== 'yes' && after !== 'no' && closing.length > 0
      ? ({ effect: 'cut', by: closing } as const)
      : now !== 'no' && after !== 'yes' && opening.length > 0
        ? ({ effect: 'opened', by: opening } as const)
        : null
  const undecided = anyOf([now, after].filter(isUnknown))
  if (turns === null) {
    if (isUnknown(now)) return { effect: 'stays_undecided', by: [], undecided }
    return { effect: now === 'yes' ? 'stays_blocked' : 'stays_allowed', by: [], undecided: 'no' }
  }
  const by = [...new Set(turns.by.map(({ cause }) => cause))]
  return { effect: undecided === 'no' ? turns.effect : `possibly_${turns.effect}`, by, undecided }
}

/**
 * Returns true if an end becomes, or may become, stricter (or looser, depending on `direction`), because of its own
 * mode or because policy sees the opposite end in another form.
 */
function mayTurn({ change, isRejudged }: MovedEnd, direction: 'stricter' | 'looser'): boolean {
  if (isRejudged) return true
  if (change === null) return false
  return change.isUntold === true || change.isVague === true || directionOf(change) === direction
}

const presentMode = ({ from, isUntold, isVague }: EndChange): EndMode =>
  isUntold === true || isVague === true ? 'unknown' : (from ?? 'none')
