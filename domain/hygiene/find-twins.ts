import { compareTexts } from '../text/compare-texts.js'
import type { Steps } from '../text/pace-work.js'
import { addTo, foldName, namesOf, type Machine } from './known-machines.js'
import { shortFormOf } from './find-workloads.js'

/**
 * What workloads have in common. `name`: the name of one workload is the name or host name of another. `short_name`: an
 * unmanaged workload is called like a managed one, but without the domain. Case is ignored.
 */
export type SharedBy = 'address' | 'hostname' | 'name' | 'short_name'

/**
 * The kinds of groups. `shadow`: some workloads have a VEN and some do not. `unmanaged`: none has a VEN. `managed`: all
 * have a VEN.
 */
export const TWIN_KINDS = ['shadow', 'unmanaged', 'managed'] as const
export type TwinKind = (typeof TWIN_KINDS)[number]

/** Workloads that may be one machine. */
export interface Twins {
  kind: TwinKind
  shared: { by: SharedBy; value: string }[]
  /** Managed workloads come first. */
  members: Machine[]
}

/** Number of workloads, or of groups, that are handled in one step. */
const PER_STEP = 500

/**
 * Finds all groups of workloads that share an address, a host name or a name. Shadows, the most harmful, come first,
 * then unmanaged and then managed workloads; within each kind, groups with differing labels come first. Workloads that
 * share several things form one group. Addresses that do not identify a single machine are not compared.
 */
export function* findTwins(machines: readonly Machine[]): Steps<Twins[]> {
  const sharing: Record<SharedBy, Map<string, Machine[]>> = {
    address: new Map(),
    hostname: new Map(),
    name: new Map(),
    short_name: new Map(),
  }
  for (const [at, machine] of machines.entries()) {
    if (at % PER_STEP === 0) yield
    const { hostname, managed } = machine
    for (const address of machine.addresses) addTo(sharing.address, address, machine)
    if (hostname) addTo(sharing.hostname, foldName(hostname), machine)
    const names = new Set(namesOf(machine).map(foldName))
    for (const name of names) addTo(sharing.name, name, machine)
    if (managed && hostname?.includes('.') === true) addTo(sharing.short_name, foldName(shortFormOf(hostname)), machine)
  }
  for (const [short, hosts] of sharing.short_name) {
    const bare = (sharing.name.get(short) ?? []).filter((one) => !one.managed && !hosts.includes(one))
    if (bare.length === 0) sharing.short_name.delete(short)
    else sharing.short_name.set(short, [...hosts, ...bare])
  }
  const groups = new Map<string, Twins>()
  for (const by of ['address', 'hostname', 'name', 'short_name'] as const)
    for (const [value, members] of sharing[by]) {
      if (members.length < 2) continue
      yield
      const sorted = [...members].sort((a, b) => Number(b.managed) - Number(a.managed) || compareTexts(a.href, b.href))
      const id = sorted.map(({ href }) => href).join(' ')
      const known = groups.get(id)
      if (known === undefined) groups.set(id, { kind: kindOf(sorted), shared: [{ by, value }], members: sorted })
      // A host name that all members share is not listed a second time as a name.
      else if (!known.shared.some((one) => one.value === value)) known.shared.push({ by, value })
    }
  return [...groups.values()].sort(
    (a, b) =>
      rankOf(a) - rankOf(b) ||
      compareTexts(a.members[0]!.name, b.members[0]!.name) ||
      compareTexts(a.members[1]!.href, b.members[1]!.href),
  )
}

function kindOf(members: readonly Machine[]): TwinKind {
  const managed = members.filter((one) => one.managed).length
  return managed === 0 ? 'unmanaged' : managed === members.length ? 'managed' : 'shadow'
}

/** Returns true if the members do not all have the same labels. */
export function differInLabels(members: readonly Machine[]): boolean {
  const sets = members.map(({ labels }) =>
    labels
      .map(({ href }) => href)
      .sort()
      .join(' '),
  )
  return new Set(sets).size > 1
}

/** Returns true if the workloads share an address, so that policy and traffic treat them as one machine. */
export const shareAddress = ({ shared }: Pick<Twins, 'shared'>): boolean => shared.some(({ by }) => by === 'address')

function rankOf(twins: Twins): number {
  const isWorse = twins.kind === 'managed' ? !shareAddress(twins) : shareAddress(twins)
  return TWIN_KINDS.indexOf(twins.kind) * 4 + (isWorse ? 0 : 2) + (differInLabels(twins.members) ? 0 : 1)
}
