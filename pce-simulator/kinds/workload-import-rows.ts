import type { Json } from '../model.js'
import { readCsv } from '../inventory/read-csv.js'
import { invalidInput } from '../refusal.js'

/** The columns of a workload import whose cells are `true` or `false`. */
const SWITCHES = new Set(['online', 'datacenter_nat_1to1'])

/** The changes of one row: labels by dimension (null removes the label of the dimension), and other fields of a PUT. */
export interface Row {
  href: string
  hostname: string
  labels: Map<string, string | null>
  fields: Json
  /**
   * The fields of a workload without a VEN. If the workload does not exist yet, it is created with them. Rows of a CSV
   * table do not have this field, because they never create workloads.
   */
  creation?: Json
}

/** Parses a CSV table of workload changes. A cell that equals `token` clears the field of its column. */
export function readTable(text: string, token: string | null): Row[] {
  const [header = [], ...records] = readCsv(text)
  const columns = header.map((title) => title.trim())
  if (!columns.includes('href') && !columns.includes('hostname')) {
    throw invalidInput('The table needs a column href or hostname')
  }
  return records.map((cells) => {
    const row: Row = { href: '', hostname: '', labels: new Map(), fields: {} }
    columns.forEach((column, index) => {
      const cell = cells[index] ?? ''
      const key = /^label:\s*(\S+)$/.exec(column)?.[1]
      if (column === 'href' || column === 'hostname') row[column] = cell
      else if (cell !== '') {
        const value = cell === token ? null : cell
        if (key !== undefined) row.labels.set(key, value)
        else row.fields[column] = SWITCHES.has(column) ? value === 'true' : value
      }
    })
    return row
  })
}

export function readArray(body: unknown): Row[] {
  if (!Array.isArray(body)) throw invalidInput('The body must be text/csv or an array')
  return body.map((item: unknown) => {
    if (typeof item !== 'object' || item === null) throw invalidInput('Every row must be an object')
    const { href = '', hostname = '', labels = [], ...fields } = item as Json
    const pairs = Array.isArray(labels) ? (labels as Partial<Record<'href' | 'key' | 'value', string>>[]) : []
    const named = pairs.filter(({ key, value }) => key !== undefined && value !== undefined)
    const sent = named.length < pairs.length ? { ...fields, labels } : fields
    return {
      href: String(href),
      hostname: String(hostname),
      labels: new Map(named.map(({ key, value }) => [key!, value!])),
      fields: sent,
      ...(href === '' && { creation: { ...sent, ...(hostname !== '' && { hostname }) } }),
    }
  })
}
