import { PceError } from '../../pce-client/index.js'
import type { TrafficQuery } from '../../schemas/pce/traffic.js'
import type { ToolContext } from '../call.js'
import { portName } from '../inventory/protocols.js'
import { loadLabels } from '../inventory/labels.js'
import { createModeJudge, type ModeChange } from '../policy/judge-mode.js'
import { anyOf, isUnknown, undecidedBecause, type Answer } from '../policy/three-valued.js'
import { compareTexts } from '../text/compare-texts.js'
import { workInTurns, type Steps } from '../text/pace-work.js'
import { anything } from '../traffic/applications.js'
import { portColumn, protocolColumn, textColumn, wholeEndColumn, type Side } from '../traffic/columns.js'
import { createFlowEncoder } from '../traffic/encode-flow.js'
import type { FlowEnd } from '../traffic/flow-ends.js'
import { groupRows } from '../traffic/group-rows.js'
import { createFlowReader, type FlowsRead } from '../traffic/read-flows.js'
import { lookbackWindow } from '../traffic/traffic-window.js'
import { nameEnd } from './collect-readiness.js'
import { readPolicyInForce, toDecision } from './tally-decisions.js'

/** As far back as readiness looks. */
export const MODE_CHANGE_DAYS = 30

/** Whose mode changes: the query that finds their traffic, and which end of a row is one of them. */
export interface ChangedEnds {
  filter: TrafficQuery['sources']
  isOwn: (end: FlowEnd) => boolean
}

/** What one other end would lose, inbound or outbound as the changed end sees it. */
export interface ModeLoss {
  direction: 'inbound' | 'outbound'
  /** `app (env)`, otherwise the host or address. */
  peer: string
  /** cut: certain by policy and PCE; possibly_cut: undecided. */
  effect: 'cut' | 'possibly_cut'
  connections: number
  /** As `443/tcp`, busiest first. */
  ports: string[]
}

/** Observed traffic under another mode. */
export interface ModeChangeTraffic {
  reads: readonly [FlowsRead, FlowsRead]
  /** Connections by what becomes of them; `blocked` are blocked today already. */
  connections: { cut: number; possibly_cut: number; kept: number; blocked: number }
  /** Busiest first, what is certain before what is not. */
  losses: ModeLoss[]
  /** `undecided because of …`; empty where nothing is. */
  undecided: string
}

/**
 * What a change of enforcement mode would cut of the traffic of the last 30 days, judged as readiness judges it: by the policy in
 * force and by what the PCE decided (D78). A sentence instead where the traffic could not be read. Rejects when cancelled.
 */
export async function judgeModeChange(
  ctx: Pick<ToolContext<true>, 'pce' | 'progress' | 'signal' | 'limits' | 'now'>,
  { filter, isOwn }: ChangedEnds,
  change: ModeChange,
  complete?: boolean,
): Promise<ModeChangeTraffic | string> {
  const { pce, signal } = ctx
  try {
    const labels = await loadLabels(pce, ctx)
    const encoder = createFlowEncoder(labels)
    const decision = textColumn(encoder, 'decision')
    const group = () =>
      groupRows({
        source: wholeEndColumn(encoder, 'src'),
        destination: wholeEndColumn(encoder, 'dst'),
        port: portColumn,
        proto: protocolColumn,
        decision,
      })
    const paths = { dst: group(), src: group() }
    const read = createFlowReader(ctx, encoder, complete)
    const request = { name: 'mcp-mode-change', window: lookbackWindow(ctx.now(), MODE_CHANGE_DAYS) }
    const into = { sources: anything(), destinations: filter }
    const outOf = { sources: filter, destinations: anything() }
    const reads = [
      await read({ ...request, filters: into }, (row) => void paths.dst.add(row)),
      await read({ ...request, filters: outOf }, (row) => void paths.src.add(row)),
    ] as const
    const isNeeded = change.to === 'full' || change.to === 'selective'
    const judge = createModeJudge(isNeeded ? await readPolicyInForce(pce, signal, labels) : null, change)

    function* judgeAll(): Steps<Omit<ModeChangeTraffic, 'reads'>> {
      const connections = { cut: 0, possibly_cut: 0, kept: 0, blocked: 0 }
      const losses = new Map<string, ModeLoss & { byPort: Map<string, number> }>()
      const answers = new Set<Answer>()
      for (const [side, groups] of Object.entries(paths) as [Side, (typeof paths)[Side]][]) {
        for (const { keys, measures } of groups) {
          yield
          const { source, destination } = keys
          // What they send to each other is in both answers, and either end may drop it.
          const isInside = isOwn(destination) && isOwn(source)
          if (side === 'src' && isInside) continue
          if (toDecision(keys.decision) === 'blocked') {
            connections.blocked += measures.connections
            continue
          }
          const dropped = isInside ? anyOf([judge(keys, 'dst'), judge(keys, 'src')]) : judge(keys, side)
          if (dropped === 'no') {
            connections.kept += measures.connections
            continue
          }
          answers.add(dropped)
          const effect = isUnknown(dropped) ? 'possibly_cut' : 'cut'
          connections[effect] += measures.connections
          const peer = nameEnd(side === 'src' ? destination : source)
          const direction = side === 'src' ? 'outbound' : 'inbound'
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
          loss.connections += measures.connections
          const port = portName(keys)
          loss.byPort.set(port, (loss.byPort.get(port) ?? 0) + measures.connections)
        }
      }
      return {
        connections,
        losses: [...losses.values()].map(withPorts).sort(worstFirst),
        undecided: undecidedBecause(answers),
      }
    }

    return { reads, ...(await workInTurns(judgeAll(), signal)) }
  } catch (error) {
    if (!(error instanceof PceError) || signal.aborted) throw error
    return `The traffic could not be read, so what would be cut is not known: ${error.message}`
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
