import { PceApiError, PceError, type PceClient } from '../../pce-client/index.js'
import { ToolError } from '../../schemas/errors.js'
import type { ContainerWorkloadProfile } from '../../schemas/pce/container-cluster.js'
import type { RuleSet, ScopeEntry } from '../../schemas/pce/rule-set.js'
import type { Workload } from '../../schemas/pce/workload.js'
import type { CallerScopes } from '../../schemas/scopes.js'
import { fetchEvery, isUnread, pickEvery } from '../inventory/fetch-every.js'
import { sameAddress } from '../inventory/parse-addresses.js'
import { toActiveHref, toDraftHref } from '../inventory/parse-href.js'
import { loadDenyRules } from '../inventory/read-rules.js'
import { quote } from '../text/escape-text.js'
import { mapBounded } from '../text/pace-work.js'
import {
  firstOutside,
  placeCreated,
  placeLabels,
  placeRule,
  placeScopes,
  placeUnscoped,
  type Ends,
  type Place,
  type ReachingRule,
} from './place-object.js'
import { fieldsOf, hrefsIn, listOf, readTarget, type Target, type Write } from './read-write.js'
import { sayScopes, surveyTerritory, type Territory } from './territory.js'

/** An object that a write would change, with its place in relation to the caller's scopes. */
export interface PlacedObject {
  readonly href?: string
  /** The path segment that names the object's type. */
  readonly kind: string
  readonly name?: string
  readonly place: Place
}

/** Judges the writes of one call by the scopes of its caller. */
export interface ScopeJudge {
  /**
   * Returns the first object that the write would change and that is not inside; null if all are. `earlier` has the
   * requests of the same call that precede it, because they may create the object to which it writes.
   */
  readonly findOutside: (write: Write, earlier?: readonly Write[]) => Promise<PlacedObject | null>
  /** Returns where pending changes of policy are, in the same order. */
  readonly placeChanges: (hrefs: readonly string[]) => Promise<PlacedObject[]>
}

const IN_FLIGHT = 4
/** Maximum number of workloads or addresses that are looked up one by one; of more, the whole list is read. */
const MOST_SINGLE = 20

/** The nouns for types of objects without a scope. */
const NOUNS: Readonly<Record<string, string>> = {
  ip_lists: 'an IP list',
  services: 'a service',
  labels: 'a label',
  label_groups: 'a label group',
  label_dimensions: 'a label dimension',
  pairing_profiles: 'a pairing profile',
  firewall_settings: 'a firewall setting',
  enforcement_boundaries: 'an enforcement boundary',
  virtual_servers: 'a virtual server',
  sec_policy: 'the policy of the whole organisation',
}
const nounOf = (kind: string) => NOUNS[kind] ?? `an object of the type ${kind}`

const RULES: ReadonlySet<string> = new Set(['sec_rules', 'deny_rules'])

/**
 * Creates the judge of one call. What it needs is read with `pce`, the labels of the scopes at the first judgement.
 * Whatever is of a type that has no rule here, or cannot be read, is not inside.
 */
export function createScopeJudge(pce: PceClient, scopes: CallerScopes, signal: AbortSignal): ScopeJudge {
  let surveying: Promise<Territory> | undefined
  const survey = () => (surveying ??= surveyTerritory(pce, scopes, { signal }))
  return {
    async findOutside(write, earlier = []) {
      if (scopes.everything) return null
      const reader = createReader(pce, await survey(), signal)
      const placed = await placeWrite(reader, write, earlier)
      return placed.find(({ place }) => place.is !== 'inside') ?? null
    },
    async placeChanges(hrefs) {
      const reader = createReader(pce, await survey(), signal)
      return mapBounded(hrefs, IN_FLIGHT, (href) => placePending(reader, href))
    },
  }
}

/**
 * Returns the refusal of a call that would write to an object outside of its caller's scopes. `details` has the object,
 * the condition that it does not meet, and the scopes.
 */
export function refuseOutside({ href, kind, name, place }: PlacedObject, scopes: CallerScopes): ToolError {
  const what = name === undefined ? (href ?? nounOf(kind)) : quote(name)
  const why = place.is === 'inside' ? '' : place.why
  const said = sayScopes(scopes)
  const object = { kind, ...(href !== undefined && { href }), ...(name !== undefined && { name }) }
  return new ToolError('out_of_scope', `${what} ${why}. Nothing of it was written.`, {
    object,
    ...(place.is !== 'inside' && { rule: place.rule }),
    scopes: said,
  })
}

interface Reader {
  readonly pce: PceClient
  readonly signal: AbortSignal
  readonly territory: Territory
  readonly workload: (href: string) => Promise<Workload | undefined>
  readonly ends: (rules: readonly ReachingRule[]) => Promise<Ends>
}

/** Returns the object; undefined if the PCE does not have it or does not show it. */
async function readOr<T>(reading: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  try {
    return await reading
  } catch (error) {
    if (!isUnread(error) || signal.aborted) throw error
    return undefined
  }
}

function createReader(pce: PceClient, territory: Territory, signal: AbortSignal): Reader {
  const workload = (href: string) => readOr(pce.workloads.getByReference(href, { signal }), signal)
  return {
    pce,
    signal,
    territory,
    workload,
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
async function labelsOfWorkloads(
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
 * Places a virtual service by its labels in the draft and in the active policy, and by the workloads that are bound to
 * it, because a rule that names it reaches these. Returns undefined if it cannot be read.
 */
async function placeVirtualService({ pce, territory, signal }: Places, href: string): Promise<Place | undefined> {
  const versions = await readVersions(pce.virtualServices, href, signal)
  if (versions.length === 0) return undefined
  const own = versions.map(({ labels }) => placeLabels(hrefsIn(labels), territory, 'virtual_service'))
  return firstOutside([...own, await placeBound({ pce, territory, signal }, [href])])
}

/** Places all virtual services whose labels are inside: by the workloads bound to them. */
async function placeBoundInside({ pce, territory, signal }: Places): Promise<Place> {
  const inside = new Set<string>()
  for (const policyVersion of ['draft', 'active'] as const) {
    const query = { api: pce.virtualServices, policyVersion, params: {}, signal }
    const found = await pickEvery(query, ({ href, labels }) =>
      placeLabels(hrefsIn(labels), territory, 'virtual_service').is === 'inside' ? toDraftHref(href) : undefined,
    )
    for (const href of found) inside.add(href)
  }
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

/** Reads an object of policy in the draft and in the active policy, as far as it exists there. */
async function readVersions<T>(
  api: { getByReference: (href: string, options: { signal: AbortSignal }) => Promise<T> },
  href: string,
  signal: AbortSignal,
): Promise<T[]> {
  const found: T[] = []
  for (const version of [toDraftHref(href), toActiveHref(href)]) {
    try {
      found.push(await api.getByReference(version, { signal }))
    } catch (error) {
      // Only an object that does not exist in a version is left out. One that cannot be read leaves its place open.
      if (!(error instanceof PceApiError) || error.status !== 404) throw error
    }
  }
  return found
}

const INSIDE: Place = { is: 'inside' }
const unreadable: Place = { is: 'outside', rule: 'not_readable', why: 'cannot be read, so that its place is not known' }

async function placeWrite(reader: Reader, write: Write, earlier: readonly Write[]): Promise<PlacedObject[]> {
  const { territory, pce } = reader
  const target = readTarget(write.path, pce.orgId)
  const isCreation = write.method === 'POST' && target.id === undefined && !target.isPlanned
  const fallback = [{ kind: target.kind, ...hrefOf(target), place: placeUnscoped(territory, nounOf(target.kind)) }]
  if (target.rest.length > 0) return fallback
  switch (target.kind) {
    case 'workloads':
      return target.inner === undefined ? placeWorkloads(reader, write, target) : placeWorkload(reader, target, {})
    case 'rule_sets':
      return target.inner === undefined || RULES.has(target.inner.kind)
        ? placeRuleSetWrite(reader, write, target, earlier)
        : fallback
    case 'sec_policy':
      return placeSubset(reader, write, target) ?? fallback
    case 'virtual_services':
      return target.inner === undefined ? placeVirtualServices(reader, write, target) : fallback
    case 'service_bindings':
      return placeBindings(reader, write, target)
    case 'container_clusters':
      return target.inner?.kind === 'container_workload_profiles' ? placeProfile(reader, write, target) : fallback
    case 'pairing_profiles':
      return isCreation
        ? [
            {
              kind: target.kind,
              ...nameOf(write.body),
              place: firstOutside([
                placeCreated(territory, target.kind, nounOf(target.kind)),
                placeLabels(hrefsIn(fieldsOf(write.body)['labels']), territory, 'profile_labels'),
              ]),
            },
          ]
        : fallback
    case 'labels':
    case 'label_groups':
    case 'ip_lists':
    case 'services':
      return isCreation
        ? [
            {
              kind: target.kind,
              ...nameOf(write.body),
              place: placeCreated(territory, target.kind, nounOf(target.kind)),
            },
          ]
        : fallback
    default:
      return fallback
  }
}

const hrefOf = ({ href, inner }: Target): { href?: string } =>
  href === undefined ? {} : { href: inner?.id === undefined ? href : `${href}/${inner.kind}/${inner.id}` }

function nameOf(body: unknown): { name?: string } {
  const { name, key, value } = fieldsOf(body)
  if (typeof name === 'string') return { name }
  return typeof key === 'string' && typeof value === 'string' ? { name: `${key}=${value}` } : {}
}

// Workloads.

async function placeWorkloads(reader: Reader, { method, body }: Write, target: Target): Promise<PlacedObject[]> {
  const { id } = target
  if (id === undefined) return [placeNewWorkload(reader, body), ...(await placeAddresses(reader, [body]))]
  if (method === 'PUT' && id === 'bulk_create') {
    const rows = listOf(body)
    return [...rows.map((row) => placeNewWorkload(reader, row)), ...(await placeAddresses(reader, rows))]
  }
  if (method === 'PUT' && (id === 'bulk_update' || id === 'bulk_delete')) {
    const rows = listOf(body).map(fieldsOf)
    return [
      ...(await placeKnownWorkloads(reader, rows)),
      ...(id === 'bulk_update' ? await placeAddresses(reader, rows) : []),
    ]
  }
  if (method === 'PUT' && id === 'unpair')
    return placeKnownWorkloads(reader, listOf(fieldsOf(body)['workloads']).map(fieldsOf))
  if (method === 'PUT' || method === 'DELETE')
    return [
      ...(await placeWorkload(reader, target, fieldsOf(body))),
      ...(await placeAddresses(reader, [{ ...fieldsOf(body), href: target.href }])),
    ]
  return [{ kind: 'workloads', place: placeUnscoped(reader.territory, 'an action on workloads') }]
}

const placeNewWorkload = ({ territory }: Reader, body: unknown): PlacedObject => ({
  kind: 'workloads',
  ...nameOf(body),
  place: placeLabels(hrefsIn(fieldsOf(body)['labels']), territory, 'workload_labels'),
})

async function placeWorkload(
  reader: Reader,
  { href = '' }: Target,
  change: Record<string, unknown>,
): Promise<PlacedObject[]> {
  const before = await reader.workload(href)
  if (before === undefined) return [{ kind: 'workloads', href, place: unreadable }]
  const own = (before.labels ?? []).map((label) => label.href)
  return [
    {
      kind: 'workloads',
      href,
      ...nameOf({ name: before.name ?? before.hostname }),
      place: placeBothWays(reader, own, change),
    },
  ]
}

/** Places a workload by its labels before a change, and by those after it. */
function placeBothWays({ territory }: Reader, before: readonly string[], change: Record<string, unknown>): Place {
  const after = change['labels']
  return firstOutside([
    placeLabels(before, territory, 'workload_labels'),
    ...(after === undefined ? [] : [placeLabels(hrefsIn(after), territory, 'workload_labels')]),
  ])
}

async function placeKnownWorkloads(reader: Reader, rows: readonly Record<string, unknown>[]): Promise<PlacedObject[]> {
  const hrefs = hrefsIn(rows)
  const labels = await labelsOfWorkloads(reader.pce, hrefs, reader.signal)
  return rows.map((row, at) => {
    const before = labels.get(hrefs[at]!)
    const place = before === undefined ? unreadable : placeBothWays(reader, before, row)
    return { kind: 'workloads', href: hrefs[at]!, ...nameOf(row), place }
  })
}

/**
 * Places the workloads outside that have an address which the rows claim. With such an address, a workload inside would
 * be what rules of others mean by the address.
 */
async function placeAddresses(reader: Reader, rows: readonly unknown[]): Promise<PlacedObject[]> {
  const { pce, signal, territory } = reader
  const claimed = new Set(rows.flatMap((row) => addressesIn(fieldsOf(row))))
  if (claimed.size === 0) return []
  const isClaimed = (address: string) => claimed.has(address) || [...claimed].some((one) => sameAddress(one, address))
  const holders: Workload[] = []
  if (claimed.size <= MOST_SINGLE) {
    for (const address of claimed) {
      const query = { api: pce.workloads, params: { ip_address: address }, signal }
      holders.push(...(await fetchEvery(query)).items)
    }
  } else {
    const query = { api: pce.workloads, params: {}, signal }
    holders.push(
      ...(await pickEvery(query, (workload) =>
        addressesIn(workload).some((address) => claimed.has(address)) ? workload : undefined,
      )),
    )
  }
  const placed = new Map<string, PlacedObject>()
  for (const holder of holders) {
    if (holder.deleted === true || placed.has(holder.href) || !addressesIn(holder).some(isClaimed)) continue
    const place = placeLabels(
      (holder.labels ?? []).map(({ href }) => href),
      territory,
      'address_taken',
    )
    const name = holder.name ?? holder.hostname
    placed.set(holder.href, {
      kind: 'workloads',
      href: holder.href,
      ...nameOf({ name }),
      place: place.is === 'inside' ? place : { ...place, why: `has an address that the call claims, and ${place.why}` },
    })
  }
  return [...placed.values()]
}

function addressesIn(workload: object): string[] {
  const { interfaces, public_ip: publicIp } = workload as { interfaces?: unknown; public_ip?: unknown }
  const own = listOf(interfaces).map((one) => fieldsOf(one)['address'])
  return [...own, publicIp].filter((address): address is string => typeof address === 'string' && address !== '')
}

// Rule sets and their rules.

async function placeRuleSetWrite(
  reader: Reader,
  { method, body }: Write,
  target: Target,
  earlier: readonly Write[],
): Promise<PlacedObject[]> {
  const fields = fieldsOf(body)
  if (target.inner !== undefined) return placeRuleWrite(reader, method, fields, target, earlier)
  if (target.id === undefined) {
    const planned = { ...fields, scopes: fields['scopes'] ?? [] }
    return [{ kind: 'rule_sets', ...nameOf(body), place: await placeRuleSets(reader, [planned]) }]
  }
  const found = await readRuleSet(reader, target.href ?? '')
  if (found === undefined) return [{ kind: 'rule_sets', ...hrefOf(target), place: unreadable }]
  const states = method === 'PUT' ? [found, { ...found, ...fields }] : [found]
  return [{ kind: 'rule_sets', ...hrefOf(target), name: found.name, place: await placeRuleSets(reader, states) }]
}

async function placeRuleWrite(
  reader: Reader,
  method: string,
  body: Record<string, unknown>,
  target: Target,
  earlier: readonly Write[],
): Promise<PlacedObject[]> {
  const { inner } = target
  const kind = inner?.kind ?? ''
  const ruleSet = target.isPlanned ? plannedRuleSet(earlier) : await readRuleSet(reader, target.href ?? '')
  if (ruleSet === undefined) return [{ kind, ...hrefOf(target), place: unreadable }]
  const { place: scopes, lands } = placeScopes(scopesOf(ruleSet), reader.territory)
  const owner = typeof ruleSet.name === 'string' ? ` of the rule set ${quote(ruleSet.name)}` : ''
  const before =
    method === 'POST'
      ? undefined
      : rulesOf(ruleSet).find(({ href }) => href?.endsWith(`/${inner?.kind}/${inner?.id}`) === true)
  if (method !== 'POST' && before === undefined) return [{ kind, ...hrefOf(target), place: unreadable }]
  const states = [...(before === undefined ? [] : [before]), ...(method === 'DELETE' ? [] : [{ ...before, ...body }])]
  const ends = await reader.ends(states)
  const place = firstOutside([scopes, ...states.map((rule) => placeRule(rule, lands, ends, reader.territory))])
  return [
    {
      kind,
      ...hrefOf(target),
      name: `a rule${owner}`,
      place,
    },
  ]
}

type SomeRuleSet = { name?: unknown; scopes?: unknown; rules?: unknown; deny_rules?: unknown }

/** Returns the rule set that an earlier request of the same call creates. */
const plannedRuleSet = (earlier: readonly Write[]): SomeRuleSet | undefined => {
  const creation = earlier.findLast(({ method, path }) => method === 'POST' && path.endsWith('/rule_sets'))
  return creation === undefined ? undefined : fieldsOf(creation.body)
}

/** Returns a draft rule set with its deny rules; undefined if it cannot be read whole. */
async function readRuleSet({ pce, signal }: Reader, href: string): Promise<RuleSet | undefined> {
  const found = await readOr(pce.ruleSets.getByReference(href, { signal }), signal)
  if (found === undefined) return undefined
  const [complete] = await loadDenyRules(pce, [found], signal)
  return complete?.error !== undefined && complete.hasNone !== true ? undefined : complete?.ruleSet
}

const scopesOf = ({ scopes }: SomeRuleSet): ScopeEntry[][] =>
  listOf(scopes).map((scope) => listOf(scope) as ScopeEntry[])
const rulesOf = ({ rules, deny_rules: denies }: SomeRuleSet): ReachingRule[] =>
  [...listOf(rules), ...listOf(denies)].map((rule) => fieldsOf(rule) as ReachingRule)

/** Places the states of a rule set: its scopes, and each of its rules, because they come into force with it. */
async function placeRuleSets(reader: Reader, states: readonly SomeRuleSet[]): Promise<Place> {
  const places: Place[] = []
  for (const state of states) {
    const { place, lands } = placeScopes(scopesOf(state), reader.territory)
    const rules = rulesOf(state)
    const ends = await reader.ends(rules)
    places.push(
      place,
      ...rules.map((rule) => {
        const placed = placeRule(rule, lands, ends, reader.territory)
        return placed.is === 'inside' ? placed : { ...placed, why: `has a rule that ${placed.why}` }
      }),
    )
    if (listOf((state as { ip_tables_rules?: unknown }).ip_tables_rules).length > 0)
      places.push({ is: 'outside', rule: 'rule_ends', why: 'has iptables rules, whose reach is not known' })
  }
  return firstOutside(places)
}

// Provisioning and discarding.

/** Places what a provisioning or a discarding takes; undefined for any other action on the whole policy. */
function placeSubset(
  reader: Reader,
  { method, body }: Write,
  { id, inner }: Target,
): Promise<PlacedObject[]> | undefined {
  const isProvisioning = method === 'POST' && id === undefined
  const isDiscarding = method === 'PUT' && id === 'delete'
  if (inner !== undefined || (!isProvisioning && !isDiscarding)) return undefined
  const hrefs = Object.values(fieldsOf(fieldsOf(body)['change_subset'])).flatMap(hrefsIn)
  // Without a subset, the PCE would take everything that is pending.
  if (hrefs.length === 0) return undefined
  return mapBounded(hrefs, IN_FLIGHT, (href) => placePending(reader, href))
}

async function placePending(reader: Reader, href: string): Promise<PlacedObject> {
  const { pce, signal, territory } = reader
  const { kind } = readTarget(href, pce.orgId)
  try {
    if (kind === 'rule_sets') {
      const found = await readVersions(pce.ruleSets, href, signal)
      const complete = await loadDenyRules(pce, found, signal)
      const isWhole = complete.every(({ error, hasNone }) => error === undefined || hasNone === true)
      if (found.length === 0 || !isWhole) return { kind, href, place: unreadable }
      const place = await placeRuleSets(
        reader,
        complete.map(({ ruleSet }) => ruleSet),
      )
      return { kind, href, name: found[0]!.name, place }
    }
    if (kind === 'virtual_services')
      return { kind, href, place: (await placeVirtualService(reader, href)) ?? unreadable }
    if (territory.create.has(kind) && (await isNew(reader, kind, href))) return { kind, href, place: INSIDE }
  } catch (error) {
    if (!(error instanceof PceError) || signal.aborted) throw error
    return { kind, href, place: unreadable }
  }
  return { kind, href, place: placeUnscoped(territory, nounOf(kind)) }
}

/** Returns true if the active policy does not have the object. */
async function isNew({ pce, signal }: Reader, kind: string, href: string): Promise<boolean> {
  const apis: Readonly<Record<string, { getByReference: (href: string, options: object) => Promise<unknown> }>> = {
    ip_lists: pce.ipLists,
    services: pce.services,
    label_groups: pce.labelGroups,
  }
  try {
    await apis[kind]?.getByReference(toActiveHref(href), { signal })
    return false
  } catch (error) {
    if (error instanceof PceApiError && error.status === 404) return true
    throw error
  }
}

// Virtual services, bindings and container profiles.

async function placeVirtualServices(reader: Reader, { method, body }: Write, target: Target): Promise<PlacedObject[]> {
  const { territory } = reader
  const placeNew = (row: unknown): PlacedObject => ({
    kind: 'virtual_services',
    ...nameOf(row),
    place: placeLabels(hrefsIn(fieldsOf(row)['labels']), territory, 'virtual_service'),
  })
  if (method === 'POST' && target.id === undefined) return [placeNew(body)]
  if (target.id === 'bulk_create') return listOf(body).map(placeNew)
  const rows = target.id === 'bulk_update' ? listOf(body).map(fieldsOf) : [{ ...fieldsOf(body), href: target.href }]
  const placed: PlacedObject[] = []
  for (const row of rows) {
    const [href = ''] = hrefsIn([row])
    const before = (await placeVirtualService(reader, href)) ?? unreadable
    const labels = (row as { labels?: unknown }).labels
    const after = labels === undefined ? [] : [placeLabels(hrefsIn(labels), territory, 'virtual_service')]
    placed.push({ kind: 'virtual_services', href, ...nameOf(row), place: firstOutside([before, ...after]) })
  }
  return placed
}

async function placeBindings(reader: Reader, { method, body }: Write, target: Target): Promise<PlacedObject[]> {
  const { pce, signal, territory } = reader
  const kind = 'service_bindings'
  const found =
    method === 'POST' && target.id === undefined
      ? (Array.isArray(body) ? listOf(body) : [body]).map(fieldsOf)
      : [fieldsOf(await readOr(pce.serviceBindings.getByReference(target.href ?? '', { signal }), signal))]
  const placed: PlacedObject[] = []
  for (const binding of found) {
    const [service = ''] = hrefsIn([binding['bound_service'] ?? binding['virtual_service']])
    const [workload = ''] = hrefsIn([binding['workload']])
    const labels = await labelsOfWorkloads(
      pce,
      [workload].filter((href) => href !== ''),
      signal,
    )
    const ofWorkload = labels.get(workload)
    placed.push({
      kind,
      ...hrefOf(target),
      place: firstOutside([
        service === '' ? unreadable : ((await placeVirtualService(reader, service)) ?? unreadable),
        ofWorkload === undefined ? unreadable : placeLabels(ofWorkload, territory, 'workload_labels'),
      ]),
    })
  }
  return placed
}

async function placeProfile(reader: Reader, { method, body }: Write, target: Target): Promise<PlacedObject[]> {
  const { pce, signal, territory } = reader
  const href = hrefOf(target).href ?? ''
  const before = await readOr(pce.containerWorkloadProfiles.getByReference(href, { signal }), signal)
  if (before === undefined) return [{ kind: 'container_workload_profiles', href, place: unreadable }]
  const states = method === 'PUT' ? [before, { ...before, ...fieldsOf(body) }] : [before]
  const places = states.map((profile) => placeAssigned(profile, territory))
  const name = before.name ?? before.namespace
  return [{ kind: 'container_workload_profiles', href, ...nameOf({ name }), place: firstOutside(places) }]
}

/** Places a profile by every combination of labels that it may give to a workload. */
function placeAssigned(
  { labels, assign_labels: assigned }: Pick<ContainerWorkloadProfile, 'labels' | 'assign_labels'>,
  territory: Territory,
): Place {
  const choices = (labels ?? []).map((one) =>
    'assignment' in one ? [one.assignment.href] : (one.restriction ?? []).map(({ href }) => href),
  )
  const all = [...hrefsIn(assigned).map((href) => [href]), ...choices.filter((hrefs) => hrefs.length > 0)]
  const isInside = territory.lands.some(({ labels: wanted }) =>
    [...wanted.values()].every((allowed) => all.some((hrefs) => hrefs.every((href) => allowed.has(href)))),
  )
  if (territory.everything || isInside) return INSIDE
  return { is: 'outside', rule: 'profile_labels', why: 'gives labels that are within none of your scopes' }
}
