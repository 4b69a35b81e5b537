import { PceApiError, type PceClient } from '../../pce-client/index.js'
import type { KubernetesWorkload } from '../../schemas/pce/container-cluster.js'
import type { Workload } from '../../schemas/pce/workload.js'
import { pickEvery } from './fetch-every.js'
import { parseHref } from './parse-href.js'

/**
 * What was kept of the Kubernetes workloads. `unread` says why they could not be read; null if they were, or if this
 * PCE has neither such a list nor container clusters.
 */
export interface KubernetesRead<R> {
  items: R[]
  unread: string | null
}

/** The PCE's own filters. `labels` takes one label: how it joins several is not documented. */
interface Filters {
  name?: string
  labels?: [href: string]
}
interface Source {
  pce: Pick<PceClient, 'kubernetesWorkloads' | 'containerClusters'>
  signal: AbortSignal
}

/** The namespace and cluster that tell Kubernetes workloads of one name apart. */
export interface KubernetesPlace {
  namespace: string | null
  cluster: string | null
}

/**
 * Reads the Kubernetes workloads as members of one population with the other workloads: each is passed on in the form
 * of a workload with a VEN (P106). Only what `pick` returns is kept. It is one request where the organisation has none
 * or the release does not know them. An account that may not read them gets the reason instead of an error, because
 * most of an answer may not depend on them.
 * @throws whatever the PCE client throws, except for a refusal; IncompleteListError if only part of the list arrived.
 */
export async function readKubernetesWorkloads<R>(
  { pce, signal }: Source,
  filters: Filters,
  pick: (workload: Workload, place: KubernetesPlace) => R | undefined,
): Promise<KubernetesRead<R>> {
  try {
    const query = { api: pce.kubernetesWorkloads, params: { ...filters }, signal }
    const items = await pickEvery(query, (one: KubernetesWorkload) =>
      pick(toWorkload(one), { namespace: one.namespace ?? null, cluster: one.container_cluster?.name ?? null }),
    )
    return { items, unread: null }
  } catch (error) {
    const refusal = refusalOf(error)
    return { items: [], unread: refusal.status === 404 ? await clustersWithoutList(pce, signal) : refusal.message }
  }
}

/** Returns the error if the PCE refuses the list to this account or does not know it; any other is thrown again. */
function refusalOf(error: unknown): PceApiError {
  if (!(error instanceof PceApiError) || error.status === 429 || error.status >= 500) throw error
  return error
}

/** Says that a PCE which does not list Kubernetes workloads has clusters that may run them; null if it has none. */
async function clustersWithoutList(pce: Source['pce'], signal: AbortSignal): Promise<string | null> {
  try {
    const { items } = await pce.containerClusters.getPage('draft', null, { params: { max_results: 1 }, signal })
    return items.length === 0 ? null : 'this PCE has container clusters, but no list of their workloads'
  } catch (error) {
    const refusal = refusalOf(error)
    return refusal.status === 404 ? null : refusal.message
  }
}

/** Returns true if the href is that of a Kubernetes workload. */
export const isKubernetes = ({ href }: { href: string }): boolean => parseHref(href)?.kind === 'kubernetes_workloads'

/** Says in a sentence that Kubernetes workloads are unknown to an answer; none if they were read. */
export const tellUnread = (unread: string | null): string[] =>
  unread === null ? [] : [`Kubernetes workloads could not be read (${unread}), so what concerns them is not known.`]

/**
 * Returns a Kubernetes workload in the form of other workloads. The PCE enforces policy on it in a mode of its own, so
 * it counts as managed. Addresses that the PCE does not tell are null, which is not the same as having none.
 */
export function toWorkload(one: KubernetesWorkload): Workload {
  const { href, name, labels, enforcement_mode: mode, private_ip_addresses: addresses, visibility_level: level } = one
  return {
    href,
    name: name ?? null,
    hostname: null,
    managed: true,
    labels: labels ?? [],
    interfaces: addresses?.map((address) => ({ name: 'pod', address })) ?? null,
    ...(mode != null && { enforcement_mode: mode }),
    ...(level != null && { visibility_level: level }),
  }
}
