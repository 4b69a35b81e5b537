import { PceApiError, PceError, type ObjectApi, type PceClient } from '../../pce-client/index.js'
import type { PolicyVersionSelector } from '../../schemas/common.js'
import type { Label } from '../../schemas/pce/label.js'
import type { PolicyChange } from '../../schemas/policy-changes.js'
import { scanEvery } from './fetch-every.js'
import type { NamedObject } from './find-object.js'
import { loadLabels, type ReadContext } from './labels.js'
import { parseHref, toDraftHref } from './parse-href.js'
import { mapBounded } from '../text/pace-work.js'

/** What answers say beside an href. */
interface ReferenceName {
  key?: string
  value?: string
  name?: string
}

/** The names of objects that PCE answers refer to by href alone. */
export interface ReferenceNames {
  (href: string): ReferenceName
  /** Whether another object of its kind has the same name, as far as that was seen: the name alone would not tell which it is. */
  isShared?: (href: string) => boolean
}

/** Kinds that are read through for the names of some. */
const LISTED: Record<string, 'ipLists' | 'services' | 'labelGroups' | 'virtualServices' | 'virtualServers'> = {
  ip_lists: 'ipLists',
  services: 'services',
  label_groups: 'labelGroups',
  virtual_services: 'virtualServices',
  virtual_servers: 'virtualServers',
}

/** Workloads are read one by one; an answer that refers to more shows the rest by href. */
const MAX_WORKLOADS = 50
const IN_FLIGHT = 4

/**
 * Reads the names of everything `objects` refer to, at any depth, as this version of the policy has them. Names only help the reader: an
 * object that is gone, or a kind that this account may not list, is left without one. `known` are objects that bring their names: these are
 * not asked for.
 */
export async function loadReferenceNames(
  pce: PceClient,
  objects: unknown,
  context: ReadContext,
  policyVersion: PolicyVersionSelector = 'draft',
  known: readonly NamedObject[] = [],
): Promise<ReferenceNames> {
  const names = new Map<string, ReferenceName>()
  const shared = new Set<string>()
  const missing = new Map<string, Set<string>>()
  collect(objects, names, missing)
  for (const { href, name } of known) if (typeof name === 'string') names.set(toDraftHref(href), { name })
  if (known.length > 0) leaveOutNamed(missing, names)
  const labels = missing.has('labels') ? await loadLabels(pce, context) : null

  const kinds = [...missing.keys()].filter((kind) => kind in LISTED)
  await mapBounded(kinds, IN_FLIGHT, async (kind) => {
    const api = pce[LISTED[kind] as 'ipLists'] as ObjectApi<NamedObject>
    const wanted = new Set([...(missing.get(kind) ?? [])].map(toDraftHref))
    const seen = new Map<string, string>()
    const onItems = (items: NamedObject[]) => {
      for (const { href, name } of items) {
        const draft = toDraftHref(href)
        if (wanted.has(draft)) names.set(draft, { name: name ?? undefined })
        const other = seen.get(name ?? '')
        if (other === undefined) seen.set(name ?? '', draft)
        else for (const one of [other, draft]) shared.add(one)
      }
    }
    await orNothing(scanEvery({ api, policyVersion, params: {}, signal: context.signal }, { onItems }))
  })
  await mapBounded([...(missing.get('workloads') ?? [])].slice(0, MAX_WORKLOADS), IN_FLIGHT, async (href) => {
    const workload = await orNothing(pce.workloads.getByReference(href, { signal: context.signal }))
    if (workload !== undefined) names.set(href, { name: workload.name ?? workload.hostname ?? undefined })
  })
  const nameOf = (href: string) => names.get(toDraftHref(href)) ?? describeLabel(labels?.get(href)) ?? {}
  return Object.assign(nameOf, { isShared: (href: string) => shared.has(toDraftHref(href)) })
}

function describeLabel(label: Label | undefined): ReferenceName | undefined {
  return label === undefined ? undefined : { key: label.key, value: label.value }
}

function leaveOutNamed(missing: Map<string, Set<string>>, names: ReadonlyMap<string, ReferenceName>): void {
  for (const [kind, hrefs] of missing) {
    for (const href of hrefs) if (names.has(toDraftHref(href))) hrefs.delete(href)
    if (hrefs.size === 0) missing.delete(kind)
  }
}

/** Sorts every `{href, …}` below `value` into those that bring their name and those that need one, by kind. */
function collect(value: unknown, names: Map<string, ReferenceName>, missing: Map<string, Set<string>>): void {
  if (Array.isArray(value)) return value.forEach((item) => collect(item, names, missing))
  if (typeof value !== 'object' || value === null) return
  const { href, key, value: labelValue, name, hostname } = value as Record<string, unknown>
  if (typeof href === 'string') {
    const kind = parseHref(href)?.kind ?? ''
    if (typeof key === 'string' && typeof labelValue === 'string') names.set(href, { key, value: labelValue })
    else if (typeof (name ?? hostname) === 'string')
      names.set(toDraftHref(href), { name: (name ?? hostname) as string })
    else missing.set(kind, (missing.get(kind) ?? new Set()).add(href))
  }
  for (const inner of Object.values(value)) collect(inner, names, missing)
}

async function orNothing<T>(asked: Promise<T>): Promise<T | undefined> {
  try {
    return await asked
  } catch (error) {
    if (error instanceof PceApiError && error.status >= 400 && error.status < 500 && error.status !== 429)
      return undefined
    throw error
  }
}

/**
 * The names of what a written object refers to, or none: the write is done by now, and failing over a missing name would suggest
 * that it is not.
 */
export async function namesOrHrefs(pce: PceClient, objects: unknown, context: ReadContext): Promise<ReferenceNames> {
  try {
    return await loadReferenceNames(pce, objects, context)
  } catch {
    return () => ({})
  }
}

/** Users and service accounts only. */
const AUTHOR = /^\/(?:users\/\d+|orgs\/\d+\/service_accounts\/[\w-]+)$/
/** Distinct authors asked for; the rest stay hrefs. */
export const MOST_AUTHORS = 20

/** The names of authors by href. One who may not be read has none, nor have those beyond the first `most`. */
export async function loadAuthorNames(
  pce: PceClient,
  authors: readonly string[],
  signal: AbortSignal,
  most = MOST_AUTHORS,
): Promise<ReadonlyMap<string, string>> {
  const names = new Map<string, string>()
  const asked = [...new Set(authors)].filter((href) => AUTHOR.test(href)).slice(0, most)
  await mapBounded(asked, IN_FLIGHT, async (href) => {
    try {
      const { username, name } = (await pce.get(href, { includeOrg: false, signal })).json<Record<string, unknown>>()
      if (typeof (username ?? name) === 'string') names.set(href, (username ?? name) as string)
    } catch (error) {
      if (!(error instanceof PceError) || signal.aborted) throw error
    }
  })
  return names
}

/** The changes with their authors' names. An author who may not be read stays an href. */
export async function nameAuthors(
  pce: PceClient,
  changes: readonly PolicyChange[],
  signal: AbortSignal,
): Promise<PolicyChange[]> {
  const all = changes.flatMap((change) =>
    [change, ...(change.rules ?? [])].flatMap((one) => one.updated_by?.href ?? []),
  )
  const names = await loadAuthorNames(pce, all, signal)
  const named = <T extends Pick<PolicyChange, 'updated_by'>>(one: T): T => {
    const name = one.updated_by && names.get(one.updated_by.href)
    return name === undefined ? one : { ...one, updated_by: { ...one.updated_by, name } }
  }
  return changes.map((change) => ({
    ...named(change),
    ...(change.rules !== undefined && { rules: change.rules.map(named) }),
  }))
}
