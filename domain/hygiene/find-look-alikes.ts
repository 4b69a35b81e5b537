import { compareTexts, isMisspelling } from '../text/compare-texts.js'
import type { Steps } from '../text/pace-work.js'
import type { LabelIndex } from '../inventory/labels.js'

/** A label and the number of workloads that have it. */
export interface LabelUse {
  value: string
  href: string
  workloads: number
}

/**
 * Labels with the same key that are probably meant to be one label. They are sorted by number of workloads, highest
 * first (T37).
 */
export interface LookAlikes {
  key: string
  /**
   * The difference between the values. `case`: upper and lower case; `spacing`: blanks, dashes, dots, underscores or
   * invisible characters; `near`: one typing error.
   */
  differ_by: 'case' | 'spacing' | 'near'
  labels: LabelUse[]
}

/**
 * Minimum length of values that are searched for typing errors. Shorter values often differ in one letter on purpose,
 * such as dev and des, or uat and qat.
 */
const LEAST_NEAR = 4
/**
 * Minimum ratio between the number of workloads with a correct value and the number of workloads with its misspelling.
 */
const RARER = 4

/**
 * Finds labels that look alike. Labels that differ in case or spacing are always found. Labels that differ by a typing
 * error are found only if one of them is rare, and not if they differ only in numbers. `workloadsWith` returns the
 * number of workloads that have the label with a given href.
 */
export function* findLookAlikes(index: LabelIndex, workloadsWith: (href: string) => number): Steps<LookAlikes[]> {
  const found: LookAlikes[] = []
  for (const key of index.keys()) {
    const forms = new Map<string, LabelUse[]>()
    for (const value of index.values(key)) {
      yield
      const href = index.find(key, value)?.href ?? ''
      const form = formOf(value)
      forms.set(form, [...(forms.get(form) ?? []), { value, href, workloads: workloadsWith(href) }])
    }
    for (const labels of forms.values()) {
      labels.sort(mostUsed)
      const [first, ...others] = labels.map(({ value }) => value.toLowerCase())
      if (others.length > 0)
        found.push({ key, differ_by: others.every((value) => value === first) ? 'case' : 'spacing', labels })
    }
    yield* findNear(key, forms, found)
  }
  const weight = ({ labels }: LookAlikes) => labels.slice(1).reduce((sum, { workloads }) => sum + workloads, 0)
  const order = ['case', 'spacing', 'near']
  return found.sort(
    (a, b) =>
      order.indexOf(a.differ_by) - order.indexOf(b.differ_by) ||
      weight(b) - weight(a) ||
      compareTexts(a.key, b.key) ||
      compareTexts(a.labels[0]!.value, b.labels[0]!.value),
  )
}

const mostUsed = (a: LabelUse, b: LabelUse) => b.workloads - a.workloads || compareTexts(a.value, b.value)

/** Normalises a value by removing everything in which look-alikes may differ. */
const formOf = (value: string): string =>
  value
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[\s\p{Pd}_.]|\p{Default_Ignorable_Code_Point}|\p{C}/gu, '')

/** Finds pairs of values that become equal if one letter is left out of one of them or of both. */
function* findNear(key: string, forms: ReadonlyMap<string, LabelUse[]>, found: LookAlikes[]): Steps<void> {
  const without = new Map<string, string[]>()
  const paired = new Set<string>()
  for (const form of forms.keys()) {
    if (form.length < LEAST_NEAR) continue
    yield
    const parts = new Set([form, ...[...form].map((_, at) => form.slice(0, at) + form.slice(at + 1))])
    for (const other of new Set([...parts].flatMap((part) => without.get(part) ?? []))) {
      const id = JSON.stringify([form, other].sort())
      if (paired.has(id) || !isMisspelling(form, other) || isSameButNumbers(form, other)) continue
      paired.add(id)
      const labels = [forms.get(form)![0]!, forms.get(other)![0]!].sort(mostUsed)
      const [common, rare] = labels as [LabelUse, LabelUse]
      if (common.workloads > 0 && rare.workloads * RARER <= common.workloads)
        found.push({ key, differ_by: 'near', labels })
    }
    for (const part of parts) without.set(part, [...(without.get(part) ?? []), form])
  }
}

const isSameButNumbers = (a: string, b: string): boolean => a.replace(/\d+/g, '') === b.replace(/\d+/g, '')
