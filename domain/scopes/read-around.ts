import { PceApiError, type PceClient } from '../../pce-client/index.js'
import type { Workload } from '../../schemas/pce/workload.js'
import { isUnread, pickEvery } from '../inventory/fetch-every.js'
import { loadPolicyUsers } from '../inventory/find-uses.js'
import { toActiveHref, toDraftHref } from '../inventory/parse-href.js'
import { mapBounded } from '../text/pace-work.js'
import { firstOutside, placeLabels, type Ends } from './place-object.js'
import type { Place, ReachingRule } from './place.js'
import { hrefsIn } from './read-write.js'
import type { Territory } from './territory.js'

export const IN_FLIGHT = 4
/**
 * Maximum number of workloads or addresses that are looked up one by one. If there are more, the whole list is read.
 */
export const MOST_SINGLE = 20

/** What was read of the PCE to judge one write. */
export interface Reader {
  readonly pce: PceClient
  readonly signal: AbortSignal
  readonly territory: Territory
  readonly workload: (href: string) => Promise<Workload | undefined>
  readonly ends: (rules: readonly ReachingRule[]) => Promise<Ends>
  /** Reads, only once, everything that can use an object of the policy. */
  readonly users: () => ReturnType<typeof loadPolicyUsers>
}

/** Returns the object; undefined if the PCE does not have it or does not show it. */
export async function readOr<T>(reading: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  try {
    return await reading
  } catch (error) {
    if (!isUnread(error) || signal.aborted) throw error
    return undefined
  }
}

export function createReader(pce: PceClient, territory: Territory, signal: AbortSignal): Reader {
  let users: ReturnType<typeof loadPolicyUsers> | undefined
  const workload = (href: string) => readOr(pce.workloads.getByReference(href, { signal }), signal)
  return {
    pce,
    signal,
    territory,
    workload,
    users: () => (users ??= loadPolicyUsers(pce, signal)),
    async ends(rules) {
      const actors = rules.flatMap(({ providers = [], consumers = [] }) => [...providers, ...consumers])
      const named = new Set(actors.flatMap((actor) => actor.workload?.href ?? []))
      const labels = await labelsOfWorkloads(pce, [...named], signal)
      const services = new Set(actors.flatMap((actor) => actor.virtual_service?.href ?? []))
      const places = new Map<string, Place>()
      for (const href of services) {
        const place = await placeVirtualService({ pce, territory, signal }, href)
        if (place !== undefined) places.set(href, place)
      }
      const isVirtual = rules.some(({ resolve_labels_as: resolved }) =>
        [...(resolved?.providers ?? []), ...(resolved?.consumers ?? [])].includes('virtual_services'),
      )
      return {
        labelsOf: (href) => labels.get(href),
        virtualService: (href) => places.get(href),
        virtualServices: isVirtual ? await placeBoundInside({ pce, territory, signal }) : { is: 'inside' },
      }
    },
  }
}

/** Returns the labels of workloads by their hrefs. Workloads that the PCE does not have are absent. */
export async function labelsOfWorkloads(
  pce: PceClient,
  hrefs: readonly string[],
  signal: AbortSignal,
): Promise<Map<string, string[]>> {
  const labelsOf = ({ labels }: Workload) => (labels ?? []).map(({ href }) => href)
  if (hrefs.length <= MOST_SINGLE) {
    const read = await mapBounded(hrefs, IN_FLIGHT, async (href) => {
      const found = await readOr(pce.workloads.getByReference(href, { signal }), signal)
      return found === undefined || found.deleted === true ? [] : [[href, labelsOf(found)] as const]
    })
    return new Map(read.flat())
  }
  const wanted = new Set(hrefs)
  const picked = await pickEvery({ api: pce.workloads, params: {}, signal }, (workload) =>
    wanted.has(workload.href) && workload.deleted !== true ? ([workload.href, labelsOf(workload)] as const) : undefined,
  )
  return new Map(picked)
}

type Places = Pick<Reader, 'pce' | 'territory' | 'signal'>

/**
 * Determines whether a virtual service is inside. Its labels in the draft and in the active policy count, and so do the
 * workloads bound to it, because a rule that names the virtual service reaches these. Returns undefined if it cannot be
 * read.
 */
export async function placeVirtualService(places: Places, href: string): Promise<Place | undefined> {
  const own = await placeServiceLabels(places, href)
  return own === undefined ? undefined : firstOutside([own, await placeBound(places, [href])])
}

/**
 * Determines whether a virtual service is inside by its labels alone, in both policy versions. Returns undefined if it
 * cannot be read.
 */
export async function placeServiceLabels({ pce, territory, signal }: Places, href: string): Promise<Place | undefined> {
  const versions = await readVersions(pce.virtualServices, href, signal)
  if (versions.length === 0) return undefined
  return firstOutside(versions.map(({ labels }) => placeLabels(hrefsIn(labels), territory, 'virtual_service')))
}

/** Determines whether all workloads are inside that are bound to virtual services whose labels are inside. */
async function placeBoundInside({ pce, territory, signal }: Places): Promise<Place> {
  const inside = new Set<string>()
  let shielded: Place | undefined
  for (const policyVersion of ['draft', 'active'] as const) {
    const query = { api: pce.virtualServices, policyVersion, params: {}, signal }
    const found = await pickEvery(query, ({ href, labels }) => {
      const place = placeLabels(hrefsIn(labels), territory, 'virtual_service')
      if (place.is === 'inside') return toDraftHref(href)
      if (territory.shield !== undefined) shielded = place
      return undefined
    })
    for (const href of found) inside.add(href)
  }
  if (shielded !== undefined)
    return {
      ...shielded,
      why: `stands for virtual services, one of which ${(shielded as { why?: string }).why}`,
    } as Place
  return inside.size === 0 ? { is: 'inside' } : placeBound({ pce, territory, signal }, [...inside])
}

async function placeBound({ pce, territory, signal }: Places, services: readonly string[]): Promise<Place> {
  const wanted = new Set(services.map(toDraftHref))
  const bound = await pickEvery({ api: pce.serviceBindings, params: {}, signal }, (binding) => {
    const service = binding.bound_service?.href ?? binding.virtual_service?.href ?? ''
    return wanted.has(toDraftHref(service)) ? (binding.workload?.href ?? '') : undefined
  })
  const labels = await labelsOfWorkloads(pce, [...new Set(bound)], signal)
  return firstOutside(
    bound.map((href) => {
      const place = placeLabels(labels.get(href) ?? [], territory, 'virtual_service')
      return place.is === 'inside' ? place : { ...place, why: `is bound to the workload ${href}, which ${place.why}` }
    }),
  )
}

/** Reads a policy object in the draft and in the active policy, if it exists there. */
export async function readVersions<T>(
  api: { getByReference: (href: string, options: { signal: AbortSignal }) => Promise<T> },
  href: string,
  signal: AbortSignal,
): Promise<T[]> {
  const found: T[] = []
  for (const version of [toDraftHref(href), toActiveHref(href)]) {
    try {
      found.push(await api.getByReference(version, { signal }))
    } catch (error) {
      // Only an object that does not exist in a version is left out. Any other failure leaves open where the object is.
      if (!(error instanceof PceApiError) || error.status !== 404) throw error
    }
  }
  return found
}
