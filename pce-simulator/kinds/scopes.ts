import type { ScopeEntry } from '../../schemas/pce/rule-set.js'
import { invalidInput } from '../refusal.js'
import { requireDraft, requireLabel } from '../validate/check-references.js'
import type { World } from '../world.js'

/**
 * Checks the scopes of a rule set and returns their stored form. Each entry of a scope must be exactly one of a label
 * and a label group, and a scope may have at most one entry for each label key.
 */
export function readScopes(world: World, scopes: ScopeEntry[][]): ScopeEntry[][] {
  return scopes.map((scope) => {
    const keys = new Set<string>()
    return scope.map(({ label, label_group, exclusion }) => {
      if ((label === undefined) === (label_group === undefined)) {
        throw invalidInput('A scope entry must have exactly one of label and label_group')
      }
      const key = String(
        label ? requireLabel(world, label.href).key : requireDraft(world, 'label_groups', label_group!.href).draft.key,
      )
      if (keys.has(key)) throw invalidInput(`A scope can have only one entry with the key ${key}`)
      keys.add(key)
      return {
        ...(label ? { label: { href: label.href } } : { label_group: { href: label_group!.href } }),
        ...(exclusion === undefined ? {} : { exclusion }),
      }
    })
  })
}

/** Renders scopes with the current names of the labels and groups that they refer to. */
export function renderScopes(world: World, scopes: ScopeEntry[][]): unknown {
  return scopes.map((scope) =>
    scope.map(({ label, label_group, ...rest }) => {
      if (label) {
        const target = world.labels.get(label.href)
        return { label: { href: label.href, key: target?.key, value: target?.value }, ...rest }
      }
      const target = world.policy.get('label_groups', label_group!.href)?.draft
      return { label_group: { href: label_group!.href, key: target?.key, name: target?.name }, ...rest }
    }),
  )
}
