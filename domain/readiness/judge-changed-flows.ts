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
 * The change of the enforcement mode at the source or destination of a flow. `isVague` marks a source or destination,
 * such as a virtual service, that stands for workloads that are not known individually. `isUntold` marks a workload
 * whose current mode the PCE does not report.
 */
export interface EndChange extends ModeChange {
  isVague?: true
  isUntold?: true
}

/**
 * The workloads whose modes change: the filter that selects their traffic, a function that recognises them as sources
 * or destinations of flows, and a function that returns the mode change of each.
 */
export interface ChangedEnds {
  filter: TrafficQuery['sources']
  /**
   * Returns true if the source or destination of a flow is one of these workloads, whether or not its own mode changes.
   */
  isOwn: (end: FlowEnd) => boolean
  /** Returns the mode change of a source or destination; null if its mode stays the same or if it has no mode. */
  changeOf: (end: FlowEnd) => EndChange | null
  /** The modes, by href, of workloads that have already been read and whose mode stays the same. */
  known?: ReadonlyMap<string, EndMode>
  /**
   * Returns what policy takes a source or destination for after the change, if that is something else than before, such
   * as a mere address where a workload has been unpaired; null otherwise. Rules may then apply, or no longer apply, at
   * the other end too.
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

/** Connections with the same source, destination, port and policy decision, and the effect of the new modes on them. */
export interface JudgedFlow {
  /** The direction as seen from the workloads whose mode changes. `intra` is traffic between two of these workloads. */
  direction: 'inbound' | 'outbound' | 'intra'
  source: FlowEnd
  destination: FlowEnd
  port: number | null
  proto: number | null
  connections: number
  effect: ModeEffect
  /** The source or destination, or both, whose mode change causes the effect; empty if nothing changes. */
  by: readonly FlowEnd[]
  /** The reason for the doubt if the effect is only possible or is undecided. */
  undecided: Answer
  /** True if the effect depends on rules and not only on the modes. */
  isByRules: boolean
  /** The way in which the recorded decision contradicts the rules of today. */
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
 * Reads the traffic of the workloads whose mode changes, in a time window, and passes each group of rows to `take`
 * together with the effect of the new modes on it. The effect is derived only from the active policy and the present
 * modes. The decision that follows from these is compared with the one that the PCE recorded (D78). Resolves with the
 * details of the inbound and the outbound query. If the traffic could not be read, resolves with a sentence that says
 * why, and `take` is not called. Rejects if the call is cancelled.
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
    // Traffic between two of the changed workloads appears in the answers to both queries and must be counted only
    // once, as `readBothWays` does.
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
    // For workloads whose mode changes, the change already contains the present mode from the inventory. So only the
    // other workloads are looked up.
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

/** Iterates over the sources and destinations whose mode stays the same. */
function* staying(
  { src, dst }: Record<Side, Grouping<Keys>>,
  { changeOf }: Pick<ChangedEnds, 'changeOf'>,
): Generator<FlowEnd> {
  for (const end of endsOf(dst, src)) if (changeOf(end) === null) yield end
}

/**
 * The source or destination of a connection, and whether it drops the connection before and after the change. `cause` is
 * the end whose change decides this: the end itself, or the other one if policy takes that one for something else.
 */
interface MovedEnd {
  cause: FlowEnd
  isRejudged: boolean
  change: EndChange | null
  now: Answer
  after: Answer
}

/** Creates the function that determines the effect on a group of rows from its source, destination and service. */
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
    // A vague source or destination stands for several workloads. These may currently be in any mode, and some of them
    // may keep their mode.
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

/** Derives the effect from whether source and destination drop the connection before and after the change. */
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
 * Returns true if a source or destination becomes, or may become, stricter (or looser, depending on `direction`): by its
 * own mode, or because policy takes the other end for something else.
 */
function mayTurn({ change, isRejudged }: MovedEnd, direction: 'stricter' | 'looser'): boolean {
  if (isRejudged) return true
  if (change === null) return false
  return change.isUntold === true || change.isVague === true || directionOf(change) === direction
}

const presentMode = ({ from, isUntold, isVague }: EndChange): EndMode =>
  isUntold === true || isVague === true ? 'unknown' : (from ?? 'none')
