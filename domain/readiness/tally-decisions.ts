import { POLICY_DECISIONS, type PolicyDecision } from '../../schemas/pce/traffic.js'
import type { Workload } from '../../schemas/pce/workload.js'
import { isManaged } from '../inventory/workload.js'
import { percentOf } from '../text/percent-of.js'
import { mayBeAllowedByDefault } from '../traffic/flow-ends.js'
import { endColumns, textColumn } from '../traffic/columns.js'
import type { DictionaryName, FlowEncoder, FlowRow } from '../traffic/encode-flow.js'
import { groupRows } from '../traffic/group-rows.js'
import type { FlowPath } from '../traffic/read-both-ways.js'

/** Rows and connections by policy decision. */
export interface Decisions {
  flows: Record<PolicyDecision, number>
  connections: Record<PolicyDecision, number>
}

interface DecisionTally {
  add(row: FlowRow): void
  result(): Decisions
}

/** Counts rows by what the active policy decides, or by another column of decisions. */
export function tallyDecisions(encoder: FlowEncoder, column: DictionaryName = 'decision'): DecisionTally {
  const groups = groupRows({ decision: textColumn(encoder, column) })
  return {
    add: groups.add,
    result() {
      const result = noDecisions()
      for (const { keys, rows, measures } of groups) {
        const decision = toDecision(keys.decision)
        result.flows[decision] += rows
        result.connections[decision] += measures.connections
      }
      return result
    },
  }
}

/** The decision a word of the PCE stands for. Those on drafts say by what, too (P25); what is not known is `unknown`. */
export function toDecision(word: string | null): PolicyDecision {
  const known = POLICY_DECISIONS.find((decision) => decision === word)
  if (known !== undefined) return known
  if (word === 'allowed_across_boundary') return 'allowed'
  if (word?.startsWith('potentially_blocked_by_') === true) return 'potentially_blocked'
  return word?.startsWith('blocked_by_') === true ? 'blocked' : 'unknown'
}

/** Whether policy would, or does, stop what has this decision. */
export const isUncovered = (decision: PolicyDecision): boolean =>
  decision === 'potentially_blocked' || decision === 'blocked'

/** All but those nobody judged. */
export const judged = (counts: Record<PolicyDecision, number>): number =>
  counts.allowed + counts.potentially_blocked + counts.blocked

/** Allowed of all that was judged, in percent with one decimal; null where there is nothing. */
export function coverage(counts: Record<PolicyDecision, number>): number | null {
  const all = judged(counts)
  return all === 0 ? null : percentOf(counts.allowed, all)
}

function noDecisions(): Decisions {
  const none = () => ({ allowed: 0, potentially_blocked: 0, blocked: 0, unknown: 0 })
  return { flows: none(), connections: none() }
}

/** Allowed rows whose "allowed" says less than it seems to. */
export interface WeaklyAllowed {
  /** It may only mean that no deny rule matched: see `mayBeAllowedByDefault`. */
  byDefault: number
  /** Only the other end judged it: the application's own is idle or has no agent. */
  elsewhere: number
}

/**
 * Counts them among an application's rows. `workloads` are its own, whose modes are as the PCE has them now; the modes of others
 * are as their rows say.
 */
export function countAllowedByDefault(encoder: FlowEncoder, workloads: readonly Workload[]) {
  const own = new Map(
    workloads.map((one) => [one.href, isManaged(one) ? (one.enforcement_mode ?? null) : null] as const),
  )
  const modes = endColumns(encoder, ({ workload, managed, mode }) => {
    const known = workload === null ? undefined : own.get(workload)
    return known === undefined ? (managed ? mode : null) : known
  })
  const decision = textColumn(encoder, 'decision')
  const counts: WeaklyAllowed = { byDefault: 0, elsewhere: 0 }
  return {
    add(row: FlowRow, path: FlowPath): void {
      if (decision.value(decision.code(row)) !== 'allowed') return
      const [src, dst] = [modes.src.value(modes.src.code(row)), modes.dst.value(modes.dst.code(row))]
      if (mayBeAllowedByDefault(src, dst)) counts.byDefault += 1
      const [near, far] = path === 'outbound' ? [src, dst] : [dst, src]
      if (judgesNothing(near) && !judgesNothing(far)) counts.elsewhere += 1
    },
    result: () => counts,
  }
}

const judgesNothing = (mode: string | null) => mode === null || mode === 'idle'
