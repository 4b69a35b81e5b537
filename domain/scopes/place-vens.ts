import type { Workload } from '../../schemas/pce/workload.js'
import { fetchEvery, pickEvery } from '../inventory/fetch-every.js'
import { mapBounded } from '../text/pace-work.js'
import { placeLabels, placeUnscoped, UNREADABLE, type PlacedObject } from './place-object.js'
import { IN_FLIGHT, MOST_SINGLE, type Reader } from './read-around.js'
import { fieldsOf, hrefsIn, type Target, type Write } from './read-write.js'

/** The actions on several VENs that are judged by the VENs in their body. */
const LISTED: ReadonlySet<string> = new Set(['unpair', 'upgrade'])

/**
 * Places the VENs that a request changes, unpairs or upgrades, or from which it wants a support report. A VEN is where
 * its workload is. Other actions on VENs are for scope "*".
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

/** Returns the workloads of VENs by the hrefs of the VENs. What the PCE does not list is absent. */
async function workloadsOfVens({ pce, signal }: Reader, vens: readonly string[]): Promise<Map<string, Workload>> {
  const wanted = new Set(vens)
  const own = (workload: Workload): [string, Workload] | undefined => {
    const href = workload.ven?.href
    return href !== undefined && wanted.has(href) && workload.deleted !== true ? [href, workload] : undefined
  }
  const api = pce.workloads
  if (wanted.size > MOST_SINGLE) return new Map(await pickEvery({ api, params: { managed: true }, signal }, own))
  const found = await mapBounded([...wanted], IN_FLIGHT, async (ven) => {
    // A release that does not know this filter answers with all workloads, of which only its own counts.
    const { items } = await fetchEvery({ api, params: { ven, include: 'labels' }, signal })
    return items.flatMap((one) => {
      const pair = own(one)
      return pair === undefined ? [] : [pair]
    })
  })
  return new Map(found.flat())
}
