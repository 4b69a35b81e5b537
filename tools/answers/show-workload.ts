import type { LabelRef } from '../../schemas/pce/label.js'
import type { Workload } from '../../schemas/pce/workload.js'
import type { WorkloadOut } from '../../schemas/workload-shapes.js'
import { isManaged, osType } from '../../domain/inventory/workloads.js'
import type { LabelOutput } from '../../domain/inventory/labels.js'
import { showLabelOf } from './show-label.js'

/** The fixed columns of a workload's compact form. The columns for its label keys follow them (T23). */
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

/**
 * Converts a workload to its compact form: a flat record with the compact columns and one column for each label key.
 */
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

/** Returns the column name for a label key. It has a prefix if the key is also the name of a compact column. */
export function labelColumnName(key: string): string {
  return (COMPACT_COLUMNS as readonly string[]).includes(key) ? `label:${key}` : key
}

/** Shows the labels of a workload. `known` supplies the key and value of labels that the PCE returned by href only. */
function showLabels(labels: Workload['labels'], known: readonly LabelOutput[], detail?: 'full'): WorkloadOut['labels'] {
  const byHref = new Map(known.map((label) => [label.href, label]))
  return (labels ?? []).map((label) => showLabelOf({ ...byHref.get(label.href), ...label }, detail))
}

/** Formats the labels of a workload in the form that callers use. */
export const writeWorkloadLabels = (labels: Workload['labels'], known: readonly LabelOutput[]): WorkloadOut['labels'] =>
  showLabels(labels, known)

/**
 * Shows a workload that was just created. Its labels have hrefs, because some may be new. The enforcement mode is left
 * out, because it has no meaning without a VEN.
 */
export function showCreatedWorkload(workload: Workload, known: readonly LabelOutput[]): WorkloadOut {
  const { enforcement_mode: _mode, ...shown } = showWrittenWorkload(workload, known)
  return { ...shown, labels: showLabels(workload.labels, known, 'full') }
}

/** Shows a workload after a write. */
export function showWrittenWorkload(workload: Workload, known: readonly LabelOutput[]): WorkloadOut {
  const { enforcement_mode: mode, description } = workload
  return {
    href: workload.href,
    name: workload.name ?? '',
    hostname: workload.hostname ?? '',
    interfaces: (workload.interfaces ?? []).map(({ name, address }) => ({ name, address: address ?? '' })),
    labels: writeWorkloadLabels(workload.labels, known),
    managed: isManaged(workload),
    ...(mode !== undefined && { enforcement_mode: mode }),
    ...(description != null && { description }),
  }
}
