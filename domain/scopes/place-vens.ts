import type { Workload } from '../../schemas/pce/workload.js'
import { fetchEvery, pickEvery } from '../inventory/fetch-every.js'
import { mapBounded } from '../text/pace-work.js'
import { placeLabels, placeUnscoped, UNREADABLE, type PlacedObject } from './place-object.js'
import { IN_FLIGHT, MOST_SINGLE, type Reader } from './read-around.js'
import { fieldsOf, hrefsIn, type Target, type Write } from './read-write.js'

/** The actions on several VENs for which the VENs listed in the request body are checked. */
const LISTED: ReadonlySet<string> = new Set(['unpair', 'upgrade'])

/**
 * Determines, for each VEN that a request changes, unpairs, upgrades or asks for a support report, whether it lies
 * inside the caller's scopes. A VEN lies where its workload lies. All other actions on VENs are allowed only for the
 * scope "*".
 */
export async function placeVens(reader: Reader, { method, body }: Write, target: Target): Promise<PlacedObject[]> {
  const { territory } = reader
  const { id, href, kind } = target
  const asked =
    kind === 'support_report_requests'
      ? hrefsIn([fieldsOf(body)['ven']])
      : id !== undefined && LISTED.has(id)
        ? hrefsIn(fieldsOf(body)['vens'])
        : method === 'PUT' && href !== undefined && Object.keys(fieldsOf(body)).join() === 'status'
          ? [href]
          : null
  if (asked === null) return [{ kind, place: placeUnscoped(territory, 'an action on VENs') }]
  const workloads = await workloadsOfVens(reader, asked)
  return asked.map((ven) => {
    const own = workloads.get(ven)
    if (own === undefined) return { kind: 'vens', href: ven, place: UNREADABLE }
    const labels = (own.labels ?? []).map((label) => label.href)
    const name = own.name ?? own.hostname
    return {
      kind: 'vens',
      href: ven,
      ...(typeof name === 'string' && { name }),
      place: placeLabels(labels, territory, 'workload_labels'),
    }
  })
}

/**
 * Returns a map from the href of each VEN to the workload of that VEN. VENs that the PCE does not list are missing from
 * the map.
 */
async function workloadsOfVens({ pce, signal }: Reader, vens: readonly string[]): Promise<Map<string, Workload>> {
  const wanted = new Set(vens)
  const own = (workload: Workload): [string, Workload] | undefined => {
    const href = workload.ven?.href
    return href !== undefined && wanted.has(href) && workload.deleted !== true ? [href, workload] : undefined
  }
  const api = pce.workloads
  if (wanted.size > MOST_SINGLE) return new Map(await pickEvery({ api, params: { managed: true }, signal }, own))
  const found = await mapBounded([...wanted], IN_FLIGHT, async (ven) => {
    // A PCE release that does not know the filter `ven` returns all workloads, so only the workload of this VEN is
    // kept.
    const { items } = await fetchEvery({ api, params: { ven, include: 'labels' }, signal })
    return items.flatMap((one) => {
      const pair = own(one)
      return pair === undefined ? [] : [pair]
    })
  })
  return new Map(found.flat())
}
