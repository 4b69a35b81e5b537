import type { EndMode } from '../../schemas/pce/enforcement-modes.js'
import type { LabelRef } from '../../schemas/pce/label.js'
import type { Workload } from '../../schemas/pce/workload.js'
import type { ToolContext } from '../call.js'
import { pickEvery } from '../inventory/fetch-every.js'
import { isKubernetes, readKubernetesWorkloads } from '../inventory/kubernetes-workloads.js'
import type { LabelIndex } from '../inventory/labels.js'
import { isManaged, modeOf } from '../inventory/workloads.js'
import { machineAddress, readRange, type Family } from '../policy/addresses.js'
import { joinIntervals, type Interval } from '../policy/classify-numbers.js'
import type { End } from '../policy/match-rules.js'
import { uniteAddresses, type AddressSet } from '../policy/name-addresses.js'
import { workInTurns, type Steps } from '../text/pace-work.js'

/**
 * A workload with its addresses and with what else is needed to write rules that name it as rules between addresses.
 */
export interface Machine {
  href: string
  name: string
  labels: Readonly<Record<string, string>>
  /**
   * The addresses of the workload's interfaces, without addresses that many machines have, such as loopback addresses.
   */
  addresses: AddressSet
  isManaged: boolean
  mode: EndMode
  /** True for a managed workload whose VEN the PCE reports as offline. */
  isOffline: boolean
  isPod: boolean
}

/** All workloads with the same labels. Rules that name only labels cannot distinguish them. */
export interface MachineClass {
  /**
   * Stands for any workload of the class, as an end of a connection. It has neither an address nor the href of a
   * workload.
   */
  end: End
  machines: readonly Machine[]
  addresses: AddressSet
}

/** All workloads of the organisation, grouped by their labels and indexed by href. */
export interface Machines {
  classes: readonly MachineClass[]
  byHref: ReadonlyMap<string, { machine: Machine; at: number }>
  /** The hrefs of workloads that share an address with another workload. */
  sharing: ReadonlySet<string>
  /** The reason why Kubernetes workloads are missing; null if they were read, or if there are none. */
  unreadPods: string | null
}

/** Counts workloads by their enforcement mode. */
export function countModes(machines: readonly Machine[]): Partial<Record<EndMode, number>> {
  const modes: Partial<Record<EndMode, number>> = {}
  for (const { mode } of machines) modes[mode] = (modes[mode] ?? 0) + 1
  return modes
}

/** Reads all workloads, including Kubernetes workloads. Only the fields that a `Machine` needs are kept. */
export async function readMachines(
  { pce, signal }: Pick<ToolContext<true>, 'pce' | 'signal'>,
  labels: LabelIndex,
): Promise<Machines> {
  const pick = (workload: Workload) => (workload.deleted === true ? undefined : machineOf(workload, labels))
  const [hosts, pods] = await Promise.all([
    pickEvery({ api: pce.workloads, params: {}, signal }, pick),
    readKubernetesWorkloads({ pce, signal }, {}, pick),
  ])
  return { ...(await workInTurns(group([...hosts, ...pods.items]), signal)), unreadPods: pods.unread }
}

function machineOf(workload: Workload, index: LabelIndex): Machine {
  const { href, name, hostname, interfaces } = workload
  const found: Record<Family, Interval[]> = { ipv4: [], ipv6: [] }
  for (const { address } of interfaces ?? []) {
    const own = address === undefined ? null : machineAddress(address)
    const range = own === null ? null : readRange({ from_ip: own })
    if (range !== null) found[range.family].push(range)
  }
  const hasVen = isManaged(workload)
  return {
    href,
    name: name ?? hostname ?? href,
    labels: labelsOf(workload.labels, index),
    addresses: { ipv4: joinIntervals(found.ipv4), ipv6: joinIntervals(found.ipv6) },
    isManaged: hasVen,
    mode: modeOf(workload),
    isOffline: hasVen && workload.online === false,
    isPod: isKubernetes({ href }),
  }
}

/** Returns the values of labels by key. Labels that are identified by href alone are looked up. */
export function labelsOf(refs: readonly LabelRef[] | null | undefined, index: LabelIndex): Record<string, string> {
  // The object has no prototype, so that any text can be a label key.
  const labels = Object.create(null) as Record<string, string>
  for (const ref of refs ?? []) {
    const { key, value } = index.get(ref.href) ?? ref
    if (key !== undefined && value !== undefined) labels[key] = value
  }
  return labels
}

/** The href of the end that stands for a class. No real workload has it. */
const ANY_OF_CLASS = ''

function* group(machines: readonly Machine[]): Steps<Omit<Machines, 'unreadPods'>> {
  const byLabels = new Map<string, Machine[]>()
  const bearers = new Map<string, string>()
  const sharing = new Set<string>()
  for (const [at, machine] of machines.entries()) {
    if (at % 200 === 0) yield
    const id = JSON.stringify(Object.entries(machine.labels).sort())
    const own = byLabels.get(id) ?? []
    own.push(machine)
    byLabels.set(id, own)
    for (const family of ['ipv4', 'ipv6'] as const)
      for (const { from, to } of machine.addresses[family])
        for (let value = from; value <= to; value += 1n) {
          const other = bearers.get(`${family} ${value}`) ?? machine.href
          if (other !== machine.href) sharing.add(other).add(machine.href)
          bearers.set(`${family} ${value}`, other)
        }
  }
  const classes: MachineClass[] = []
  const byHref = new Map<string, { machine: Machine; at: number }>()
  for (const members of byLabels.values()) {
    yield
    for (const machine of members) byHref.set(machine.href, { machine, at: classes.length })
    classes.push({
      end: { workload: ANY_OF_CLASS, labels: (members[0] as Machine).labels, ip: null, fqdn: null },
      machines: members,
      addresses: uniteAddresses(members.map(({ addresses }) => addresses)),
    })
  }
  return { classes, byHref, sharing }
}
