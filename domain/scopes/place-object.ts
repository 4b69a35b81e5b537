import type { Actor, ScopeEntry } from '../../schemas/pce/rule-set.js'
import type { Place, ReachingRule, ScopeRule } from './place.js'
import type { Land, Territory } from './territory.js'

export const INSIDE: Place = { is: 'inside' }
/** The place of an object that the PCE does not show. It counts as outside. */
export const UNREADABLE: Place = {
  is: 'outside',
  rule: 'not_readable',
  why: 'cannot be read, so that its place is not known',
}
export const outside = (rule: ScopeRule, why: string): Place => ({ is: 'outside', rule, why })

/** Returns the first of the places that is not inside; inside if there is none. */
export const firstOutside = (places: readonly Place[]): Place => places.find(({ is }) => is !== 'inside') ?? INSIDE

/** An object that a write would change, and whether it is inside the caller's scopes. */
export interface PlacedObject {
  readonly href?: string
  /** The path segment that names the object's type. */
  readonly kind: string
  readonly name?: string
  readonly place: Place
}

/**
 * Determines whether an object with these labels is inside. It is if the labels meet all conditions of at least one
 * scope.
 */
export function placeLabels(labels: readonly string[], territory: Territory, rule: ScopeRule): Place {
  const shielded = labels.find((href) => territory.shield?.has(href))
  if (shielded !== undefined)
    return outside('protected_label', `has the label ${territory.nameOf(shielded)}, which is protected`)
  if (territory.everything || territory.lands.some((land) => holds(land, labels))) return INSIDE
  const said = labels.length === 0 ? 'has no labels' : `has the labels ${labels.map(territory.nameOf).join(', ')}`
  return outside(rule, `${said}, which are within none of your scopes`)
}

const holds = ({ labels }: Land, found: readonly string[]): boolean =>
  [...labels.values()].every((wanted) => found.some((href) => wanted.has(href)))

/**
 * Determines whether the scopes of a rule set are inside. They are if each is at least as narrow as one of the caller's
 * scopes. Also returns the caller's scopes that contain them, as one list for each scope of the rule set.
 */
export function placeScopes(
  scopes: readonly (readonly ScopeEntry[])[],
  territory: Territory,
): { place: Place; lands: readonly (readonly Land[])[] } {
  const shielded = findShielded(scopes.flat(), territory)
  if (shielded !== undefined)
    return { place: outside('protected_label', `has the protected label ${shielded} in its scope`), lands: [] }
  const lands = scopes.map((scope) => territory.lands.filter((land) => isWithin(scope, land, territory)))
  if (territory.everything) return { place: INSIDE, lands }
  if (scopes.length === 0) return { place: outside('rule_set_scope', 'has no scope'), lands }
  const at = lands.findIndex((found) => found.length === 0)
  if (at === -1) return { place: INSIDE, lands }
  const said = sayScope(scopes[at]!, territory)
  return { place: outside('rule_set_scope', `has the scope ${said}, which is within none of your scopes`), lands }
}

/**
 * Returns true if one of the caller's scopes (`land`) contains everything in this scope of a rule set. For each key of
 * the land, the rule set's scope must name labels with this key, all of them labels of the land. Exclusions only make a
 * scope narrower.
 */
function isWithin(scope: readonly ScopeEntry[], { labels }: Land, territory: Territory): boolean {
  const named = new Map<string, string[]>()
  for (const { label, label_group: group, exclusion } of scope) {
    if (exclusion === true) continue
    const hrefs = label === undefined ? [...(territory.membersOf(group?.href ?? '') ?? [])] : [label.href]
    for (const href of hrefs) {
      const key = territory.keyOf(href)
      // An unknown label may have any key, so nothing is certain about the scope.
      if (key === undefined) return false
      named.set(key, [...(named.get(key) ?? []), href])
    }
  }
  return [...labels].every(([key, wanted]) => {
    const found = named.get(key) ?? []
    return found.length > 0 && found.every((href) => wanted.has(href))
  })
}

/** Returns the protected label that the entries name, directly or with a label group, and do not exclude. */
export function findShielded(
  entries: readonly Pick<ScopeEntry, 'label' | 'label_group' | 'exclusion'>[],
  { shield, membersOf, nameOf }: Territory,
): string | undefined {
  if (shield === undefined) return undefined
  const named = entries.filter(({ exclusion }) => exclusion !== true)
  const found = named
    .flatMap(({ label, label_group: group }) => [
      ...(label === undefined ? [] : [label.href]),
      ...(group === undefined ? [] : (membersOf(group.href) ?? [])),
    ])
    .find((href) => shield.has(href))
  return found === undefined ? undefined : nameOf(found)
}

function sayScope(scope: readonly ScopeEntry[], { nameOf }: Territory): string {
  if (scope.length === 0) return 'of everything'
  return scope
    .map(({ label, label_group: group, exclusion }) => {
      const name = label === undefined ? (group?.name ?? group?.href ?? 'unknown') : nameOf(label.href)
      return exclusion === true ? `!${name}` : name
    })
    .join(', ')
}

/** What is known about the objects that rules name on their sides. */
export interface Ends {
  /** The labels of a workload; undefined if it could not be read. */
  readonly labelsOf: (workload: string) => readonly string[] | undefined
  /** Whether the virtual service and all workloads bound to it are inside; undefined if it could not be read. */
  readonly virtualService: (href: string) => Place | undefined
  /** Whether everything bound to virtual services with labels inside is inside too. */
  readonly virtualServices: Place
}

/**
 * Determines whether a rule is inside, given that the scopes of its rule set are. Labels in it select only within these
 * scopes, but workloads and virtual services that it names must be inside themselves. Its sources may be outside the
 * scopes if the rule says so (`unscoped_consumers`).
 */
export function placeRule(
  rule: ReachingRule,
  lands: readonly (readonly Land[])[],
  ends: Ends,
  territory: Territory,
): Place {
  if (territory.shield !== undefined) return placeShielded(rule, ends, territory)
  if (territory.everything) return INSIDE
  const isExtra = rule.unscoped_consumers === true
  if (isExtra && !lands.every((found) => found.some(({ extra }) => extra)))
    return outside('extra_scope', 'admits sources outside of its scope, which your scopes do not allow')
  const { providers = [], consumers = [], resolve_labels_as: resolved } = rule
  const isAnyAddress = rule.all_ips_except_for_in_providers === true
  if (isExtra && (isAnyAddress || providers.some(({ ip_list: list }) => list !== undefined)))
    return outside('rule_ends', 'has addresses as destinations of sources outside of its scope')
  const sides: readonly [readonly Actor[], boolean][] = [
    [providers, false],
    [consumers, isExtra],
  ]
  const virtual = [...(resolved?.providers ?? []), ...(isExtra ? [] : (resolved?.consumers ?? []))]
  return firstOutside([
    ...sides.flatMap(([actors, mayBeOutside]) =>
      mayBeOutside ? [] : actors.map((actor) => placeEnd(actor, ends, territory)),
    ),
    ...(virtual.includes('virtual_services') ? [ends.virtualServices] : []),
  ])
}

/** Determines whether a rule names a protected label, workload or virtual service. */
function placeShielded(
  { providers = [], consumers = [], resolve_labels_as: resolved }: ReachingRule,
  ends: Ends,
  territory: Territory,
): Place {
  const actors = [...providers, ...consumers]
  const shielded = findShielded(actors, territory)
  if (shielded !== undefined) return outside('protected_label', `names the protected label ${shielded}`)
  const virtual = [...(resolved?.providers ?? []), ...(resolved?.consumers ?? [])].includes('virtual_services')
  return firstOutside([
    ...actors.map((actor) => placeEnd(actor, ends, territory)),
    ...(virtual ? [ends.virtualServices] : []),
  ])
}

function placeEnd(actor: Actor, ends: Ends, territory: Territory): Place {
  // Excluded labels only make a rule narrower, so they do not count.
  if (actor.exclusion === true) return INSIDE
  if (actor.workload !== undefined) {
    const { href, name } = actor.workload
    const labels = ends.labelsOf(href)
    if (labels === undefined) return outside('not_readable', `names the workload ${name ?? href}, which cannot be read`)
    const place = placeLabels(labels, territory, 'rule_ends')
    return place.is === 'inside' ? place : { ...place, why: `names the workload ${name ?? href}, which ${place.why}` }
  }
  if (actor.virtual_service !== undefined) {
    const { href, name } = actor.virtual_service
    const place = ends.virtualService(href)
    if (place === undefined)
      return outside('not_readable', `names the virtual service ${name ?? href}, which cannot be read`)
    return place.is === 'inside'
      ? place
      : { ...place, why: `names the virtual service ${name ?? href}, which ${place.why}` }
  }
  if (actor.actors === 'ams') return INSIDE
  const isLabel = actor.label !== undefined || actor.label_group !== undefined || actor.label_dimension !== undefined
  if (isLabel || actor.ip_list !== undefined) return INSIDE
  return outside('rule_ends', `names ${Object.keys(actor).join(', ') || 'nothing'} as an end, whose reach is not known`)
}

/** Types of objects that affect workloads only through the rules that use them. */
const USED_BY_RULES: ReadonlySet<string> = new Set([
  'ip_lists',
  'services',
  'labels',
  'label_groups',
  'label_dimensions',
])

/** Returns the place of an object that belongs to no scope, such as an IP list. */
export function placeUnscoped({ everything, shield }: Territory, kind: string, what = nounOf(kind)): Place {
  if (shield !== undefined && !USED_BY_RULES.has(kind))
    return outside('not_judged', `is ${what}, and whether it concerns protected workloads is not known`)
  if (everything) return INSIDE
  return {
    is: 'no_scope',
    rule: 'no_scope',
    why: `is ${what}, which has no scope and is for callers whose scope is "*"`,
  }
}

/**
 * Returns the place of a new object that belongs to no scope. Creating one may be allowed even where changing one is
 * not.
 */
export const placeCreated = (territory: Territory, kind: string): Place =>
  territory.create.has(kind) ? INSIDE : placeUnscoped(territory, kind)

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
  restore: 'a whole policy version',
}
/** Returns the noun for an object without a scope, by the path segment of its type. */
export const nounOf = (kind: string) => NOUNS[kind] ?? `an object of the type ${kind}`
