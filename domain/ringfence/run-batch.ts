import { PceError } from '../../pce-client/index.js'
import { ToolError } from '../../schemas/errors.js'
import type { ToolContext } from '../call.js'
import { codeOf, factsOf } from '../inventory/pce-errors.js'
import type { Prepared } from './prepare-ringfence.js'
import type { RingfenceWritten } from './write-ringfence.js'
import type { Label } from '../../schemas/pce/label.js'
import { resolveApplication } from '../inventory/find-labels.js'
import { quote } from '../text/escape-text.js'
import { ringfenceName } from './find-existing.js'
import type { RingfenceOptions } from './prepare-ringfence.js'
import { isSameApplication } from './discover-peers.js'
import type { Shared } from './share-reads.js'

export interface BatchArguments extends RingfenceOptions {
  app_name: string
  env_name: string
}

/** An application in a batch: its labels, or the reason why it is not processed. */
export type BatchEntry = { app: string; env: string } & (
  | { state: 'ready'; application: readonly [Label, Label]; options: RingfenceOptions }
  | { state: 'unknown'; error: ToolError }
  | { state: 'duplicate' }
)

/**
 * Looks up the applications of a batch in the given order. An application that cannot be found becomes an entry with
 * its error; one that the batch names twice, in whatever form, becomes a duplicate. Throws invalid_argument if two
 * different applications would share one rule set, because the second ringfence would fail only after the first had
 * been written.
 */
export async function resolveBatch(
  ctx: Pick<ToolContext<true>, 'pce' | 'now' | 'signal'>,
  apps: readonly BatchArguments[],
): Promise<BatchEntry[]> {
  const entries: BatchEntry[] = []
  const seen = new Set<string>()
  const owners = new Map<string, string>()
  for (const { app_name: askedApp, env_name: askedEnv, ...options } of apps) {
    let application: readonly [Label, Label]
    try {
      application = (await resolveApplication(ctx, { app_name: askedApp, env_name: askedEnv })) as [Label, Label]
    } catch (error) {
      if (!(error instanceof ToolError)) throw error
      entries.push({ app: askedApp, env: askedEnv, state: 'unknown', error })
      continue
    }
    const [app, env] = application
    const names = { app: app.value, env: env.value }
    const id = `${app.href} ${env.href}`
    if (seen.has(id)) {
      entries.push({ ...names, state: 'duplicate' })
      continue
    }
    seen.add(id)
    const name = options.ruleset_name ?? ringfenceName(application)
    const shown = `${app.value} (${env.value})`
    const owner = owners.get(name)
    if (owner !== undefined) {
      const text = `${quote(owner)} and ${quote(shown)} would both use the rule set ${quote(name)}. Nothing was written.`
      throw new ToolError(
        'invalid_argument',
        text,
        { argument: 'apps' },
        { hint: 'Give one of them its own ruleset_name.' },
      )
    }
    owners.set(name, shown)
    entries.push({ ...names, state: 'ready', application, options })
  }
  return entries
}

export type OrderedEntry = BatchEntry & { score?: number }

/**
 * If requested, sorts the applications so that infrastructure comes first (T16): by score from high to low, with
 * applications without traffic at the end. Applications with equal scores stay in the given order. If the ranking is
 * not available, all stay in the given order, and a warning says so.
 */
export async function orderBatch(
  entries: readonly BatchEntry[],
  autoOrder: boolean,
  shared: Pick<Shared, 'ranking'>,
): Promise<{ order: OrderedEntry[]; warnings: string[] }> {
  if (!autoOrder) return { order: [...entries], warnings: [] }
  const ranking = await shared.ranking()
  if (typeof ranking === 'string') return { order: [...entries], warnings: [`Not ordered. ${ranking}`] }
  const scored = entries.map((entry) => {
    const row = ranking.rows.find((one) => isSameApplication(one, entry))
    return { ...entry, score: row?.infrastructure_score ?? 0 }
  })
  return { order: scored.sort((a, b) => b.score - a.score), warnings: [] }
}

export interface RingfenceDone {
  prepared: Prepared
  written: RingfenceWritten | null
}

/** The outcome for each application, in the order of processing. */
export type BatchOutcome = { app: string; env: string } & (
  | { status: 'success'; done: RingfenceDone }
  | { status: 'error'; error: Record<string, unknown> }
  | { status: 'skipped'; reason: 'duplicate' | 'stopped' }
)

/**
 * Processes the applications one after the other. A failure affects only its own application unless `stopOnError` is
 * true; then a failure stops the batch, and an application that does not exist stops it before anything is written.
 * When `signal` aborts, the remaining applications are skipped.
 */
export async function runBatch(
  { signal, log, progress }: Pick<ToolContext, 'signal' | 'log' | 'progress'>,
  order: readonly OrderedEntry[],
  { stopOnError }: { stopOnError: boolean },
  work: (entry: OrderedEntry & { state: 'ready' }) => Promise<RingfenceDone>,
): Promise<BatchOutcome[]> {
  const outcomes: BatchOutcome[] = []
  let isStopped = stopOnError && order.some(({ state }) => state === 'unknown')
  for (const [at, entry] of order.entries()) {
    const names = { app: entry.app, env: entry.env }
    if (entry.state === 'duplicate') outcomes.push({ ...names, status: 'skipped', reason: 'duplicate' })
    else if (entry.state === 'unknown') outcomes.push({ ...names, status: 'error', error: describeError(entry.error) })
    else if (isStopped || signal.aborted) outcomes.push({ ...names, status: 'skipped', reason: 'stopped' })
    else {
      progress({
        progress: at,
        message: `Application ${at + 1} of ${order.length}: ${quote(`${entry.app} (${entry.env})`)}.`,
      })
      const outcome = await attempt(names, log, () => work(entry))
      outcomes.push(outcome)
      isStopped ||= stopOnError && outcome.status === 'error'
    }
  }
  return outcomes
}

/**
 * Writes the ringfences that `runBatch` planned, one after the other, and treats failures as `runBatch` does. It does
 * not plan again, so exactly what was planned is written (D75).
 */
export async function writeBatch(
  { signal, log, progress }: Pick<ToolContext, 'signal' | 'log' | 'progress'>,
  planned: readonly BatchOutcome[],
  { stopOnError }: { stopOnError: boolean },
  write: (prepared: Prepared) => Promise<RingfenceWritten>,
): Promise<BatchOutcome[]> {
  const outcomes: BatchOutcome[] = []
  let isStopped = false
  for (const [at, outcome] of planned.entries()) {
    const names = { app: outcome.app, env: outcome.env }
    if (outcome.status !== 'success') outcomes.push(outcome)
    else if (isStopped || signal.aborted) outcomes.push({ ...names, status: 'skipped', reason: 'stopped' })
    else {
      const { prepared } = outcome.done
      progress({
        progress: at,
        message: `Writing ${at + 1} of ${planned.length}: ${quote(`${names.app} (${names.env})`)}.`,
      })
      const done = await attempt(names, log, async () => ({ prepared, written: await write(prepared) }))
      outcomes.push(done)
      isStopped ||= stopOnError && done.status === 'error'
    }
  }
  return outcomes
}

async function attempt(
  names: { app: string; env: string },
  log: ToolContext['log'],
  work: () => Promise<RingfenceDone>,
): Promise<BatchOutcome> {
  try {
    return { ...names, status: 'success', done: await work() }
  } catch (error) {
    if (!(error instanceof ToolError) && !(error instanceof PceError))
      log.warn({ err: error, ...names }, 'ringfence failed')
    return { ...names, status: 'error', error: describeError(error) }
  }
}

/** Returns true if anything was written for the application. */
export const hasWritten = (outcome: BatchOutcome): boolean =>
  outcome.status === 'success'
    ? outcome.done.written !== null
    : outcome.status === 'error' && outcome.error['partial'] === true

/** Converts an error to the form that answers contain (D3). Unexpected errors reveal no details. */
function describeError(error: unknown): Record<string, unknown> {
  if (error instanceof ToolError) {
    const head = { error: error.code, message: error.message, ...(error.hint !== undefined && { hint: error.hint }) }
    return { ...error.details, ...head }
  }
  if (error instanceof PceError) return { ...factsOf(error), error: codeOf(error), message: error.message }
  return { error: 'internal', message: 'The server failed to handle this application. Its log has the details.' }
}
