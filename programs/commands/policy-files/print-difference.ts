import type { Applied } from '../../../domain/policy-files/apply-files.js'
import {
  whatOf,
  type FieldDifference,
  type ObjectDifference,
  type RuleDifference,
} from '../../../domain/policy-files/compare-files.js'
import type { AppliedFiles, LookedBack } from '../../../domain/policy-files/compare-with-pce.js'
import type { Effect } from '../../../domain/policy-files/judge-files.js'
import { nounFor } from '../../../domain/policy-files/name-book.js'
import { countOf } from '../../../domain/text/describe-numbers.js'
import { escapeText, quote, visibleJson } from '../../../domain/text/escape-text.js'

const MARKS = { create: '+', update: '~', delete: '-' } as const

/**
 * Returns the lines that show how one object in the files differs from the PCE, field by field. Characters that a
 * terminal would hide are escaped.
 */
export function showDifference(one: ObjectDifference, effect: Effect | undefined): string[] {
  const { change, kind, name, object, fields, rules } = one
  const place = object === null ? ' (no file)' : ` (${escapeText(object.file.path)})`
  const risks = (effect?.risks ?? []).map((risk) => risk.replaceAll('_', ' ')).join(', ')
  const said =
    effect === undefined ? '' : `  [${effect.effect.replace(/\.$/, '')}${risks === '' ? '' : `; to review: ${risks}`}]`
  const head = `${MARKS[change]} ${nounFor(kind)} ${quote(name)}${place}${said}`
  if (change === 'delete') return [head]
  return [head, ...fields.flatMap((field) => showField(field, '    ')), ...rules.flatMap(showRule)]
}

const show = (value: unknown) => (typeof value === 'object' && value !== null ? visibleJson(value) : visibleText(value))
const visibleText = (value: unknown) => visibleJson([value]).slice(1, -1)

/**
 * Shows how a field differs: for a list, the entries that were removed and added; for any other value, the value before
 * and after.
 */
function showField({ field, was, is }: FieldDifference, indent: string): string[] {
  if (Array.isArray(was ?? is) && Array.isArray(is ?? was)) {
    const [before, after] = [was, is].map((list) => new Set(((list ?? []) as unknown[]).map(show)))
    return [
      ...[...before!].flatMap((item) => (after!.has(item) ? [] : [`${indent}${field}: - ${item}`])),
      ...[...after!].flatMap((item) => (before!.has(item) ? [] : [`${indent}${field}: + ${item}`])),
    ]
  }
  return [
    `${indent}${field}: ${was === undefined ? 'default' : show(was)} -> ${is === undefined ? 'default' : show(is)}`,
  ]
}

function showRule({ was, is, fields }: RuleDifference): string[] {
  if (was === null) return [`    rules: + ${show(is)}`]
  if (is === null) return [`    rules: - ${show(was)}`]
  return [`    rules: ~ ${show(was)}`, ...fields.flatMap((field) => showField(field, '        '))]
}

/**
 * Returns a line with the numbers of objects that are only in the files, that differ, that have no file, and that are
 * the same.
 */
export function showTally(differences: readonly ObjectDifference[], same: number): string {
  const count = (wanted: string) => differences.filter(({ change }) => change === wanted).length
  return `Only in the files: ${count('create')}, different: ${count('update')}, without a file: ${count('delete')}, the same: ${same}.`
}

/**
 * Returns lines with the warnings about the applied files, and with the objects that were not deleted, each with the
 * reason.
 */
export const showRemarks = ({ warnings, kept }: Pick<AppliedFiles, 'warnings' | 'kept'>): string[] =>
  [
    ...warnings.map((warning) => `Warning: ${warning}`),
    ...kept.map(({ difference, why }) => `Not deleted: ${whatOf(difference)}, because ${why}.`),
  ].map(escapeText)

/** Returns the lines that say that a guardrail forbids applying the files. */
export const showRefusal = (refusal: Error | null): string[] =>
  refusal === null ? [] : [escapeText(`Applying this to the draft is refused: ${refusal.message}`)]

/** Returns the lines that say what a command wrote before it failed half-way. */
export function showHalf({ written, stopped, notWritten }: Applied): string[] {
  const half = (stopped === undefined ? [] : [stopped]).map(({ what, done, of, isUncertain }) => {
    const unknown = isUncertain ? '; of the next one it is not known' : ''
    return `Stopped in ${what}: ${done} of ${countOf(of, 'request')} done${unknown}.`
  })
  return [
    ...written.map((what) => `Written: ${what}.`),
    ...half,
    ...notWritten.map((what) => `Not written: ${what}.`),
  ].map(escapeText)
}

/** Returns lines that say whether the draft, when it was read back, is as the files describe it. */
export function showLook(left: LookedBack): string[] {
  if (typeof left === 'string') return [escapeText(left)]
  if (left.length === 0) return ['Read back, the draft is what the files say.']
  return [
    'Read back, the draft still differs from the files:',
    ...left.flatMap((one) => showDifference(one, undefined)),
  ]
}
