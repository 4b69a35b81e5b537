import type { ContainerWorkloadProfile } from '../../schemas/pce/container-cluster.js'
import { isAddress } from '../inventory/parse-addresses.js'
import { firstOutside, INSIDE, placeLabels, UNREADABLE, type PlacedObject } from './place-object.js'
import type { Place } from './place.js'
import { labelsOfWorkloads, placeServiceLabels, placeVirtualService, readOr, type Reader } from './read-around.js'
import { fieldsOf, hrefOf, hrefsIn, listOf, nameOf, type Target, type Write } from './read-write.js'
import { placeAddresses } from './place-workloads.js'
import type { Territory } from './territory.js'

/**
 * Determines whether the virtual services that a request creates, changes or deletes are inside, and finds workloads
 * outside whose addresses they would claim.
 */
export async function placeVirtualServices(
  reader: Reader,
  { method, body }: Write,
  target: Target,
): Promise<PlacedObject[]> {
  const { territory } = reader
  const placeNew = (row: unknown): PlacedObject => ({
    kind: 'virtual_services',
    ...nameOf(row),
    place: firstOutside([
      placeLabels(hrefsIn(fieldsOf(row)['labels']), territory, 'virtual_service'),
      placeReached(fieldsOf(row), territory),
    ]),
  })
  const isCreation = (method === 'POST' && target.id === undefined) || target.id === 'bulk_create'
  if (isCreation) {
    const rows = target.id === undefined ? [body] : listOf(body)
    return [...rows.map(placeNew), ...(await placeAddresses(reader, rows))]
  }
  const rows = target.id === 'bulk_update' ? listOf(body).map(fieldsOf) : [{ ...fieldsOf(body), href: target.href }]
  const placed: PlacedObject[] = []
  for (const row of rows) {
    const [href = ''] = hrefsIn([row])
    const before = (await placeVirtualService(reader, href)) ?? UNREADABLE
    const labels = (row as { labels?: unknown }).labels
    const after = labels === undefined ? [] : [placeLabels(hrefsIn(labels), territory, 'virtual_service')]
    const place = firstOutside([before, ...after, placeReached(row, territory)])
    placed.push({ kind: 'virtual_services', href, ...nameOf(row), place })
  }
  return [...placed, ...(await placeAddresses(reader, rows))]
}

/**
 * Determines whether the addresses of a virtual service may be inside. It can be known only for single addresses which
 * workload has them.
 */
function placeReached(row: Record<string, unknown>, { everything }: Territory): Place {
  if (everything) return INSIDE
  const reached = [
    ...listOf(row['service_addresses']).map((one) => fieldsOf(one)['ip'] ?? fieldsOf(one)['fqdn']),
    ...listOf(row['ip_overrides']),
  ]
  const unknown = reached.find((address) => typeof address !== 'string' || !isAddress(address))
  if (unknown === undefined) return INSIDE
  const why = `is reached at ${typeof unknown === 'string' ? unknown : 'what is not known'}, whose place is not known`
  return { is: 'outside', rule: 'virtual_service', why }
}

/**
 * Determines whether the bindings that a request creates or deletes join a virtual service and a workload that are
 * inside.
 */
export async function placeBindings(reader: Reader, { method, body }: Write, target: Target): Promise<PlacedObject[]> {
  const { pce, signal, territory } = reader
  const isCreation = method === 'POST' && target.id === undefined
  const found = isCreation
    ? (Array.isArray(body) ? listOf(body) : [body]).map(fieldsOf)
    : [fieldsOf(await readOr(pce.serviceBindings.getByReference(target.href ?? '', { signal }), signal))]
  // Deleting a binding takes policy only from its own workload, so other workloads bound to the virtual service do not
  // matter.
  const placeService = isCreation ? placeVirtualService : placeServiceLabels
  const ends = found.map((binding) => ({
    service: hrefsIn([binding['bound_service'] ?? binding['virtual_service']])[0] ?? '',
    workload: hrefsIn([binding['workload']])[0] ?? '',
  }))
  const services = new Map<string, Place>()
  for (const href of new Set(ends.map(({ service }) => service)))
    services.set(href, (href === '' ? undefined : await placeService(reader, href)) ?? UNREADABLE)
  const named = new Set(ends.map(({ workload }) => workload).filter((href) => href !== ''))
  const labels = await labelsOfWorkloads(pce, [...named], signal)
  return ends.map(({ service, workload }) => {
    const own = labels.get(workload)
    const ofWorkload = own === undefined ? UNREADABLE : placeLabels(own, territory, 'workload_labels')
    const place = firstOutside([services.get(service) ?? UNREADABLE, ofWorkload])
    return { kind: 'service_bindings', ...hrefOf(target), place }
  })
}

/** Determines whether the container workload profile that a request changes is inside. */
export async function placeProfile(reader: Reader, { method, body }: Write, target: Target): Promise<PlacedObject[]> {
  const { pce, signal, territory } = reader
  const href = hrefOf(target).href ?? ''
  const before = await readOr(pce.containerWorkloadProfiles.getByReference(href, { signal }), signal)
  if (before === undefined) return [{ kind: 'container_workload_profiles', href, place: UNREADABLE }]
  const states = method === 'PUT' ? [before, { ...before, ...fieldsOf(body) }] : [before]
  const places = states.map((profile) => placeAssigned(profile, territory))
  const name = before.name ?? before.namespace
  return [{ kind: 'container_workload_profiles', href, ...nameOf({ name }), place: firstOutside(places) }]
}

/**
 * Determines whether the pairing profile to which a request writes is inside, by the labels that it assigns before and
 * after the write.
 */
export async function placeKnownProfile(
  { pce, signal, territory }: Reader,
  { method, body }: Write,
  target: Target,
): Promise<PlacedObject[]> {
  const kind = target.kind
  const after = fieldsOf(body)['labels']
  const place = firstOutside([placeLabels(hrefsIn(after), territory, 'profile_labels')])
  if (method === 'POST' && target.id === undefined) return [{ kind, ...nameOf(body), place }]
  const { href = '' } = target
  const before = await readOr(pce.pairingProfiles.getByReference(href, { signal }), signal)
  if (before === undefined) return [{ kind, href, place: UNREADABLE }]
  const own = placeLabels(hrefsIn(before.labels), territory, 'profile_labels')
  return [{ kind, href, ...nameOf(before), place: firstOutside([own, place]) }]
}

/** Determines whether a profile is inside. Every combination of labels that it may assign to a workload must be. */
function placeAssigned(
  { labels, assign_labels: assigned }: Pick<ContainerWorkloadProfile, 'labels' | 'assign_labels'>,
  territory: Territory,
): Place {
  const choices = (labels ?? []).map((one) =>
    'assignment' in one ? [one.assignment.href] : (one.restriction ?? []).map(({ href }) => href),
  )
  const all = [...hrefsIn(assigned).map((href) => [href]), ...choices.filter((hrefs) => hrefs.length > 0)]
  const shielded = all.flat().find((href) => territory.shield?.has(href))
  if (shielded !== undefined)
    return {
      is: 'outside',
      rule: 'protected_label',
      why: `may give the protected label ${territory.nameOf(shielded)}`,
    }
  // Labels in either of the two fields count, including those in a field that a change leaves as it is.
  const isInside = territory.lands.some(({ labels: wanted }) =>
    [...wanted].every(([key, allowed]) => {
      const given = all.filter((hrefs) => hrefs.some((href) => (territory.keyOf(href) ?? key) === key))
      return given.length > 0 && given.every((hrefs) => hrefs.every((href) => allowed.has(href)))
    }),
  )
  if (territory.everything || isInside) return INSIDE
  return { is: 'outside', rule: 'profile_labels', why: 'gives labels that are within none of your scopes' }
}
