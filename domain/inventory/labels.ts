import type { PceClient } from '../../pce-client/index.js'
import { ToolError } from '../../schemas/errors.js'
import type { Label, LabelRef } from '../../schemas/pce/label.js'
import type { ToolContext } from '../call.js'
import { likestNames, nearNames } from '../text/compare-texts.js'
import { quote, trimBlanks } from '../text/escape-text.js'
import { pickEvery } from './fetch-every.js'

/** All labels of an organisation, indexed for lookup. */
export interface LabelIndex {
  get(href: string): Label | undefined
  /** Finds a label by key and value; both are compared exactly, including case. */
  find(key: string, value: string): Label | undefined
  /** Lists the labels whose key and value equal the given ones if case and spaces are ignored. */
  lookAlikes(key: string, value: string): Label[]
  /** Lists the values of a key in the PCE's order; empty for an unknown key. */
  values(key: string): string[]
  keys(): string[]
  /** Lists the keys that have a label with exactly this value. */
  keysOf(value: string): string[]
}

/** The age in milliseconds from which a cached label list is read again (T3). */
const MAX_AGE_MS = 60_000

/** The cached labels, kept separately for each PCE client so that no caller ever sees the labels of another PCE. */
const cache = new WeakMap<PceClient, { index: LabelIndex; loadedAt: number }>()

/** The parts of a call's context that are needed for reading from the PCE. */
export type ReadContext = Pick<ToolContext, 'now' | 'signal'>

/**
 * How fresh a label list must be. `fresh` reads it from the PCE even if a recent list is cached. This is needed before
 * a write: a cached label may have been renamed meanwhile, and the wrong label would be written.
 */
type Freshness = 'recent' | 'fresh'

/**
 * Returns the index of the labels on this client's PCE. The index is at most 60 s old.
 * @throws the errors of the PCE client.
 */
export async function loadLabels(
  pce: PceClient,
  context: ReadContext,
  freshness: Freshness = 'recent',
): Promise<LabelIndex> {
  const cached = cache.get(pce)
  if (freshness === 'recent' && cached !== undefined && context.now() - cached.loadedAt < MAX_AGE_MS)
    return cached.index
  const loadedAt = context.now()
  const query = { api: pce.labels, params: {}, signal: context.signal }
  const index = indexLabels(await pickEvery(query, (label) => label))
  cache.set(pce, { index, loadedAt })
  return index
}

export interface LabelOutput {
  href: string
  key: string
  value: string
}

/** Returns a label in the form that answers use. */
export function showLabel({ href, key, value }: LabelOutput): LabelOutput {
  return { href, key, value }
}

/**
 * Drops the cached labels. It must be called after every write of a label, even a failed one, because a failed write
 * may have been carried out nevertheless.
 */
export function forgetLabels(pce: PceClient): void {
  cache.delete(pce)
}

/** Builds the index of labels. Deleted labels are left out, since nothing can refer to them any more. */
export function indexLabels(labels: readonly Label[]): LabelIndex {
  const live = labels.filter(({ deleted }) => deleted !== true)
  const byHref = new Map(live.map((label) => [label.href, label]))
  const byKey = new Map<string, Map<string, Label>>()
  for (const label of live) {
    const values = byKey.get(label.key) ?? new Map<string, Label>()
    byKey.set(label.key, values.set(label.value, label))
  }
  return {
    get: (href) => byHref.get(href),
    find: (key, value) => byKey.get(key)?.get(value),
    lookAlikes: (key, value) =>
      live.filter((label) => (label.key !== key || label.value !== value) && looksTheSame(label, key, value)),
    values: (key) => [...(byKey.get(key)?.keys() ?? [])],
    keys: () => [...byKey.keys()].sort(),
    keysOf: (value) => [...byKey].filter(([, values]) => values.has(value)).map(([key]) => key),
  }
}

function looksTheSame(label: Label, key: string, value: string): boolean {
  return fold(label.key) === fold(key) && fold(label.value) === fold(value)
}

/** Returns the string in lower case and without spaces, because people overlook differences in case and spacing. */
const fold = (text: string): string => text.replace(/\s+/gu, '').toLowerCase()

/** A reference to a label (T3): `"key=value"`, an href, `{key, value}`, `{href}`, or all three fields as in answers. */
export type LabelReference = string | { key?: string; value?: string; href?: string }

/**
 * A reference that matches no label. `valid` lists the values that exist for the reference's key, most similar first:
 * at most 50, or 10 if one of them is similar. If the reference itself is malformed, `valid` is a sentence about the
 * mistake. `valid` may be computed only when it is read, because most callers only need to know that there is no such
 * label.
 */
export interface UnresolvedLabel {
  readonly ref: string
  readonly valid: string[] | string
}

const MAX_VALID_VALUES = 50
/** Maximum number of values that an error lists if one of them is similar to the wrong value. */
const MOST_BESIDE_NEAR = 10
/**
 * Maximum number of wrong references for which an error gives the reason. If there are more, they usually have the same
 * reason.
 */
const MOST_EXPLAINED = 20
/** Maximum number of wrong references for which the error message itself also gives advice. */
const MOST_ADVISED = 5
/** Maximum number of characters of a reference quoted in an error. */
const MAX_SHOWN = 300
const FIELDS = new Set(['key', 'value', 'href'])
const LABEL_HREF = /^\/orgs\/\d+\/labels\/[^/?#\s]+$/

/** Returns true for a string that can only be meant as a reference to a label. */
export function looksLikeLabel(text: string): boolean {
  return LABEL_HREF.test(text) || text.includes('=')
}

/**
 * Splits `key=value` at the first `=` and trims both parts; a value may contain `=`. Returns null if there is no `=`.
 */
export function splitLabel(text: string): { key: string; value: string } | null {
  const at = text.indexOf('=')
  return at === -1 ? null : { key: trimBlanks(text.slice(0, at)), value: trimBlanks(text.slice(at + 1)) }
}

/** Returns true if a value has the form of a label reference. The input schemas do not check this. */
export function isLabelReference(reference: unknown): reference is LabelReference {
  if (typeof reference === 'string') return true
  if (typeof reference !== 'object' || reference === null || Array.isArray(reference)) return false
  return Object.entries(reference).every(([name, inner]) => FIELDS.has(name) && typeof inner === 'string')
}

/** Formats a label reference for messages, in a form that callers can use in a call. */
export function describeReference(reference: LabelReference): string {
  if (!isLabelReference(reference)) return JSON.stringify(reference).slice(0, MAX_SHOWN)
  const { href, key = '', value = '' } = typeof reference === 'string' ? { href: reference } : reference
  return (href ?? `${key}=${value}`).slice(0, MAX_SHOWN)
}

/**
 * Looks up one reference in an index. Returns its label, or the reason why no label matches. The comparison is exact
 * and case-sensitive, never partial.
 */
export function resolveLabel(index: LabelIndex, reference: LabelReference): Label | UnresolvedLabel {
  const ref = describeReference(reference)
  if (typeof reference === 'string') {
    const text = trimBlanks(reference)
    if (text.startsWith('/')) return index.get(text) ?? { ref, valid: 'No label has this href.' }
    const pair = splitLabel(text)
    return pair === null ? { ref, valid: explainBareText(index, text) } : findPair(index, ref, pair.key, pair.value)
  }
  const { key, value, href } = isLabelReference(reference) ? reference : {}
  if (href !== undefined) {
    // Labels in answers have key, value and href, so clients send all three back. If these contradict each other, this
    // server must not guess which one is meant.
    const label = index.get(href)
    if (label === undefined) return { ref, valid: 'No label has this href.' }
    const agrees = (key ?? label.key) === label.key && (value ?? label.value) === label.value
    return agrees
      ? label
      : { ref, valid: `This is ${quote(`${label.key}=${label.value}`)}; give {key, value} or {href}.` }
  }
  if (key === undefined || value === undefined) return { ref, valid: 'Give {key, value} or {href}.' }
  return findPair(index, ref, key, value)
}

export function isUnresolved(result: Label | UnresolvedLabel): result is UnresolvedLabel {
  return 'ref' in result && 'valid' in result
}

function findPair(index: LabelIndex, ref: string, key: string, value: string): Label | UnresolvedLabel {
  const label = index.find(key, value)
  if (label !== undefined) return label
  const values = index.values(key)
  if (values.length > 0) {
    return {
      ref,
      get valid() {
        const likest = likestNames(value, values, MAX_VALID_VALUES)
        // If a similar value exists, it is probably among the first values, and a complete list would only hide it.
        return nearNames(value, likest, 1).length > 0 ? likest.slice(0, MOST_BESIDE_NEAR) : likest
      },
    }
  }
  return { ref, valid: `No label has the key ${quote(key)}. Keys: ${index.keys().map(quote).join(', ')}.` }
}

function explainBareText(index: LabelIndex, text: string): string {
  const keys = index.keysOf(text)
  if (keys.length > 0) return `Write key=value: ${orList(keys.map((key) => `${key}=${text}`))}.`
  const near = nearNames(text, new Set(index.keys().flatMap((key) => index.values(key))), MOST_MEANT)
  const labels = near.flatMap((value) => index.keysOf(value).map((key) => `${key}=${value}`))
  const meant = labels.length === 0 ? '.' : `; did you mean ${orList(labels.slice(0, MOST_MEANT))}?`
  return `Write a label as key=value or as its href${meant}`
}

const orList = (texts: readonly string[]) => texts.map(quote).join(' or ')

/** Maximum number of names suggested in a "did you mean" question. */
const MOST_MEANT = 3

/** Returns a sentence that suggests what the caller may have meant, or an empty string if nothing is similar. */
export function adviseOn({ ref, valid }: UnresolvedLabel): string {
  if (typeof valid === 'string') return valid
  const pair = splitLabel(ref)
  // If the reference is `key=value`, `valid` contains only values, so the key is put before them again. Otherwise
  // `valid` contains complete references.
  const near =
    pair === null
      ? nearNames(ref, valid, MOST_MEANT)
      : nearNames(pair.value, valid, MOST_MEANT).map((value) => `${pair.key}=${value}`)
  return near.length === 0 ? '' : `Did you mean ${orList(near)}?`
}

/**
 * Looks up all references, in the caller's order, or fails. If a label is not in the cached list, the list is read
 * again before the function fails.
 * @param fail builds the caller's error from all references that match no label.
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
  if (unresolved.length > 0) throw fail(explainFirst(unresolved))
  return results.filter((result): result is Label => !isUnresolved(result))
}

/** Adds the valid values to the first few unresolved references only. The others get an empty list. */
function explainFirst(unresolved: readonly UnresolvedLabel[]): UnresolvedLabel[] {
  return unresolved.map(({ ref }, at) => ({ ref, valid: at < MOST_EXPLAINED ? unresolved[at]!.valid : [] }))
}

/**
 * Builds the error for filters that name labels or objects that do not exist. Ignoring such a filter would widen the
 * answer.
 */
export function unresolvedFilter(unresolved: readonly UnresolvedLabel[], mostValues = MAX_VALID_VALUES): ToolError {
  const refs = unresolved.map(({ ref }) => ref)
  const more = refs.length > MOST_EXPLAINED ? ` and ${refs.length - MOST_EXPLAINED} more` : ''
  const explained = unresolved.slice(0, MOST_EXPLAINED)
  const valid = explained.map(({ ref, valid }) => {
    return [ref, Array.isArray(valid) ? valid.slice(0, mostValues) : valid] as const
  })
  const advice = explained.slice(0, MOST_ADVISED).flatMap((one) => {
    const said = adviseOn(one)
    return said === '' ? [] : `${refs.length > 1 ? `${quote(one.ref)}: ` : ''}${said} `
  })
  const isOfLabels = refs.some((ref) => !/^(?:iplist|labelgroup|workload):/u.test(ref))
  return new ToolError(
    'unresolved_label_filter',
    `No match for: ${refs.slice(0, MOST_EXPLAINED).map(quote).join(', ')}${more}. ${advice.join('')}Nothing was queried, because leaving a filter out would widen the answer.`,
    { unresolved: refs, valid_values: Object.fromEntries(valid) },
    isOfLabels ? { hint: 'Values are exact and case-sensitive; get-labels lists them.' } : {},
  )
}

/**
 * Reads the `labels` filter in all forms that clients send: one reference, a list, or a list as JSON text (the older
 * form).
 * @throws {ToolError} invalid_argument for JSON that is not a flat list of references, and for an empty list, because
 * it would not filter at all.
 */
export function parseLabelList(labels: string | readonly LabelReference[] | undefined): LabelReference[] {
  if (labels === undefined) return []
  const list = typeof labels === 'string' ? listFromText(labels) : labels
  if (list.length > 0) return [...list]
  const text = 'labels is empty, which would be no filter. Leave it out to list everything.'
  throw new ToolError('invalid_argument', text, { argument: 'labels' })
}

function listFromText(text: string): LabelReference[] {
  if (text.trim() === '') return []
  if (!text.trimStart().startsWith('[')) return [text]
  const list = parseJson(text)
  if (Array.isArray(list) && list.every(isLabelReference)) return list
  throw new ToolError('invalid_argument', 'labels is neither a label reference nor a JSON list of them.', {
    argument: 'labels',
  })
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

type Expand = (reference: LabelRef) => LabelRef

/**
 * Returns a function that adds key and value to label references, because some PCE answers identify labels by href
 * alone (P14). The label list is read only if one of `references` lacks its key or value. A label missing from the list
 * keeps only its href.
 */
export function labelExpander(pce: PceClient, references: readonly LabelRef[], context: ReadContext): Promise<Expand> {
  return createLabelExpander(pce, context)(references)
}

/**
 * Works like `labelExpander`, but for references that arrive in several batches. Call the returned function with each
 * batch; it returns the function that expands the references in this batch. The label list is read at most twice in
 * total.
 */
export function createLabelExpander(
  pce: PceClient,
  context: ReadContext,
): (references: readonly LabelRef[]) => Promise<Expand> {
  let index: LabelIndex | undefined
  let isFresh = false
  const isComplete = ({ key, value }: LabelRef) => key != null && value != null
  const expand: Expand = (reference) => {
    const known = isComplete(reference) ? reference : (index?.get(reference.href) ?? reference)
    return { href: known.href, key: known.key, value: known.value }
  }
  return async (references) => {
    const bare = references.filter((reference) => !isComplete(reference))
    if (bare.length > 0) index ??= await loadLabels(pce, context)
    // The label may have been created after the cached list was read.
    if (!isFresh && bare.some(({ href }) => index?.get(href) === undefined)) {
      index = await loadLabels(pce, context, 'fresh')
      isFresh = true
    }
    return expand
  }
}
