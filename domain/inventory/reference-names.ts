import { PceApiError, PceError, type ObjectApi, type PceClient } from '../../pce-client/index.js'
import type { PolicyVersionSelector } from '../../schemas/common.js'
import type { Label } from '../../schemas/pce/label.js'
import type { Service } from '../../schemas/pce/service.js'
import type { PolicyChange } from '../../schemas/policy-changes.js'
import { IncompleteListError, scanEvery } from './fetch-every.js'
import type { NamedObject } from './find-object.js'
import { nameCoverage } from './name-ports.js'
import { loadLabels, type ReadContext } from './labels.js'
import { parseHref, toDraftHref } from './parse-href.js'
import { mapBounded } from '../text/pace-work.js'

/** An object's name, or a label's key and value, in the form in which answers show it next to an href. */
interface ReferenceName {
  key?: string
  value?: string
  name?: string
}

/** A lookup for the names of objects that PCE answers identify only by href. */
export interface ReferenceNames {
  (href: string): ReferenceName
  /** Returns true if another object of the same type has the same name, so that the name alone would be ambiguous. */
  isShared?: (href: string) => boolean
  /**
   * Returns the ports that a service covers, such as `53/udp`. Undefined if they were not requested or could not be
   * read.
   */
  portsOf?: (href: string) => string | undefined
}

/** The types for which the complete list is read, even if only a few names are needed. */
const LISTED: Record<string, 'ipLists' | 'services' | 'labelGroups' | 'virtualServices' | 'virtualServers'> = {
  ip_lists: 'ipLists',
  services: 'services',
  label_groups: 'labelGroups',
  virtual_services: 'virtualServices',
  virtual_servers: 'virtualServers',
}

/**
 * Maximum number of objects of each type outside `LISTED` that are read, one by one. Further objects are shown by href.
 */
const MAX_SINGLE = 50
const IN_FLIGHT = 4

/**
 * Reads the names of all objects in this policy version to which `objects` refer at any depth. Names only help the
 * reader, so an object that no longer exists, or whose type this account may not list, is left without a name.
 *
 * @param known objects whose names are already known, so that they are not requested
 * @param withPorts if true, also reads the ports that services cover, even of services whose names are known.
 */
export async function loadReferenceNames(
  pce: PceClient,
  objects: unknown,
  context: ReadContext,
  policyVersion: PolicyVersionSelector = 'draft',
  known: readonly NamedObject[] = [],
  withPorts = false,
): Promise<ReferenceNames> {
  const names = new Map<string, ReferenceName>()
  const shared = new Set<string>()
  const missing = new Map<string, Set<string>>()
  collect(objects, names, missing, withPorts)
  const ports = new Map<string, string>()
  for (const { href, name } of known) if (typeof name === 'string') names.set(toDraftHref(href), { name })
  if (known.length > 0) leaveOutNamed(missing, names)
  const labels = missing.has('labels') ? await orNothing(loadLabels(pce, context)) : undefined

  const kinds = [...missing.keys()].filter((kind) => kind in LISTED)
  await mapBounded(kinds, IN_FLIGHT, async (kind) => {
    const api = pce[LISTED[kind] as 'ipLists'] as ObjectApi<NamedObject>
    const wanted = new Set([...(missing.get(kind) ?? [])].map(toDraftHref))
    const seen = new Map<string, string>()
    const onItems = (items: NamedObject[]) => {
      for (const item of items) {
        const { href, name } = item
        const draft = toDraftHref(href)
        if (wanted.has(draft)) names.set(draft, { name: name ?? undefined })
        if (withPorts && kind === 'services' && wanted.has(draft)) ports.set(draft, nameCoverage(item as Service))
        const other = seen.get(name ?? '')
        if (other === undefined) seen.set(name ?? '', draft)
        else for (const one of [other, draft]) shared.add(one)
      }
    }
    await orNothing(scanEvery({ api, policyVersion, params: {}, signal: context.signal }, { onItems }))
  })
  await mapBounded([...(missing.get('workloads') ?? [])].slice(0, MAX_SINGLE), IN_FLIGHT, async (href) => {
    const workload = await orNothing(pce.workloads.getByReference(href, { signal: context.signal }))
    if (workload !== undefined) names.set(href, { name: workload.name ?? workload.hostname ?? undefined })
  })
  const groups = await loadUserGroups(pce, [...(missing.get('security_principals') ?? [])], context.signal)
  for (const [href, name] of groups) names.set(href, { name })
  const nameOf = (href: string) => names.get(toDraftHref(href)) ?? describeLabel(labels?.get(href)) ?? {}
  return Object.assign(nameOf, {
    isShared: (href: string) => shared.has(toDraftHref(href)),
    portsOf: (href: string) => ports.get(toDraftHref(href)),
  })
}

/**
 * Reads the names of user groups (security principals), by href. Names only help the reader, so groups that cannot be
 * read and groups after the first 50 are left out.
 */
export async function loadUserGroups(
  pce: PceClient,
  hrefs: readonly string[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, string>> {
  const names = new Map<string, string>()
  await mapBounded([...new Set(hrefs)].slice(0, MAX_SINGLE), IN_FLIGHT, async (href) => {
    try {
      const { name } = await pce.securityPrincipals.getByReference(href, { signal })
      if (typeof name === 'string') names.set(href, name)
    } catch (error) {
      if (!(error instanceof PceError) || signal.aborted) throw error
    }
  })
  return names
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

/**
 * Collects all references `{href, …}` inside `value`. A reference that includes a name is added to `names`. Any other
 * reference, and also a service if `withPorts` is true, is added to `missing`, by object type.
 */
function collect(
  value: unknown,
  names: Map<string, ReferenceName>,
  missing: Map<string, Set<string>>,
  withPorts: boolean,
): void {
  if (Array.isArray(value)) return value.forEach((item) => collect(item, names, missing, withPorts))
  if (typeof value !== 'object' || value === null) return
  const { href, key, value: labelValue, name, hostname } = value as Record<string, unknown>
  if (typeof href === 'string') {
    const kind = parseHref(href)?.kind ?? ''
    const isLabel = typeof key === 'string' && typeof labelValue === 'string'
    const ownName = name ?? hostname
    if (isLabel) names.set(href, { key, value: labelValue })
    else if (typeof ownName === 'string') names.set(toDraftHref(href), { name: ownName })
    if ((!isLabel && typeof ownName !== 'string') || (withPorts && kind === 'services'))
      missing.set(kind, (missing.get(kind) ?? new Set()).add(href))
  }
  for (const inner of Object.values(value)) collect(inner, names, missing, withPorts)
}

/** Runs a request and returns undefined if the PCE refuses it or sends only part of the list. */
async function orNothing<T>(asked: Promise<T>): Promise<T | undefined> {
  try {
    return await asked
  } catch (error) {
    if (error instanceof IncompleteListError) return undefined
    if (error instanceof PceApiError && error.status >= 400 && error.status < 500 && error.status !== 429)
      return undefined
    throw error
  }
}

/**
 * Works like `loadReferenceNames`, but never fails. It is for an object that was just written: an error about a name
 * would suggest that the write had failed too.
 */
export async function namesOrHrefs(pce: PceClient, objects: unknown, context: ReadContext): Promise<ReferenceNames> {
  try {
    return await loadReferenceNames(pce, objects, context)
  } catch {
    return () => ({})
  }
}

/** Matches the hrefs of users and service accounts, the only authors that are looked up. */
const AUTHOR = /^\/(?:users\/\d+|orgs\/\d+\/service_accounts\/[\w-]+)$/
/** Maximum number of distinct authors that are looked up; the others are shown by href. */
export const MOST_AUTHORS = 20

/**
 * Reads the names of authors, by href. Authors that this account is not permitted to read, and authors after the first
 * `most`, are left out.
 */
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

/** Adds the authors' names to changes. An author that cannot be read is shown by href. */
export async function nameAuthors<T extends PolicyChange>(
  pce: PceClient,
  changes: readonly T[],
  signal: AbortSignal,
): Promise<T[]> {
  const all = changes.flatMap((change) =>
    [change, ...(change.rules ?? [])].flatMap((one) => one.updated_by?.href ?? []),
  )
  const names = await loadAuthorNames(pce, all, signal)
  const named = <R extends Pick<PolicyChange, 'updated_by'>>(one: R): R => {
    const name = one.updated_by && names.get(one.updated_by.href)
    return name === undefined ? one : { ...one, updated_by: { ...one.updated_by, name } }
  }
  return changes.map((change) => ({
    ...named(change),
    ...(change.rules !== undefined && { rules: change.rules.map(named) }),
  }))
}
