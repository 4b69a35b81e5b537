import type { LabelRef } from '../../schemas/pce/label.js'
import type { Workload } from '../../schemas/pce/workload.js'
import type { WorkloadOut } from '../../schemas/workload-shapes.js'
import { isManaged, osType } from '../../domain/inventory/workloads.js'
import { showLabel, type LabelOutput } from '../../domain/inventory/labels.js'

/** Columns of the compact form, before the label keys (T23). */
export const COMPACT_COLUMNS = [
  'href',
  'name',
  'hostname',
  'ip_addresses',
  'os_type',
  'online',
  'managed',
  'enforcement_mode',
  'visibility_level',
] as const

/** One workload as a flat record: the compact columns and one per label key. */
export function toCompactRecord(workload: Workload, labels: readonly LabelRef[]): Record<string, unknown> {
  const addresses = (workload.interfaces ?? []).flatMap(({ address }) => address ?? [])
  return {
    ...Object.fromEntries(
      labels.flatMap(({ key, value }) => (key === undefined ? [] : [[labelColumnName(key), value]])),
    ),
    href: workload.href,
    name: workload.name,
    hostname: workload.hostname,
    ip_addresses: addresses.length > 0 ? addresses.join(', ') : null,
    os_type: osType(workload),
    online: workload.online,
    managed: isManaged(workload),
    enforcement_mode: workload.enforcement_mode,
    visibility_level: workload.visibility_level,
  }
}

/** The column of a label key. A custom key may be spelled like one of ours; then it says what it is. */
export function labelColumnName(key: string): string {
  return (COMPACT_COLUMNS as readonly string[]).includes(key) ? `label:${key}` : key
}

/** A workload after a write; `known` gives key and value of labels that the PCE shows by href alone. */
export function showWrittenWorkload(workload: Workload, known: readonly LabelOutput[]): WorkloadOut {
  const byHref = new Map(known.map((label) => [label.href, label]))
  const { enforcement_mode: mode, description } = workload
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
    ...(description != null && { description }),
  }
}
