import { PceApiError, PceError } from '../../pce-client/index.js'
import type { ContainerCluster, ContainerWorkloadProfile } from '../../schemas/pce/container-cluster.js'
import type { ScopeEntry } from '../../schemas/pce/rule-set.js'
import type { ToolContext } from '../call.js'
import { fetchEvery, type ScanQuery, scanWhole } from '../inventory/fetch-every.js'
import { readKubernetesWorkloads } from '../inventory/kubernetes-workloads.js'
import type { Version } from '../inventory/find-object.js'
import type { PolicyCatalog } from '../policy/load-snapshot.js'

/** The fields held in memory for a workload that rules name individually. */
export interface NamedWorkload {
  name?: string | undefined
  labels: readonly { href: string; key?: string; value?: string }[]
}

/** All combinations of labels that occur on workloads and on other objects that rules can select by label. */
export interface Population {
  /** Number of workloads, including Kubernetes workloads. */
  workloads: number
  /** The workloads whose hrefs were passed as `wanted`, by href. */
  named: ReadonlyMap<string, NamedWorkload>
  /**
   * Returns whether any object has labels that match the scope. Returns null if that is not known, for example because
   * a label group could not be read.
   */
  has(scope: readonly ScopeEntry[], catalog: Pick<PolicyCatalog, 'membersOf' | 'keyOf'>): boolean | null
  /**
   * Descriptions of what could not be read, each with the reason. If there are any, objects may exist that were not
   * seen.
   */
  unread: readonly string[]
}

type Bearer = { href: string; labels?: readonly { href: string; key?: string; value?: string }[] | null }

/**
 * Reads the labels of all workloads, Kubernetes workloads and virtual services, and the labels that container workload
 * profiles assign. A type of object that the PCE does not know counts as empty. A type that this account may not read
 * is listed in `unread`. `wanted` contains the hrefs of the workloads to return in `named`.
 */
export async function loadPopulation(
  { pce, signal }: Pick<ToolContext<true>, 'pce' | 'signal'>,
  version: Version,
  wanted: ReadonlySet<string>,
): Promise<Population> {
  const sets = new Set<string>()
  const add = (hrefs: readonly string[]) => sets.add([...new Set(hrefs)].sort().join(' '))
  const named = new Map<string, NamedWorkload>()
  const unread: string[] = []
  let workloads = 0
  const read = async (what: string, work: () => Promise<unknown>) => {
    try {
      await work()
    } catch (error) {
      if (!(error instanceof PceApiError) || error.status === 429 || error.status >= 500) throw error
      if (error.status !== 404) unread.push(`${what}: ${error.message}`)
    }
  }
  const scan = (query: Omit<ScanQuery<Bearer>, 'params' | 'signal'>) =>
    scanWhole({ ...query, params: {}, signal }, { onItems: (items) => items.forEach((item) => take(item)) })
  const take = ({ labels }: Bearer) => add((labels ?? []).map(({ href }) => href))
  await scanWhole(
    { api: pce.workloads, params: {}, signal },
    {
      onBegin: () => void (workloads = 0),
      onItems(items) {
        for (const item of items) {
          if (item.deleted === true) continue
          workloads += 1
          take(item)
          if (wanted.has(item.href))
            named.set(item.href, { name: item.name ?? item.hostname ?? undefined, labels: item.labels ?? [] })
        }
      },
    },
  )
  const pods = await readKubernetesWorkloads({ pce, signal }, {}, ({ labels }) =>
    (labels ?? []).map(({ href }) => href),
  )
  pods.items.forEach(add)
  workloads += pods.items.length
  if (pods.unread !== null) unread.push(`Kubernetes workloads: ${pods.unread}`)
  await read('virtual services', () => scan({ api: pce.virtualServices, policyVersion: version }))
  await read('container profiles', async () => {
    const clusters = await fetchEvery<ContainerCluster>({ api: pce.containerClusters, params: {}, signal })
    for (const { href } of clusters.items) {
      const { items } = await fetchEvery({ api: pce.containerWorkloadProfiles, parent: href, params: {}, signal })
      for (const profile of items) add(labelsOf(profile))
    }
  })
  return { workloads, named, unread, has: createTest([...sets]) }
}

/**
 * Returns the labels that the containers of a profile may get: those that the profile assigns, and those from which it
 * allows a choice.
 */
export function labelsOf({ href, labels, assign_labels: assigned }: ContainerWorkloadProfile): string[] {
  const given = (labels ?? []).flatMap((one) => {
    if (!('assignment' in one)) return (one.restriction ?? []).map((choice) => choice.href)
    if (typeof one.assignment?.href === 'string') return [one.assignment.href]
    throw new PceError('invalid_response', `${href}: labels: assignment is missing, so who has its labels is not known`)
  })
  return [...given, ...(assigned ?? []).map((label) => label.href)]
}

/**
 * Creates the function `has`. For each label, it stores one number in which each bit stands for a label set with this
 * label.
 */
function createTest(sets: readonly string[]): Population['has'] {
  const bearers = new Map<string, bigint>()
  for (const [at, set] of sets.entries())
    for (const href of set.split(' ')) bearers.set(href, (bearers.get(href) ?? 0n) | (1n << BigInt(at)))
  const all = (1n << BigInt(sets.length)) - 1n
  return (scope, { membersOf, keyOf }) => {
    let left = all
    let isUnclear = false
    const wanted = new Map<string, bigint>()
    for (const { label, label_group: group, exclusion } of scope) {
      const members = label !== undefined ? [label] : membersOf(group?.href ?? '')
      if (members === undefined || members.length === 0) {
        isUnclear = true
        continue
      }
      const mask = members.reduce((sum, { href }) => sum | (bearers.get(href) ?? 0n), 0n)
      // Objects without a label of this key count as not excluded, so that no scope is wrongly reported as empty (P65).
      if (exclusion === true) left &= ~mask
      else {
        const { href } = (label ?? group) as { href: string }
        const key = keyOf(href) ?? href
        wanted.set(key, (wanted.get(key) ?? 0n) | mask)
      }
    }
    for (const mask of wanted.values()) left &= mask
    return left !== 0n ? (isUnclear ? null : true) : false
  }
}
