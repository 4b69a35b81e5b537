import type { Label } from '../../schemas/pce/label.js'
import type { Workload } from '../../schemas/pce/workload.js'
import type { WorkloadOut } from '../../schemas/workload-shapes.js'
import { showLabel } from '../../domain/drafts/create-label.js'
import { isManaged } from '../../domain/inventory/workload.js'

/** A workload after a write; `known` gives key and value of labels that the PCE shows by href alone. */
export function showWrittenWorkload(workload: Workload, known: readonly Label[]): WorkloadOut {
  const byHref = new Map(known.map((label) => [label.href, label]))
  const mode = workload.enforcement_mode
  return {
    href: workload.href,
    name: workload.name ?? '',
    hostname: workload.hostname ?? '',
    interfaces: (workload.interfaces ?? []).map(({ name, address }) => ({ name, address: address ?? '' })),
    labels: (workload.labels ?? [])
      .map((label) => ({ key: '', value: '', ...byHref.get(label.href), ...label }))
      .map(showLabel),
    managed: isManaged(workload),
    ...(mode !== undefined && { enforcement_mode: mode }),
  }
}
