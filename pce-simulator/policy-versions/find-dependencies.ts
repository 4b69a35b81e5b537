import type { PolicyDependency } from '../../schemas/pce/policy.js'
import { CHANGE_SUBSET_TYPES } from '../../schemas/pce/words.js'
import { kindOf } from '../kinds/index.js'
import { referencesOf } from '../kinds/find-usage.js'
import type { Entry } from '../store/policy-store.js'
import type { World } from '../world.js'

/** Maps each object that a set of changes must include to the objects that need it. */
type Needs = Map<Entry, Set<Entry>>

/**
 * Finds the objects that must be provisioned together with the chosen drafts. These are the objects without an active
 * version that the chosen drafts use, directly or indirectly (P35).
 */
export function findCommitNeeds(world: World, chosen: readonly Entry[]): Needs {
  return close(chosen, (entry) => (entry.updateType === 'delete' ? [] : unprovisionedUsedBy(world, entry)))
}

/**
 * Finds the drafts that must be reverted together with the chosen ones. These are the drafts that use an object which
 * the revert would remove (P27).
 */
export function findRevertNeeds(world: World, chosen: readonly Entry[]): Needs {
  const everything = CHANGE_SUBSET_TYPES.flatMap((type) => world.policy.entries(type))
  return close(chosen, (entry) => {
    if (entry.active !== null) return []
    return everything.filter((other) => other !== entry && referencesOf(other.draft).has(entry.draft.href))
  })
}

export function describeNeeds(needs: Needs): PolicyDependency[] {
  return [...needs].map(([entry, users]) => {
    const required_by: PolicyDependency['required_by'] = {}
    for (const user of users) (required_by[user.type] ??= []).push({ href: user.draft.href })
    return { dependency: { [entry.type]: { href: entry.draft.href } }, required_by }
  })
}

function close(chosen: readonly Entry[], needsOf: (entry: Entry) => Entry[]): Needs {
  const taken = new Set(chosen)
  const needs: Needs = new Map()
  const queue = [...chosen]
  for (let entry = queue.shift(); entry; entry = queue.shift()) {
    for (const needed of needsOf(entry)) {
      if (taken.has(needed)) continue
      const users = needs.get(needed)
      if (users) users.add(entry)
      else {
        needs.set(needed, new Set([entry]))
        queue.push(needed)
      }
    }
  }
  return needs
}

function unprovisionedUsedBy(world: World, entry: Entry): Entry[] {
  const settled = kindOf(entry.type).settle?.(entry.draft) ?? entry.draft
  const used = referencesOf(settled)
  return world.policy
    .pending()
    .filter((other) => other.active === null && other !== entry && used.has(other.draft.href))
}
