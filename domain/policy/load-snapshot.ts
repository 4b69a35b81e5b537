import { PceApiError, PceError, type PceClient } from '../../pce-client/index.js'
import type { EnforcementBoundary, DenyRule, Rule, RuleSet } from '../../schemas/pce/rule-set.js'
import type { IpList } from '../../schemas/pce/ip-list.js'
import { ANY_IP_LIST_NAMES, ALL_SERVICES_NAME } from '../../schemas/pce/words.js'
import type { Label, LabelGroup } from '../../schemas/pce/label.js'
import type { Service } from '../../schemas/pce/service.js'
import { readEnds, readRuleSets, requireServiceShapes } from '../inventory/require-rule-shape.js'
import { fetchEvery } from '../inventory/fetch-every.js'
import type { Version } from '../inventory/find-object.js'
import { loadDenyRules } from '../inventory/read-rules.js'
import type { LabelIndex } from '../inventory/labels.js'
import { toDraftHref } from '../inventory/parse-href.js'
import { compileIpList, coverFamilies, type Addressed, type Families } from './addresses.js'
import type { PlacedRule, PolicyObjects } from './match-rules.js'
import { denyType, type RuleType } from './rule-type.js'
import { unknown, type Answer } from './three-valued.js'

/** Functions that look up the objects of one policy version to which rules refer. */
export interface PolicyCatalog extends PolicyObjects {
  /** Returns the key of a label or label group, such as `app`; undefined if it is not known. */
  readonly keyOf: (href: string) => string | undefined
  readonly labelOf: (href: string) => Label | undefined
  readonly membersOf: (groupHref: string) => readonly Label[] | undefined
  readonly listOf: (href: string) => IpList | undefined
  readonly groupOf: (href: string) => LabelGroup | undefined
  /** For an IP list, returns how much of each address family it covers; undefined if the list was not read. */
  readonly familiesOf: (listHref: string) => Families | undefined
  /** Returns true for the built-in IP list that contains every address. */
  readonly isAnyList: (href: string) => boolean
  anyLists: readonly IpList[]
  allServices: readonly Service[]
}

/** The contents of one version of the policy, as they were when it was read. */
export interface PolicySnapshot extends PolicyCatalog {
  version: Version
  ruleSets: readonly RuleSet[]
  boundaries: readonly EnforcementBoundary[]
  /**
   * The reasons why the deny rules of some rule sets could not be read, by the draft href of the rule set. A rule set
   * is absent if its deny rules were read or are not needed.
   */
  unread: ReadonlyMap<string, string>
  /**
   * The names of services, IP lists and label groups with a pending change, by draft href; empty for the active
   * version.
   */
  pendingObjects: ReadonlyMap<string, string>
}

/**
 * The objects from which a catalog is built. A catalog is the set of functions by which rule matching looks up objects.
 */
export interface CatalogObjects {
  labels: LabelIndex | undefined
  services: readonly Service[]
  lists: readonly IpList[]
  groups: readonly LabelGroup[]
}

interface Source {
  pce: PceClient
  signal: AbortSignal
}

const ANY_PREFIX = 'Any ('

/**
 * Reads one version of the policy: rule sets, enforcement boundaries, and the objects to which they refer. Deny rules
 * are included only if rule sets embed them; `withDenyRules` reads them for releases that store them separately. If IP
 * lists or label groups cannot be read, everything that depends on them is undecided.
 *
 * @param also rules that are not in the policy yet; the objects to which they refer are read too.
 * @throws the errors of the PCE client, and invalid_response for a rule set, boundary or service of unexpected shape.
 */
export async function loadSnapshot(
  source: Source,
  version: Version,
  labels: LabelIndex,
  also: unknown = null,
): Promise<PolicySnapshot> {
  const { pce, signal } = source
  const every = { policyVersion: version, params: {}, signal }
  const [sets, allBoundaries, services, any] = await Promise.all([
    fetchEvery({ api: pce.ruleSets, ...every }),
    readBoundaries(source, version),
    fetchEvery({ api: pce.services, ...every }),
    fetchEvery({ api: pce.ipLists, ...every, params: { name: ANY_PREFIX } }),
  ])
  const ruleSets = readRuleSets(sets.items)
  const boundaries = readEnds(allBoundaries, 'an enforcement boundary')
  requireServiceShapes(services.items)
  const mentioned = JSON.stringify([ruleSets, boundaries, also])
  const [lists, groups] = await Promise.all([
    mentioned.includes('/ip_lists/') ? orNothing(signal, fetchEvery({ api: pce.ipLists, ...every })) : [],
    mentioned.includes('/label_groups/')
      ? orNothing(signal, fetchEvery<LabelGroup>({ api: pce.labelGroups, ...every }))
      : [],
  ])
  const all = [...any.items.filter(({ href }) => !lists.some((list) => list.href === href)), ...lists]
  return {
    ...catalogOf({ labels, services: services.items, lists: all, groups }),
    version,
    ruleSets,
    boundaries,
    unread: new Map(),
    pendingObjects: new Map(
      [...services.items, ...lists, ...groups]
        .filter(isPending)
        .map(({ href, name }) => [toDraftHref(href), name] as const),
    ),
  }
}

/**
 * The tests of IP lists by the list, because the policies that a change is judged by have most lists in common. No list
 * is altered after it has been read.
 */
const compiled = new WeakMap<IpList, (end: Addressed) => Answer>()

/** Builds the catalog in which rule matching looks up the objects that rules refer to. */
export function catalogOf({ labels, services, lists, groups }: CatalogObjects): PolicyCatalog {
  const byHref = <T extends { href: string }>(items: readonly T[]) =>
    new Map(items.map((item) => [toDraftHref(item.href), item]))
  const [serviceBy, listBy, groupBy] = [byHref(services), byHref(lists), byHref(groups)]
  const labelOf = (href: string) => labels?.get(href)
  const membersOf = membersBy((href) => groupBy.get(toDraftHref(href)), labelOf)
  const anyLists = ANY_IP_LIST_NAMES.flatMap((wanted) => lists.filter(({ name }) => name === wanted))
  const allServices = services.filter(({ name }) => name === ALL_SERVICES_NAME)
  const [anyHrefs, allHrefs] = [byHref(anyLists), byHref(allServices)]
  return {
    labelOf,
    membersOf,
    keyOf: (href) => labelOf(href)?.key ?? groupBy.get(toDraftHref(href))?.key,
    listOf: (href) => listBy.get(toDraftHref(href)),
    groupOf: (href) => groupBy.get(toDraftHref(href)),
    serviceOf: (href) => serviceBy.get(toDraftHref(href)),
    isAllServices: (href) => allHrefs.has(toDraftHref(href)),
    isAnyList: (href) => anyHrefs.has(toDraftHref(href)),
    familiesOf(href) {
      const list = listBy.get(toDraftHref(href))
      return list && coverFamilies(list)
    },
    covers(href, end) {
      const list = listBy.get(toDraftHref(href))
      if (list === undefined) return unknown('ip_list')
      const test = compiled.get(list) ?? compileIpList(list)
      compiled.set(list, test)
      return test(end)
    },
    anyLists,
    allServices,
  }
}

/**
 * Returns a function that lists the labels of a label group, including those of nested groups. It returns undefined for
 * a group that is not known or that contains itself, and if a label or nested group in it is not known.
 */
export function membersBy(
  groupOf: PolicyCatalog['groupOf'],
  labelOf: PolicyCatalog['labelOf'],
): PolicyCatalog['membersOf'] {
  const membersOf = (href: string, path: readonly string[]): readonly Label[] | undefined => {
    const id = toDraftHref(href)
    const group = groupOf(id)
    if (group === undefined || path.includes(id)) return undefined
    const found: (Label | undefined)[] = (group.labels ?? []).map((label) => labelOf(label.href))
    for (const one of group.sub_groups ?? []) found.push(...(membersOf(one.href, [...path, id]) ?? [undefined]))
    return found.includes(undefined) ? undefined : (found as Label[])
  }
  return (href) => membersOf(href, [])
}

/**
 * Returns the snapshot, limited to the given rule sets, with their deny rules. Rule sets whose deny rules cannot be
 * read are listed in `unread`.
 */
export async function withDenyRules(
  { pce, signal }: Source,
  snapshot: PolicySnapshot,
  ruleSets: readonly RuleSet[] = snapshot.ruleSets,
): Promise<PolicySnapshot> {
  const read = await loadDenyRules(pce, ruleSets, signal)
  return {
    ...snapshot,
    ruleSets: read.map(({ ruleSet }) => ruleSet),
    unread: new Map(
      read.flatMap(({ ruleSet: { href }, error }) =>
        error === undefined ? [] : [[toDraftHref(href), error] as const],
      ),
    ),
  }
}

/**
 * Lists the rules of one type that are in force in a snapshot or, in a draft, would be in force once provisioned. A
 * rule is in force if it is enabled, belongs to an enabled rule set, and is not marked for deletion. An enforcement
 * boundary counts as a deny rule without a scope.
 */
export function rulesInForce(
  { ruleSets, boundaries }: Pick<PolicySnapshot, 'ruleSets' | 'boundaries'>,
  type: RuleType,
): PlacedRule[] {
  const placed = ruleSets
    .filter(isInForce)
    .flatMap((ruleSet) => rulesOf(ruleSet, type).map((rule) => ({ scopes: ruleSet.scopes, rule })))
  if (type !== 'deny') return placed
  const everywhere = boundaries.filter(isInForce).map((boundary) => ({
    scopes: [[]],
    rule: { ...boundary, unscoped_consumers: true },
  }))
  return [...placed, ...everywhere]
}

/** Lists those rules of one type in a rule set that are in force. */
export function rulesOf({ rules, deny_rules: denies }: Pick<RuleSet, 'rules' | 'deny_rules'>, type: RuleType) {
  const listed: (Rule | DenyRule)[] =
    type === 'allow' ? (rules ?? []) : (denies ?? []).filter((rule) => denyType(rule) === type)
  return listed.filter(isInForce)
}

/** Lists the rule sets and enforcement boundaries that have a pending change, including changes of their rules. */
export function pendingHolders({ ruleSets, boundaries }: Pick<PolicySnapshot, 'ruleSets' | 'boundaries'>) {
  const changed = ruleSets.filter(
    (set) => isPending(set) || [...(set.rules ?? []), ...(set.deny_rules ?? [])].some(isPending),
  )
  return [...changed, ...boundaries.filter(isPending)]
}

export const isPending = ({ update_type: updateType }: { update_type?: string | null }): boolean =>
  updateType !== null && updateType !== undefined

/** Returns true for an object that is enabled and not marked for deletion. */
export const isInForce = (object: { enabled?: boolean | null; update_type?: string | null }): boolean =>
  object.enabled !== false && object.update_type !== 'delete'

/** Reads the enforcement boundaries; returns an empty list if this PCE does not support them. */
async function readBoundaries({ pce, signal }: Source, policyVersion: Version): Promise<EnforcementBoundary[]> {
  try {
    return (await fetchEvery({ api: pce.enforcementBoundaries, policyVersion, params: {}, signal })).items
  } catch (error) {
    if (error instanceof PceApiError && error.status === 404) return []
    throw error
  }
}

async function orNothing<T>(signal: AbortSignal, read: Promise<{ items: T[] }>): Promise<T[]> {
  try {
    return (await read).items
  } catch (error) {
    if (!(error instanceof PceError) || signal.aborted) throw error
    return []
  }
}
