import type { Workload, WorkloadInterface } from '../../schemas/pce/workload.js'
import type { ToolContext } from '../call.js'
import { scanWhole } from '../inventory/fetch-every.js'
import { machineAddress } from '../policy/addresses.js'
import { toFound, type FoundWorkload } from './find-workloads.js'

/**
 * A workload with the properties that tell whether an imported row or another workload stands for the same machine
 * (P109).
 */
export interface Machine extends FoundWorkload {
  description: string | null
  /** The addresses that identify a single machine, each in canonical form. */
  addresses: readonly string[]
  /** The interfaces as the PCE returned them. Writing one of them replaces the whole list (P7). */
  interfaces: readonly (typeof WorkloadInterface)['static'][]
  /** The name of the integration that maintains the workload, if there is one. */
  keeper: string | null
  createdAt: string | null
}

/** Returns a name in the form used for comparing names without regard to case. */
export const foldName = (name: string): string => name.toLowerCase()

/** Returns the name and the host name of a workload, without missing, empty and repeated ones. */
export const namesOf = ({ ownName, hostname }: Pick<FoundWorkload, 'ownName' | 'hostname'>): string[] => [
  ...new Set([ownName, hostname].flatMap((name) => name || [])),
]

/**
 * Reads all workloads and returns those that `isWanted` accepts. Kubernetes workloads are not included.
 *
 * @throws {IncompleteListError} if the PCE sent only a part of the list, and the errors of the PCE client.
 */
export async function readMachines(
  { pce, signal }: Pick<ToolContext<true>, 'pce' | 'signal'>,
  isWanted: (machine: Machine) => boolean = () => true,
): Promise<Machine[]> {
  const found: Machine[] = []
  await scanWhole(
    { api: pce.workloads, params: { include: 'labels' }, signal },
    {
      onBegin: () => void (found.length = 0),
      onItems(items) {
        for (const item of items) {
          if (item.deleted === true) continue
          const machine = toMachine(item)
          if (isWanted(machine)) found.push(machine)
        }
      },
    },
  )
  return found
}

/** Reduces a workload to the fields that show whether another workload is the same machine. */
export function toMachine(workload: Workload): Machine {
  const interfaces = (workload.interfaces ?? []).filter((one) => one !== null)
  const addresses = interfaces.flatMap(({ address }) => (address == null ? [] : (machineAddress(address) ?? [])))
  return {
    ...toFound(workload),
    description: workload.description ?? null,
    addresses: [...new Set(addresses)],
    interfaces,
    keeper: workload.external_data_set || null,
    createdAt: workload.created_at ?? null,
  }
}

/** Appends an item to the list stored under a key, creating the list if necessary. */
export function addTo<K, T>(lists: Map<K, T[]>, key: K, item: T): void {
  const list = lists.get(key)
  if (list === undefined) lists.set(key, [item])
  else list.push(item)
}
