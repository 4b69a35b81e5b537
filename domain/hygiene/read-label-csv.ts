import { ToolError } from '../../schemas/errors.js'
import { readTable, refuseProblems, requireLines } from './read-table.js'

/**
 * The values that identify the workload of a table line. If there are several, they must all belong to the same
 * workload.
 */
export interface CsvReference {
  href?: string
  name?: string
  hostname?: string
}

/** A line of the table: a workload and the requested value for each key. */
export interface CsvLine {
  /** Line number in the text, counted from 1. */
  line: number
  workload: CsvReference
  /**
   * The requested label values by key; null removes the label. A key whose cell is empty is absent, and its label
   * stays.
   */
  values: Map<string, string | null>
}

export const IDENTITIES = ['href', 'name', 'hostname'] as const
const LONGEST_CELL = 1024

/**
 * Reads a table of workloads and labels. The header names the columns: `href`, `name`, `hostname` and label keys. A
 * cell that contains `removeToken` removes the label. Throws invalid_argument with all problems, each with line and
 * column.
 */
export function readLabelCsv(text: string, keys: readonly string[], removeToken: string | undefined): CsvLine[] {
  const form = { identities: IDENTITIES, keys, needsKey: true, longest: () => LONGEST_CELL }
  const { lines: read, problems } = readTable(text, form)
  // Cells are trimmed, so the token with which they are compared must be trimmed too.
  const token = removeToken?.trim()
  if (token === '')
    throw new ToolError('invalid_argument', 'remove_token is blank: an empty cell changes nothing.', {
      argument: 'remove_token',
    })
  const lines = read.map(({ line, cells }): CsvLine => {
    const workload: CsvReference = {}
    const values = new Map<string, string | null>()
    for (const [column, cell] of cells) {
      if (isIdentity(column)) workload[column] = cell
      else values.set(column, cell === token ? null : cell)
    }
    if (Object.keys(workload).length === 0) problems.push({ line, problem: 'it names no workload' })
    return { line, workload, values }
  })
  refuseProblems(problems.sort((a, b) => a.line - b.line))
  requireLines(lines)
  return lines
}

const isIdentity = (column: string): column is (typeof IDENTITIES)[number] =>
  (IDENTITIES as readonly string[]).includes(column)
