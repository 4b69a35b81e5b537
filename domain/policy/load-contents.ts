import { type ObjectApi, type PceClient, PceError } from '../../pce-client/index.js'
import type { IpList } from '../../schemas/pce/ip-list.js'
import type { LabelGroup, LabelRef } from '../../schemas/pce/label.js'
import type { PceObject } from '../../schemas/pce/reference.js'
import type { Service } from '../../schemas/pce/service.js'
import type { Workload } from '../../schemas/pce/workload.js'
import { fetchEvery } from '../inventory/fetch-every.js'
import type { NamedObject } from '../inventory/find-object.js'
import { loadLabels, type ReadContext } from '../inventory/labels.js'
import { parseHref, toActiveHref, toDraftHref } from '../inventory/parse-href.js'
import { mapBounded } from '../text/pace-work.js'
import { catalogOf, type PolicyCatalog } from './load-snapshot.js'

/** Functions that look up the objects of one policy version to which rules refer. */
export interface PolicyContents extends Pick<
  PolicyCatalog,
  'keyOf' | 'labelOf' | 'listOf' | 'membersOf' | 'serviceOf'
> {
  /** Returns the labels of a workload; undefined if the workload was not read. */
  readonly labelsOf: (workloadHref: string) => readonly LabelRef[] | undefined
}

/** Both versions of an object; null for a version that does not contain it. */
export interface Versions {
  draft: PceObject | null
  active: PceObject | null
}

export interface LoadedContents {
  draft: PolicyContents
  active: PolicyContents
  /** True if any object differs between the draft and the active version. */
  differ: boolean
  /** The workloads that were read. */
  workloads: readonly NamedObject[]
  /**
   * Returns the objects of the given version, but with `object` in place of the stored object that has the same href.
   */
  withObject: (version: 'draft' | 'active', object: PceObject) => PolicyContents
}

type Kind = 'ip_lists' | 'services' | 'label_groups'
type Objects = Map<string, PceObject>

/**
 * All IP lists, services and label groups of two versions, by draft href. If an object is equal in both versions, both
 * entries must be the same JavaScript object.
 */
export type WholeKinds = Record<Kind, Record<'draft' | 'active', ReadonlyMap<string, PceObject>>>

const KINDS: Record<Kind, 'ipLists' | 'services' | 'labelGroups'> = {
  ip_lists: 'ipLists',
  services: 'services',
  label_groups: 'labelGroups',
}

const IN_FLIGHT = 4
/** Maximum number of objects of one type that are read one by one. If more are needed, the complete list is read. */
const MOST_READ_SINGLY = 16
/** Maximum number of workloads that are read. Further workloads are compared as if they might have any labels. */
const MOST_WORKLOADS = 50

/**
 * Reads the objects to which `policy` refers, in their draft and active versions. Objects that cannot be read are left
 * out, and everything that depends on them is undecided. Rejects if the call is cancelled.
 *
 * @param known objects that were already read, by draft href.
 * @param whole all versioned objects to which rules can refer, if they were already read; then only labels and
 * workloads, which have no versions, are read.
 */
export async function loadContents(
  pce: PceClient,
  policy: unknown,
  known: ReadonlyMap<string, Versions>,
  context: ReadContext,
  whole?: WholeKinds,
): Promise<LoadedContents> {
  const { signal } = context
  const mentioned = collectHrefs(policy)
  const kinds = Object.keys(KINDS) as Kind[]
  const loaded = await mapBounded(kinds, 1, async (kind): Promise<WholeKinds[Kind]> => {
    if (whole !== undefined) return whole[kind]
    const hrefs = [...(mentioned.get(kind) ?? [])]
    const ofKind = [...known].filter(([href]) => parseHref(href)?.kind === kind)
    if (hrefs.length === 0 && ofKind.length === 0) return { draft: new Map(), active: new Map() }
    return loadKind(pce, kind, hrefs, new Map(ofKind), signal)
  })
  const labels =
    mentioned.has('labels') || mentioned.has('label_groups') || mentioned.has('workloads')
      ? await loadLabels(pce, context)
      : undefined
  const workloads = new Map<string, Workload>()
  await mapBounded([...(mentioned.get('workloads') ?? [])].slice(0, MOST_WORKLOADS), IN_FLIGHT, async (href) => {
    const workload = await orNothing(signal, pce.workloads.getByReference(href, { signal }))
    if (workload !== undefined) workloads.set(href, workload)
  })

  const compile = (version: 'draft' | 'active', changed?: PceObject): PolicyContents => {
    const [lists, services, groups] = loaded.map((versions, at) => {
      const objects = versions[version]
      const isOne = changed !== undefined && parseHref(changed.href)?.kind === kinds[at]
      return [...(isOne ? new Map(objects).set(toDraftHref(changed.href), changed) : objects).values()]
    }) as [IpList[], Service[], LabelGroup[]]
    return { ...catalogOf({ labels, lists, services, groups }), labelsOf: (href) => labelsOf(workloads.get(href)) }
  }
  return {
    draft: compile('draft'),
    active: compile('active'),
    differ: loaded.some(({ draft, active }) => [...draft].some(([href, object]) => active.get(href) !== object)),
    workloads: [...workloads].map(([href, { name, hostname }]) => ({ href, name: name ?? hostname })),
    withObject: compile,
  }
}

const labelsOf = (workload: Workload | undefined): readonly LabelRef[] | undefined =>
  workload === undefined ? undefined : (workload.labels ?? [])

/**
 * Reads the objects of one type in both versions and returns them by draft href. An object without a pending change is
 * the same in both. An object that exists in only one version is returned for both, because only rules of its own
 * version can refer to it.
 */
async function loadKind(
  pce: PceClient,
  kind: Kind,
  hrefs: readonly string[],
  known: ReadonlyMap<string, Versions>,
  signal: AbortSignal,
): Promise<Record<'draft' | 'active', Objects>> {
  const api = pce[KINDS[kind]] as ObjectApi<PceObject>
  const draft: Objects = new Map()
  const active: Objects = new Map()
  for (const [href, versions] of known) {
    const [ours, theirs] = [versions.draft ?? versions.active, versions.active ?? versions.draft]
    if (ours === null || theirs === null) continue
    draft.set(href, ours)
    active.set(href, theirs)
  }
  const read = (href: string) => orNothing(signal, api.getByReference(href, { signal }))
  const missing = hrefs.filter((href) => !draft.has(href))
  // Label groups may contain groups to which no rule refers, so the list of all groups is needed.
  const found =
    kind === 'label_groups' || missing.length > MOST_READ_SINGLY
      ? ((await orNothing(signal, fetchEvery({ api, params: {}, signal })))?.items ?? [])
      : await mapBounded(missing, IN_FLIGHT, read)
  await mapBounded(found, IN_FLIGHT, async (object) => {
    if (object === undefined || draft.has(toDraftHref(object.href))) return
    const href = toDraftHref(object.href)
    const before = object.update_type === 'update' ? await read(toActiveHref(href)) : undefined
    draft.set(href, object)
    active.set(href, before ?? object)
  })
  return { draft, active }
}

async function orNothing<T>(signal: AbortSignal, asked: Promise<T>): Promise<T | undefined> {
  try {
    return await asked
  } catch (error) {
    if (!(error instanceof PceError) || signal.aborted) throw error
    return undefined
  }
}

/** Collects all hrefs inside a value as draft hrefs, grouped by the type of the object. */
function collectHrefs(value: unknown, found = new Map<string, Set<string>>()): Map<string, Set<string>> {
  if (Array.isArray(value)) for (const item of value) collectHrefs(item, found)
  else if (typeof value === 'object' && value !== null) {
    for (const [field, inner] of Object.entries(value)) {
      if (field !== 'href' || typeof inner !== 'string') collectHrefs(inner, found)
      else {
        const kind = parseHref(inner)?.kind ?? ''
        found.set(kind, (found.get(kind) ?? new Set()).add(toDraftHref(inner)))
      }
    }
  }
  return found
}
