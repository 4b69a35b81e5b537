import { ToolError } from '../../schemas/errors.js'
import { writeLabel } from '../../schemas/label-reference.js'
import { describeReference, type LabelIndex, type LabelOutput, type LabelReference } from '../inventory/labels.js'
import { isAddress } from '../inventory/parse-addresses.js'
import { machineAddress } from '../policy/addresses.js'
import { hidesCharacters, quote } from '../text/escape-text.js'
import { planWish, type WishPlan } from './plan-labels.js'
import { readTable, refuseProblems, requireLines, type CsvProblem } from './read-table.js'

/** A workload to import, as a caller gives it in the argument `rows`. */
export interface GivenRow {
  name?: string
  hostname?: string
  ip_addresses?: string[]
  description?: string
  labels?: LabelReference[]
}

/** A workload to import, after its values have been checked. Absent values are left as they are on the PCE. */
export interface ImportRow {
  /** The line number in the table, or the position in the list, counted from 1. */
  line: number
  name?: string
  hostname?: string
  description?: string
  /** The addresses of the workload, each in canonical form. */
  addresses: readonly string[]
  /** The labels to set, by key. A label that does not exist yet has a placeholder as its href. */
  set: ReadonlyMap<string, LabelOutput>
}

export interface ImportRows {
  rows: ImportRow[]
  /** The labels that all rows together need. */
  labels: WishPlan['labels']
}

/** Maximum number of rows: ten of the PCE's largest bulk requests. */
export const MOST_ROWS = 10_000
/** Maximum number of addresses of one workload. */
export const MOST_ADDRESSES = 100
const LONGEST: Readonly<Record<string, number>> = { description: 4096, ip_addresses: 4096 }
const LONGEST_NAME = 255

const TEXTS = ['name', 'hostname', 'description'] as const
export const IMPORT_COLUMNS = ['name', 'hostname', 'ip_addresses', 'description'] as const
const ALIASES = {
  ip: 'ip_addresses',
  ips: 'ip_addresses',
  address: 'ip_addresses',
  addresses: 'ip_addresses',
  ip_address: 'ip_addresses',
  'ip address': 'ip_addresses',
  'ip addresses': 'ip_addresses',
  'host name': 'hostname',
  host_name: 'hostname',
}

/** Matches what separates several addresses in one cell. */
const BETWEEN_ADDRESSES = /[\s,;|]+/u
/** Matches the characters with which a formula begins in a spreadsheet. */
const FORMULA = /^[=+\-@]/u

/**
 * A row whose strings, addresses and labels have not been checked yet. Each label has the name of its column, for error
 * messages.
 */
interface RawRow {
  line: number
  texts: Partial<Record<(typeof TEXTS)[number], string>>
  addresses: readonly string[]
  labels: readonly { column: string; reference: LabelReference }[]
}

/**
 * Reads the workloads to import from a CSV text. The header names the columns: `name`, `hostname`, `ip_addresses`
 * (several in one cell), `description`, and label keys. `mayCreate` says whether labels may be used that do not exist
 * yet.
 *
 * @throws {ToolError} invalid_argument with all problems, each with line and column.
 */
export function readImportCsv(csv: string, keys: readonly string[], index: LabelIndex, mayCreate: boolean): ImportRows {
  const { lines, problems } = readTable(csv, {
    identities: ['name', 'hostname', 'ip_addresses'],
    others: ['description'],
    aliases: ALIASES,
    keys,
    longest: (column) => LONGEST[column] ?? LONGEST_NAME,
  })
  const raw = lines.map(({ line, cells }): RawRow => {
    const { name, hostname, description, ip_addresses: addresses, ...labels } = Object.fromEntries(cells)
    return {
      line,
      texts: { name, hostname, description },
      addresses: (addresses ?? '').split(BETWEEN_ADDRESSES).filter((text) => text !== ''),
      labels: Object.entries(labels).map(([key, value]) => ({ column: key, reference: writeLabel({ key, value }) })),
    }
  })
  const read = checkRows(raw, index, mayCreate, problems, 'csv')
  requireLines(lines)
  return read
}

/** Reads the workloads to import from the argument `rows`. Throws like `readImportCsv`, with rows counted from 1. */
export function readImportRows(rows: readonly GivenRow[], index: LabelIndex, mayCreate: boolean): ImportRows {
  const raw = rows.map(({ ip_addresses: addresses = [], labels = [], ...texts }, at): RawRow => ({
    line: at + 1,
    texts,
    addresses,
    labels: labels.map((reference) => ({ column: 'labels', reference })),
  }))
  return checkRows(raw, index, mayCreate, [], 'rows')
}

function checkRows(
  raw: readonly RawRow[],
  index: LabelIndex,
  mayCreate: boolean,
  problems: CsvProblem[],
  argument: 'csv' | 'rows',
): ImportRows {
  if (raw.length > MOST_ROWS) {
    const text = `${argument} has ${raw.length} rows; a call imports ${MOST_ROWS} at most. Divide it.`
    throw new ToolError('invalid_argument', text, { argument })
  }
  const plan = createLabelPlans(index, mayCreate)
  const entries = new Map<string, WishPlan['labels']['entries'][number]>()
  const warnings = new Set<string>()
  const rows = raw.map(({ line, texts, addresses, labels }): ImportRow => {
    const report = (column: string | undefined, problem: string) =>
      problems.push({ line, ...(column !== undefined && { column }), problem })
    const row: Pick<ImportRow, (typeof TEXTS)[number]> = {}
    for (const field of TEXTS) {
      const text = texts[field]
      if (text === undefined || text === '') continue
      const problem = problemOfText(text)
      if (problem === null) row[field] = text
      else report(field, problem)
    }
    if (!texts.name && !texts.hostname && addresses.length === 0) report(undefined, 'it names no workload')
    const own = checkAddresses(addresses, (problem) => report('ip_addresses', problem))
    const wish = plan(labels)
    if (Array.isArray(wish)) for (const { column, problem } of wish) report(column, problem)
    else {
      for (const entry of wish.labels.entries) {
        const { key, value } = 'missing' in entry ? entry.missing : entry.existing
        entries.set(JSON.stringify([key, value]), entry)
      }
      for (const warning of wish.labels.warnings) warnings.add(warning)
    }
    return { line, ...row, addresses: own, set: Array.isArray(wish) ? new Map() : wish.wish.set }
  })
  refuseProblems(
    problems.sort((a, b) => a.line - b.line),
    [],
    argument,
  )
  return { rows, labels: { entries: [...entries.values()], warnings: [...warnings] } }
}

/** Returns the reason why a string cannot be the name or description of a workload, or null if it can. */
function problemOfText(text: string): string | null {
  if (hidesCharacters(text)) return `${quote(text)} has characters that nobody sees`
  if (text !== text.trim()) return `${quote(text)} begins or ends with white space`
  return FORMULA.test(text) ? `${quote(text)} begins as a formula of a spreadsheet does` : null
}

/** Returns the addresses of a row in canonical form, and reports the invalid ones. */
function checkAddresses(addresses: readonly string[], report: (problem: string) => void): string[] {
  const own = new Set<string>()
  if (addresses.length > MOST_ADDRESSES)
    report(`it has ${addresses.length} addresses, at most ${MOST_ADDRESSES} are taken`)
  for (const text of addresses.slice(0, MOST_ADDRESSES)) {
    const address = machineAddress(text)
    if (address === null)
      report(
        isAddress(text)
          ? `${text} is the address of no single machine (loopback, link-local, multicast or none at all)`
          : `${quote(text)} is not an IPv4 or IPv6 address`,
      )
    else if (own.has(address)) report(`${text} is there twice`)
    else own.add(address)
  }
  return [...own]
}

/**
 * Creates a function that plans the labels of a row, or returns what is wrong with them. Rows with equal labels share
 * one plan.
 */
function createLabelPlans(index: LabelIndex, mayCreate: boolean) {
  const known = new Map<string, WishPlan | { column: string; problem: string }[]>()
  const attempt = (references: readonly LabelReference[]): WishPlan | string => {
    try {
      const plan = planWish(index, { set: references }, mayCreate)
      const formula = plan.labels.entries.find((entry) => 'missing' in entry && FORMULA.test(entry.missing.value))
      if (formula === undefined) return plan
      return `${quote(describeReference(references[0] ?? ''))} would be a new label that begins as a formula of a spreadsheet does`
    } catch (error) {
      if (!(error instanceof ToolError)) throw error
      return error.message.replace(/^set: /u, '').replace(/\.$/u, '')
    }
  }
  return (labels: RawRow['labels']): WishPlan | { column: string; problem: string }[] => {
    const id = JSON.stringify(labels)
    const earlier = known.get(id)
    if (earlier !== undefined) return earlier
    const wrong = labels.flatMap(({ column, reference }) => {
      const one = attempt([reference])
      return typeof one === 'string' ? [{ column, problem: one }] : []
    })
    const whole = wrong.length > 0 ? wrong : attempt(labels.map(({ reference }) => reference))
    const plan = typeof whole === 'string' ? [{ column: 'labels', problem: whole }] : whole
    known.set(id, plan)
    return plan
  }
}
