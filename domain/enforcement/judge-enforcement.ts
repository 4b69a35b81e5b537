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

/** Those effects of a new mode that cut or open traffic, or may do so. */
export type ChangeEffect = Exclude<ModeEffect, `stays_${string}`>

/** The traffic with one peer on one port, and what the new mode does to it. */
export interface TrafficChange {
  effect: ChangeEffect
  direction: JudgedFlow['direction']
  /** The peer, as `app (env)` or by its host name or address. For traffic inside the application, it is the source. */
  peer: string
  /** The port and protocol, such as `443/tcp`. */
  port: string
  connections: number
  /**
   * Hrefs of the workloads whose new mode causes the change. A virtual service is listed as its application, `app
   * (env)`.
   */
  workloads: ReadonlySet<string>
}

export type EffectCounts = Record<ModeEffect, number>

/** The effect of the new mode on observed traffic. */
export interface EnforcementTraffic {
  reads: JudgedReads
  /** Number of connections for each effect. */
  connections: EffectCounts
  /**
   * The traffic that the new mode cuts or opens, certainly or possibly. Certain effects come before possible ones; for
   * the same effect, entries with the most connections come first.
   */
  changes: readonly TrafficChange[]
  /**
   * The number of connections for each effect, by the href of the workload whose new mode causes it. A virtual service
   * is listed as its application, `app (env)`.
   */
  byWorkload: ReadonlyMap<string, Record<ChangeEffect, number>>
  /** A phrase `undecided because of …` with the reasons why effects are undecided; empty if none is. */
  undecided: string
  /**
   * Some traffic is not affected by the new mode, but it is undecided whether it passes. These are the reasons; empty
   * if there is no such traffic.
   */
  undecidedStays: string
  /** The unconfirmed facts about the PCE on which the result depends. */
  assumes: readonly string[]
  /** Numbers of connections whose recorded decisions contradict the rules. */
  recorded: RecordedOtherwise
}

/**
 * What a call does to a workload's mode. `already`: the workload is in the requested mode; `not_known`: the PCE does
 * not report the present mode; `none`: the workload is unmanaged and so has no mode.
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
 * (T32). Returns a sentence with the reason if the traffic could not be read. Rejects if the call is cancelled.
 */
export const judgeEnforcement = (
  ctx: JudgingContext,
  chosen: ChosenWorkloads,
  to: EnforcementMode,
  how: { window: TrafficWindow; complete: boolean | undefined },
): Promise<EnforcementTraffic | string> => judgeEnds(ctx, endsOf(chosen, to), { name: 'mcp-enforcement', ...how })

/** Works like `judgeEnforcement`, but for mode changes of any kind. `name` is the name of the traffic queries. */
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
      // A virtual service has the application's labels but is not a machine, so it may stand for any workload of the
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
