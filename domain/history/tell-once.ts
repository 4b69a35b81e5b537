import { diffFields } from '../policy/diff-fields.js'
import type { HistoryEntry, HistoryPart } from './collect-history.js'
import { draftHrefOf, inDraftForm } from './load-policy.js'
import type { FieldStep } from './read-changes.js'

/** The changes to one object that one history entry reports. */
interface Told {
  at: number
  isVersion: boolean
  steps: readonly FieldStep[]
}

/**
 * Removes changes from the history entries of policy versions if edit events since the previous version already report
 * them, so that each change is listed only once. The change of a field stays if the edits do not lead exactly from its
 * old value to its new one. Entries are given newest first.
 */
export function tellOnce(entries: readonly HistoryEntry[]): HistoryEntry[] {
  const byHref = new Map<string, Told[]>()
  for (const [at, { parts, version }] of entries.entries())
    for (const { href, fields } of parts.flatMap((part) => [part, ...rulesInside(part)])) {
      const own = draftHrefOf(href)
      const told = byHref.get(own) ?? []
      told.push({ at, isVersion: version !== undefined, steps: fields })
      byHref.set(own, told)
    }
  return entries.map((entry, at) =>
    entry.version === undefined
      ? entry
      : { ...entry, parts: entry.parts.map((part) => withoutTold(part, editsBefore(byHref.get(part.href) ?? [], at))) },
  )
}

/**
 * Returns the edits of an object between two versions that changed it: a given version and the one before it. The
 * oldest edit comes first.
 */
function editsBefore(told: readonly Told[], at: number): FieldStep[] {
  const older = told.filter((one) => one.at > at)
  const end = older.findIndex(({ isVersion }) => isVersion)
  return (end === -1 ? older : older.slice(0, end)).toReversed().flatMap(({ steps }) => steps)
}

function withoutTold(part: HistoryPart, edits: readonly FieldStep[]): HistoryPart {
  const isTold = (step: FieldStep) =>
    leadsTo(
      step,
      edits.filter(({ field }) => field === step.field),
    )
  const told = part.fields.filter(isTold)
  if (told.length === 0) return part
  const note = `Shown in the edits that it made active: ${told.map(({ field }) => field).join(', ')}.`
  return { ...part, fields: part.fields.filter((step) => !told.includes(step)), note }
}

/** Returns true if the given edits of a field lead from its old value (`before`) to its new value (`after`). */
function leadsTo({ before, after }: FieldStep, edits: readonly FieldStep[]): boolean {
  let value = inDraftForm(before ?? null)
  for (const edit of edits) {
    if (edit.updated !== undefined) return false
    if (edit.removed !== undefined || edit.added !== undefined) {
      const list = changeList(value, edit)
      if (list === null) return false
      value = list
      continue
    }
    if (!isSame(value, edit.before)) return false
    value = edit.after
  }
  return edits.length > 0 && isSame(value, after)
}

/**
 * Applies the change of a list, that is, removes some entries and adds others. Returns null if an entry to remove is
 * not in the list.
 */
function changeList(value: unknown, { removed = [], added = [] }: FieldStep): unknown[] | null {
  const list: unknown[] = value === null ? [] : Array.isArray(value) ? [...(value as unknown[])] : [value]
  for (const entry of removed) {
    const place = list.findIndex((one) => isSame(one, entry))
    if (place === -1) return null
    list.splice(place, 1)
  }
  return [...list, ...added]
}

const isSame = (a: unknown, b: unknown) =>
  diffFields({ value: inDraftForm(a ?? null) }, { value: inDraftForm(b ?? null) }).length === 0

/**
 * Returns the rules that a new rule set contained in its event, each with its fields as if the rule had an event of its
 * own.
 */
function rulesInside({ fields }: HistoryPart): { href: string; fields: FieldStep[] }[] {
  return fields
    .filter(({ field }) => field === 'rules' || field === 'deny_rules')
    .flatMap(({ added = [] }) => added)
    .flatMap((rule) => {
      const { href, ...rest } = rule as { href?: unknown }
      if (typeof href !== 'string') return []
      return [{ href, fields: Object.entries(rest).map(([field, after]) => ({ field, before: null, after })) }]
    })
}
