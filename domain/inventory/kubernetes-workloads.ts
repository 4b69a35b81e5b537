import { PceApiError, type PceClient } from '../../pce-client/index.js'
import type { KubernetesWorkload } from '../../schemas/pce/container-cluster.js'
import type { Workload } from '../../schemas/pce/workload.js'
import { fetchEvery, IncompleteListError, OddListError, pickEvery } from './fetch-every.js'
import { parseHref } from './parse-href.js'

/**
 * The result of reading Kubernetes workloads. `unread` is the reason why they could not be read. It is null if they
 * were read, or if this PCE has neither a list of Kubernetes workloads nor container clusters.
 */
export interface KubernetesRead<R> {
  items: R[]
  unread: string | null
}

/**
 * Filters for Kubernetes workloads: a part of the name, and the hrefs of labels. A workload must have all these labels.
 */
interface Filters {
  name?: string
  labels?: readonly string[]
}
interface Source {
  pce: Pick<PceClient, 'kubernetesWorkloads' | 'containerClusters'>
  signal: AbortSignal
}

/** The namespace and cluster of a Kubernetes workload, which distinguish it from others of the same name. */
export interface KubernetesPlace {
  namespace: string | null
  cluster: string | null
}

/**
 * Reads Kubernetes workloads for answers that treat them like other workloads. Each one is passed to `pick` in the form
 * of a workload with a VEN (P106), and only the results of `pick` are kept. This takes one request if the organisation
 * has no Kubernetes workloads, and two if the release does not know them. If the account may not read them, or if the
 * list is incomplete or contains other objects, `unread` gives the reason and nothing is thrown, because most of an
 * answer can be given without Kubernetes workloads.
 *
 * @throws the errors of the PCE client, except for a request that the PCE refuses.
 */
export async function readKubernetesWorkloads<R>(
  { pce, signal }: Source,
  { name, labels = [] }: Filters,
  pick: (workload: Workload, place: KubernetesPlace) => R | undefined,
): Promise<KubernetesRead<R>> {
  try {
    // Only one label is sent to the PCE, because it is not documented how several labels would be combined.
    const params = { name, labels: labels.length === 0 ? undefined : labels.slice(0, 1) }
    const items = await pickEvery({ api: pce.kubernetesWorkloads, params, signal }, (one: KubernetesWorkload) => {
      if (!isKubernetes(one)) throw new OddListError('Kubernetes workloads')
      const own = new Set(one.labels?.map(({ href }) => href))
      if (!labels.every((href) => own.has(href))) return undefined
      return pick(toWorkload(one), { namespace: one.namespace ?? null, cluster: one.container_cluster?.name ?? null })
    })
    return { items, unread: null }
  } catch (error) {
    if (error instanceof IncompleteListError || error instanceof OddListError)
      return { items: [], unread: error.message }
    return { items: [], unread: await explainRefusal(error, pce, signal) }
  }
}

/**
 * Counts the Kubernetes workloads whose names contain the given text and that have the given label. This takes one
 * small request, or two if the release does not know Kubernetes workloads.
 * @throws the errors of the PCE client, except for a request that the PCE refuses.
 */
export async function countKubernetesWorkloads(
  { pce, signal }: Source,
  { name, label }: { name?: string | undefined; label?: string | undefined },
): Promise<LeftOut> {
  try {
    const params = { name, labels: label === undefined ? undefined : [label], max_results: 1 }
    const { items, totalCount } = await pce.kubernetesWorkloads.getPage('draft', null, { params, signal })
    if (totalCount === null && items.length > 0) return { left: items.length, unread: 'the PCE does not count them' }
    return { left: totalCount ?? 0, unread: null }
  } catch (error) {
    return { left: 0, unread: await explainRefusal(error, pce, signal) }
  }
}

/**
 * Returns the reason why the PCE refused to list Kubernetes workloads; null if the PCE has neither a list of them nor
 * container clusters. An error that is not a refusal is thrown again.
 */
async function explainRefusal(error: unknown, pce: Source['pce'], signal: AbortSignal): Promise<string | null> {
  const refusal = refusalOf(error)
  return refusal.status === 404 ? clustersWithoutList(pce, signal) : refusal.message
}

/**
 * Returns the error if the PCE refused the request, for example because this account is not permitted to read the list
 * or because the PCE does not know it. Throws any other error again.
 */
function refusalOf(error: unknown): PceApiError {
  if (!(error instanceof PceApiError) || error.status === 429 || error.status >= 500) throw error
  return error
}

/**
 * Called when the PCE has no list of Kubernetes workloads. If it has container clusters nevertheless, returns the
 * reason why Kubernetes workloads cannot be read; otherwise null.
 */
async function clustersWithoutList(pce: Source['pce'], signal: AbortSignal): Promise<string | null> {
  try {
    const { items } = await pce.containerClusters.getPage('draft', null, { params: { max_results: 1 }, signal })
    return items.length === 0 ? null : 'this PCE has container clusters, but no list of their workloads'
  } catch (error) {
    const refusal = refusalOf(error)
    return refusal.status === 404 ? null : refusal.message
  }
}

/** A list of workloads in which Kubernetes workloads have the same form as all others. */
export interface Workloads {
  items: Workload[]
  /** Number of items that are Kubernetes workloads. */
  kubernetes: number
  /** The reason why Kubernetes workloads could not be read; see `KubernetesRead`. */
  unread: string | null
}

/**
 * Reads all workloads that have all the given labels, including Kubernetes workloads. Rejects with the same errors as
 * `readKubernetesWorkloads`.
 */
export async function fetchWorkloads(
  { pce, signal }: Source & { pce: Pick<PceClient, 'workloads'> },
  labels: readonly { href: string }[],
): Promise<Workloads> {
  const hrefs = labels.map(({ href }) => href)
  const params = { labels: hrefs.length === 0 ? undefined : [hrefs], include: 'labels' }
  const [hosts, pods] = await Promise.all([
    fetchEvery({ api: pce.workloads, params, signal }),
    readKubernetesWorkloads({ pce, signal }, { labels: hrefs }, (workload) => workload),
  ])
  return { items: [...hosts.items, ...pods.items], kubernetes: pods.items.length, unread: pods.unread }
}

/** Returns true if the href is that of a Kubernetes workload. */
export const isKubernetes = ({ href }: { href: string }): boolean => parseHref(href)?.kind === 'kubernetes_workloads'

/**
 * The second half of a sentence about a Kubernetes workload. It says where the workload gets its enforcement mode and
 * labels, and how rules can refer to it; both differ from other workloads (P106).
 */
export const KUBERNETES_LIMITS =
  'its mode and labels come from the container workload profile of its namespace, and rules name it by its labels alone'

/**
 * Returns notes for the answer of a tool that changes workloads: how many Kubernetes workloads it left out, and whether
 * Kubernetes workloads could not be read. The list is empty if there is nothing to note.
 */
export function tellLeftOut({ left, unread }: LeftOut): string[] {
  if (left === 0) return tellUnread(unread)
  const who = left === 1 ? '1 Kubernetes workload is' : `${left} Kubernetes workloads are`
  const theirs = left === 1 ? 'its mode and labels come' : 'their modes and labels come'
  return [`${who} left out: ${theirs} from the container workload profiles of namespaces.`, ...tellUnread(unread)]
}

/**
 * The Kubernetes workloads that a tool leaves out when it changes workloads. `left` is their number, and `unread` is
 * the reason why they could not be read.
 */
export interface LeftOut {
  left: number
  unread: string | null
}

/** The value for tools to which callers name each workload. Such tools leave out no Kubernetes workloads. */
export const NONE_LEFT_OUT: LeftOut = { left: 0, unread: null }

/** Returns a list with one sentence if Kubernetes workloads could not be read; an empty list if they were read. */
export const tellUnread = (unread: string | null): string[] =>
  unread === null ? [] : [`Kubernetes workloads could not be read (${unread}), so what concerns them is not known.`]

/**
 * Converts a Kubernetes workload to the form of other workloads. The result counts as managed, because a Kubernetes
 * workload has an enforcement mode. Its addresses are null if the PCE does not report them, and an empty list if it has
 * none.
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
