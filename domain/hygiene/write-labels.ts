import { PceApiError, PceError, type BulkResultItem } from '../../pce-client/index.js'
import type { LabelRef } from '../../schemas/pce/label.js'
import type { Workload } from '../../schemas/pce/workload.js'
import type { ToolContext } from '../call.js'
import { scanWhole } from '../inventory/fetch-every.js'
import { mayHaveHappened, reasonOf } from '../inventory/pce-errors.js'
import { mapBounded } from '../text/pace-work.js'
import { isSameLabels, type Relabelling } from './plan-labels.js'

/**
 * The outcome for one workload. `not_done`: its labels are the old ones. `differs`: its labels are neither the old nor
 * the new ones.
 */
export type LabelOutcome = 'updated' | 'refused' | 'not_done' | 'unknown' | 'differs'

export interface WrittenLabels {
  change: Relabelling
  outcome: LabelOutcome
  /** The PCE's error token if it refused the change. */
  token?: string
  message?: string
  /** The labels as they were read back, if they differ from those that were sent. */
  stored?: readonly LabelRef[]
}

export interface LabelsWritten {
  results: WrittenLabels[]
  /** The error that stopped the writing before all chunks were sent; null if there was none. */
  failure: { error: unknown } | null
  /** The reason why the workloads could not be read back; null if they were read. */
  unread: string | null
}

/** Maximum number of workloads in one bulk request. The PCE processes only one such request at a time (P48). */
const CHUNK = 1000
/** Maximum number of workloads that are read back individually. If there are more, the whole list is read. */
const READ_ONE_BY_ONE = 10
const IN_FLIGHT = 4
/** Time limit in milliseconds for reading back one workload. The write is already done at this point. */
const LOOK_MS = 10_000

type Ctx = Pick<ToolContext<true>, 'pce' | 'signal' | 'progress'>

/**
 * Writes labels in chunks of 1,000, one request after the other, and reads the result back. A request that was sent is
 * never aborted. Writing stops early if a whole chunk fails or the server stops. Every workload gets an outcome, which
 * is corrected if the labels read back show a different one. Never rejects.
 */
export async function writeLabels(ctx: Ctx, changes: readonly Relabelling[]): Promise<LabelsWritten> {
  const { pce, signal, progress } = ctx
  const results = changes.map((change): WrittenLabels => ({ change, outcome: 'not_done' }))
  let failure: LabelsWritten['failure'] = null
  for (let from = 0; from < results.length && failure === null; from += CHUNK) {
    const chunk = results.slice(from, from + CHUNK)
    const until = from + chunk.length
    try {
      signal.throwIfAborted()
      if (results.length > CHUNK)
        progress({
          progress: from,
          total: results.length,
          message: `Labelling ${from + 1} to ${until} of ${results.length}.`,
        })
      const answered = await pce.workloads.bulkUpdate(chunk.map(({ change }) => bodyOf(change)))
      takeAnswers(chunk, answered)
    } catch (error) {
      failure = { error }
      if (mayHaveHappened(error)) for (const result of chunk) result.outcome = 'unknown'
    }
  }
  const unread = await readBack(ctx, results)
  return { results, failure, unread }
}

/**
 * Returns the request body of a change. It contains all labels of the workload, because the PCE replaces the whole
 * list.
 */
export const bodyOf = ({ workload: { href }, after }: Relabelling) => ({
  href,
  labels: after.map((label) => ({ href: label.href })),
})

/**
 * Records the PCE's results. There is one result for each object, in the same order as in the request (P63). If the PCE
 * includes hrefs, these are used instead.
 */
function takeAnswers(chunk: readonly WrittenLabels[], answered: readonly BulkResultItem[]): void {
  const byHref = new Map(answered.map((item) => [item.href, item]))
  for (const [at, result] of chunk.entries()) {
    const { errors } = byHref.get(result.change.workload.href) ?? answered[at]!
    const [first] = errors
    result.outcome = first === undefined ? 'updated' : 'refused'
    if (first !== undefined) Object.assign(result, first)
  }
}

/**
 * Plans changes again for the labels that the workloads have now. A write replaces all labels of a workload (P7), so it
 * would undo a change that another call made after the first plan. If a workload no longer exists, its plan is kept,
 * and the PCE will refuse it.
 *
 * @throws what the PCE client throws; nothing is written then.
 */
export async function planAgain(
  { pce, signal }: Pick<Ctx, 'pce' | 'signal'>,
  changes: readonly Relabelling[],
): Promise<{ changes: Relabelling[]; moved: number }> {
  const now = await readLabels(
    { pce, signal },
    changes.map(({ workload }) => workload.href),
  )
  let moved = 0
  const planned = changes.map((change) => {
    const labels = now.get(change.workload.href)
    if (labels === undefined || isSameLabels(labels, change.before)) return change
    moved += 1
    return change.again(labels)
  })
  return { changes: planned, moved }
}

/** Returns the labels that the workloads have now, by the href of the workload. */
async function readLabels(
  { pce, signal }: Pick<Ctx, 'pce' | 'signal'>,
  hrefs: readonly string[],
): Promise<Map<string, readonly LabelRef[]>> {
  const stored = new Map<string, readonly LabelRef[]>()
  const wanted = new Set(hrefs)
  const see = ({ href, labels, deleted }: Workload) => {
    if (wanted.has(href) && deleted !== true) stored.set(href, labels ?? [])
  }
  if (hrefs.length <= READ_ONE_BY_ONE)
    await mapBounded([...wanted], IN_FLIGHT, async (href) => {
      const read = await pce.workloads.getByReference(href, { totalTimeoutMs: LOOK_MS }).catch((error: unknown) => {
        if (error instanceof PceApiError && error.isGone) return undefined
        throw error
      })
      if (read !== undefined && read.href !== href) throw new PceError('invalid_response', `${href}: another object`)
      if (read !== undefined) see(read)
    })
  else
    await scanWhole(
      { api: pce.workloads, params: { include: 'labels' }, signal },
      { onItems: (items) => items.forEach(see) },
    )
  return stored
}

/**
 * Corrects the outcomes according to the labels that are stored now. Returns the reason if the stored labels could not
 * be read.
 */
async function readBack({ pce, signal }: Ctx, results: readonly WrittenLabels[]): Promise<string | null> {
  let stored: Map<string, readonly LabelRef[]>
  try {
    stored = await readLabels(
      { pce, signal },
      results.map(({ change }) => change.workload.href),
    )
  } catch (error) {
    return reasonOf(error)
  }
  for (const result of results) {
    const found = stored.get(result.change.workload.href)
    if (found !== undefined) correct(result, found)
  }
  return null
}

function correct(result: WrittenLabels, stored: readonly LabelRef[]): void {
  const { before, after } = result.change
  if (isSameLabels(stored, after)) {
    result.outcome = 'updated'
    return
  }
  if (isSameLabels(stored, before)) {
    if (result.outcome === 'unknown') result.outcome = 'not_done'
    if (result.outcome !== 'updated') return
  }
  if (result.outcome === 'refused') return
  result.outcome = 'differs'
  result.stored = stored
}
