import { isEnforcing, isMode } from '../../schemas/pce/enforcement-modes.js'
import type { LabelRef } from '../../schemas/pce/label.js'
import type { Ven } from '../../schemas/pce/ven.js'
import type { Workload } from '../../schemas/pce/workload.js'
import { agentHealthOf, conditionsOf, joinConditions, type VenCondition, type VenHealth } from './describe-ven.js'
import { fieldsOf, flagOf, objectsOf, textOf } from './read-fields.js'

/**
 * The facts about a machine with a VEN that the PCE's list of VENs or its list of workloads may contain; null for a
 * missing fact. The list of VENs may identify workloads by href alone, while the list of workloads has their other
 * fields (P24).
 */
interface Told {
  status: string | null
  version: string | null
  type: string | null
  os: string | null
  mode: string | null
  online: boolean | null
  /** The policy synchronisation state, such as `applied`, `syncing` or `staged` (P105). */
  sync: string | null
  receivedAt: string | null
  appliedAt: string | null
  heartbeatAt: string | null
}

/** The facts about a machine with a VEN that come from the list of workloads. */
export interface Work extends Told {
  href: string
  /** The href of the machine's VEN; null if the PCE does not name the VEN. */
  ven: string | null
  name: string | null
  hostname: string | null
  /** The time at which the VEN was paired. */
  pairedAt: string | null
  labels: readonly LabelRef[] | null
  /** The addresses of the machine's interfaces, and the public address under which other hosts see it. */
  addresses: readonly string[]
  /** The problems of the VEN; null if the workload has no fields for problems. */
  conditions: readonly VenCondition[] | null
}

/** A VEN joined with its workload. Null stands for a value that neither list contains. */
export interface Machine extends Told {
  href: string
  name: string | null
  hostname: string | null
  workload: string | null
  workloadName: string | null
  labels: readonly LabelRef[]
  addresses: readonly string[]
  /** The addresses of the workload, including the public address under which other hosts see it. */
  workAddresses: readonly string[]
  upgradeTo: string | null
  conditions: readonly VenCondition[]
  /** The severity of the worst known condition; null if no condition is known but some could not be read. */
  health: VenHealth | null
  /** True if all fields that may contain a condition were read. */
  isHealthWhole: boolean
  /** True if it is known under which public address other hosts see the machine, or that it has none. */
  isAddressKnown: boolean
}

/** Reduces a workload to the facts about its VEN. */
export function readWork(workload: Workload): Work {
  const ven = fieldsOf(workload.ven)
  const status = fieldsOf(fieldsOf(workload.agent)['status'])
  return {
    href: workload.href,
    ven: textOf(ven['href']),
    name: textOf(workload.name),
    hostname: textOf(workload.hostname),
    pairedAt: textOf(status['managed_since']),
    status: textOf(ven['status']) ?? textOf(status['status']),
    version: textOf(ven['version']) ?? textOf(status['agent_version']),
    type: textOf(ven['ven_type']),
    os: textOf(workload.os_id),
    mode: textOf(workload.enforcement_mode),
    online: flagOf(workload.online),
    sync: textOf(status['security_policy_sync_state']),
    receivedAt: textOf(status['security_policy_received_at']),
    appliedAt: textOf(status['security_policy_applied_at']),
    heartbeatAt: textOf(status['last_heartbeat_on']),
    labels: labelsOf(workload.labels),
    addresses: addressesOf([{ address: workload.public_ip }, ...(objectsOf(workload.interfaces) ?? [])]),
    conditions: agentHealthOf(status),
  }
}

/** Returns the href of the workload that belongs to a VEN; null if the VEN names no workload. */
export const workloadOf = (ven: Pick<Ven, 'href' | 'workloads'>): string | null => textOf(ownWorkload(ven)['href'])

/**
 * Returns the fields of a VEN's own workload, as the VEN lists them. If it lists several workloads, the one with the
 * VEN's id is used, or else the first one (P24). Returns an empty object if it lists none.
 */
function ownWorkload({ href, workloads }: Pick<Ven, 'href' | 'workloads'>): Record<string, unknown> {
  const named = objectsOf(workloads) ?? []
  const id = idOf(href)
  return named.find((one) => idOf(textOf(one['href'])) === id) ?? named[0] ?? {}
}

const idOf = (href: string | null): string | undefined => href?.split('/').at(-1)

/** Joins a VEN with its workload. If both have a value for the same fact, the VEN's value is used. */
export function joinWorkload(ven: Ven, work: Work | undefined): Machine {
  const own = ownWorkload(ven)
  const interfaces = objectsOf(ven.interfaces)
  const conditions = conditionsOf(ven)
  const found = joinConditions([...(conditions ?? []), ...(work?.conditions ?? [])])
  const isHealthWhole = work !== undefined && (conditions ?? work.conditions) !== null
  return {
    href: ven.href,
    name: textOf(ven.name),
    hostname: textOf(ven.hostname) ?? textOf(own['hostname']) ?? work?.hostname ?? null,
    workload: workloadOf(ven) ?? work?.href ?? null,
    workloadName: textOf(own['name']) ?? work?.name ?? null,
    status: textOf(ven.status) ?? work?.status ?? null,
    version: textOf(ven.version) ?? work?.version ?? null,
    type: textOf(ven.ven_type) ?? work?.type ?? null,
    os: textOf(ven.os_id) ?? work?.os ?? null,
    mode: textOf(own['enforcement_mode']) ?? work?.mode ?? null,
    online: flagOf(own['online']) ?? work?.online ?? null,
    sync: textOf(own['security_policy_sync_state']) ?? work?.sync ?? null,
    receivedAt: textOf(own['security_policy_received_at']) ?? work?.receivedAt ?? null,
    appliedAt: textOf(own['security_policy_applied_at']) ?? work?.appliedAt ?? null,
    heartbeatAt: textOf(ven.last_heartbeat_at) ?? work?.heartbeatAt ?? null,
    labels: labelsOf(ven.labels) ?? work?.labels ?? [],
    workAddresses: [...(work?.addresses ?? []), ...addressesOf([{ address: own['public_ip'] }])],
    addresses: interfaces === null ? (work?.addresses ?? []) : addressesOf(interfaces),
    upgradeTo: textOf(ven.upgrade_target_version),
    conditions: found,
    health: found.length > 0 ? worstOf(found) : isHealthWhole ? 'healthy' : null,
    isHealthWhole,
    isAddressKnown: work !== undefined || own['public_ip'] !== undefined,
  }
}

const worstOf = (found: readonly VenCondition[]): VenHealth =>
  found.some(({ severity }) => severity === 'error') ? 'error' : 'warning'

const addressesOf = (interfaces: readonly Record<string, unknown>[]): string[] =>
  interfaces.flatMap(({ address }) => textOf(address) ?? [])

/** Reads the labels in a list, without entries that have no href. Returns null if the value is not a list. */
export const labelsOf = (labels: unknown): LabelRef[] | null =>
  objectsOf(labels)?.flatMap(({ href, key, value }) =>
    typeof href === 'string' ? [{ href, key: textOf(key) ?? undefined, value: textOf(value) ?? undefined }] : [],
  ) ?? null

/**
 * Returns a name by which people recognise a machine: the name of its VEN, or else its host name, the name of its
 * workload, or the href of its VEN.
 */
export const nameOfMachine = ({ name, hostname, workloadName, href }: Machine): string =>
  name ?? hostname ?? workloadName ?? href

/** Returns whether the VEN is running; null if its status is not known. */
export const runs = ({ status }: Machine): boolean | null => (status === null ? null : status === 'active')

/** Returns whether the VEN has applied the newest policy; null if the PCE does not say. */
export const isSynced = ({ sync }: Machine): boolean | null => (sync === null ? null : sync === 'applied')

/** Returns whether the VEN currently enforces the newest policy; null if this depends on a fact that is not known. */
export function enforcesNewest(machine: Machine): boolean | null {
  const { mode, online } = machine
  return allTrue([runs(machine), online, isSynced(machine), isMode(mode) ? isEnforcing(mode) : null])
}

/**
 * Combines values by a logical AND. The result is false if any value is false, and otherwise null if any value is not
 * known.
 */
export const allTrue = (values: readonly (boolean | null)[]): boolean | null =>
  values.includes(false) ? false : values.includes(null) ? null : true
