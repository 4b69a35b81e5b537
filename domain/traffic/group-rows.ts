import { compareValues } from '../text/compare-texts.js'
import type { Column } from './columns.js'
import type { FlowRow } from './encode-flow.js'
import { createMeasures, pickTop, createTupleTable, type Measures } from './group-tables.js'

/** Rows that share the values of some columns; `rows` of them, adding up to `measures`. */
export interface Group<K> {
  /** Its position in order of appearance. */
  number: number
  keys: K
  rows: number
  measures: Measures
}

interface Selection<K> {
  /** Groups with at least the required connections. */
  total: number
  /** The first of them. */
  groups: Group<K>[]
}

/** Groups that share a value of one key. None is materialised: there may be 200,000 of which only the count matters. */
export interface Members<K> {
  total: number
  /** The value of a key in each of them, in order of appearance. */
  values<P extends keyof K>(key: P): K[P][]
  /** As Grouping.busiest. */
  busiest(limit: number): Group<K>[]
}

/** A missing value is a value: rows without it are a group of their own, never dropped (T8). */
export interface Grouping<K> {
  /** The number of the group that the row belongs to. */
  readonly add: (row: FlowRow) => number
  readonly size: number
  /**
   * The `limit` groups with most connections, of those with at least `minConnections`. Ties are in the order of the keys, so that
   * the answer does not depend on the order of the rows.
   */
  busiest(limit: number, minConnections?: number): Selection<K>
  /** The same among the groups that share a value of one key, for each of `values` that occurs. */
  busiestWithin<P extends keyof K>(key: P, values: ReadonlySet<K[P]>, limit: number): Map<K[P], Selection<K>>
  /** The groups that share a value of one key, for each of `values` that occurs. */
  within<P extends keyof K>(key: P, values: ReadonlySet<K[P]>): Map<K[P], Members<K>>
  /** The value of a key in one group, by number. */
  value<P extends keyof K>(number: number, key: P): K[P]
  /** The connections of one group, by number. */
  connections(number: number): number
  /** How many distinct values, missing ones not counted, a key has in the groups with at least `minConnections`. */
  distinct(key: keyof K, minConnections?: number): number
  /** Every group, in order of appearance. */
  [Symbol.iterator](): Iterator<Group<K>>
}

/** Groups rows by these columns; their names become the names of the keys. */
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

/** One of the values that another column has in a group. */
export interface Part<V> {
  value: V
  connections: number
}

/** The values that another column has in a group. There may be 200,000, so none is materialised before it is requested. */
export interface Parts<V> {
  total: number
  /** All of them, in order of appearance. */
  values(): V[]
  /** Most connections first. */
  busiest(limit: number): Part<V>[]
}

/** A group, and the values that each other column has in it. */
export type GroupWithParts<K, P> = Group<K> & { parts: { [N in keyof P]: Parts<P[N]> } }

/** A grouping that also keeps the values of other columns inside its groups. */
interface GroupingWithParts<K, P> extends Pick<Grouping<K>, 'add' | 'size' | 'distinct'> {
  /** As the grouping's own, with the parts of these groups. */
  busiest(limit: number, minConnections?: number): { total: number; groups: GroupWithParts<K, P>[] }
}

/** Groups by `columns` and keeps the values of `parts` in each group; a missing value is not a part. */
export function groupWithParts<K extends object, P extends object>(
  columns: { readonly [N in keyof K]: Column<K[N]> },
  parts: { readonly [N in keyof P]: Column<P[N]> },
): GroupingWithParts<K, P> {
  const groups = groupRows<K>(columns)
  const names = Object.keys(parts) as (keyof P)[]
  // The group of the current row, so that a part is grouped by two columns rather than by all of them again.
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
