import { compareValues } from '../text/compare-texts.js'
import type { Column } from './columns.js'
import type { FlowRow } from './encode-flow.js'
import { createMeasures, pickTop, createTupleTable, type Measures } from './group-tables.js'

/**
 * A group of rows that have the same values in some columns, with the number of its rows and their totals (`measures`).
 */
export interface Group<K> {
  /** The group's position in order of first appearance. */
  number: number
  keys: K
  rows: number
  measures: Measures
}

interface Selection<K> {
  /** The number of groups that have at least the required number of connections. */
  total: number
  /** The groups with the most connections, up to the requested limit. */
  groups: Group<K>[]
}

/**
 * All groups that have the same value in one key. Objects for the groups are built only on request, because there may
 * be 200,000 groups and often only their number is needed.
 */
export interface Members<K> {
  total: number
  /**
   * Lists the distinct values that these groups have in another key, in the order in which the groups first appeared.
   */
  values<P extends keyof K>(key: P): K[P][]
  /** Returns the groups with the most connections; see `Grouping.busiest`. */
  busiest(limit: number): Group<K>[]
}

/**
 * Rows grouped by columns. A missing value counts as a value: rows without a value form a separate group and are never
 * dropped (T8).
 */
export interface Grouping<K> {
  /** Adds a row and returns the number of its group. */
  readonly add: (row: FlowRow) => number
  readonly size: number
  /**
   * Returns the `limit` groups with the most connections, among those with at least `minConnections`. Ties are ordered
   * by the keys, so that the answer does not depend on the order of the rows.
   */
  busiest(limit: number, minConnections?: number): Selection<K>
  /**
   * Returns, for each of the given values of a key, the busiest groups that have this value. Values that no group has
   * are left out.
   */
  busiestWithin<P extends keyof K>(key: P, values: ReadonlySet<K[P]>, limit: number): Map<K[P], Selection<K>>
  /**
   * Returns, for each of the given values of a key, all groups that have this value. Values that no group has are left
   * out.
   */
  within<P extends keyof K>(key: P, values: ReadonlySet<K[P]>): Map<K[P], Members<K>>
  /** Returns the value of a key in the group with this number. */
  value<P extends keyof K>(number: number, key: P): K[P]
  /** Returns the number of connections of the group with this number. */
  connections(number: number): number
  /** Counts the distinct values of a key in all groups with at least `minConnections`. Missing values do not count. */
  distinct(key: keyof K, minConnections?: number): number
  /** Iterates over all groups in order of first appearance. */
  [Symbol.iterator](): Iterator<Group<K>>
}

/** Groups rows by columns. The names of the columns become the names of the keys. */
export function groupRows<K extends object>(columns: { readonly [P in keyof K]: Column<K[P]> }): Grouping<K> {
  const names = Object.keys(columns) as (keyof K)[]
  const list: Column[] = names.map((name) => columns[name])
  const codes = list.map(({ code }) => code)
  const table = createTupleTable(list.length)
  const measures = createMeasures()
  const tuple = new Int32Array(list.length)
  const valueAt = (group: number, column: number) => (list[column] as Column).value(table.at(group, column))
  const show = (group: number): Group<K> => {
    const keys: Partial<Record<keyof K, unknown>> = {}
    for (const [column, name] of names.entries()) keys[name] = valueAt(group, column)
    const { rows, measures: sums } = measures.of(group)
    return { number: group, keys: keys as K, rows, measures: sums }
  }
  const compareKeys = (a: number, b: number) => {
    for (let column = 0; column < list.length; column++) {
      if (table.at(a, column) === table.at(b, column)) continue
      const order = compareValues(valueAt(a, column), valueAt(b, column))
      if (order !== 0) return order
    }
    return 0
  }
  const membersOf = (list: readonly number[]): Members<K> => ({
    total: list.length,
    values: (key) => {
      const column = names.indexOf(key)
      return list.map((group) => valueAt(group, column) as K[typeof key])
    },
    busiest(limit) {
      const at = (item: number) => list[item] as number
      const { top } = pickTop(
        list.length,
        limit,
        -Infinity,
        (item) => measures.connections(at(item)),
        (a, b) => compareKeys(at(a), at(b)),
      )
      return top.map((item) => show(at(item)))
    },
  })
  const within: Grouping<K>['within'] = (key, values) => {
    const column = names.indexOf(key)
    const members = new Map<number, number[]>()
    const others = new Set<number>()
    for (let group = 0; group < table.size; group++) {
      const code = table.at(group, column)
      if (others.has(code)) continue
      const list = members.get(code)
      if (list !== undefined) list.push(group)
      else if (values.has(valueAt(group, column) as K[typeof key])) members.set(code, [group])
      else others.add(code)
    }
    return new Map([...members].map(([code, list]) => [columns[key].value(code), membersOf(list)]))
  }
  return {
    add(row) {
      for (let column = 0; column < codes.length; column++) tuple[column] = (codes[column] as Column['code'])(row)
      const group = table.slot(tuple)
      measures.add(group, row)
      return group
    },
    get size() {
      return table.size
    },
    busiest(limit, minConnections = -Infinity) {
      const { total, top } = pickTop(
        table.size,
        limit,
        minConnections,
        (group) => measures.connections(group),
        compareKeys,
      )
      return { total, groups: top.map(show) }
    },
    within,
    busiestWithin: (key, values, limit) =>
      new Map(
        [...within(key, values)].map(([value, members]) => [
          value,
          { total: members.total, groups: members.busiest(limit) },
        ]),
      ),
    value: (number, key) => valueAt(number, names.indexOf(key)) as K[typeof key],
    connections: (number) => measures.connections(number),
    distinct(key, minConnections = 0) {
      const column = names.indexOf(key)
      const codes = new Set<number>()
      for (let group = 0; group < table.size; group++)
        if (measures.connections(group) >= minConnections && valueAt(group, column) !== null)
          codes.add(table.at(group, column))
      return codes.size
    },
    *[Symbol.iterator]() {
      for (let group = 0; group < table.size; group++) yield show(group)
    },
  }
}

/**
 * One value of an additional column within a group, with the number of connections in the rows that have this value.
 */
export interface Part<V> {
  value: V
  connections: number
}

/**
 * The values of an additional column within one group. The list is built only on request, because there may be 200,000
 * values.
 */
export interface Parts<V> {
  total: number
  /** Lists all different values, in the order in which they first appear in the rows. */
  values(): V[]
  /** Returns the values with the most connections. */
  busiest(limit: number): Part<V>[]
}

/** A group together with the values of additional columns within it. */
export type GroupWithParts<K, P> = Group<K> & { parts: { [N in keyof P]: Parts<P[N]> } }

/** A grouping that also records, for each group, the values of additional columns. */
interface GroupingWithParts<K, P> extends Pick<Grouping<K>, 'add' | 'size' | 'distinct'> {
  /** Works like `Grouping.busiest`, but each returned group also has the values of the additional columns. */
  busiest(limit: number, minConnections?: number): { total: number; groups: GroupWithParts<K, P>[] }
}

/**
 * Groups rows by `columns` and also records the values of the columns `parts` within each group. Missing values of
 * these columns are not recorded.
 */
export function groupWithParts<K extends object, P extends object>(
  columns: { readonly [N in keyof K]: Column<K[N]> },
  parts: { readonly [N in keyof P]: Column<P[N]> },
): GroupingWithParts<K, P> {
  const groups = groupRows<K>(columns)
  const names = Object.keys(parts) as (keyof P)[]
  // The number of the row's group serves as a column, so the values are grouped by only two columns (group and value)
  // instead of by all columns of the group plus the value.
  let current = 0
  const group: Column<number> = { code: () => current, value: (code) => code }
  const inside = names.map((name) => ({
    column: parts[name],
    grouping: groupRows<{ group: number; value: unknown }>({ group, value: parts[name] }),
  }))

  return {
    add(row: FlowRow) {
      current = groups.add(row)
      for (const { column, grouping } of inside) if (column.value(column.code(row)) !== null) grouping.add(row)
      return current
    },
    get size() {
      return groups.size
    },
    busiest(limit, minConnections) {
      const { total, groups: shown } = groups.busiest(limit, minConnections)
      const numbers = new Set(shown.map(({ number }) => number))
      const found = inside.map(({ grouping }) => grouping.within('group', numbers))
      const partsOf = (number: number) =>
        Object.fromEntries(
          names.map((name, at): [keyof P, Parts<unknown>] => {
            const members = found[at]?.get(number)
            return [
              name,
              {
                total: members?.total ?? 0,
                values: () => members?.values('value') ?? [],
                busiest: (most) =>
                  members?.busiest(most).map(({ keys, measures }) => ({
                    value: keys.value,
                    connections: measures.connections,
                  })) ?? [],
              },
            ]
          }),
        ) as GroupWithParts<K, P>['parts']
      return { total, groups: shown.map((one) => ({ ...one, parts: partsOf(one.number) })) }
    },
    distinct: (key, minConnections) => groups.distinct(key, minConnections),
  }
}
