import { PceError } from '../../pce-client/index.js'
import { readDecision } from '../../schemas/pce/policy-decisions.js'
import type { TrafficQuery } from '../../schemas/pce/traffic.js'
import { allowsByRule, isEnforcing, isMode, type EnforcementMode } from '../../schemas/pce/enforcement-modes.js'
import type { ToolContext } from '../call.js'
import { loadLabels } from '../inventory/labels.js'
import { createModeJudges, directionOf, type ModeChange } from '../policy/judge-mode.js'
import { anyOf, both, isUnknown, unknown, type Answer } from '../policy/three-valued.js'
import { workInTurns, type Steps } from '../text/pace-work.js'
import { anything } from '../traffic/applications.js'
import { portColumn, protocolColumn, textColumn, wholeEndColumn, type Side } from '../traffic/columns.js'
import { createFlowEncoder, type FlowRow } from '../traffic/encode-flow.js'
import type { FlowEnd } from '../traffic/flow-ends.js'
import { groupRows } from '../traffic/group-rows.js'
import type { BothWays } from '../traffic/read-both-ways.js'
import { createConversationReader } from '../traffic/read-flows.js'
import type { TrafficWindow } from '../traffic/traffic-window.js'
import { readPolicyInForce } from './tally-decisions.js'

/**
 * The change of mode at one end. `isVague` marks an end, such as a virtual service, that stands for workloads which are
 * not known individually; `isUntold` marks a workload whose present mode the PCE does not tell.
 */
export interface EndChange extends ModeChange {
  isVague?: true
  isUntold?: true
}

/**
 * The workloads whose modes change: how to query their traffic, how to recognise their ends, and how each end changes.
 */
export interface ChangedEnds {
  filter: TrafficQuery['sources']
  /** True for an end that belongs to these workloads, whether or not its own mode changes. */
  isOwn: (end: FlowEnd) => boolean
  /** The change of mode at this end; null if its mode stays the same or it has none. */
  changeOf: (end: FlowEnd) => EndChange | null
  /** The mode that all of them change to. */
  to: EnforcementMode
}

/** Possible effects of the new modes on traffic. `opened` means that it is blocked now and would pass. */
export const MODE_EFFECTS = [
  'cut',
  'opened',
  'possibly_cut',
  'possibly_opened',
  'stays_allowed',
  'stays_blocked',
] as const
export type ModeEffect = (typeof MODE_EFFECTS)[number]

/** Connections between two ends on one port with the same policy decision, and the effect of the new modes on them. */
export interface JudgedFlow {
  /** Direction as seen from the changed ends; `intra` is traffic between two of them. */
  direction: 'inbound' | 'outbound' | 'intra'
  source: FlowEnd
  destination: FlowEnd
  port: number | null
  proto: number | null
  connections: number
  effect: ModeEffect
  /** The ends whose change causes the effect; empty if nothing changes. */
  by: readonly FlowEnd[]
  /** The reason for the doubt if the effect is only possible. */
  undecided: Answer
  /** True if rules decided about the effect, and not the PCE's own decision or the modes alone. */
  isByRules: boolean
}

type Keys = Pick<JudgedFlow, 'source' | 'destination' | 'port' | 'proto'> & { decision: string | null }
type Fate = Pick<JudgedFlow, 'effect' | 'by' | 'undecided' | 'isByRules'>

export type JudgingContext = Pick<ToolContext<true>, 'pce' | 'progress' | 'signal' | 'limits' | 'now'>

/**
 * Reads the traffic of the changed ends in the window and passes each group of rows to `take` with its
 * judgement, which is based on the active policy and on the PCE's own decisions (D78). Resolves with the details of the
 * inbound and the outbound read. If the traffic could not be read, resolves with a sentence that says why, and `take`
 * is not called. Rejects when cancelled.
 *
 * @param complete as for `createConversationReader`
 */
export async function judgeChangedFlows(
  ctx: JudgingContext,
  ends: ChangedEnds,
  { name, window, complete }: { name: string; window: TrafficWindow; complete: boolean | undefined },
  take: (flow: JudgedFlow) => void,
): Promise<BothWays | string> {
  const { pce, signal } = ctx
  const { filter, isOwn, to } = ends
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
    let hasBlocked = false
    const keep = (side: Side, row: FlowRow) => {
      hasBlocked ||= isBlocked(decision.value(decision.code(row)))
      paths[side].add(row)
    }
    // Traffic between the changed ends appears in both answers and must count once, as in readBothWays.
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
    const policy = isEnforcing(to) || hasBlocked ? await readPolicyInForce(pce, signal, labels) : null
    const judge = createFateJudge(createModeJudges(policy), ends)

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
    return { inbound, outbound, repeated }
  } catch (error) {
    if (!(error instanceof PceError) || signal.aborted) throw error
    return `The traffic could not be read, so what would be cut is not known: ${error.message}`
  }
}

const isBlocked = (word: string | null) => readDecision(word) === 'blocked'

const kept = (effect: ModeEffect, isByRules: boolean): Fate => ({ effect, by: [], undecided: 'no', isByRules })

/** One end of a row, with the change of its mode if there is one. */
interface ChangingEnd {
  end: FlowEnd
  side: Side
  change: EndChange | null
}

/** Creates the function that judges groups of rows by their keys. */
function createFateJudge(
  judgeOf: ReturnType<typeof createModeJudges>,
  { changeOf }: Pick<ChangedEnds, 'changeOf'>,
): (keys: Keys) => Fate {
  const judges = new Map<string, ReturnType<typeof judgeOf>>()
  const judge = ({ from, to }: ModeChange) => {
    const id = `${from} ${to}`
    const known = judges.get(id) ?? judgeOf({ from, to })
    judges.set(id, known)
    return known
  }

  /** Whether an end that lets the traffic pass now would drop it in its new mode. */
  const drops = (keys: Keys, { side, change }: ChangingEnd): Answer => {
    if (change === null || directionOf(change) !== 'stricter') return 'no'
    const dropped = judge(change)(keys, side)
    if (change.isUntold === true) return both(dropped, unknown('enforcement'))
    return change.isVague === true ? both(dropped, unknown('virtual_service')) : dropped
  }

  /**
   * Whether this end, in its current or new mode, drops the traffic according to the rules. The end that blocks it
   * today may be the other one.
   */
  const blocks = (keys: Keys, { end, side, change }: ChangingEnd, when: 'now' | 'after'): Answer => {
    const mode = change === null ? modeOf(end) : when === 'now' ? change.from : change.to
    if (mode === 'unknown' || (when === 'now' && change?.isUntold === true)) return unknown('enforcement')
    const blocked = mode === null ? 'no' : judge({ from: null, to: mode })(keys, side)
    // The workloads behind a vague end may be in any mode now, and some of them may keep it.
    if (change?.isVague === true)
      return when === 'now' ? unknown('virtual_service') : both(blocked, unknown('virtual_service'))
    return blocked
  }

  const fateOfPassing = (keys: Keys, ends: readonly ChangingEnd[]): Fate => {
    const answers = ends.map((end) => ({ ...end, dropped: drops(keys, end) }))
    const dropped = anyOf(answers.map((one) => one.dropped))
    if (dropped === 'no') {
      const isTold = (change: EndChange) => keys.decision === 'allowed' && allowsByRule(change.from)
      const isByRules = ends.some(
        ({ change }) => change !== null && directionOf(change) === 'stricter' && !isTold(change),
      )
      return kept('stays_allowed', isByRules)
    }
    const isSure = dropped === 'yes'
    const by = answers.filter((one) => (isSure ? one.dropped === 'yes' : one.dropped !== 'no')).map(({ end }) => end)
    return { effect: isSure ? 'cut' : 'possibly_cut', by, undecided: isSure ? 'no' : dropped, isByRules: true }
  }

  return (keys) => {
    const ends = [
      { end: keys.source, side: 'src' as const, change: changeOf(keys.source) },
      { end: keys.destination, side: 'dst' as const, change: changeOf(keys.destination) },
    ]
    if (!isBlocked(keys.decision)) return fateOfPassing(keys, ends)
    const of = (direction: 'stricter' | 'looser') =>
      ends.filter(({ change }) => change !== null && directionOf(change) === direction).map(({ end }) => end)
    const after = anyOf(ends.map((end) => blocks(keys, end, 'after')))
    const now = anyOf(ends.map((end) => blocks(keys, end, 'now')))
    if (now === 'no' && after !== 'no') {
      // The PCE saw it blocked, but nothing blocks it now, so modes or rules have changed since.
      return { effect: 'possibly_cut', by: of('stricter'), undecided: unknown('contradiction'), isByRules: true }
    }
    const untold = ends.filter(({ change }) => change?.isUntold === true).map(({ end }) => end)
    const looser = [...new Set([...of('looser'), ...untold])]
    if (after === 'yes' || looser.length === 0) return kept('stays_blocked', looser.length > 0)
    if (now === 'no')
      return { effect: 'possibly_opened', by: looser, undecided: unknown('contradiction'), isByRules: true }
    if (isUnknown(after)) return { effect: 'possibly_opened', by: looser, undecided: after, isByRules: true }
    if (looser.length === untold.length)
      return { effect: 'possibly_opened', by: looser, undecided: unknown('enforcement'), isByRules: true }
    return { effect: 'opened', by: looser, undecided: 'no', isByRules: true }
  }
}

/** Current mode of an end according to its rows; null if nothing is enforced there. */
function modeOf({ managed, mode }: FlowEnd): EnforcementMode | 'unknown' | null {
  if (!managed) return null
  return isMode(mode) ? mode : 'unknown'
}
