import type { BulkResultItem } from '../../pce-client/index.js'
import type { ToolContext } from '../call.js'
import { loadLabels, type LabelIndex, type LabelOutput } from '../inventory/labels.js'
import { mayHaveHappened, reasonOf } from '../inventory/pce-errors.js'
import { isChanged } from './plan-labels.js'
import { interfacesFor, planImport, readMeant, type PlannedRow } from './plan-import.js'

/**
 * What happened to a row that was to be written. `unchanged`: somebody else has made the change meanwhile. `not_done`:
 * the workload is as it was. `differs`: what is stored is neither the old state nor what the row says. `unknown`: it is
 * not known whether the PCE has written the row or still will (P110).
 */
export type ImportOutcome = 'created' | 'updated' | 'unchanged' | 'refused' | 'differs' | 'unknown' | 'not_done'

/** A row that creates or changes a workload. */
export type WritingRow = Extract<PlannedRow, { action: 'create' | 'update' }>

export interface WrittenRow {
  planned: WritingRow
  outcome: ImportOutcome
  /** The workload that the row created or was meant to change, if known. */
  href?: string
  /** The PCE's reason for refusing the row, or a remark on the outcome. */
  note?: string
}

export interface ImportWritten {
  results: WrittenRow[]
  /** The error that stopped the writing before all chunks were sent; null if there was none. */
  failure: { error: unknown } | null
  /** The reason why the workloads could not be read back; null if they were read. */
  unread: string | null
}

/** Maximum number of workloads in one bulk request. The PCE processes only one such request at a time (P48). */
const CHUNK = 1000

type Ctx = Pick<ToolContext<true>, 'pce' | 'now' | 'signal' | 'progress'>

export const isWriting = (planned: PlannedRow): planned is WritingRow =>
  planned.action === 'create' || planned.action === 'update'

/**
 * Returns the request body that creates or changes the workload of a row. `real` maps the placeholders of new labels to
 * their hrefs.
 */
export function bodyOf(planned: WritingRow, real: (label: { href: string }) => string = ({ href }) => href): object {
  if (planned.action === 'create') {
    const { row, name, hostname } = planned
    return {
      name,
      hostname,
      ...(row.description !== undefined && { description: row.description }),
      interfaces: interfacesFor(row.addresses),
      labels: [...row.set.values()].map((label) => ({ href: real(label) })),
    }
  }
  const { machine, fields, labels } = planned
  return {
    href: machine.href,
    ...fields,
    ...(isChanged(labels) && { labels: labels.after.map((label) => ({ href: real(label) })) }),
  }
}

/**
 * Writes the rows in chunks of 1,000, one request after the other: first the new workloads, then the changes. A request
 * that was sent is never aborted. Writing stops early if a whole chunk fails or the server stops. Afterwards the
 * workloads are read, and the outcome of every row is determined from what is stored. Never rejects.
 */
export async function writeImport(
  ctx: Ctx,
  rows: readonly WritingRow[],
  index: LabelIndex,
  how: { real: ReadonlyMap<string, LabelOutput>; replaceAddresses: boolean },
): Promise<ImportWritten> {
  const results = [...rows]
    .sort((a, b) => Number(a.action === 'update') - Number(b.action === 'update'))
    .map((planned): WrittenRow => {
      return { planned, outcome: 'not_done', ...(planned.action === 'update' && { href: planned.machine.href }) }
    })
  const failure = await sendChunks(ctx, results, (label) => how.real.get(label.href)?.href ?? label.href)
  const isSent = results.some(({ outcome }) => outcome !== 'not_done')
  return { results, failure, unread: isSent ? await readBack(ctx, results, index, how) : null }
}

async function sendChunks(
  { pce, signal, progress }: Ctx,
  results: readonly WrittenRow[],
  real: (label: { href: string }) => string,
): Promise<ImportWritten['failure']> {
  for (const chunk of chunksOf(results)) {
    const [first] = chunk
    const isCreation = first?.planned.action === 'create'
    const from = results.indexOf(first as WrittenRow)
    try {
      signal.throwIfAborted()
      if (results.length > CHUNK)
        progress({
          progress: from,
          total: results.length,
          message: `Writing ${from + 1} to ${from + chunk.length} of ${results.length}.`,
        })
      const bodies = chunk.map(({ planned }) => bodyOf(planned, real))
      const answered = await (isCreation ? pce.workloads.bulkCreate(bodies) : pce.workloads.bulkUpdate(bodies))
      takeAnswers(chunk, answered)
    } catch (error) {
      if (mayHaveHappened(error)) for (const result of chunk) result.outcome = 'unknown'
      return { error }
    }
  }
  return null
}

/** Divides the rows into chunks. Each chunk contains either only creations or only changes. */
function chunksOf(results: readonly WrittenRow[]): WrittenRow[][] {
  return (['create', 'update'] as const).flatMap((action) => {
    const own = results.filter(({ planned }) => planned.action === action)
    return Array.from({ length: Math.ceil(own.length / CHUNK) }, (_, at) => own.slice(at * CHUNK, (at + 1) * CHUNK))
  })
}

/** Records the PCE's results. There is one result for each object, in the order of the request (P63). */
function takeAnswers(chunk: readonly WrittenRow[], answered: readonly BulkResultItem[]): void {
  const byHref = new Map(answered.map((item) => [item.href, item]))
  for (const [at, result] of chunk.entries()) {
    const { planned } = result
    const item = (planned.action === 'update' ? byHref.get(planned.machine.href) : undefined) ?? answered[at]!
    const [error] = item.errors
    if (error !== undefined) {
      result.outcome = 'refused'
      result.note = [error.token, error.message].filter((text) => text !== '').join(': ')
    } else {
      result.outcome = planned.action === 'create' ? 'created' : 'updated'
      if (item.href !== undefined) result.href = item.href
    }
  }
}

/**
 * Reads the workloads that now match the rows, and determines from them what happened to each row. Returns the reason
 * if they could not be read; the outcomes are then based on the PCE's answers alone.
 */
async function readBack(
  ctx: Ctx,
  results: readonly WrittenRow[],
  index: LabelIndex,
  { real, replaceAddresses }: { real: ReadonlyMap<string, LabelOutput>; replaceAddresses: boolean },
): Promise<string | null> {
  try {
    const rows = results.map(({ planned: { row } }) => ({
      ...row,
      set: new Map([...row.set].map(([key, label]) => [key, real.get(label.href) ?? label])),
    }))
    const labels = real.size === 0 ? index : await loadLabels(ctx.pce, ctx, 'fresh')
    const now = planImport(rows, await readMeant(ctx, rows), labels, { replaceAddresses })
    for (const [at, result] of results.entries()) settle(result, now[at]!)
    return null
  } catch (error) {
    return reasonOf(error)
  }
}

/** Determines what happened to a row from what a new plan would do with it now. */
function settle(result: WrittenRow, now: PlannedRow): void {
  const { planned, outcome } = result
  if (now.action === 'unchanged') {
    result.href = now.machine.href
    if (outcome === 'not_done') Object.assign(result, { outcome: 'unchanged', note: 'somebody else has done it' })
    else result.outcome = planned.action === 'create' ? 'created' : 'updated'
    if (outcome === 'refused') result.note = `it is there now, though the PCE answered: ${result.note ?? ''}`
    return
  }
  if (outcome === 'not_done' || outcome === 'refused') return
  if (outcome === 'unknown') {
    // The change is certainly missing now, and repeating it does no harm.
    if (planned.action === 'update' && now.action === 'update') result.outcome = 'not_done'
    else if (now.action !== 'create') Object.assign(result, { outcome: 'differs', note: noteOf(now) })
    else result.note = 'its answer was lost, and it is not there; the PCE may still be at work on it'
    return
  }
  if (now.action === 'create')
    Object.assign(result, { outcome: 'unknown', note: 'the PCE said that it was created, but it is not there' })
  else Object.assign(result, { outcome: 'differs', note: noteOf(now) })
}

function noteOf(now: PlannedRow): string {
  if (now.action === 'conflict') return `now ${now.reason}: ${now.note}`
  return 'it is stored, but not as the row says'
}
