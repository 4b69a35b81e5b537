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

/** Number of days for which traffic is read, the same as for a readiness assessment. */
export const MODE_CHANGE_DAYS = 30

/** Traffic with one peer that would be lost. The direction is as seen from the workload whose mode changes. */
export interface ModeLoss {
  direction: 'inbound' | 'outbound'
  /** The peer as `app (env)`, or its host name or address if it has no application. */
  peer: string
  /**
   * What happens to the traffic. `cut`: according to the rules, it would certainly be lost. `possibly_cut`: it is
   * undecided whether it would be lost.
   */
  effect: 'cut' | 'possibly_cut'
  connections: number
  /** The ports of the traffic, such as `443/tcp`, the busiest first. */
  ports: string[]
}

/** The effect of another enforcement mode on observed traffic. */
export interface ModeChangeTraffic {
  reads: JudgedReads
  /**
   * Numbers of connections by effect. `blocked`: blocked already. `possibly_blocked`: possibly blocked now, but would
   * pass in the new mode. `undecided`: the new mode makes no difference, and it is undecided whether they pass.
   */
  connections: {
    cut: number
    possibly_cut: number
    kept: number
    blocked: number
    possibly_blocked?: number
    undecided?: number
  }
  /** Number of `blocked` connections that would pass in the new mode, because neither end would block them any more. */
  opened: number
  /** The lost traffic: certain losses first, then possible ones, each with the busiest peers first. */
  losses: ModeLoss[]
  /** A phrase `undecided because of …` with the reasons for doubt; empty if nothing is undecided. */
  undecided: string
  /** The reasons why it is undecided whether `undecided` connections pass; empty if there are no such connections. */
  undecidedStays: string
  /** The unconfirmed assumptions about the PCE on which the result depends. */
  assumes: readonly string[]
  /** Numbers of connections whose recorded decision contradicts the rules. */
  recorded: RecordedOtherwise
}

/**
 * Determines, for each peer, which traffic of the last 30 days would be cut if all the given workloads changed to
 * another enforcement mode. If the traffic could not be read, resolves with a sentence that says why. Rejects if the
 * call is cancelled.
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
