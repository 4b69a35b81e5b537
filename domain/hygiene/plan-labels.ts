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
import { requireKeys } from './select-workloads.js'

/** What is to become of the labels of a workload; whatever it does not name stays as it is (D190). */
export interface LabelWish {
  /** By key: the label that takes the place of any other. */
  set: ReadonlyMap<string, LabelOutput>
  /** By key: the label for workloads that have none of the key. */
  add: ReadonlyMap<string, LabelOutput>
  /** Keys that are taken away, whatever the value. */
  removeKeys: ReadonlySet<string>
  /** Hrefs of labels that are taken away where they are. */
  removeLabels: ReadonlySet<string>
}

export const NO_WISH: LabelWish = { set: new Map(), add: new Map(), removeKeys: new Set(), removeLabels: new Set() }

/** The labels of a wish, and those of them that have to be created first. */
export interface WishPlan {
  wish: LabelWish
  /** As `planWorkloadLabels` has it; one for all workloads. */
  labels: ReturnType<typeof planWorkloadLabels>
}

/** One workload and its labels before and after. */
export interface Relabelling {
  workload: FoundWorkload
  before: readonly LabelRef[]
  after: readonly LabelRef[]
  /** Labels that stand where `add` asks for another value of their key: it fills what is missing alone. */
  kept: readonly LabelRef[]
}

/**
 * The wish of the arguments `set`, `add` and `remove`. Throws label_not_found for a label that does not exist, unless it may be created;
 * not_found for a key that no label has; invalid_argument for a key that is named in two ways.
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
    const text = `${twice} is named in two of set, add and remove; say for each key what is to become of it.`
    throw new ToolError('invalid_argument', text, { argument: 'set', key: twice })
  }
  const labels = {
    entries: [...plans.set.entries, ...plans.add.entries],
    warnings: [...plans.set.warnings, ...plans.add.warnings],
  }
  return { wish, labels }
}

/** Throws label_not_found for labels that do not exist, unless they may be created. */
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
    const said = `${argument}: no label is exactly ${describeReference(first.ref)}.${advice === '' ? '' : ` ${advice}`}`
    const details = { argument, unresolved: missing.map(({ ref }) => ref) }
    const isNew = first.ref.includes('=') && !first.ref.startsWith('/')
    const hint = isNew
      ? 'create_missing_labels makes labels that are new.'
      : `Give labels as key=value, ${argument}: ["role=web"]; get-labels lists them.`
    throw new ToolError('label_not_found', said, details, { hint })
  }
}

/** Keys, or labels, that are to be taken away. Throws not_found and label_not_found. */
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
      const said = `remove: no label is exactly ${found.ref}.${advice === '' ? '' : ` ${advice}`}`
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

/** The labels of a workload after a wish: what it names by key, in the place of what was there, and everything else as it is. */
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
  return { workload, before, after, kept }
}

/** Whether both are the same labels, in any order. */
export function isSameLabels(one: readonly LabelRef[], other: readonly LabelRef[]): boolean {
  const hrefs = new Set(one.map(({ href }) => href))
  return hrefs.size === new Set(other.map(({ href }) => href)).size && other.every(({ href }) => hrefs.has(href))
}

export const isChanged = ({ before, after }: Relabelling): boolean => !isSameLabels(before, after)

/** Of each label, how many workloads have it. */
export type LabelCounts = Record<string, number>

/** What becomes of the labels of some workloads: which are set, taken away without another, and left where `add` asks for another. */
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

/** The labels that differ, as `role=db, env=-` before and after; a key that is missing on one side is `-`. */
export function describeRelabelling({ before, after }: Relabelling): { before: string; after: string } {
  const texts = (labels: readonly LabelRef[]) =>
    new Map(labels.map((label) => [label.key ?? label.href, label.value ?? label.href]))
  const [was, is] = [texts(before), texts(after)]
  const keys = [...new Set([...was.keys(), ...is.keys()])].filter((key) => was.get(key) !== is.get(key))
  const write = (values: ReadonlyMap<string, string>) =>
    keys.map((key) => writeLabel({ key, value: values.get(key) ?? '-' })).join(', ')
  return { before: write(was), after: write(is) }
}

/** The labels that a line of a table names, as `set` takes them, and the keys that it takes away. */
export const wishOfValues = (values: ReadonlyMap<string, string | null>) => ({
  set: [...values].flatMap(([key, value]) => (value === null ? [] : [writeLabel({ key, value })])),
  remove: [...values].flatMap(([key, value]) => (value === null ? [key] : [])),
})

/** The key and value of `key=value`. */
export const pairOf = (text: string): { key: string; value: string } =>
  splitLabel(text) as { key: string; value: string }
