import type { TrafficWindow } from '../traffic/traffic-window.js'
import type { EnforcementMode } from '../../schemas/pce/enforcement-modes.js'
import type { RecordedOtherwise } from '../../schemas/recorded-otherwise.js'
import { portName } from '../inventory/protocols.js'
import { directionOf } from '../policy/judge-mode.js'
import { collectAssumedFacts } from '../policy/assumed-facts.js'
import { noDisagreement } from '../policy/compare-record.js'
import { listReasons, undecidedBecause, type Answer } from '../policy/three-valued.js'
import {
  judgeChangedFlows,
  MODE_EFFECTS,
  type ChangedEnds,
  type JudgedFlow,
  type JudgedReads,
  type JudgingContext,
  type ModeEffect,
} from '../readiness/judge-changed-flows.js'
import { compareTexts } from '../text/compare-texts.js'
import { nameEnd, withLabels } from '../traffic/applications.js'
import type { FlowEnd } from '../traffic/flow-ends.js'
import { hasLabels } from '../traffic/read-both-ways.js'
import type { ChosenWorkload, ChosenWorkloads } from './choose-workloads.js'

/** The effects of a new mode that cut or open traffic, or may do so. */
export type ChangeEffect = Exclude<ModeEffect, `stays_${string}`>

/** The traffic with one peer on one port, and the effect of the new mode on it. */
export interface TrafficChange {
  effect: ChangeEffect
  direction: JudgedFlow['direction']
  /**
   * The peer as `app (env)`, or its host name or address. For traffic inside the application, the peer is the source.
   */
  peer: string
  /** The port and protocol, such as `443/tcp`. */
  port: string
  connections: number
  /**
   * Hrefs of the workloads whose new mode causes the change. A virtual service is represented by its application, as
   * `app (env)`.
   */
  workloads: ReadonlySet<string>
}

export type EffectCounts = Record<ModeEffect, number>

/** The effect of the new mode on observed traffic. */
export interface EnforcementTraffic {
  reads: JudgedReads
  /** For each effect, the number of connections. */
  connections: EffectCounts
  /**
   * The traffic that the new mode cuts or opens, or may cut or open. Entries with certain effects come first, then
   * those with possible effects; among entries with the same effect, those with the most connections come first.
   */
  changes: readonly TrafficChange[]
  /**
   * For each workload whose new mode cuts or opens traffic, or may do so, the number of connections for each effect.
   * The key is the href of the workload; for a virtual service, it is the application as `app (env)`.
   */
  byWorkload: ReadonlyMap<string, Record<ChangeEffect, number>>
  /**
   * A phrase `undecided because of …` with the reasons why effects are undecided. It is empty if no effect is
   * undecided.
   */
  undecided: string
  /**
   * The reasons why it is undecided whether some traffic passes, although the new mode makes no difference to it; empty
   * if there is no such traffic.
   */
  undecidedStays: string
  /** The unconfirmed facts about the PCE on which the result depends. */
  assumes: readonly string[]
  /** The numbers of connections whose recorded decisions contradict the rules. */
  recorded: RecordedOtherwise
}

/**
 * The kind of change of a workload's mode. `already`: the workload is already in the requested mode; `not_known`: the
 * PCE does not report the present mode; `none`: the workload is unmanaged and therefore has no mode.
 */
export type ChangeOfMode = 'stricter' | 'looser' | 'same_traffic' | 'not_known' | 'already' | 'none'

export function changeOfMode({ isManaged, mode }: ChosenWorkload, to: EnforcementMode): ChangeOfMode {
  if (!isManaged) return 'none'
  if (mode === null) return 'not_known'
  if (mode === to) return 'already'
  const direction = directionOf({ from: mode, to })
  return direction === 'same' ? 'same_traffic' : direction
}

/**
 * Determines what would happen to the observed traffic of the given workloads if all of them were in the mode `to`
 * (T32). If the traffic could not be read, returns a sentence with the reason. Rejects if the call is cancelled.
 */
export const judgeEnforcement = (
  ctx: JudgingContext,
  chosen: ChosenWorkloads,
  to: EnforcementMode,
  how: { window: TrafficWindow; complete: boolean | undefined },
): Promise<EnforcementTraffic | string> => judgeEnds(ctx, endsOf(chosen, to), { name: 'mcp-enforcement', ...how })

/** Does what `judgeEnforcement` does, for changes of any kind. `name` is the name of the traffic queries. */
export async function judgeEnds(
  ctx: JudgingContext,
  ends: ChangedEnds,
  how: { name: string; window: TrafficWindow; complete: boolean | undefined },
): Promise<EnforcementTraffic | string> {
  const connections = countsOf(MODE_EFFECTS)
  const changes = new Map<string, Omit<TrafficChange, 'workloads'> & { workloads: Set<string> }>()
  const byWorkload = new Map<string, Record<ChangeEffect, number>>()
  const answers = new Set<Answer>()
  const stays = new Set<Answer>()
  const assumed = collectAssumedFacts()
  const recorded = noDisagreement()

  const take = (flow: JudgedFlow) => {
    const { effect, direction } = flow
    connections[effect] += flow.connections
    if (flow.disagreement !== null) recorded[flow.disagreement] += flow.connections
    if (flow.isByRules) assumed.add(flow.undecided, flow.source, flow.destination)
    if (!isChange(effect)) {
      stays.add(flow.undecided)
      return
    }
    answers.add(flow.undecided)
    const workloads = flow.by.map((end) => end.workload ?? nameEnd(end))
    const peer = nameEnd(direction === 'outbound' ? flow.destination : flow.source)
    const port = portName(flow)
    const id = JSON.stringify([effect, direction, peer, port])
    const change = changes.get(id) ?? { effect, direction, peer, port, connections: 0, workloads: new Set<string>() }
    changes.set(id, change)
    change.connections += flow.connections
    for (const one of workloads) {
      change.workloads.add(one)
      const counts = byWorkload.get(one) ?? countsOf(CHANGES)
      byWorkload.set(one, counts)
      counts[effect] += flow.connections
    }
  }

  const reads = await judgeChangedFlows(ctx, ends, how, take)
  if (typeof reads === 'string') return reads
  return {
    reads,
    connections,
    changes: [...changes.values()].sort(worstFirst),
    byWorkload,
    undecided: undecidedBecause(answers),
    undecidedStays: listReasons(stays),
    assumes: assumed.list(),
    recorded,
  }
}

const isChange = (effect: ModeEffect): effect is ChangeEffect => !effect.startsWith('stays_')
const CHANGES = MODE_EFFECTS.filter(isChange)

const countsOf = <E extends string>(effects: readonly E[]) =>
  Object.fromEntries(effects.map((effect) => [effect, 0])) as Record<E, number>

function endsOf({ application, workloads }: ChosenWorkloads, to: EnforcementMode): ChangedEnds {
  const byHref = new Map(workloads.map((one) => [one.href, one]))
  const staying = workloads.filter((one) => !one.isManaged || (one.mode === to && !one.isUntold))
  const vague = { from: null, to, isVague: true } as const
  const bears = (end: FlowEnd) => application !== null && hasLabels(end, application.labels)
  return {
    filter:
      application === null
        ? { include: workloads.map(({ href }) => [{ workload: { href } }]), exclude: [] }
        : withLabels(application.labels),
    known: new Map(staying.map(({ href, isManaged }) => [href, isManaged ? to : 'none'])),
    isOwn: (end) => (end.workload !== null && byHref.has(end.workload)) || bears(end),
    changeOf(end) {
      // A virtual service carries the application's labels but is not a machine: it may stand for any workload of the
      // application.
      if (end.workload === null) return bears(end) ? vague : null
      const known = byHref.get(end.workload)
      return known === undefined || !known.isManaged || known.mode === to
        ? null
        : { from: known.mode, to, ...(known.isUntold && { isUntold: true as const }) }
    },
  }
}

const worstFirst = (a: TrafficChange, b: TrafficChange): number =>
  CHANGES.indexOf(a.effect) - CHANGES.indexOf(b.effect) ||
  b.connections - a.connections ||
  compareTexts(a.peer, b.peer) ||
  compareTexts(a.port, b.port) ||
  compareTexts(a.direction, b.direction)
