import type { PceClient } from '../../pce-client/index.js'
import { ToolError } from '../../schemas/errors.js'
import type { Label } from '../../schemas/pce/label.js'
import { loadLabels, type LabelIndex, type ReadContext } from './load-labels.js'
import { nearNames } from '../text/near-names.js'
import { trimBlanks } from '../text/escape-text.js'

/** The forms a label is named in (T3): `"key=value"`, an href, `{key, value}` or `{href}`. */
export type LabelReference = string | { key?: string; value?: string; href?: string }

/** A reference that names no label, with what would have: values of its key (at most 50, likest first), or a sentence. */
export interface UnresolvedLabel {
  ref: string
  valid: string[] | string
}

const MAX_VALID_VALUES = 50
/** Characters of a reference that errors repeat. */
const MAX_SHOWN = 300
const FIELDS = new Set(['key', 'value', 'href'])
const LABEL_HREF = /^\/orgs\/\d+\/labels\/[^/?#\s]+$/

/** True for text that is meant as a label and nothing else. */
export function looksLikeLabel(text: string): boolean {
  return LABEL_HREF.test(text) || text.includes('=')
}

/** Splits `key=value` at the first `=`, both sides trimmed; null without one. A value may contain `=`. */
export function splitLabel(text: string): { key: string; value: string } | null {
  const at = text.indexOf('=')
  return at === -1 ? null : { key: trimBlanks(text.slice(0, at)), value: trimBlanks(text.slice(at + 1)) }
}

/** Whether it has the form of a label reference, which the input schemas leave to be checked here. */
export function isLabelReference(reference: unknown): reference is LabelReference {
  if (typeof reference === 'string') return true
  if (typeof reference !== 'object' || reference === null || Array.isArray(reference)) return false
  return Object.entries(reference).every(([name, inner]) => FIELDS.has(name) && typeof inner === 'string')
}

/** A reference as the caller would write it, for messages. */
export function showLabel(reference: LabelReference): string {
  if (!isLabelReference(reference)) return JSON.stringify(reference).slice(0, MAX_SHOWN)
  const { href, key = '', value = '' } = typeof reference === 'string' ? { href: reference } : reference
  return (href ?? `${key}=${value}`).slice(0, MAX_SHOWN)
}

/** One reference against an index: the label, or why there is none. Exact and case-sensitive; never a partial match. */
export function resolveLabel(index: LabelIndex, reference: LabelReference): Label | UnresolvedLabel {
  const ref = showLabel(reference)
  if (typeof reference === 'string') {
    const text = trimBlanks(reference)
    if (text.startsWith('/')) return index.get(text) ?? { ref, valid: 'No label has this href.' }
    const pair = splitLabel(text)
    return pair === null ? { ref, valid: explainBareText(index, text) } : findPair(index, ref, pair.key, pair.value)
  }
  const { key, value, href } = isLabelReference(reference) ? reference : {}
  if (href !== undefined && key === undefined && value === undefined) {
    return index.get(href) ?? { ref, valid: 'No label has this href.' }
  }
  if (href !== undefined || key === undefined || value === undefined) {
    return { ref, valid: 'Give {key, value} or {href}, not a mixture.' }
  }
  return findPair(index, ref, key, value)
}

export function isUnresolved(result: Label | UnresolvedLabel): result is UnresolvedLabel {
  return 'ref' in result && 'valid' in result
}

function findPair(index: LabelIndex, ref: string, key: string, value: string): Label | UnresolvedLabel {
  const label = index.find(key, value)
  if (label !== undefined) return label
  const values = index.values(key)
  if (values.length > 0) return { ref, valid: nearNames(value, values, MAX_VALID_VALUES) }
  return { ref, valid: `No label has the key "${key}". Keys: ${index.keys().join(', ')}.` }
}

function explainBareText(index: LabelIndex, text: string): string {
  const keys = index.keysOf(text)
  return keys.length > 0
    ? `Write key=value: ${keys.map((key) => `${key}=${text}`).join(' or ')}.`
    : 'Write a label as key=value or as its href.'
}

/**
 * All references, or none: label by label in the caller's order. A miss against a cached list is tried once more against a
 * fresh one. `fail` makes the error of the caller from everything that did not resolve.
 */
export async function resolveLabels(
  pce: PceClient,
  references: readonly LabelReference[],
  context: ReadContext,
  fail: (unresolved: UnresolvedLabel[]) => ToolError,
): Promise<Label[]> {
  if (references.length === 0) return []
  const attempt = (index: LabelIndex) => references.map((reference) => resolveLabel(index, reference))
  let results = attempt(await loadLabels(pce, context))
  if (results.some(isUnresolved)) results = attempt(await loadLabels(pce, context, 'fresh'))
  const unresolved = results.filter(isUnresolved)
  if (unresolved.length > 0) throw fail(unresolved)
  return results.filter((result): result is Label => !isUnresolved(result))
}

/** The error of a filter that names something which does not exist: leaving it out would widen the answer. */
export function unresolvedFilter(unresolved: readonly UnresolvedLabel[]): ToolError {
  return new ToolError(
    'unresolved_label_filter',
    `No match for: ${unresolved.map(({ ref }) => ref).join(', ')}. Nothing was queried, because leaving a filter out would widen the answer.`,
    {
      unresolved: unresolved.map(({ ref }) => ref),
      valid_values: Object.fromEntries(unresolved.map(({ ref, valid }) => [ref, valid])),
    },
    { hint: 'Values are exact and case-sensitive; get-labels lists them.' },
  )
}
