import { CsvError, parse } from 'csv-parse/sync'
import { ToolError } from '../../schemas/errors.js'
import { nearNames } from '../text/compare-texts.js'
import { quote } from '../text/escape-text.js'

/**
 * The columns that a table may have. Any other column is reported as a problem, because ignoring it would lose data.
 */
export interface TableForm {
  /** The columns that identify the workload of a line. The table must have at least one of them. */
  identities: readonly string[]
  /** Further columns that are allowed and are not label keys. */
  others?: readonly string[]
  /** Other accepted spellings of the column names, in lower case, each with the column that it stands for. */
  aliases?: Readonly<Record<string, string>>
  /** The label keys that are allowed as columns of the table. */
  keys: readonly string[]
  /** True if at least one column of the table must be a label key. */
  needsKey?: boolean
  /** Returns the maximum number of characters in a cell of the given column. */
  longest: (column: string) => number
}

/** A line of a table with its cells by column. Empty cells are absent. */
export interface TableLine {
  /** Line number in the text, counted from 1. */
  line: number
  cells: Map<string, string>
}

/** A problem with a line of the table. `column` is the column's name as the header spells it. */
export interface CsvProblem {
  line: number
  column?: string
  problem: string
}

const DELIMITERS = [',', ';', '\t'] as const
/**
 * Matches column names that need no quotation marks in a message, because they cannot be mistaken for words of the
 * sentence.
 */
const PLAIN = /^[\w-]{1,64}$/u
/** Maximum number of problems named in an error. */
const MOST_NAMED = 20
/**
 * Maximum number of columns. The limit is needed because each unknown column is compared with all label keys. It does
 * no harm, because a PCE has far fewer keys.
 */
const MOST_COLUMNS = 100

/**
 * Reads a table with a header (RFC 4180; semicolons or tabs may separate the cells too). Problems with single lines are
 * returned, so that the caller can report them together with problems that it finds itself.
 *
 * @throws {ToolError} invalid_argument if the text is not a table, is empty, or has a header that does not fit the
 * form.
 */
export function readTable(text: string, form: TableForm): { lines: TableLine[]; problems: CsvProblem[] } {
  const [header, ...records] = parseRecords(text)
  if (header === undefined) throw new ToolError('invalid_argument', 'csv is empty.', { argument: 'csv' })
  const columns = readHeader(header, form)
  const problems: CsvProblem[] = []
  const lines = records.flatMap(({ cells, line }): TableLine[] => {
    if (cells.length !== columns.length) {
      problems.push({ line, problem: `it has ${cells.length} cells, the header ${columns.length}` })
      return []
    }
    const read = new Map<string, string>()
    for (const [at, column] of columns.entries()) {
      const cell = cells[at] ?? ''
      if (cell === '') continue
      const longest = form.longest(column)
      if (cell.length > longest) problems.push({ line, column, problem: `at most ${longest} characters` })
      else read.set(column, cell)
    }
    return [{ line, cells: read }]
  })
  return { lines, problems }
}

/**
 * Throws invalid_argument if a table has a header but no lines. It must be called after the problems of all lines have
 * been reported.
 */
export function requireLines(lines: readonly unknown[]): void {
  if (lines.length === 0) throw new ToolError('invalid_argument', 'csv has a header and no line.', { argument: 'csv' })
}

/**
 * Throws invalid_argument if there are problems. The error lists the first few, each with line and column. `candidates`
 * are the workloads to which ambiguous names may refer. `argument` is `rows` if the lines are elements of a list,
 * counted from 1.
 */
export function refuseProblems(
  problems: readonly CsvProblem[],
  candidates: readonly object[] = [],
  argument: 'csv' | 'rows' = 'csv',
): void {
  if (problems.length === 0) return
  const [place, part] = argument === 'csv' ? ['line', 'column'] : ['row', 'field']
  const named = problems.slice(0, MOST_NAMED)
  const said = named.map(({ line, column, problem }) => {
    return `${place} ${line}${column === undefined ? '' : `, ${part} ${PLAIN.test(column) ? column : quote(column)}`}: ${problem}`
  })
  const more = problems.length > named.length ? `; and ${problems.length - named.length} more` : ''
  const shown = candidates.length > 0 && { candidates: candidates.slice(0, MOST_NAMED) }
  const details = { argument, problems_total: problems.length, ...shown }
  const text = `${argument}, ${said.join('; ')}${more}`
  throw new ToolError('invalid_argument', `${text}${text.endsWith('?') ? '' : '.'} Nothing was written.`, details)
}

function parseRecords(text: string): { cells: string[]; line: number }[] {
  const [header = ''] = /\S[^\r\n]*/.exec(text) ?? []
  const delimiter = DELIMITERS.find((one) => header.includes(one)) ?? ','
  const options = { bom: true, delimiter, info: true, relax_column_count: true, skip_empty_lines: true, trim: true }
  try {
    // The type definitions of the CSV library ignore the option `info`.
    const parsed = parse(text, options) as unknown as { record: string[]; info: { lines: number } }[]
    return parsed.map(({ record, info }) => ({ cells: record, line: info.lines }))
  } catch (error) {
    if (!(error instanceof CsvError)) throw error
    const { lines, message } = error as CsvError & { lines?: number }
    const where = lines === undefined ? '' : `, line ${lines}`
    throw new ToolError('invalid_argument', `csv${where}: ${message}`, { argument: 'csv', line: lines })
  }
}

function readHeader({ cells, line }: { cells: string[]; line: number }, form: TableForm): string[] {
  const { identities, others = [], aliases = {}, keys, needsKey = false } = form
  if (cells.length > MOST_COLUMNS)
    refuseProblems([{ line, problem: `the header has ${cells.length} columns, at most ${MOST_COLUMNS} are read` }])
  const own = [...identities, ...others]
  const columns = cells.map((cell) => {
    const lower = cell.toLowerCase()
    const meant = Object.hasOwn(aliases, lower) && !keys.includes(cell) ? aliases[lower]! : lower
    return own.includes(meant) ? meant : cell
  })
  const isIdentity = (column: string) => identities.includes(column)
  // If no column identifies the workloads, the first column that is not a label key was probably meant to do so.
  const nameless = columns.some(isIdentity)
    ? -1
    : columns.findIndex((column) => !keys.includes(column) && !own.includes(column))
  const problems = columns.flatMap((column, at): CsvProblem[] => {
    if (columns.indexOf(column) !== at) return [{ line, column, problem: 'the column is there twice' }]
    if (own.includes(column) || keys.includes(column)) return []
    if (at === nameless) {
      const problem = `${quote(column)} names no column: what names the workloads is called ${identities.join(', ')}; call it ${nearNames(column, identities, 1)[0] ?? (/host/iu.test(column) ? 'hostname' : 'name')}`
      return [{ line, problem }]
    }
    const [near] = nearNames(column, [...own, ...keys], 1)
    const meant = near === undefined ? '' : `; did you mean ${quote(near)}?`
    const problem = `column ${at + 1} is neither ${own.join(', ')} nor the key of a label${meant}`
    return [{ line, column, problem }]
  })
  if (!columns.some(isIdentity) && nameless === -1)
    problems.push({ line, problem: `no column ${identities.join(', ')} names the workloads` })
  if (needsKey && columns.every(isIdentity)) problems.push({ line, problem: 'no column is the key of a label' })
  refuseProblems(problems)
  return columns
}
