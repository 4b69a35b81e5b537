import { ToolError } from '../../schemas/errors.js'
import { writeLabel } from '../../schemas/label-reference.js'
import type { Label, LabelRef } from '../../schemas/pce/label.js'
import {
  adviseOn,
  describeReference,
  isUnresolved,
  resolveLabel,
  splitLabel,
  type LabelIndex,
  type LabelOutput,
  type LabelReference,
} from '../inventory/labels.js'
import { planWorkloadLabels, plannedLabels } from '../drafts/create-labels.js'
import type { FoundWorkload } from './find-workloads.js'
import { compareTexts } from '../text/compare-texts.js'
import { quote } from '../text/escape-text.js'
import { requireKeys } from './select-workloads.js'

/**
 * The requested change to the labels of a workload. Labels that the request does not mention stay as they are (D190).
 */
export interface LabelWish {
  /** The labels to set, by key. Each replaces any other label with the same key. */
  set: ReadonlyMap<string, LabelOutput>
  /** The labels to add, by key. A workload that already has a label with the key keeps that label. */
  add: ReadonlyMap<string, LabelOutput>
  /** Keys whose labels are removed, whatever their value. */
  removeKeys: ReadonlySet<string>
  /** The hrefs of the labels to remove. A workload that does not have one of these labels is left as it is. */
  removeLabels: ReadonlySet<string>
}

export const NO_WISH: LabelWish = { set: new Map(), add: new Map(), removeKeys: new Set(), removeLabels: new Set() }

/** A requested change, with the labels that it needs. Some of these labels may have to be created first. */
export interface WishPlan {
  wish: LabelWish
  /** The needed labels in the form in which `planWorkloadLabels` returns them. They are the same for all workloads. */
  labels: ReturnType<typeof planWorkloadLabels>
}

/** A workload and its labels before and after the change. */
export interface Relabelling {
  workload: FoundWorkload
  before: readonly LabelRef[]
  after: readonly LabelRef[]
  /**
   * Existing labels that are kept although `add` requests another value for the same key, because `add` only fills
   * gaps.
   */
  kept: readonly LabelRef[]
  /** Plans the same change again for the given labels, which are those that the workload has now. */
  again: (labels: readonly LabelRef[]) => Relabelling
}

/**
 * Reads the arguments `set`, `add` and `remove`. Throws label_not_found if a label does not exist and must not be
 * created, not_found if no label has a given key, and invalid_argument if a key is named in two arguments.
 */
export function planWish(
  index: LabelIndex,
  asked: { set?: readonly LabelReference[]; add?: readonly LabelReference[]; remove?: readonly string[] },
  mayCreate: boolean,
): WishPlan {
  const { set = [], add = [], remove = [] } = asked
  requireLabels(index, { set, add }, mayCreate)
  const plans = { set: planWorkloadLabels(index, set), add: planWorkloadLabels(index, add) }
  const [setLabels, addLabels] = [plans.set, plans.add].map((plan) => byKey(plannedLabels(plan)))
  const removed = readRemovals(index, remove)
  const wish = { set: setLabels!, add: addLabels!, ...removed }
  const named = [[...wish.set.keys()], [...wish.add.keys()], [...keysOf(removed, index)]].flat()
  const twice = named.find((key, at) => named.indexOf(key) !== at)
  if (twice !== undefined) {
    const text = `${quote(twice)} is named in two of set, add and remove; say for each key what is to become of it.`
    throw new ToolError('invalid_argument', text, { argument: 'set', key: twice })
  }
  const labels = {
    entries: [...plans.set.entries, ...plans.add.entries],
    warnings: [...plans.set.warnings, ...plans.add.warnings],
  }
  return { wish, labels }
}

/** Throws label_not_found if a label does not exist and must not be created. */
function requireLabels(index: LabelIndex, asked: Record<string, readonly LabelReference[]>, mayCreate: boolean): void {
  if (mayCreate) return
  for (const [argument, references] of Object.entries(asked)) {
    const missing = references.flatMap((reference) => {
      const found = resolveLabel(index, reference)
      return isUnresolved(found) ? [found] : []
    })
    const [first] = missing
    if (first === undefined) continue
    const advice = adviseOn(first)
    const said = `${argument}: no label is exactly ${quote(describeReference(first.ref))}.${advice === '' ? '' : ` ${advice}`}`
    const details = { argument, unresolved: missing.map(({ ref }) => ref) }
    const isNew = first.ref.includes('=') && !first.ref.startsWith('/')
    const hint = isNew
      ? 'create_missing_labels makes labels that are new.'
      : `Give labels as key=value, ${argument}: ["role=web"]; get-labels lists them.`
    throw new ToolError('label_not_found', said, details, { hint })
  }
}

/**
 * Reads the keys and labels to remove. Throws not_found for a key that no label has, and label_not_found for a label
 * that does not exist.
 */
function readRemovals(index: LabelIndex, remove: readonly string[]) {
  const removeKeys = new Set<string>()
  const removeLabels = new Set<string>()
  for (const text of remove) {
    if (!text.includes('=') && !text.startsWith('/')) {
      requireKeys(index, [text.trim()], 'remove')
      removeKeys.add(text.trim())
      continue
    }
    const found = resolveLabel(index, text)
    if (isUnresolved(found)) {
      const advice = adviseOn(found)
      const said = `remove: no label is exactly ${quote(found.ref)}.${advice === '' ? '' : ` ${advice}`}`
      throw new ToolError('label_not_found', said, { argument: 'remove', unresolved: [found.ref] })
    }
    removeLabels.add(found.href)
  }
  return { removeKeys, removeLabels }
}

function* keysOf({ removeKeys, removeLabels }: Pick<LabelWish, 'removeKeys' | 'removeLabels'>, index: LabelIndex) {
  const keys = new Set(removeKeys)
  for (const href of removeLabels) keys.add((index.get(href) as Label).key)
  yield* keys
}

const byKey = (labels: readonly LabelOutput[]) => new Map(labels.map((label) => [label.key, label]))

/** Applies a requested change to a workload: labels are replaced, added or removed, and all other labels stay. */
export function relabel(workload: FoundWorkload, wish: LabelWish, index: LabelIndex): Relabelling {
  const before = workload.labels.map((label) => index.get(label.href) ?? label)
  const after: LabelRef[] = []
  const had = new Set(before.flatMap(({ key }) => key ?? []))
  const placed = new Set<string>()
  for (const label of before) {
    const { key, href } = label
    const wanted = key === undefined ? undefined : wish.set.get(key)
    if (wanted !== undefined && key !== undefined) {
      if (!placed.has(key)) after.push(wanted)
      placed.add(key)
    } else if ((key === undefined || !wish.removeKeys.has(key)) && !wish.removeLabels.has(href)) after.push(label)
  }
  for (const [key, label] of wish.set) if (!placed.has(key)) after.push(label)
  for (const [key, label] of wish.add) if (!had.has(key)) after.push(label)
  const kept = before.filter(({ key, href }) => {
    const wanted = key === undefined ? undefined : wish.add.get(key)
    return wanted !== undefined && wanted.href !== href
  })
  return { workload, before, after, kept, again: (labels) => relabel({ ...workload, labels }, wish, index) }
}

/** Returns true if both lists contain the same labels, in any order. */
export function isSameLabels(one: readonly LabelRef[], other: readonly LabelRef[]): boolean {
  const hrefs = new Set(one.map(({ href }) => href))
  return hrefs.size === new Set(other.map(({ href }) => href)).size && other.every(({ href }) => hrefs.has(href))
}

export const isChanged = ({ before, after }: Relabelling): boolean => !isSameLabels(before, after)

/** Maps each label, written as `key=value`, to a number of workloads. */
export type LabelCounts = Record<string, number>

/**
 * Counts for each label the workloads that newly get it, those that lose it without a replacement, and those that keep
 * it although `add` requests another value.
 */
export function countWishes(relabellings: readonly Relabelling[]): Record<'set' | 'removed' | 'kept', LabelCounts> {
  const counts = { set: new Map<string, number>(), removed: new Map<string, number>(), kept: new Map<string, number>() }
  const count = (of: keyof typeof counts, label: LabelRef) => {
    const text = textOf(label)
    counts[of].set(text, (counts[of].get(text) ?? 0) + 1)
  }
  for (const { before, after, kept } of relabellings) {
    const [had, has] = [before, after].map((labels) => new Set(labels.map(({ href }) => href)))
    const keys = new Set(after.map(({ key }) => key))
    for (const label of after) if (!had!.has(label.href)) count('set', label)
    for (const label of before) if (!has!.has(label.href) && !keys.has(label.key)) count('removed', label)
    for (const label of kept) count('kept', label)
  }
  const mostFirst = (found: ReadonlyMap<string, number>) =>
    Object.fromEntries([...found].sort(([a, m], [b, n]) => n - m || compareTexts(a, b)))
  return { set: mostFirst(counts.set), removed: mostFirst(counts.removed), kept: mostFirst(counts.kept) }
}

const textOf = ({ key, value, href }: LabelRef): string =>
  key === undefined || value === undefined ? href : writeLabel({ key, value })

/**
 * Describes the labels that change, before and after, in the form `role=db, env=-` (`-` stands for a missing label),
 * and the labels that are kept.
 */
export function describeRelabelling({ before, after }: Relabelling): { before: string; after: string; keeps: string } {
  const texts = (labels: readonly LabelRef[]) =>
    new Map(labels.map((label) => [label.key ?? label.href, label.value ?? label.href]))
  const [was, is] = [texts(before), texts(after)]
  const keys = [...new Set([...was.keys(), ...is.keys()])].filter((key) => was.get(key) !== is.get(key))
  const write = (values: ReadonlyMap<string, string>) =>
    keys.map((key) => writeLabel({ key, value: values.get(key) ?? '-' })).join(', ')
  const kept = [...was].filter(([key]) => !keys.includes(key))
  return {
    before: write(was),
    after: write(is),
    keeps: kept.map(([key, value]) => writeLabel({ key, value })).join(', '),
  }
}

/**
 * Converts the labels of a table row to the form of the argument `set`, and the keys that the row removes to the form
 * of the argument `remove`.
 */
export const wishOfValues = (values: ReadonlyMap<string, string | null>) => ({
  set: [...values].flatMap(([key, value]) => (value === null ? [] : [writeLabel({ key, value })])),
  remove: [...values].flatMap(([key, value]) => (value === null ? [key] : [])),
})

/** Splits `key=value` into key and value. */
export const pairOf = (text: string): { key: string; value: string } =>
  splitLabel(text) as { key: string; value: string }
