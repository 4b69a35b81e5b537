import type { Workload } from '../../schemas/pce/workload.js'
import { mayBeAllowedByDefault } from '../traffic/flow-ends.js'
import { endColumns, textColumn } from '../traffic/columns.js'
import type { FlowEncoder, FlowRow } from '../traffic/encode-flow.js'
import type { FlowPath } from '../traffic/read-both-ways.js'
import { isManaged } from '../inventory/workload.js'

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
