import type { ScopeEntry } from '../../../schemas/pce/rule-set.js'
import type { Box } from '../boxes.js'
import type { PolicyContents } from '../load-contents.js'
import type { RuleInForce } from '../rule-in-force.js'
import { type Bit, NONE } from './bits.js'
import { textOf } from './comparable-text.js'
import type { Ambiguity, Reading } from './readings.js'

/** Creates the dimensions of labels, one for each key. A workload has at most one label with each key. */
export function createLabels(rules: readonly RuleInForce[], bit: Bit, ambiguities: Set<Ambiguity>) {
  const keys = new Set(rules.flatMap(keysOf))
  const labelBit = (href: string, key: string) => bit(`label ${key}`, href)

  /**
   * Returns the box of the label sets that the entries of a scope, or of one side of a rule, select; null if no label
   * set can satisfy the entries. Labels with the same key are alternatives, labels with different keys must all match,
   * and exclusions remove labels.
   */
  const boxOf = (entries: readonly ScopeEntry[], contents: PolicyContents, reading: Reading): Box | null => {
    const wanted = new Map<string, bigint>()
    const unwanted = new Map<string, bigint>()
    const box = new Map<string, bigint>()
    for (const entry of entries) {
      const members = resolveLabels(entry, contents)
      if (members === undefined) {
        box.set(`condition ${textOf(entry, contents)}`, 2n)
        continue
      }
      const mask = members.labels.reduce((all, href) => all | labelBit(href, members.key), 0n)
      if (entry.exclusion === true) {
        ambiguities.add('unlabelled')
        unwanted.set(members.key, (unwanted.get(members.key) ?? (reading.has('unlabelled') ? NONE : 0n)) | mask)
      } else {
        if (members.labels.length === 0) ambiguities.add('empty_group')
        if (members.labels.length > 0 || !reading.has('empty_group'))
          wanted.set(members.key, (wanted.get(members.key) ?? 0n) | mask)
      }
    }
    for (const key of new Set([...wanted.keys(), ...unwanted.keys()])) {
      const mask = (wanted.get(key) ?? -1n) & ~(unwanted.get(key) ?? 0n)
      if (mask === 0n) return null
      box.set(`label ${key}`, mask)
    }
    return box
  }

  /**
   * Returns the box of one workload, which contains the workload's labels, or every combination of labels if it was not
   * read.
   */
  const boxOfWorkload = (href: string, contents: PolicyContents): Box => {
    const box = new Map<string, bigint>()
    const own = contents.labelsOf(href)
    if (own === undefined) return box
    for (const key of keys) {
      const label = own.find((one) => (one.key ?? contents.keyOf(one.href)) === key)
      box.set(`label ${key}`, label === undefined ? NONE : labelBit(label.href, key))
    }
    return box
  }

  return { boxOf, boxOfWorkload }
}

/** Returns the labels for which an entry stands, with their key; undefined if they are not known. */
export function resolveLabels({ label, label_group: group }: ScopeEntry, contents: PolicyContents) {
  if (label !== undefined) {
    const key = label.key ?? contents.keyOf(label.href)
    return key === undefined ? undefined : { key, labels: [label.href] }
  }
  if (group === undefined) return undefined
  const members = contents.membersOf(group.href)
  const key = members?.[0]?.key ?? group.key ?? contents.keyOf(group.href)
  return members === undefined || key === undefined ? undefined : { key, labels: members.map(({ href }) => href) }
}

/** Lists the keys of the labels that the scopes, providers and consumers of a rule name. */
function keysOf({ rule, scopes, contents }: RuleInForce): string[] {
  return [...scopes.flat(), ...rule.providers, ...rule.consumers].flatMap(
    (entry) => resolveLabels(entry, contents)?.key ?? [],
  )
}
