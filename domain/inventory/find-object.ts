import { isKubernetes, KUBERNETES_LIMITS, readKubernetesWorkloads } from './kubernetes-workloads.js'
import { PceApiError, type ObjectApi, type PceClient } from '../../pce-client/index.js'
import type { PolicyVersionSelector } from '../../schemas/common.js'
import { ToolError } from '../../schemas/errors.js'
import type { PceObject } from '../../schemas/pce/reference.js'
import { pickEvery } from './fetch-every.js'
import type { LabelIndex } from './labels.js'
import { parseHref, toVersionHref } from './parse-href.js'
import { canBeName, nearNames } from '../text/compare-texts.js'
import { quote } from '../text/escape-text.js'
import { ambiguousName } from './tell-apart.js'

/**
 * The types of objects that tools find by href or exact name. The key of each entry is the type's path segment in
 * hrefs.
 */
const KINDS = {
  ip_lists: { api: 'ipLists', noun: 'IP list' },
  services: { api: 'services', noun: 'service' },
  rule_sets: { api: 'ruleSets', noun: 'rule set' },
  label_groups: { api: 'labelGroups', noun: 'label group' },
  workloads: { api: 'workloads', noun: 'workload' },
  virtual_services: { api: 'virtualServices', noun: 'virtual service' },
  virtual_servers: { api: 'virtualServers', noun: 'virtual server' },
  pairing_profiles: { api: 'pairingProfiles', noun: 'pairing profile' },
  container_clusters: { api: 'containerClusters', noun: 'container cluster' },
  kubernetes_workloads: { api: 'kubernetesWorkloads', noun: 'Kubernetes workload' },
} as const satisfies Record<string, { api: keyof PceClient; noun: string }>
export type NamedKind = keyof typeof KINDS

/** For each type of object, the tool that lists such objects. Hints in errors mention it. */
const LISTERS: Partial<Record<NamedKind, string>> = {
  ip_lists: 'get-iplists',
  services: 'get-services',
  rule_sets: 'get-rulesets',
  workloads: 'get-workloads',
  label_groups: 'get-label-groups',
  virtual_services: 'get-virtual-services',
  pairing_profiles: 'get-pairing-profiles',
  container_clusters: 'get-container-clusters',
  kubernetes_workloads: 'get-kubernetes-workloads',
}

/** The TypeScript type of the objects that the PCE client returns for one of the types above. */
export type ObjectOf<K extends NamedKind> = PceClient[(typeof KINDS)[K]['api']] extends ObjectApi<infer T> ? T : never

/** The fields that identify an object of one of these types. Only workloads have a host name. */
export interface NamedObject extends PceObject {
  name?: string | null
  hostname?: string | null
}

export type Version = 'draft' | 'active'

/** The two ways to name an object. A caller must use exactly one of them. */
export interface ObjectReference {
  href?: string
  name?: string
}

/** The hint for a caller who passed the name of a Kubernetes workload to a tool for workloads. */
const PROFILE_HINT = 'update-container-workload-profile changes the profile of a namespace.'

export function isNamedKind(kind: string): kind is NamedKind {
  return Object.hasOwn(KINDS, kind)
}

/** Returns the noun that messages use for a type of object. */
export function nounOf(kind: NamedKind): string {
  return KINDS[kind].noun
}

/** Returns a phrase that names one object in messages, such as `the IP list Branch offices`. */
export function describeObject(kind: NamedKind, { href, name, hostname }: NamedObject): string {
  return `the ${nounOf(kind)} ${quote(name ?? hostname ?? href)}`
}

export function apiOf<K extends NamedKind>(pce: PceClient, kind: K): ObjectApi<ObjectOf<K>> {
  return pce[KINDS[kind].api] as unknown as ObjectApi<ObjectOf<K>>
}

/**
 * Finds the draft object that a caller names by href or by exact name, never by a part of a name. If the href is that
 * of the active version, the draft of the same object is returned.
 * @throws {ToolError} missing_identifier, conflicting_identifiers, invalid_href for an href of another object type or
 * organisation, not_found with similar names, or ambiguous_name with candidates.
 */
export async function findObject<K extends NamedKind>(
  pce: PceClient,
  kind: K,
  { href, name }: ObjectReference,
  signal: AbortSignal,
  { hrefArgument = 'href', nameArgument = 'name' }: { hrefArgument?: string; nameArgument?: string } = {},
): Promise<ObjectOf<K>> {
  if (href !== undefined && name !== undefined) {
    const text = `Give ${hrefArgument} or ${nameArgument}, not both: they may mean different objects.`
    throw new ToolError('conflicting_identifiers', text, { arguments: [hrefArgument, nameArgument] })
  }
  if (href !== undefined) return findByHref(pce, kind, href.trim(), 'draft', signal)
  if (name !== undefined) return findByName(pce, kind, name, 'draft', signal)
  const text = `Say which ${nounOf(kind)}: give ${hrefArgument} or ${nameArgument}.`
  throw new ToolError('missing_identifier', text, { arguments: [hrefArgument, nameArgument] })
}

/**
 * Finds an object by its exact name. A workload can be found by its name and by its host name; both are searched, and
 * together they must match exactly one workload (D224).
 *
 * @throws {ToolError} not_found with similar names, or ambiguous_name with candidates.
 */
async function findByName<K extends NamedKind>(
  pce: PceClient,
  kind: K,
  name: string,
  policyVersion: PolicyVersionSelector,
  signal: AbortSignal,
): Promise<ObjectOf<K>> {
  if (!canBeName(name)) throw noneNamed(kind, name, [])
  const { exact, seen } = await findNamesakes(pce, kind, name, policyVersion, signal)
  const [only, ...others] = exact
  if (others.length > 0) throw ambiguous(kind, name, exact)
  if (only !== undefined) return only as unknown as ObjectOf<K>
  // There may be too many workloads to read them all just for a hint. The lists of all other types are short enough.
  const every = { api: apiOf(pce, kind) as unknown as ObjectApi<NamedObject>, policyVersion, params: {}, signal }
  const candidates = kind === 'workloads' ? seen : await pickEvery(every, shownName)
  throw noneNamed(kind, name, nearNames(name, candidates), kind === 'workloads' && (await isPodName(pce, name, signal)))
}

const shownName = (item: NamedObject) => item.name ?? item.hostname ?? undefined

/**
 * Finds all objects with exactly this name and, among workloads, also those with exactly this host name. `seen` has the
 * names of the other objects that the PCE returned, because its search also finds names that merely contain this one.
 */
export async function findNamesakes(
  pce: PceClient,
  kind: NamedKind,
  name: string,
  policyVersion: PolicyVersionSelector,
  signal: AbortSignal,
): Promise<{ exact: NamedObject[]; seen: string[] }> {
  // If the name is too long, the PCE is not asked, because it would reject the long URL without searching.
  if (!canBeName(name)) return { exact: [], seen: [] }
  const api = apiOf(pce, kind) as unknown as ObjectApi<NamedObject>
  const fields = kind === 'workloads' ? (['name', 'hostname'] as const) : (['name'] as const)
  const seen: string[] = []
  const exact = new Map<string, NamedObject>()
  const isExact = (item: NamedObject) => fields.some((field) => item[field] === name)
  for (const field of fields) {
    // The PCE also finds names that only contain the given name, so this server compares the names exactly.
    const query = { api, policyVersion, params: { [field]: name }, signal }
    const found = await pickEvery(query, (item) => (isExact(item) ? item : shownName(item)))
    for (const one of found)
      if (typeof one === 'string') seen.push(one)
      else exact.set(one.href, one)
  }
  return { exact: [...exact.values()], seen }
}

/**
 * The types of objects that may be a side of a rule or flow, each with the prefix that callers put before the object's
 * name.
 */
const ENDS = [
  ['workload', 'workloads'],
  ['iplist', 'ip_lists'],
  ['labelgroup', 'label_groups'],
] as const satisfies readonly (readonly [string, NamedKind])[]

/**
 * Finds objects that have exactly this name and that callers must reference with a prefix. Returns these references,
 * such as `workload:web-1`, for hints in errors. A type is skipped if it has no such object or cannot be read.
 */
export async function writeByPrefix(
  { byName }: Pick<PolicyLookups, 'byName'>,
  name: string,
  prefixes: readonly (typeof ENDS)[number][0][] = ENDS.map(([prefix]) => prefix),
): Promise<string[]> {
  const found: string[] = []
  for (const [prefix, kind] of ENDS) {
    if (!prefixes.includes(prefix)) continue
    try {
      await byName(kind, name)
      found.push(`${prefix}:${name}`)
    } catch (error) {
      if (!(error instanceof ToolError) && !(error instanceof PceApiError)) throw error
    }
  }
  return found
}

async function isPodName(pce: PceClient, name: string, signal: AbortSignal): Promise<boolean> {
  const { items } = await readKubernetesWorkloads({ pce, signal }, { name }, (one) => one.name === name || undefined)
  return items.length > 0
}

function noneNamed(kind: NamedKind, name: string, near: string[], isPod = false): ToolError {
  if (isPod) {
    const text = `No workload is named exactly ${quote(name)}. A Kubernetes workload is: ${KUBERNETES_LIMITS}.`
    return new ToolError('not_found', text, { kind, name, near_names: near }, { hint: PROFILE_HINT })
  }
  const lister = LISTERS[kind]
  const isFar = near.length === 0 && lister !== undefined
  // Only workloads whose names contain the searched string were read, so a workload with a similar name may exist.
  const none = kind === 'workloads' ? 'No name of a workload contains it' : 'Nothing has a similar name'
  return new ToolError(
    'not_found',
    `No ${nounOf(kind)} is named exactly ${quote(name)}.`,
    { kind, name, near_names: near },
    isFar ? { hint: `${none}; ${lister} lists them.` } : {},
  )
}

/**
 * Reads the object with this href, in the given policy version.
 * @throws {ToolError} not_found, or invalid_href for an href of another object type or organisation.
 */
export async function findByHref<K extends NamedKind>(
  pce: PceClient,
  kind: K,
  href: string,
  version: PolicyVersionSelector,
  signal: AbortSignal,
): Promise<ObjectOf<K>> {
  const parsed = parseHref(href)
  // An href with a version number belongs to a past version. That version cannot be changed, and the current object may
  // differ from it, so the href is accepted only if this version was requested.
  const isHistory = parsed?.version !== undefined && /^\d/.test(parsed.version) && parsed.version !== String(version)
  if (parsed === null || parsed.kind !== kind || parsed.id === undefined || isHistory) {
    if (kind === 'workloads' && isKubernetes({ href })) {
      const text = `${quote(href)} is the href of a Kubernetes workload: ${KUBERNETES_LIMITS}.`
      throw new ToolError('invalid_href', text, { href }, { hint: PROFILE_HINT })
    }
    throw new ToolError('invalid_href', `${quote(href)} is not the href of a ${nounOf(kind)}.`, { href })
  }
  if (parsed.org !== pce.orgId) {
    const text = `${quote(href)} belongs to organisation ${parsed.org}; this connection works in ${pce.orgId}.`
    throw new ToolError('invalid_href', text, { href })
  }
  const missing = (cause?: unknown) =>
    new ToolError('not_found', `No ${nounOf(kind)} has the href ${quote(href)}.`, { kind, href }, { cause })
  try {
    const found = await apiOf(pce, kind).getByReference(toVersionHref(href, version), { signal })
    // A deleted workload can still be read at its href; it is marked as deleted (P16).
    if ((found as { deleted?: boolean }).deleted === true) throw missing()
    return found
  } catch (error) {
    if (error instanceof PceApiError && error.status === 404) throw missing(error)
    throw error
  }
}

function ambiguous(kind: NamedKind, name: string, found: readonly NamedObject[]): ToolError {
  const isByHost = found.some(({ name: own }) => own !== name)
  const how = isByHost ? 'have the name or the host name' : 'are named'
  const text = `${found.length} objects of kind ${nounOf(kind)} ${how} ${quote(name)}.`
  return ambiguousName(text, found, { kind, name })
}

/**
 * Looks up objects by exact name or href for one call. Each object is requested from the PCE only once, and nothing is
 * changed there.
 */
export interface PolicyLookups {
  readonly labels: LabelIndex
  /**
   * Finds an object by its exact name. For a workload, its name and its host name are both searched.
   *
   * @throws {ToolError} not_found with similar names, or ambiguous_name with candidates.
   */
  byName(kind: NamedKind, name: string): Promise<NamedObject>
  /**
   * Finds the object with this href in the policy version for which the lookups were created.
   * @throws {ToolError} not_found, or invalid_href for an href of another organisation.
   */
  byHref(kind: NamedKind, href: string): Promise<NamedObject>
}

/**
 * Creates lookups in one policy version.
 * @param version `draft` for objects in rules that are being edited, `active` for objects in traffic queries, or the
 * number of a past version.
 */
export function createPolicyLookups(
  pce: PceClient,
  labels: LabelIndex,
  version: PolicyVersionSelector,
  signal: AbortSignal,
): PolicyLookups {
  const asked = new Map<string, Promise<NamedObject>>()
  const once = (id: string, ask: () => Promise<NamedObject>) => {
    const known = asked.get(id) ?? ask()
    asked.set(id, known)
    return known
  }
  return {
    labels,
    byName: (kind, name) =>
      once(`${kind}:${name}`, async () => {
        const found = await findByName(pce, kind, name, version, signal)
        // The object is also cached by its href, so that it is not requested again.
        asked.set(found.href, asked.get(found.href) ?? Promise.resolve(found))
        return found
      }),
    byHref: (kind, href) => once(href, () => findByHref(pce, kind, href, version, signal)),
  }
}
