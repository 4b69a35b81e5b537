import type { ScopeEntry } from '../../../schemas/pce/rule-set.js'
import type { PolicyContents } from '../load-contents.js'
import type { RuleInForce } from '../rule-in-force.js'

/** The labels that an entry stands for; undefined where that is not known. */
export function resolve({ label, label_group: group }: ScopeEntry, contents: PolicyContents) {
  if (label !== undefined) {
    const key = label.key ?? contents.keyOf(label.href)
    return key === undefined ? undefined : { key, labels: [label.href] }
  }
  if (group === undefined) return undefined
  const members = contents.membersOf(group.href)
  const key = members?.[0]?.key ?? group.key ?? contents.keyOf(group.href)
  return members === undefined || key === undefined ? undefined : { key, labels: members.map(({ href }) => href) }
}

/** The label keys that decide whether a rule applies. */
export function keysOf({ rule, scopes, contents }: RuleInForce): string[] {
  return [...scopes.flat(), ...rule.providers, ...rule.consumers].flatMap(
    (entry) => resolve(entry, contents)?.key ?? [],
  )
}
