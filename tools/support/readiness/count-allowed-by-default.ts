import type { Workload } from '../../../schemas/pce/workload.js'
import { textColumn } from '../flows/columns.js'
import type { FlowEncoder, FlowRow } from '../flows/encode-flow.js'
import { isManaged } from '../show-workload.js'

/**
 * Counts allowed rows of workloads in selective mode, among `workloads`: only deny rules bite there, so that allowed may mean no
 * more than that none matched.
 */
export function countAllowedByDefault(encoder: FlowEncoder, workloads: readonly Workload[]) {
  const selective = new Set(
    workloads.flatMap((one) => (isManaged(one) && one.enforcement_mode === 'selective' ? one.href : [])),
  )
  const decision = textColumn(encoder, 'decision')
  const isSelective = (end: number) => selective.has(encoder.ends.end(end).workload ?? '')
  let count = 0
  return {
    add(row: FlowRow): void {
      if (selective.size === 0 || decision.value(decision.code(row)) !== 'allowed') return
      if (isSelective(row.src) || isSelective(row.dst)) count++
    },
    count: () => count,
  }
}
