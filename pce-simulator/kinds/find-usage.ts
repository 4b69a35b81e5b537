import type { ChangeSubsetType } from '../../schemas/pce/words.js'
import type { PceObject, VersionedObject } from '../../schemas/pce/reference.js'
import type { Entry } from '../store/policy-store.js'
import type { World } from '../world.js'

/** Collects every href inside a value, at any depth, including the href of the value itself. */
export function collectHrefs(value: unknown, found = new Set<string>()): Set<string> {
  if (Array.isArray(value)) for (const item of value) collectHrefs(item, found)
  else if (typeof value === 'object' && value !== null) {
    for (const [key, inner] of Object.entries(value)) {
      if (key === 'href' && typeof inner === 'string') found.add(inner)
      else collectHrefs(inner, found)
    }
  }
  return found
}

/**
 * Collects the hrefs to which an object or its rules refer. The object's own href and those of its authors are left
 * out.
 */
export function referencesOf(object: PceObject): Set<string> {
  const { href: _own, created_by: _creator, updated_by: _updater, deleted_by: _remover, ...fields } = object
  return collectHrefs(fields)
}

/**
 * Returns the versions of an object that can use other objects: its draft and, until a change is provisioned, also the
 * active version (P31).
 */
export function bodiesOf(entry: Entry): VersionedObject[] {
  return entry.active === null || entry.active === entry.draft ? [entry.draft] : [entry.draft, entry.active]
}

/** The objects that use a given object, grouped by type. */
export interface Usage {
  ruleSets: Entry[]
  labelGroups: Entry[]
  boundaries: Entry[]
  virtualServices: Entry[]
  virtualServers: Entry[]
  firewallSettings: Entry[]
}

const USERS: Readonly<Record<keyof Usage, ChangeSubsetType>> = {
  ruleSets: 'rule_sets',
  labelGroups: 'label_groups',
  boundaries: 'enforcement_boundaries',
  virtualServices: 'virtual_services',
  virtualServers: 'virtual_servers',
  firewallSettings: 'firewall_settings',
}

/** Finds everything that uses an object in the draft or the active policy. */
export function findPolicyUsage(world: World, href: string): Usage {
  const usersOf = (type: ChangeSubsetType) =>
    world.policy.entries(type).filter((entry) => {
      return entry.draft.href !== href && bodiesOf(entry).some((body) => allReferencesOf(body).has(href))
    })
  return Object.fromEntries(Object.entries(USERS).map(([name, type]) => [name, usersOf(type)])) as unknown as Usage
}

export function isInUse(usage: Usage): boolean {
  return Object.values(usage as unknown as Record<string, Entry[]>).some((entries) => entries.length > 0)
}

export type PartOf = (body: VersionedObject) => unknown

/**
 * Returns true if the draft or active version of one of the entries refers to the object `href`. Only the part of each
 * version that `part` returns is searched.
 */
export function usedWithin(entries: readonly Entry[], href: string, part: PartOf): boolean {
  return entries.some((entry) => bodiesOf(entry).some((body) => collectHrefs(part(body)).has(href)))
}

/**
 * Caches the hrefs to which each draft or active version of an object refers. This is safe because versions are never
 * modified in place.
 */
const references = new WeakMap<VersionedObject, ReadonlySet<string>>()

function allReferencesOf(body: VersionedObject): ReadonlySet<string> {
  const known = references.get(body) ?? referencesOf(body)
  references.set(body, known)
  return known
}

/**
 * Caches, for each list of objects, the hrefs of all labels that these objects have. This is safe because lists of live
 * objects are never modified in place.
 */
const labelsInUse = new WeakMap<readonly PceObject[], ReadonlySet<string>>()

export function labelsBorneBy(objects: readonly PceObject[]): ReadonlySet<string> {
  let hrefs = labelsInUse.get(objects)
  if (hrefs === undefined) {
    const found = new Set<string>()
    for (const { labels } of objects) collectHrefs(labels, found)
    labelsInUse.set(objects, (hrefs = found))
  }
  return hrefs
}
