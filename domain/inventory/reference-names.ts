import { PceApiError, type ObjectApi, type PceClient } from '../../pce-client/index.js'
import type { Label } from '../../schemas/pce/label.js'
import { fetchEvery } from './fetch-every.js'
import { loadLabels, type ReadContext } from './load-labels.js'
import { mapBounded } from '../text/map-bounded.js'
import { parseHref, toDraftHref } from './parse-href.js'
import type { NamedObject } from './find-object.js'

/** What answers say beside an href. */
export interface ReferenceName {
  key?: string
  value?: string
  name?: string
}

/** The names of objects that PCE answers point at by href alone. */
export type ReferenceNames = (href: string) => ReferenceName

/** Kinds small enough to be read whole for their names. */
const LISTED: Record<string, 'ipLists' | 'services' | 'labelGroups' | 'virtualServices' | 'virtualServers'> = {
  ip_lists: 'ipLists',
  services: 'services',
  label_groups: 'labelGroups',
  virtual_services: 'virtualServices',
  virtual_servers: 'virtualServers',
}

/** Workloads are asked for one by one; an answer that points at more shows the rest by href. */
const MAX_WORKLOADS = 50
const IN_FLIGHT = 4

/**
 * Reads the names of everything `objects` refer to, at any depth. A name is an aid for the reader: an object that is gone, or
 * a kind the PCE will not list for this account, is left without one.
 */
export async function loadReferenceNames(
  pce: PceClient,
  objects: unknown,
  context: ReadContext,
): Promise<ReferenceNames> {
  const names = new Map<string, ReferenceName>()
  const missing = new Map<string, Set<string>>()
  collect(objects, names, missing)
  const labels = missing.has('labels') ? await loadLabels(pce, context) : null

  const kinds = [...missing.keys()].filter((kind) => kind in LISTED)
  await mapBounded(kinds, IN_FLIGHT, async (kind) => {
    const api = pce[LISTED[kind] as 'ipLists'] as ObjectApi<NamedObject>
    const list = await orNothing(fetchEvery({ api, params: {}, signal: context.signal }))
    for (const { href, name } of list?.items ?? []) names.set(toDraftHref(href), { name: name ?? undefined })
  })
  await mapBounded([...(missing.get('workloads') ?? [])].slice(0, MAX_WORKLOADS), IN_FLIGHT, async (href) => {
    const workload = await orNothing(pce.workloads.getByReference(href, { signal: context.signal }))
    if (workload !== undefined) names.set(href, { name: workload.name ?? workload.hostname ?? undefined })
  })
  return (href) => names.get(toDraftHref(href)) ?? describeLabel(labels?.get(href)) ?? {}
}

function describeLabel(label: Label | undefined): ReferenceName | undefined {
  return label === undefined ? undefined : { key: label.key, value: label.value }
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
