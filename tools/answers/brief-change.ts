import type { FieldChange, JudgedChange, RuleChangeShown } from '../../schemas/policy-changes.js'
import { isDefault, isSaid } from '../../domain/policy/default-fields.js'
import { isWholeInLine } from '../../domain/policy/name-rule.js'
import { CONDITIONS } from '../../domain/policy/rule-conditions.js'
import { jsonBytes } from './byte-budget.js'
import { onlyDifferent } from './trim-change.js'

/** The sentence that tells readers of an answer what `briefChange` left out. */
export const BRIEFLY =
  'Defaults of what is new or deleted, what the line of a rule or its whole says, and equal items are left out: detail_level full has them.'

/**
 * The size, in bytes, that an answer at detail `standard` should not exceed. Changes are shortened for this, but never
 * to less than LEAST_BYTES each.
 */
const STANDARD_BYTES = 12_000
const LEAST_BYTES = 600
/** Number of bytes that are left free for a cursor and for the sentence that says what was cut. */
const SPARE_BYTES = 300

type UpdateType = string | null | undefined

/**
 * Shortens a change without losing content. A new or deleted object has only the fields that differ from the default,
 * each with its one value instead of a draft and an active value. A new or deleted rule becomes a one-line description,
 * with the fields that the description does not contain. A rule's author is left out if the object has the same, and so
 * is the effect of a new or deleted rule if its new or deleted object has the same effect. If both versions have a
 * list, only the items that differ are shown, and the others are counted.
 */
export function briefChange(change: JudgedChange, updateType: UpdateType): JudgedChange {
  const { name, fields, rules } = change
  const isWhole = updateType === 'create' || updateType === 'delete'
  const isTold = ({ field, draft, active }: FieldChange) => field === 'name' && (draft ?? active) === name
  return {
    ...change,
    ...(fields !== undefined &&
      isWhole && {
        fields: fields.filter((one) => !isTold(one)).flatMap((one) => briefField(one, updateType)),
      }),
    ...(fields !== undefined && !isWhole && { fields: fields.map(showDifferent) }),
    ...(rules !== undefined && { rules: rules.map((rule) => briefRule(rule, change, isWhole)) }),
  }
}

/** `isOfWhole` is true if the rule belongs to a new or deleted object, which is `of`. */
function briefRule(whole: RuleChangeShown, of: JudgedChange, isOfWhole: boolean): RuleChangeShown {
  const { updated_by: by, updated_at: at, fields, effect, ...rule } = whole
  const isOthers = by !== undefined && by.href !== of.updated_by?.href
  const isOwn = effect !== undefined && (!isOfWhole || effect !== effectOfKind(whole, of))
  const isChanged = rule.change === 'changed' || rule.rule === undefined
  const shown = isChanged
    ? fields?.map(showDifferent)
    : fields
        ?.filter((one) => !isInLine(one))
        .flatMap((one) => briefField(one, rule.change === 'added' ? 'create' : 'delete'))
  return {
    ...rule,
    ...(isOwn && { effect }),
    ...(shown !== undefined && (isChanged || shown.length > 0) && { fields: shown }),
    ...(isOthers && { updated_by: by }),
    ...(at !== undefined && (isOthers || (isChanged && at !== of.updated_at)) && { updated_at: at }),
  }
}

/**
 * If several changes have the same author, removes the author from them and returns it once for the whole answer
 * (`by`). If authors differ or one is not known, the changes stay as they are.
 */
export function shareAuthor(changes: readonly JudgedChange[]): {
  by?: NonNullable<JudgedChange['updated_by']>
  changes: readonly JudgedChange[]
} {
  const [first, ...others] = changes
  const by = first?.updated_by
  if (by === undefined || others.length === 0 || others.some((one) => one.updated_by?.href !== by.href))
    return { changes }
  return { by, changes: changes.map(({ updated_by: _same, ...change }) => change) }
}

/** Returns the effect that the object states for all its rules, or for its rules of this kind. */
const effectOfKind = ({ rule_type: type }: RuleChangeShown, { effect, effect_by_rule_type: byType }: JudgedChange) =>
  effect ?? byType?.[type === 'allow' ? 'allow' : 'deny']

/** Returns a field with the items that only one of its two lists has, and with the number of items that both have. */
function showDifferent(field: FieldChange): FieldChange {
  const different = onlyDifferent(field)
  const { draft, active } = field
  if (!Array.isArray(draft) || !Array.isArray(active)) return field
  const [ours, theirs] = [different.draft as unknown[], different.active as unknown[]]
  const same = draft.length - ours.length
  return { field: field.field, draft: plainly(ours), active: plainly(theirs), ...(same > 0 && { same }) }
}

/** Returns true if a rule's one-line description or type already contains everything in this field. */
function isInLine({ field, draft, active }: FieldChange): boolean {
  const value = draft ?? active
  if (field === 'override') return true
  if (Array.isArray(value) && isWholeInLine(field, value)) return true
  return SAID_BY_LINE.has(field)
}

/**
 * Conditions that the one-line description of a rule contains in full. The condition on user groups is not among them,
 * because the description names only the first groups.
 */
const SAID_BY_LINE: ReadonlySet<string> = new Set(
  CONDITIONS.filter((field) => field !== 'consuming_security_principals'),
)

/**
 * Copies a value, with two changes: each `{label: {key, value, href}}` becomes the string `key=value`, and fields
 * without meaning, such as `exclusion: false`, are removed.
 */
function plainly(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plainly)
  if (typeof value !== 'object' || value === null) return value
  const { label, ...rest } = value as { label?: { key?: unknown; value?: unknown } | null }
  const isNamed = typeof label?.key === 'string' && typeof label.value === 'string'
  if (isNamed && Object.keys(rest).length === 0) return `${label.key as string}=${label.value as string}`
  return Object.fromEntries(Object.entries(value).filter(([, inner]) => isSaid(inner)))
}

/** Returns true for an object without fields, which is what remains if all its fields were without meaning. */
const isEmptyObject = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length === 0

/**
 * Returns a field of a new or deleted object with its one value, from the draft or the active policy; returns nothing
 * if this value is the default.
 */
function briefField({ field, draft, active }: FieldChange, updateType: UpdateType): FieldChange[] {
  const value = plainly(draft ?? active)
  if (isDefault(field, value) || isEmptyObject(value)) return []
  return [updateType === 'create' ? { field, draft: value } : { field, active: value }]
}

/**
 * Returns the maximum size of each change, so that all changes together with the rest of the answer (`envelope`) have
 * about STANDARD_BYTES. What a small change does not need of its equal share goes to larger ones.
 */
export function shareBytes(changes: readonly object[], envelope: object, most: number): number[] {
  const sizes = changes.map(jsonBytes)
  let room = Math.min(STANDARD_BYTES - jsonBytes(envelope) - SPARE_BYTES, most)
  let cap = 0
  for (const [at, size] of sizes.toSorted((a, b) => a - b).entries()) {
    cap = Math.floor(room / (sizes.length - at))
    if (size > cap) break
    room -= size
    cap = Infinity
  }
  return sizes.map(() => Math.min(most, Math.max(LEAST_BYTES, cap)))
}
