import { isMode, type EndMode } from '../../schemas/pce/enforcement-modes.js'
import type { LabelRef } from '../../schemas/pce/label.js'
import type { Workload } from '../../schemas/pce/workload.js'
import { isKubernetes } from './kubernetes-workloads.js'

/** Returns true if the workload has a VEN. Unmanaged workloads have an `agent` object too, but it has no href (P16). */
export function isManaged(workload: Workload): boolean {
  return workload.managed ?? Boolean(workload.ven?.href ?? workload.agent?.href)
}

/**
 * Returns the enforcement mode that determines a workload's effect on traffic: `none` if it has no VEN, and `unknown`
 * if the PCE reports no mode or one that this server does not know. Selective mode with selectively enforced services
 * is also `unknown`, because it is not documented which part of the policy is then enforced.
 */
export function modeOf(workload: Workload): EndMode {
  if (!isManaged(workload)) return 'none'
  const { enforcement_mode: mode, selectively_enforced_services: services } = workload
  if (mode === 'selective' && (services ?? []).length > 0) return 'unknown'
  return isMode(mode) ? mode : 'unknown'
}

/**
 * Derives the operating system (`windows`, `linux` and so on) from the PCE's `os_id`, such as `ubuntu-x86_64-jammy` or
 * `win-x86_64-server`. Returns null if the workload has no `os_id`.
 */
export function osType(workload: Workload): string | null {
  const id = workload.os_id ?? ''
  if (id === '') return null
  return ['windows', 'aix', 'solaris', 'macos'].find((os) => id.toLowerCase().startsWith(os.slice(0, 3))) ?? 'linux'
}

type Modes = Record<string, number>

export interface ModeGroup {
  app: string | null
  env: string | null
  workload_count: number
  unmanaged_count: number
  enforcement_modes: Modes
  /**
   * Number of workloads in each enforcement mode, counting only workloads with a VEN. Absent if every workload has a
   * VEN.
   */
  managed_modes?: Modes
  /**
   * True if the workloads with a VEN are known to be in at least two different modes. Workloads without a VEN do not
   * count, because a mode has no effect on them.
   */
  is_mixed: boolean
}

/** Placeholders: `unknown` for a mode that the PCE does not report, `unlabeled` for a missing label in the sort key. */
const UNKNOWN = 'unknown'
const UNLABELED = 'unlabeled'

/**
 * Creates a counter for the enforcement modes of workloads as they arrive. It counts all workloads, those with a VEN,
 * and those of each application. The applications are sorted by `app|env`.
 */
export function createModeCount() {
  const all: Modes = {}
  const managed: Modes = {}
  const groups = new Map<string, Required<ModeGroup>>()
  let total = 0
  let [offline, onlineUnknown] = [0, 0]

  function count(workload: Workload, expand: (label: LabelRef) => LabelRef): void {
    const mode = workload.enforcement_mode ?? UNKNOWN
    const hasAgent = isManaged(workload)
    total += 1
    add(all, mode)
    if (hasAgent) {
      add(managed, mode)
      // A Kubernetes workload has no VEN that could be offline.
      if (workload.online === false) offline += 1
      else if (workload.online !== true && !isKubernetes(workload)) onlineUnknown += 1
    }
    const labels = (workload.labels ?? []).map(expand)
    const [app, env] = [valueOf(labels, 'app'), valueOf(labels, 'env')]
    // `app|env` is only a sort key and cannot identify a group, because a label may contain `|` or be called
    // "unlabeled".
    const id = JSON.stringify([app, env])
    const group = groups.get(id) ?? newGroup(app, env)
    groups.set(id, group)
    group.workload_count += 1
    add(group.enforcement_modes, mode)
    if (hasAgent) add(group.managed_modes, mode)
    else group.unmanaged_count += 1
    group.is_mixed = Object.keys(group.managed_modes).filter((one) => one !== UNKNOWN).length > 1
  }

  function totals() {
    const sorted = [...groups.values()]
      .sort((a, b) => compare(sortKey(a), sortKey(b)))
      .map(({ managed_modes: modes, ...group }): ModeGroup => {
        return group.unmanaged_count === 0 ? group : { ...group, managed_modes: modes }
      })
    return {
      total_workloads: total,
      global_enforcement_modes: all,
      managed_only: { total: sum(managed), enforcement_modes: managed },
      offline,
      ...(onlineUnknown > 0 && { online_not_known: onlineUnknown }),
      groups: sorted,
    }
  }
  return { count, totals }
}

/** Counts the modes of a list of workloads; see `createModeCount`. */
export function countModes(workloads: readonly Workload[], expand: (label: LabelRef) => LabelRef) {
  const counted = createModeCount()
  for (const workload of workloads) counted.count(workload, expand)
  return counted.totals()
}

function newGroup(app: string | null, env: string | null): Required<ModeGroup> {
  const modes = { enforcement_modes: {}, managed_modes: {} }
  return { app, env, workload_count: 0, unmanaged_count: 0, ...modes, is_mixed: false }
}

function valueOf(labels: readonly LabelRef[], key: string): string | null {
  return labels.find((label) => label.key === key)?.value ?? null
}

const compare = (a: string, b: string) => (a < b ? -1 : Number(a > b))
const sortKey = ({ app, env }: ModeGroup) => `${app ?? UNLABELED}|${env ?? UNLABELED}`

const add = (modes: Modes, mode: string) => (modes[mode] = (modes[mode] ?? 0) + 1)
const sum = (modes: Modes) => Object.values(modes).reduce((total, count) => total + count, 0)
