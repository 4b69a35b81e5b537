import { lookbackWindow } from '../traffic/traffic-window.js'
import type { RecordedOtherwise } from '../../schemas/recorded-otherwise.js'
import { portName } from '../inventory/protocols.js'
import { collectAssumedFacts } from '../policy/assumed-facts.js'
import { noDisagreement } from '../policy/compare-record.js'
import { listReasons, undecidedBecause, type Answer } from '../policy/three-valued.js'
import { compareTexts } from '../text/compare-texts.js'
import { nameEnd } from '../traffic/applications.js'
import {
  judgeChangedFlows,
  type ChangedEnds,
  type EndChange,
  type JudgedReads,
  type JudgingContext,
} from './judge-changed-flows.js'

/** Number of days of traffic that are read, the same as for a readiness assessment. */
export const MODE_CHANGE_DAYS = 30

/** The traffic that one peer would lose. The direction is the one seen from the changed end. */
export interface ModeLoss {
  direction: 'inbound' | 'outbound'
  /** `app (env)`, or the host name or address if there is no application. */
  peer: string
  /**
   * The effect on the traffic. `cut`: according to the rules, it would certainly be lost. `possibly_cut`: this is
   * undecided.
   */
  effect: 'cut' | 'possibly_cut'
  connections: number
  /** The ports, such as `443/tcp`, busiest first. */
  ports: string[]
}

/** The effect of another enforcement mode on observed traffic. */
export interface ModeChangeTraffic {
  reads: JudgedReads
  /**
   * Number of connections by effect. Connections in `blocked` are already blocked. Connections in `possibly_blocked`
   * are possibly blocked now and would pass. For connections in `undecided`, the new mode makes no difference, and it
   * is undecided whether they pass.
   */
  connections: {
    cut: number
    possibly_cut: number
    kept: number
    blocked: number
    possibly_blocked?: number
    undecided?: number
  }
  /** Number of the `blocked` connections that would pass in the new mode, because no other end blocks them. */
  opened: number
  /** The losses: certain losses first, then possible ones; within each group, the busiest peer first. */
  losses: ModeLoss[]
  /** A phrase such as `undecided because of …` with the reasons for doubt; empty if everything could be decided. */
  undecided: string
  /**
   * The reasons why it is undecided whether traffic passes for which the new mode makes no difference; empty if there
   * is no such traffic.
   */
  undecidedStays: string
  /** The assumptions on which the result depends: facts about the PCE that no source confirms. */
  assumes: readonly string[]
  /** Number of connections whose recorded decision differs from the decision of the rules. */
  recorded: RecordedOtherwise
}

/**
 * Determines, for each peer, the traffic of the last 30 days that would be cut if all these ends changed to another
 * enforcement mode. Resolves and rejects like `judgeChangedFlows`.
 */
export async function judgeModeChange(
  ctx: JudgingContext,
  ends: Pick<ChangedEnds, 'filter' | 'isOwn'>,
  change: EndChange,
  complete?: boolean,
): Promise<ModeChangeTraffic | string> {
  const connections: ModeChangeTraffic['connections'] = { cut: 0, possibly_cut: 0, kept: 0, blocked: 0 }
  let opened = 0
  const losses = new Map<string, ModeLoss & { byPort: Map<string, number> }>()
  const answers = new Set<Answer>()
  const stays = new Set<Answer>()
  const assumed = collectAssumedFacts()
  const recorded = noDisagreement()
  const changed = {
    ...ends,
    changeOf: (end: Parameters<typeof ends.isOwn>[0]) => (ends.isOwn(end) ? change : null),
  }
  const how = { name: 'mcp-mode-change', window: lookbackWindow(ctx.now(), MODE_CHANGE_DAYS), complete }
  const reads = await judgeChangedFlows(ctx, changed, how, (flow) => {
    const { effect } = flow
    if (flow.disagreement !== null) recorded[flow.disagreement] += flow.connections
    if (flow.isByRules) assumed.add(flow.undecided, flow.source, flow.destination)
    if (effect === 'possibly_opened') {
      connections.possibly_blocked = (connections.possibly_blocked ?? 0) + flow.connections
      answers.add(flow.undecided)
      return
    }
    if (effect === 'stays_undecided') {
      connections.undecided = (connections.undecided ?? 0) + flow.connections
      stays.add(flow.undecided)
      return
    }
    if (effect === 'opened') opened += flow.connections
    if (effect !== 'cut' && effect !== 'possibly_cut') {
      connections[effect === 'stays_allowed' ? 'kept' : 'blocked'] += flow.connections
      return
    }
    connections[effect] += flow.connections
    answers.add(flow.undecided)
    const direction = flow.direction === 'outbound' ? 'outbound' : 'inbound'
    const peer = nameEnd(direction === 'outbound' ? flow.destination : flow.source)
    const id = JSON.stringify([direction, peer, effect])
    const loss = losses.get(id) ?? {
      direction,
      peer,
      effect,
      connections: 0,
      ports: [],
      byPort: new Map<string, number>(),
    }
    losses.set(id, loss)
    loss.connections += flow.connections
    const port = portName(flow)
    loss.byPort.set(port, (loss.byPort.get(port) ?? 0) + flow.connections)
  })
  if (typeof reads === 'string') return reads
  return {
    reads,
    connections,
    opened,
    losses: [...losses.values()].map(withPorts).sort(worstFirst),
    undecided: undecidedBecause(answers),
    undecidedStays: listReasons(stays),
    assumes: assumed.list(),
    recorded,
  }
}

const withPorts = ({ byPort, ...loss }: ModeLoss & { byPort: ReadonlyMap<string, number> }): ModeLoss => ({
  ...loss,
  ports: [...byPort].sort(([a, m], [b, n]) => n - m || compareTexts(a, b)).map(([port]) => port),
})

const worstFirst = (a: ModeLoss, b: ModeLoss): number =>
  Number(a.effect !== 'cut') - Number(b.effect !== 'cut') ||
  b.connections - a.connections ||
  compareTexts(a.peer, b.peer) ||
  compareTexts(a.direction, b.direction)
