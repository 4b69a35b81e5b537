import type { ContainerWorkloadProfile } from '../../schemas/pce/container-cluster.js'
import { firstOutside, INSIDE, placeLabels, UNREADABLE, type PlacedObject } from './place-object.js'
import type { Place } from './place.js'
import { labelsOfWorkloads, placeVirtualService, readOr, type Reader } from './read-around.js'
import { fieldsOf, hrefOf, hrefsIn, listOf, nameOf, type Target, type Write } from './read-write.js'
import type { Territory } from './territory.js'

/** Places the virtual services that a request creates, changes or deletes. */
export async function placeVirtualServices(
  reader: Reader,
  { method, body }: Write,
  target: Target,
): Promise<PlacedObject[]> {
  const { territory } = reader
  const placeNew = (row: unknown): PlacedObject => ({
    kind: 'virtual_services',
    ...nameOf(row),
    place: placeLabels(hrefsIn(fieldsOf(row)['labels']), territory, 'virtual_service'),
  })
  if (method === 'POST' && target.id === undefined) return [placeNew(body)]
  if (target.id === 'bulk_create') return listOf(body).map(placeNew)
  const rows = target.id === 'bulk_update' ? listOf(body).map(fieldsOf) : [{ ...fieldsOf(body), href: target.href }]
  const placed: PlacedObject[] = []
  for (const row of rows) {
    const [href = ''] = hrefsIn([row])
    const before = (await placeVirtualService(reader, href)) ?? UNREADABLE
    const labels = (row as { labels?: unknown }).labels
    const after = labels === undefined ? [] : [placeLabels(hrefsIn(labels), territory, 'virtual_service')]
    placed.push({ kind: 'virtual_services', href, ...nameOf(row), place: firstOutside([before, ...after]) })
  }
  return placed
}

/** Places the bindings of workloads to virtual services that a request creates or deletes. */
export async function placeBindings(reader: Reader, { method, body }: Write, target: Target): Promise<PlacedObject[]> {
  const { pce, signal, territory } = reader
  const kind = 'service_bindings'
  const found =
    method === 'POST' && target.id === undefined
      ? (Array.isArray(body) ? listOf(body) : [body]).map(fieldsOf)
      : [fieldsOf(await readOr(pce.serviceBindings.getByReference(target.href ?? '', { signal }), signal))]
  const placed: PlacedObject[] = []
  for (const binding of found) {
    const [service = ''] = hrefsIn([binding['bound_service'] ?? binding['virtual_service']])
    const [workload = ''] = hrefsIn([binding['workload']])
    const labels = await labelsOfWorkloads(
      pce,
      [workload].filter((href) => href !== ''),
      signal,
    )
    const ofWorkload = labels.get(workload)
    placed.push({
      kind,
      ...hrefOf(target),
      place: firstOutside([
        service === '' ? UNREADABLE : ((await placeVirtualService(reader, service)) ?? UNREADABLE),
        ofWorkload === undefined ? UNREADABLE : placeLabels(ofWorkload, territory, 'workload_labels'),
      ]),
    })
  }
  return placed
}

/** Places the container workload profile that a request changes. */
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

/** Places the pairing profile to which a request writes, by the labels that it gives before and after. */
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

/** Places a profile by every combination of labels that it may give to a workload. */
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
  const isInside = territory.lands.some(({ labels: wanted }) =>
    [...wanted.values()].every((allowed) => all.some((hrefs) => hrefs.every((href) => allowed.has(href)))),
  )
  if (territory.everything || isInside) return INSIDE
  return { is: 'outside', rule: 'profile_labels', why: 'gives labels that are within none of your scopes' }
}
