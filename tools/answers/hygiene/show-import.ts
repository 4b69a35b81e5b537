import { Type } from '@sinclair/typebox'
import { Counts } from '../../../schemas/common.js'
import type { Limits } from '../../../schemas/config.js'
import { addTo } from '../../../domain/hygiene/known-machines.js'
import { CONFLICTS, type Conflict, type PlannedRow } from '../../../domain/hygiene/plan-import.js'
import { describeRelabelling, isChanged } from '../../../domain/hygiene/plan-labels.js'
import type { ImportOutcome, WrittenRow } from '../../../domain/hygiene/write-import.js'
import { writeLabel } from '../../../schemas/label-reference.js'
import { clipSentence, quote } from '../../../domain/text/escape-text.js'
import { answerBudget, jsonBytes, rowsWithin } from '../byte-budget.js'

/** What would happen to a row, according to a dry run. */
export const PLANNED = ['conflict', 'update', 'create', 'unchanged'] as const
export type PlannedOutcome = (typeof PLANNED)[number]

/** The outcomes of rows after a write, in the order in which answers list them. Conflicts come after failures. */
const WRITTEN: readonly (ImportOutcome | 'conflict')[] = [
  'differs',
  'unknown',
  'refused',
  'not_done',
  'conflict',
  'updated',
  'created',
  'unchanged',
]

const COLUMNS = ['line', 'outcome', 'name', 'ip_addresses', 'href', 'note']
/** Number of rows that an answer lists by default. */
export const DEFAULT_ROWS = 20
/** Maximum number of addresses shown for a row, and maximum length of a note. */
const MOST_ADDRESSES = 3
const LONGEST_NOTE = 300
/** Maximum length of a list of line numbers. Nearly all such lists fit, because they are written as ranges. */
const LONGEST_LINES = 3000
/** Number of bytes that rows leave free for a cursor. */
const SPARE_BYTES = 400

export const RowsOut = Type.Object(
  {
    columns: Type.Array(Type.String(), { description: 'Of data; line: of csv, or position in rows' }),
    data: Type.Array(Type.Array(Type.Union([Type.String(), Type.Integer()])), {
      description: 'One per row; the note is why, or what changes',
    }),
  },
  { description: 'What needs attention first; outcomes counts all' },
)
export const ConflictsOut = Type.Optional(Counts('Rows that are not written, by reason'))
export const LinesOut = Type.Optional(
  Type.Record(Type.String(), Type.String(), { description: 'After a write: the lines of all rows, by outcome' }),
)

/** A row of the answer, with its rank in the order of rows. */
interface ShownRow {
  line: number
  outcome: string
  rank: number
  cells: (string | number)[]
}

/**
 * Shows the rows of a dry run. A managed host is listed after the changes, because leaving it alone is not a mistake.
 */
export const showPlanned = (planned: readonly PlannedRow[]): ShownRow[] =>
  planned.map((one) => {
    const rank =
      one.action !== 'conflict'
        ? { update: 20, create: 40, unchanged: 50 }[one.action]
        : one.reason === 'managed_host'
          ? 30
          : CONFLICTS.indexOf(one.reason)
    return toRow(one, one.action, rank, noteOfPlan(one))
  })

/** Shows the rows after a write: those that were written or attempted, and those that were not meant to be written. */
export const showWritten = (results: readonly WrittenRow[], others: readonly PlannedRow[]): ShownRow[] => [
  ...results.map(({ planned, outcome, href, note }) =>
    toRow(planned, outcome, WRITTEN.indexOf(outcome) * 10, note ?? noteOfPlan(planned), href),
  ),
  ...others.map((one) => {
    const outcome = one.action === 'conflict' ? 'conflict' : 'unchanged'
    const within = one.action === 'conflict' ? CONFLICTS.indexOf(one.reason) : 0
    return toRow(one, outcome, WRITTEN.indexOf(outcome) * 10 + within, noteOfPlan(one))
  }),
]

function toRow(planned: PlannedRow, outcome: string, rank: number, note: string, href = ''): ShownRow {
  const { row } = planned
  const machine = 'machine' in planned ? planned.machine : undefined
  const addresses = row.addresses.slice(0, MOST_ADDRESSES).join(', ')
  const more = row.addresses.length - MOST_ADDRESSES
  const shown = more > 0 ? `${addresses} and ${more} more` : addresses
  const name = row.name ?? row.hostname ?? machine?.name ?? ''
  const cells = [row.line, outcome, name, shown, href || machine?.href || '', clipSentence(note, LONGEST_NOTE)]
  return { line: row.line, outcome, rank, cells }
}

function noteOfPlan(planned: PlannedRow): string {
  switch (planned.action) {
    case 'conflict':
      return `${planned.reason}: ${planned.note}`
    case 'create':
      return [...planned.row.set.values()].map(writeLabel).join(', ')
    case 'unchanged':
      return ''
    case 'update': {
      const { machine, fields, labels } = planned
      const { before, after } = describeRelabelling(labels)
      const was = { name: machine.ownName, hostname: machine.hostname, description: machine.description }
      return [
        ...(isChanged(labels) ? [`${before} → ${after}`] : []),
        ...(['name', 'hostname', 'description'] as const).flatMap((field) =>
          fields[field] === undefined ? [] : [`${field} ${quote(was[field] ?? '')} → ${quote(fields[field])}`],
        ),
        ...(fields.interfaces === undefined
          ? []
          : [`addresses ${machine.addresses.join(', ') || 'none'} → ${planned.row.addresses.join(', ')}`]),
      ].join('; ')
    }
  }
}

/** Counts rows by outcome. The outcomes in `named` are included even if their count is 0. */
export function countRows(rows: readonly ShownRow[], named: readonly string[]): Record<string, number> {
  const counts = Object.fromEntries(named.map((outcome) => [outcome, 0]))
  for (const { outcome } of rows) counts[outcome] = (counts[outcome] ?? 0) + 1
  return counts
}

/** Counts conflicts by reason; undefined if there are none. */
export function countConflicts(planned: readonly PlannedRow[]): Partial<Record<Conflict, number>> | undefined {
  const counts = new Map<Conflict, number>()
  for (const one of planned) if (one.action === 'conflict') counts.set(one.reason, (counts.get(one.reason) ?? 0) + 1)
  return counts.size === 0
    ? undefined
    : Object.fromEntries(CONFLICTS.flatMap((reason) => (counts.has(reason) ? [[reason, counts.get(reason)]] : [])))
}

/** Sorts rows, those that need attention first, and cuts a page that fits next to the rest of the answer. */
export function pageRows(
  rows: readonly ShownRow[],
  { offset = 0, most = DEFAULT_ROWS }: { offset?: number; most?: number },
  envelope: object,
  limits: Limits,
) {
  const sorted = [...rows].sort((a, b) => a.rank - b.rank || a.line - b.line)
  const page = sorted.slice(offset, offset + most).map(({ cells }) => cells)
  const room = answerBudget(limits) - jsonBytes([envelope, COLUMNS]) - SPARE_BYTES
  const data = rowsWithin(page, room)
  return {
    listed: { columns: COLUMNS, data },
    next: offset + data.length < sorted.length ? offset + data.length : null,
  }
}

/** Lists the line numbers of all rows by outcome, as ranges: `2-1001, 1003`. */
export function listLines(rows: readonly ShownRow[]): Record<string, string> {
  const byOutcome = new Map<string, number[]>()
  for (const { outcome, line } of rows) addTo(byOutcome, outcome, line)
  return Object.fromEntries([...byOutcome].map(([outcome, lines]) => [outcome, toRanges(lines)]))
}

function toRanges(lines: readonly number[]): string {
  const ranges: [number, number][] = []
  for (const line of [...lines].sort((a, b) => a - b)) {
    const last = ranges.at(-1)
    if (last !== undefined && line === last[1] + 1) last[1] = line
    else ranges.push([line, line])
  }
  let text = ''
  for (const [at, [from, to]] of ranges.entries()) {
    const next = `${text === '' ? '' : ', '}${from === to ? from : `${from}-${to}`}`
    if (text.length + next.length > LONGEST_LINES) {
      const left = ranges.slice(at).reduce((sum, [first, last]) => sum + last - first + 1, 0)
      return `${text} and ${left} more`
    }
    text += next
  }
  return text
}
