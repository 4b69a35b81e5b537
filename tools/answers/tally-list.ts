import { Type, type Static } from '@sinclair/typebox'
import type { LabelRef } from '../../schemas/pce/label.js'
import type { Limits } from '../../schemas/config.js'
import { answerBudget, jsonBytes } from './byte-budget.js'
import type { Slice, Tally } from './page-list.js'

const Total = Type.Object({
  by: Type.String({ description: 'Label key or property' }),
  values: Type.Array(Type.Array(Type.Unknown()), { description: 'Value and count' }),
  none: Type.Optional(Type.Integer({ description: 'Without it' })),
  others: Type.Optional(Type.Integer({ description: 'With further values' })),
  other_values: Type.Optional(Type.Integer({ description: 'How many these are' })),
})
type Total = Static<typeof Total>

/** The output field for totals by one property. */
export const totalsOut = (description: string) => Type.Optional(Type.Array(Total, { description }))

/**
 * The output fields that break a list down by property. They are on the first page if it does not have the whole list
 * (D254).
 */
export const TotalsOut = {
  totals: totalsOut('How the matches divide, where more follow'),
  totals_of: Type.Optional(Type.Integer({ description: 'Matches counted in totals, where not all' })),
}

/** Maximum number of label keys by which a list is broken down, and of values named for each. */
const MOST_KEYS = 4
const MOST_VALUES = 8
/** The share of the budget that totals may take: the budget divided by this number. */
const SHARE_OF_BUDGET = 4

/** Reads one property of an object, by which a list is broken down. Null stands for an object without this property. */
type Reader<T> = (item: T) => string | null

interface ListTally<T> extends Tally<T> {
  /** The references to labels that were seen, each listed once. */
  labels(): LabelRef[]
  /**
   * Returns the totals for an answer with this page. They are empty if all matches are on the page. `expand` adds key
   * and value to labels that the PCE returned by href only.
   */
  totals(
    slice: Pick<Slice<unknown>, 'more' | 'totalCount'>,
    limits: Limits,
    expand?: (label: LabelRef) => LabelRef,
  ): { totals?: Total[]; totals_of?: number }
}

/**
 * Counts the objects of a list by the given properties and by their labels. Of the label keys, those that break the
 * list down best are shown. Memory grows only with the number of distinct values and labels.
 */
export function createListTally<T>(
  readers: Readonly<Record<string, Reader<T>>>,
  labelsOf?: (item: T) => readonly LabelRef[],
): ListTally<T> {
  const read = Object.entries(readers)
  let count = 0
  let byProperty = read.map((): Values => new Map())
  let byLabel = new Map<string, { label: LabelRef; count: number }>()

  const byKey = (expand: (label: LabelRef) => LabelRef) => {
    const keys = new Map<string, Values>()
    for (const { label, count: borne } of byLabel.values()) {
      const { key, value } = expand(label)
      if (key == null || value == null) continue
      const values = keys.get(key) ?? new Map<string | null, number>()
      keys.set(key, values.set(value, (values.get(value) ?? 0) + borne))
    }
    for (const values of keys.values()) {
      const none = count - sumOf(values)
      if (none > 0) values.set(null, none)
    }
    return bestDivisions(keys, MOST_KEYS)
  }

  return {
    begin() {
      count = 0
      byProperty = read.map((): Values => new Map())
      byLabel = new Map()
    },
    add(item) {
      count += 1
      for (const [at, [, reader]] of read.entries()) {
        const value = reader(item)
        byProperty[at]?.set(value, (byProperty[at].get(value) ?? 0) + 1)
      }
      for (const label of labelsOf?.(item) ?? []) {
        const seen = byLabel.get(label.href)
        if (seen === undefined) byLabel.set(label.href, { label, count: 1 })
        else seen.count += 1
      }
    },
    labels: () => [...byLabel.values()].map(({ label }) => label),
    totals({ more, totalCount }, limits, expand = (label) => label) {
      if (!more) return {}
      const parts = new Map(
        read.map(([name], at): [string, Values] => [name, byProperty[at] ?? new Map<string, number>()]),
      )
      const totals = showTotals(new Map([...parts, ...byKey(expand)]), limits)
      return { ...totals, ...(totals.totals !== undefined && count < totalCount && { totals_of: count }) }
    },
  }
}

/** How often each value occurs; null stands for no value. */
type Values = Map<string | number | null, number>

const sumOf = (values: Values) => [...values.values()].reduce((sum, borne) => sum + borne, 0)

/** Returns the properties that break the list down best. A property with only one value does not divide anything. */
export function bestDivisions(parts: ReadonlyMap<string, Values>, most: number): [string, Values][] {
  return [...parts]
    .filter(([, values]) => values.size > 1)
    .map(([by, values]) => ({ by, values, division: measureDivision(values) }))
    .sort((a, b) => b.division - a.division || (a.by < b.by ? -1 : 1))
    .slice(0, most)
    .map(({ by, values }) => [by, values])
}

/** Shows totals by property, in the given order, as many as fit into their share of the budget. */
export function showTotals(parts: ReadonlyMap<string, Values>, limits: Limits): { totals?: Total[] } {
  let left = answerBudget(limits) / SHARE_OF_BUDGET
  const totals = [...parts]
    .map(([by, values]) => showTotal(by, values))
    .filter((total) => (left -= jsonBytes(total) + 1) >= 0)
  return totals.length === 0 ? {} : { totals }
}

/**
 * Measures how well a property divides a list: the probability that two objects fall into different parts (0 if all are
 * alike). Values that an answer does not name count as one part, because the answer does not tell them apart.
 */
function measureDivision(values: Values): number {
  const { named, others, none } = partition(values)
  const count = sumOf(values)
  return 1 - [...named.map(([, borne]) => borne), others, none].reduce((sum, part) => sum + (part / count) ** 2, 0)
}

function partition(values: Values) {
  const sorted = [...values]
    .filter((entry): entry is [string | number, number] => entry[0] !== null)
    .sort(([a, one], [b, other]) => other - one || (a < b ? -1 : 1))
  const further = sorted.slice(MOST_VALUES)
  return {
    named: sorted.slice(0, MOST_VALUES),
    others: further.reduce((sum, [, borne]) => sum + borne, 0),
    otherValues: further.length,
    none: values.get(null) ?? 0,
  }
}

function showTotal(by: string, values: Values): Total {
  const { named, others, otherValues, none } = partition(values)
  return {
    by,
    values: named,
    ...(none > 0 && { none }),
    ...(otherValues > 0 && { others, other_values: otherValues }),
  }
}
