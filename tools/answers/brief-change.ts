import type { FieldChange, JudgedChange, RuleChangeShown } from '../../schemas/policy-changes.js'
import { isDefault } from '../../domain/policy/default-fields.js'
import { isWholeInLine } from '../../domain/policy/name-rule.js'
import { CONDITIONS } from '../../domain/policy/rule-conditions.js'
import { jsonBytes } from './byte-budget.js'

/** The sentence that tells the reader of an answer what `briefChange` left out. */
export const BRIEFLY =
  'Default fields of what is new or deleted, and what the line of a rule says, are left out: detail_level full has them.'

/**
 * Maximum size, in bytes, of an answer at the standard level of detail. To reach it, changes are shortened, but to no
 * less than LEAST_BYTES each.
 */
const STANDARD_BYTES = 12_000
const LEAST_BYTES = 600
/** Number of bytes that are left free for a cursor and for the sentence that says what was cut. */
const SPARE_BYTES = 300

type UpdateType = string | null | undefined

/**
 * Shortens a change without losing content. For a new or deleted object, it shows only the fields that differ from the
 * default, each with its only value instead of a draft and an active value. A new or deleted rule is shown as its line
 * (a one-line description), together with the fields that the line does not contain. The author of such a rule is left
 * out if the object has the same author.
 */
export function briefChange(change: JudgedChange, updateType: UpdateType): JudgedChange {
  const { name, updated_by: by, fields, rules } = change
  const isWhole = updateType === 'create' || updateType === 'delete'
  const isTold = ({ field, draft, active }: FieldChange) => field === 'name' && (draft ?? active) === name
  return {
    ...change,
    ...(fields !== undefined &&
      isWhole && {
        fields: fields.filter((one) => !isTold(one)).flatMap((one) => briefField(one, updateType)),
      }),
    ...(rules !== undefined && { rules: rules.map((rule) => briefRule(rule, by?.href)) }),
  }
}

function briefRule(whole: RuleChangeShown, author: string | undefined): RuleChangeShown {
  if (whole.change === 'changed' || whole.rule === undefined) return whole
  const { updated_by: by, updated_at: at, fields, ...rule } = whole
  const updateType = rule.change === 'added' ? 'create' : 'delete'
  const left = (fields ?? []).filter((one) => !isInLine(one)).flatMap((one) => briefField(one, updateType))
  const isOthers = by !== undefined && by.href !== author
  return {
    ...rule,
    ...(left.length > 0 && { fields: left }),
    ...(isOthers && { updated_by: by, ...(at !== undefined && { updated_at: at }) }),
  }
}

/** Returns true if the one-line description or the type of a rule already contains everything that this field says. */
function isInLine({ field, draft, active }: FieldChange): boolean {
  const value = draft ?? active
  if (field === 'override') return true
  if (Array.isArray(value) && isWholeInLine(field, value)) return true
  return SAID_BY_LINE.has(field)
}

/**
 * Conditions that the one-line description of a rule contains in full. The condition on user groups is not included,
 * because the description names only the first groups.
 */
const SAID_BY_LINE: ReadonlySet<string> = new Set(
  CONDITIONS.filter((field) => field !== 'consuming_security_principals'),
)

/**
 * Returns a copy of a value in which each `{label: {key, value, href}}` is replaced with the text `key=value`, which
 * identifies the label.
 */
function writeLabels(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(writeLabels)
  if (typeof value !== 'object' || value === null) return value
  const { label, ...rest } = value as { label?: { key?: unknown; value?: unknown } | null }
  const isNamed = typeof label?.key === 'string' && typeof label.value === 'string'
  return isNamed && Object.keys(rest).length === 0 ? `${label.key as string}=${label.value as string}` : value
}

/**
 * Returns a field of a new or deleted object with the one value that it has, which is in the draft or in the active
 * policy; returns nothing if this value is the default.
 */
function briefField({ field, draft, active }: FieldChange, updateType: UpdateType): FieldChange[] {
  const value = writeLabels(draft ?? active)
  if (isDefault(field, value)) return []
  return [updateType === 'create' ? { field, draft: value } : { field, active: value }]
}

/**
 * Returns the maximum size of each change, so that all changes and the rest of the answer (`envelope`) together have
 * about STANDARD_BYTES. If a change needs less than an equal share, the larger changes may use the difference.
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
