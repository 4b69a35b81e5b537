import type { Workload } from '../../schemas/pce/workload.js'

/** Has a VEN. Unmanaged workloads carry an `agent` object too, without an href (P16). */
export function isManaged(workload: Workload): boolean {
  return workload.managed ?? Boolean(workload.ven?.href ?? workload.agent?.href)
}

/** `windows`, `linux` …, from the PCE's `os_id` (`ubuntu-x86_64-jammy`, `win-x86_64-server`); null when it knows none. */
export function osType(workload: Workload): string | null {
  const id = workload.os_id ?? ''
  if (id === '') return null
  return ['windows', 'aix', 'solaris', 'macos'].find((os) => id.toLowerCase().startsWith(os.slice(0, 3))) ?? 'linux'
}
