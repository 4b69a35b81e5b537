import type { Column } from './columns.js'
import type { FlowRow } from './encode-flow.js'
import { groupRows, type Group, type Grouping } from './group-rows.js'

/** One of the values that another column has in a group. */
export interface Part<V> {
  value: V
  connections: number
}

/** The values that another column has in a group. There may be 200,000 of them, so none is made before it is asked for. */
export interface Parts<V> {
  total: number
  /** All of them, in order of appearance. */
  values(): V[]
  /** Most connections first. */
  busiest(limit: number): Part<V>[]
}

/** A group, and of each other column the values it has there. */
export type GroupWithParts<K, P> = Group<K> & { parts: { [N in keyof P]: Parts<P[N]> } }

/** A grouping that also remembers what else differs inside its groups. */
export interface GroupingWithParts<K, P> extends Pick<Grouping<K>, 'add' | 'size' | 'distinct'> {
  /** As the grouping's own, with the parts of these groups. */
  busiest(limit: number, minConnections?: number): { total: number; groups: GroupWithParts<K, P>[] }
}

/** Groups by `columns`; `parts` are columns that do not make groups, and a missing text is no part. */
export function groupWithParts<K extends object, P extends object>(
  columns: { readonly [N in keyof K]: Column<K[N]> },
  parts: { readonly [N in keyof P]: Column<P[N]> },
): GroupingWithParts<K, P> {
  const groups = groupRows<K>(columns)
  const names = Object.keys(parts) as (keyof P)[]
  // The group of the row at hand, so that a part needs two columns and not all of them again.
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
