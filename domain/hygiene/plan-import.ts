import type { WorkloadInterface } from '../../schemas/pce/workload.js'
import type { ToolContext } from '../call.js'
import type { LabelIndex } from '../inventory/labels.js'
import { machineAddress } from '../policy/addresses.js'
import { quote } from '../text/escape-text.js'
import { addTo, foldName, namesOf, readMachines, type Machine } from './known-machines.js'
import { isChanged, NO_WISH, relabel, type Relabelling } from './plan-labels.js'
import type { ImportRow } from './read-import.js'

/**
 * The reasons why an imported row is not written, in the order in which answers list them. `rows_clash`: two rows stand
 * for one machine. `address_at_two`: two workloads have the row's addresses. `name_at_two`: two workloads have its
 * name, and none has its address. `name_at_other`: one workload has its address and another its name.
 * `address_differs`: the matching workload lacks one of the row's addresses. `case_differs`: a workload has the same
 * name in different case. `nothing_to_create`: no workload matches, and the row lacks a name or an address.
 * `managed_host`: the machine has a VEN, which reports these values itself.
 */
export const CONFLICTS = [
  'rows_clash',
  'address_at_two',
  'name_at_two',
  'name_at_other',
  'address_differs',
  'case_differs',
  'nothing_to_create',
  'managed_host',
] as const
export type Conflict = (typeof CONFLICTS)[number]

/** The fields of a workload that an import changes, apart from its labels. */
export interface FieldChanges {
  name?: string
  hostname?: string
  description?: string
  interfaces?: WorkloadInterfaceBody[]
}

/** A network interface in the form in which it is sent to the PCE. */
export type WorkloadInterfaceBody = Partial<(typeof WorkloadInterface)['static']> & { name: string; address: string }

/**
 * What an import does with a row: the workload that it creates, changes or leaves unchanged, or the reason why it is
 * not written.
 */
export type PlannedRow = { row: ImportRow } & (
  | { action: 'create'; name: string; hostname: string }
  | { action: 'update'; machine: Machine; fields: FieldChanges; labels: Relabelling }
  | { action: 'unchanged'; machine: Machine }
  | { action: 'conflict'; reason: Conflict; note: string; others: readonly Machine[] }
)

/** Maximum number of workloads or rows named in a note. */
const MOST_NAMED = 3

/**
 * Reads the workloads that have an address or a name in common with any of the rows. Names are compared without regard
 * to case.
 */
export function readMeant(
  ctx: Pick<ToolContext<true>, 'pce' | 'signal'>,
  rows: readonly Pick<ImportRow, 'addresses' | 'name' | 'hostname'>[],
): Promise<Machine[]> {
  const addresses = new Set(rows.flatMap((row) => row.addresses))
  const names = new Set(
    rows.flatMap(({ name, hostname }) => [name, hostname].flatMap((one) => one ?? [])).map(foldName),
  )
  return readMachines(
    ctx,
    (machine) =>
      machine.addresses.some((address) => addresses.has(address)) ||
      namesOf(machine).some((name) => names.has(foldName(name))),
  )
}

/**
 * Plans an import. Finds the existing workload for each row, first by address, then by name and host name (D262).
 * `machines` must contain at least all workloads that have an address or a name of a row.
 */
export function planImport(
  rows: readonly ImportRow[],
  machines: readonly Machine[],
  index: LabelIndex,
  { replaceAddresses }: { replaceAddresses: boolean },
): PlannedRow[] {
  const byAddress = new Map<string, Machine[]>()
  const byName = new Map<string, Machine[]>()
  for (const machine of machines) {
    for (const address of machine.addresses) addTo(byAddress, address, machine)
    for (const name of new Set(namesOf(machine).map(foldName))) addTo(byName, name, machine)
  }
  const clashes = findClashes(rows)
  const planned = rows.map((row): PlannedRow => {
    const clash = clashes.get(row)
    if (clash !== undefined) return conflict(row, 'rows_clash', clash)
    return planRow(row, { byAddress, byName, index, replaceAddresses })
  })
  return refuseSameMachine(planned)
}

const conflict = (row: ImportRow, reason: Conflict, note: string, others: readonly Machine[] = []): PlannedRow => ({
  row,
  action: 'conflict',
  reason,
  note,
  others,
})

const wantedNames = ({ name, hostname }: Pick<ImportRow, 'name' | 'hostname'>): string[] => [
  ...new Set([name, hostname].flatMap((one) => one ?? [])),
]

/**
 * Finds rows that share an address or a name with other rows, and describes for each row what it shares with which
 * others.
 */
function findClashes(rows: readonly ImportRow[]): Map<ImportRow, string> {
  const clashes = new Map<ImportRow, string>()
  const note = (sharing: ReadonlyMap<string, ImportRow[]>, describe: (shared: string) => string) => {
    for (const [shared, own] of sharing) {
      if (own.length < 2) continue
      for (const row of own) {
        const others = own.filter((other) => other !== row).map(({ line }) => line)
        const more = others.length > MOST_NAMED ? ` and ${others.length - MOST_NAMED} more` : ''
        if (!clashes.has(row))
          clashes.set(row, `${describe(shared)} is also in row ${others.slice(0, MOST_NAMED).join(', ')}${more}`)
      }
    }
  }
  const addresses = new Map<string, ImportRow[]>()
  const names = new Map<string, ImportRow[]>()
  for (const row of rows) {
    for (const address of row.addresses) addTo(addresses, address, row)
    for (const name of new Set(wantedNames(row).map(foldName))) addTo(names, name, row)
  }
  note(addresses, (address) => address)
  note(names, (name) => `the name ${quote(name)}`)
  return clashes
}

interface Lookups {
  byAddress: ReadonlyMap<string, Machine[]>
  /** The workloads by name and by host name, in lower case. */
  byName: ReadonlyMap<string, Machine[]>
  index: LabelIndex
  replaceAddresses: boolean
}

function planRow(row: ImportRow, lookups: Lookups): PlannedRow {
  const { byAddress, byName } = lookups
  const names = wantedNames(row)
  const alike = unique(names.flatMap((name) => byName.get(foldName(name)) ?? []))
  const namesakes = alike.filter((machine) => namesOf(machine).some((name) => names.includes(name)))
  const bearers = unique(row.addresses.flatMap((address) => byAddress.get(address) ?? []))
  const [bearer] = bearers
  if (bearers.length > 1) {
    const held = row.addresses.filter((address) => byAddress.has(address))
    return conflict(row, 'address_at_two', `${held.slice(0, MOST_NAMED).join(', ')}: ${list(bearers)}`, bearers)
  }
  if (bearer !== undefined) {
    if (bearer.managed) return conflict(row, 'managed_host', `its address is that of ${list([bearer])}`, [bearer])
    const others = namesakes.filter(({ href }) => href !== bearer.href)
    if (others.length === 0) return planChange(row, bearer, lookups)
    const note = `${list([bearer])} has its address, ${list(others)} its name`
    return conflict(row, 'name_at_other', note, [bearer, ...others])
  }
  const [namesake, second] = narrow(row, namesakes)
  if (second !== undefined) return conflict(row, 'name_at_two', list(namesakes), namesakes)
  if (namesake?.managed === true)
    return conflict(row, 'managed_host', `its name is that of ${list([namesake])}`, [namesake])
  if (namesake !== undefined) return planChange(row, namesake, lookups)
  if (alike.length > 0) return conflict(row, 'case_differs', `there is ${list(alike)}`, alike)
  const name = row.name ?? row.hostname
  if (name === undefined) return conflict(row, 'nothing_to_create', 'no workload has its address, and it has no name')
  if (row.addresses.length === 0)
    return conflict(row, 'nothing_to_create', 'no workload has its name, and it has no address')
  return { row, action: 'create', name, hostname: row.hostname ?? name }
}

/** If a row has a name and a host name and one workload has both, the row stands for this workload (D224). */
function narrow({ name, hostname }: ImportRow, namesakes: readonly Machine[]): readonly Machine[] {
  if (name === undefined || hostname === undefined) return namesakes
  const both = namesakes.filter((machine) => machine.ownName === name && machine.hostname === hostname)
  return both.length === 1 ? both : namesakes
}

function planChange(row: ImportRow, machine: Machine, { index, replaceAddresses }: Lookups): PlannedRow {
  const lacking = row.addresses.filter((address) => !machine.addresses.includes(address))
  if (lacking.length > 0 && !replaceAddresses) {
    const has = machine.addresses.length === 0 ? 'no address' : machine.addresses.slice(0, MOST_NAMED).join(', ')
    const note = `${list([machine])} has ${has}, not ${lacking.slice(0, MOST_NAMED).join(', ')}`
    return conflict(row, 'address_differs', note, [machine])
  }
  const isReplaced =
    replaceAddresses &&
    row.addresses.length > 0 &&
    (lacking.length > 0 || machine.addresses.some((address) => !row.addresses.includes(address)))
  const fields: FieldChanges = {
    ...(row.name !== undefined && row.name !== machine.ownName && { name: row.name }),
    ...(row.hostname !== undefined && row.hostname !== machine.hostname && { hostname: row.hostname }),
    ...(row.description !== undefined && row.description !== machine.description && { description: row.description }),
    ...(isReplaced && { interfaces: replaceInterfaces(machine, row.addresses) }),
  }
  const labels = relabel(machine, { ...NO_WISH, set: row.set }, index)
  if (Object.keys(fields).length === 0 && !isChanged(labels)) return { row, action: 'unchanged', machine }
  return { row, action: 'update', machine, fields, labels }
}

/** Creates the interfaces of a new workload, one for each address. */
export const interfacesFor = (addresses: readonly string[]): WorkloadInterfaceBody[] =>
  addresses.map((address, at) => ({ name: `eth${at}`, address }))

/**
 * Returns the interfaces that give a workload exactly these addresses. An interface whose address stays is kept with
 * all its writable fields; a new address gets an interface with an unused name. Interfaces with an address that does
 * not identify a machine, such as a link-local address, are kept.
 */
function replaceInterfaces({ interfaces }: Machine, addresses: readonly string[]): WorkloadInterfaceBody[] {
  const staying = interfaces.flatMap((one): { own: string | null; body: WorkloadInterfaceBody }[] => {
    const { name, address, cidr_block: cidr, default_gateway_address: gateway, friendly_name: friendly } = one
    if (address == null) return []
    const own = machineAddress(address)
    if (own !== null && !addresses.includes(own)) return []
    const body = {
      name,
      address,
      ...(cidr != null && { cidr_block: cidr }),
      ...(gateway != null && { default_gateway_address: gateway }),
      ...(friendly != null && { friendly_name: friendly }),
    }
    return [{ own, body }]
  })
  const taken = new Set(staying.map(({ body }) => body.name))
  const bodies = staying.map(({ body }) => body)
  let next = 0
  for (const address of addresses) {
    if (staying.some(({ own }) => own === address)) continue
    while (taken.has(`eth${next}`)) next += 1
    taken.add(`eth${next}`)
    bodies.push({ name: `eth${next}`, address })
  }
  return bodies
}

/** Turns rows that match the same workload into conflicts, because the result would depend on their order. */
function refuseSameMachine(planned: readonly PlannedRow[]): PlannedRow[] {
  const byMachine = new Map<string, ImportRow[]>()
  for (const one of planned)
    if (one.action === 'update' || one.action === 'unchanged') addTo(byMachine, one.machine.href, one.row)
  return planned.map((one) => {
    if (one.action !== 'update' && one.action !== 'unchanged') return one
    const others = (byMachine.get(one.machine.href) ?? []).filter((row) => row !== one.row)
    if (others.length === 0) return one
    const lines = others.slice(0, MOST_NAMED).map(({ line }) => line)
    return conflict(one.row, 'rows_clash', `${list([one.machine])} is also meant by row ${lines.join(', ')}`, [
      one.machine,
    ])
  })
}

const unique = (machines: readonly Machine[]): Machine[] => [
  ...new Map(machines.map((one) => [one.href, one])).values(),
]

/** Lists workloads with their names and hrefs, and says which of them have a VEN. */
function list(machines: readonly Machine[]): string {
  const named = machines.slice(0, MOST_NAMED).map(({ name, href, managed }) => {
    return `${name === href ? '' : `${quote(name)} `}(${managed ? 'managed, ' : ''}${href})`
  })
  const more = machines.length - named.length
  return `${named.join(' and ')}${more > 0 ? ` and ${more} more` : ''}`
}
