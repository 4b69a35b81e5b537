import type { PceObject, VersionedObject } from '../../../schemas/pce/reference.js'
import type { Entry } from '../store/policy-store.js'
import type { World } from '../world.js'

/** Every href inside a value, at any depth, its own included. */
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

/** What an object points at; its own href and those of its rules and of users are no such thing. */
export function referencesOf(object: PceObject): Set<string> {
  const { href: _own, created_by: _creator, updated_by: _updater, deleted_by: _remover, ...fields } = object
  return collectHrefs(fields)
}

/** The versions of an entry that still count: its draft and, until the change is provisioned, the active one (pce-api f.3). */
export function bodiesOf(entry: Entry): VersionedObject[] {
  return entry.active === null || entry.active === entry.draft ? [entry.draft] : [entry.draft, entry.active]
}

export interface Usage {
  ruleSets: Entry[]
  labelGroups: Entry[]
  boundaries: Entry[]
}

/** Who uses an object, in the draft or in the active policy. */
export function findPolicyUsage(world: World, href: string): Usage {
  const users = (type: 'rule_sets' | 'label_groups' | 'enforcement_boundaries') =>
    world.policy.entries(type).filter((entry) => {
      return entry.draft.href !== href && bodiesOf(entry).some((body) => referencesOf(body).has(href))
    })
  return {
    ruleSets: users('rule_sets'),
    labelGroups: users('label_groups'),
    boundaries: users('enforcement_boundaries'),
  }
}
