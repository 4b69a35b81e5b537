import { CsvError, parse } from 'csv-parse/sync'
import { ToolError } from '../../schemas/errors.js'
import { nearNames } from '../text/compare-texts.js'
import { quote } from '../text/escape-text.js'

/** The values that identify the workload of a line. All given values must belong to the same workload. */
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
   * The requested values by key; null removes the label. Keys with an empty cell are absent, because their labels stay.
   */
  values: Map<string, string | null>
}

/** A problem with a line of the table. `column` is the name in the header. */
export interface CsvProblem {
  line: number
  column?: string
  problem: string
}

export const IDENTITIES = ['href', 'name', 'hostname'] as const
const DELIMITERS = [',', ';', '\t'] as const
/** Maximum number of problems named in an error. */
const MOST_NAMED = 20
const LONGEST_CELL = 1024
/**
 * Maximum number of columns. It is needed because each unknown column is compared with all label keys, and it does no
 * harm because a PCE has far fewer keys.
 */
const MOST_COLUMNS = 100

/**
 * Reads a table of workloads and labels (RFC 4180, also with semicolons or tabs). The header names the columns: `href`,
 * `name`, `hostname` and label keys. `removeToken` is the cell text that removes a label. Throws invalid_argument with
 * all problems by line and column. A column with any other name is also a problem, because ignoring it would lose data.
 */
export function readLabelCsv(text: string, keys: readonly string[], removeToken: string | undefined): CsvLine[] {
  const [header, ...records] = parseRecords(text)
  if (header === undefined) throw new ToolError('invalid_argument', 'csv is empty.', { argument: 'csv' })
  const columns = readHeader(header, keys)
  // Cells are trimmed, so the token that they are compared with must be trimmed too.
  const token = removeToken?.trim()
  if (token === '')
    throw new ToolError('invalid_argument', 'remove_token is blank: an empty cell changes nothing.', {
      argument: 'remove_token',
    })
  const problems: CsvProblem[] = []
  const lines = records.flatMap(({ cells, line }): CsvLine[] => {
    if (cells.length !== columns.length) {
      problems.push({ line, problem: `it has ${cells.length} cells, the header ${columns.length}` })
      return []
    }
    const workload: CsvReference = {}
    const values = new Map<string, string | null>()
    for (const [at, column] of columns.entries()) {
      const cell = cells[at] ?? ''
      if (cell === '') continue
      if (cell.length > LONGEST_CELL) problems.push({ line, column, problem: `at most ${LONGEST_CELL} characters` })
      else if (isIdentity(column)) workload[column] = cell
      else values.set(column, cell === token ? null : cell)
    }
    if (Object.keys(workload).length === 0) problems.push({ line, problem: 'it names no workload' })
    return [{ line, workload, values }]
  })
  refuseProblems(problems)
  if (lines.length === 0) throw new ToolError('invalid_argument', 'csv has a header and no line.', { argument: 'csv' })
  return lines
}

/**
 * Throws invalid_argument if there are problems. The error lists the first problems, each with line and column.
 * `candidates` are the workloads that ambiguous names may mean.
 */
export function refuseProblems(problems: readonly CsvProblem[], candidates: readonly object[] = []): void {
  if (problems.length === 0) return
  const named = problems.slice(0, MOST_NAMED)
  const said = named.map(({ line, column, problem }) => {
    return `line ${line}${column === undefined ? '' : `, column ${column}`}: ${problem}`
  })
  const more = problems.length > named.length ? `; and ${problems.length - named.length} more` : ''
  const shown = candidates.length > 0 && { candidates: candidates.slice(0, MOST_NAMED) }
  const details = { argument: 'csv', problems_total: problems.length, ...shown }
  const text = `csv, ${said.join('; ')}${more}`
  throw new ToolError('invalid_argument', `${text}${text.endsWith('?') ? '' : '.'} Nothing was written.`, details)
}

function parseRecords(text: string): { cells: string[]; line: number }[] {
  const [header = ''] = /\S[^\r\n]*/.exec(text) ?? []
  const delimiter = DELIMITERS.find((one) => header.includes(one)) ?? ','
  const options = { bom: true, delimiter, info: true, relax_column_count: true, skip_empty_lines: true, trim: true }
  try {
    // The types of the CSV library do not reflect the option `info`.
    const parsed = parse(text, options) as unknown as { record: string[]; info: { lines: number } }[]
    return parsed.map(({ record, info }) => ({ cells: record, line: info.lines }))
  } catch (error) {
    if (!(error instanceof CsvError)) throw error
    const { lines, message } = error as CsvError & { lines?: number }
    const where = lines === undefined ? '' : `, line ${lines}`
    throw new ToolError('invalid_argument', `csv${where}: ${message}`, { argument: 'csv', line: lines })
  }
}

function readHeader({ cells, line }: { cells: string[]; line: number }, keys: readonly string[]): string[] {
  if (cells.length > MOST_COLUMNS)
    refuseProblems([{ line, problem: `the header has ${cells.length} columns, at most ${MOST_COLUMNS} are read` }])
  const columns = cells.map((cell) => (isIdentity(cell.toLowerCase()) ? cell.toLowerCase() : cell))
  // If no column names the workloads, the first column that is not a label key was probably meant to name them.
  const nameless = columns.some(isIdentity) ? -1 : columns.findIndex((column) => !keys.includes(column))
  const problems = columns.flatMap((column, at): CsvProblem[] => {
    if (columns.indexOf(column) !== at) return [{ line, column, problem: 'the column is there twice' }]
    if (isIdentity(column) || keys.includes(column)) return []
    if (at === nameless) {
      const problem = `${quote(column)} names no column: what names the workloads is called ${IDENTITIES.join(', ')}; call it ${nearNames(column, IDENTITIES, 1)[0] ?? (/host/iu.test(column) ? 'hostname' : 'name')}`
      return [{ line, problem }]
    }
    const [near] = nearNames(column, [...IDENTITIES, ...keys], 1)
    const meant = near === undefined ? '' : `; did you mean ${quote(near)}?`
    const problem = `column ${at + 1} is neither ${IDENTITIES.join(', ')} nor the key of a label${meant}`
    return [{ line, column, problem }]
  })
  if (!columns.some(isIdentity) && nameless === -1)
    problems.push({ line, problem: `no column ${IDENTITIES.join(', ')} names the workloads` })
  if (columns.every(isIdentity)) problems.push({ line, problem: 'no column is the key of a label' })
  refuseProblems(problems)
  return columns
}

const isIdentity = (column: string): column is (typeof IDENTITIES)[number] =>
  (IDENTITIES as readonly string[]).includes(column)
