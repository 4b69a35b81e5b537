import type { Workload } from '../../schemas/pce/workload.js'
import { fetchEvery, pickEvery } from '../inventory/fetch-every.js'
import { sameAddress } from '../inventory/parse-addresses.js'
import { firstOutside, placeLabels, placeUnscoped, UNREADABLE, type PlacedObject } from './place-object.js'
import type { Place } from './place.js'
import { labelsOfWorkloads, MOST_SINGLE, type Reader } from './read-around.js'
import { fieldsOf, hrefsIn, listOf, nameOf, type Target, type Write } from './read-write.js'

/**
 * Determines whether the workloads that a request creates, changes or deletes are inside, and finds objects outside
 * whose addresses they would claim.
 */
export async function placeWorkloads(reader: Reader, { method, body }: Write, target: Target): Promise<PlacedObject[]> {
  const { id } = target
  if (id === undefined) return [placeNewWorkload(reader, body), ...(await placeAddresses(reader, [body]))]
  if (method === 'PUT' && id === 'bulk_create') {
    const rows = listOf(body)
    return [...rows.map((row) => placeNewWorkload(reader, row)), ...(await placeAddresses(reader, rows))]
  }
  if (method === 'PUT' && (id === 'bulk_update' || id === 'bulk_delete')) {
    const rows = listOf(body).map(fieldsOf)
    return [
      ...(await placeKnownWorkloads(reader, rows)),
      ...(id === 'bulk_update' ? await placeAddresses(reader, rows) : []),
    ]
  }
  if (method === 'PUT' && id === 'unpair')
    return placeKnownWorkloads(reader, listOf(fieldsOf(body)['workloads']).map(fieldsOf))
  if (method === 'PUT' || method === 'DELETE')
    return [
      ...(await placeWorkload(reader, target, fieldsOf(body))),
      ...(await placeAddresses(reader, [{ ...fieldsOf(body), href: target.href }])),
    ]
  return [{ kind: 'workloads', place: placeUnscoped(reader.territory, 'workloads', 'an action on workloads') }]
}

const placeNewWorkload = ({ territory }: Reader, body: unknown): PlacedObject => ({
  kind: 'workloads',
  ...nameOf(body),
  place: placeLabels(hrefsIn(fieldsOf(body)['labels']), territory, 'workload_labels'),
})

async function placeWorkload(
  reader: Reader,
  { href = '' }: Target,
  change: Record<string, unknown>,
): Promise<PlacedObject[]> {
  const before = await reader.workload(href)
  if (before === undefined) return [{ kind: 'workloads', href, place: UNREADABLE }]
  const own = (before.labels ?? []).map((label) => label.href)
  return [
    {
      kind: 'workloads',
      href,
      ...nameOf({ name: before.name ?? before.hostname }),
      place: placeBothWays(reader, own, change),
    },
  ]
}

/** Determines whether a workload is inside whose network interface is added or removed. */
export const placeInterface = async (reader: Reader, { body }: Write, target: Target): Promise<PlacedObject[]> => [
  ...(await placeWorkload(reader, target, {})),
  ...(await placeAddresses(reader, [{ interfaces: [body] }])),
]

/** Determines whether a workload is inside, by its labels before the change and by those after it. */
function placeBothWays({ territory }: Reader, before: readonly string[], change: Record<string, unknown>): Place {
  const after = change['labels']
  return firstOutside([
    placeLabels(before, territory, 'workload_labels'),
    ...(after === undefined ? [] : [placeLabels(hrefsIn(after), territory, 'workload_labels')]),
  ])
}

async function placeKnownWorkloads(reader: Reader, rows: readonly Record<string, unknown>[]): Promise<PlacedObject[]> {
  const hrefs = hrefsIn(rows)
  const labels = await labelsOfWorkloads(reader.pce, hrefs, reader.signal)
  return rows.map((row, at) => {
    const before = labels.get(hrefs[at]!)
    const place = before === undefined ? UNREADABLE : placeBothWays(reader, before, row)
    return { kind: 'workloads', href: hrefs[at]!, ...nameOf(row), place }
  })
}

/**
 * Finds workloads outside that have an address which the given workloads or virtual services claim. Rules of others
 * that mean this address would then select the object inside.
 */
export async function placeAddresses(reader: Reader, rows: readonly unknown[]): Promise<PlacedObject[]> {
  const { pce, signal, territory } = reader
  const claimed = new Set(rows.flatMap((row) => addressesIn(fieldsOf(row))))
  if (claimed.size === 0) return []
  const isClaimed = (address: string) => claimed.has(address) || [...claimed].some((one) => sameAddress(one, address))
  const holders: Workload[] = []
  if (claimed.size <= MOST_SINGLE) {
    for (const address of claimed) {
      const query = { api: pce.workloads, params: { ip_address: address }, signal }
      holders.push(...(await fetchEvery(query)).items)
    }
  } else {
    const query = { api: pce.workloads, params: {}, signal }
    holders.push(
      ...(await pickEvery(query, (workload) =>
        addressesIn(workload).some((address) => claimed.has(address)) ? workload : undefined,
      )),
    )
  }
  const placed = new Map<string, PlacedObject>()
  for (const holder of holders) {
    if (holder.deleted === true || placed.has(holder.href) || !addressesIn(holder).some(isClaimed)) continue
    const place = placeLabels(
      (holder.labels ?? []).map(({ href }) => href),
      territory,
      'address_taken',
    )
    const name = holder.name ?? holder.hostname
    placed.set(holder.href, {
      kind: 'workloads',
      href: holder.href,
      ...nameOf({ name }),
      place: place.is === 'inside' ? place : { ...place, why: `has an address that the call claims, and ${place.why}` },
    })
  }
  return [...placed.values()]
}

function addressesIn(row: object): string[] {
  const { interfaces, public_ip: publicIp, service_addresses: reached, ip_overrides: overrides } = row as Claims
  const own = listOf(interfaces).map((one) => fieldsOf(one)['address'])
  const offered = listOf(reached).map((one) => fieldsOf(one)['ip'])
  return [...own, publicIp, ...offered, ...listOf(overrides)].filter(
    (address): address is string => typeof address === 'string' && address !== '',
  )
}

/** The fields of workloads and of virtual services that have addresses. */
type Claims = Partial<Record<'interfaces' | 'public_ip' | 'service_addresses' | 'ip_overrides', unknown>>
