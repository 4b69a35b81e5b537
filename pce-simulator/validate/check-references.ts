import type { ChangeSubsetType } from '../../schemas/pce/words.js'
import type { Label } from '../../schemas/pce/label.js'
import type { PceObject } from '../../schemas/pce/reference.js'
import { invalidUri, notAcceptable } from '../refusal.js'
import type { Entry } from '../store/policy-store.js'
import { UNCERTAIN } from '../uncertain.js'
import type { World } from '../world.js'

/** Returns the label with this href. Throws 406 invalid_uri if it does not exist or is deleted. */
export function requireLabel(world: World, href: string): Label {
  const label = world.labels.get(href)
  if (!label || label.deleted === true) throw invalidUri(href)
  return label as Label
}

export function requireWorkload(world: World, href: string): PceObject {
  const workload = world.workloads.get(href)
  if (!workload || workload.deleted === true) throw invalidUri(href)
  return workload
}

/**
 * Returns the entry with this draft href. Throws 406 invalid_uri if there is no such object or if it is pending
 * deletion, because rules, scopes and groups cannot refer to it then.
 */
export function requireDraft(world: World, type: ChangeSubsetType, href: string): Entry {
  const entry = world.policy.get(type, href)
  if (!entry || entry.updateType === 'delete') throw invalidUri(href)
  return entry
}

/** Works like `requireDraft`, but also accepts an active href if the object has an active version. */
export function requireReferenced(world: World, type: ChangeSubsetType, href: string): Entry {
  const draft = href.replace('/sec_policy/active/', '/sec_policy/draft/')
  if (draft === href || !UNCERTAIN.draftsTakeActiveReferences) return requireDraft(world, type, href)
  if (world.policy.get(type, draft)?.active === null) throw invalidUri(href)
  return requireDraft(world, type, draft)
}

/**
 * Checks that the labels exist and that at most one of them has each key, as on workloads and pairing profiles (P16).
 */
export function requireLabels(world: World, references: readonly { href: string }[]): { href: string }[] {
  const keys = new Set<string>()
  return references.map(({ href }) => {
    const { key } = requireLabel(world, href)
    if (keys.has(key)) {
      throw notAcceptable(UNCERTAIN.refusedLabelToken, `Only one label with the key ${key} can be assigned`)
    }
    keys.add(key)
    return { href }
  })
}

/** Requires that no other object of the kind has the same external data (P31). */
export function requireFreeExternalData(
  others: Iterable<PceObject>,
  body: { external_data_set?: unknown; external_data_reference?: unknown },
): void {
  const { external_data_set: set, external_data_reference: reference } = body
  if (typeof set !== 'string' || typeof reference !== 'string') return
  for (const other of others) {
    if (other.external_data_set === set && other.external_data_reference === reference) {
      throw notAcceptable(
        UNCERTAIN.duplicateExternalDataToken,
        'external_data_set and external_data_reference are used by another object',
      )
    }
  }
}
