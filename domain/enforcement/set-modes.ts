import type { EnforcementMode } from '../../schemas/pce/enforcement-modes.js'
import type { ToolContext } from '../call.js'
import { mayHaveHappened, reasonOf } from '../inventory/pce-errors.js'
import { countOf } from '../text/describe-numbers.js'
import { readAgain, type ChosenWorkload, type ChosenWorkloads } from './choose-workloads.js'

/** Maximum number of workloads that the PCE accepts in one request (P48). */
export const MOST_AT_ONCE = 1000

/**
 * The outcome for one workload. `changed`: the new mode was read back, or the PCE confirmed the change and the workload
 * could not be read back. `differs`: the PCE confirmed the change, but another mode was read back. `unverified`: the
 * PCE's answer was lost, and the new mode was not read back.
 */
export type ModeOutcome =
  'changed' | 'failed' | 'differs' | 'unverified' | 'not_attempted' | 'already_there' | 'unmanaged'

export interface WorkloadOutcome {
  workload: ChosenWorkload
  outcome: ModeOutcome
  /** The mode that was read back after the last request; absent if the workload could not be read. */
  now?: EnforcementMode | null
  /**
   * Why the new mode is not set or could not be read back, or which error the PCE reported although the mode is set.
   */
  note?: string
}

export interface ModesSet {
  /** One outcome for each selected workload. */
  outcomes: readonly WorkloadOutcome[]
  /**
   * Why no further request was sent: the error of a request that failed as a whole, or the reason of a cancellation;
   * null if neither happened.
   */
  stopped: unknown
}

/** Returns the body of a `PUT workloads/bulk_update` request for these workloads. */
export const bodyOf = (workloads: readonly ChosenWorkload[], to: EnforcementMode) =>
  workloads.map(({ href }) => ({ href, enforcement_mode: to }))

/** Divides the workloads whose mode must be changed into groups, one for each request. */
export function planRequests({ workloads }: ChosenWorkloads, to: EnforcementMode): ChosenWorkload[][] {
  const changing = workloads.filter(({ isManaged, mode }) => isManaged && mode !== to)
  return Array.from({ length: Math.ceil(changing.length / MOST_AT_ONCE) }, (_, at) =>
    changing.slice(at * MOST_AT_ONCE, (at + 1) * MOST_AT_ONCE),
  )
}

/**
 * Sets the mode of the workloads, request by request, and reads the workloads back. No further request is sent if one
 * fails as a whole, if the call is cancelled, or if the server stops. Throws only if nothing was written: the error of
 * the first request if this request certainly had no effect, or the reason of an earlier cancellation.
 */
export async function setModes(
  ctx: Pick<ToolContext<true>, 'pce' | 'signal' | 'beforeWriting' | 'progress'>,
  chosen: ChosenWorkloads,
  to: EnforcementMode,
): Promise<ModesSet> {
  const requests = planRequests(chosen, to)
  const total = requests.reduce((sum, { length }) => sum + length, 0)
  const said = new Map<string, Pick<WorkloadOutcome, 'outcome' | 'note'>>()
  let stopped: unknown = null
  ctx.beforeWriting.throwIfAborted()
  for (const request of requests) {
    if (ctx.beforeWriting.aborted) {
      stopped = ctx.beforeWriting.reason
      break
    }
    try {
      await sendOne(ctx, request, to, said)
    } catch (error) {
      if (said.size === 0 && !mayHaveHappened(error)) throw error
      const outcome = mayHaveHappened(error) ? 'unverified' : 'failed'
      for (const { href } of request) said.set(href, { outcome, note: reasonOf(error) })
      stopped = error
      break
    }
    ctx.progress({ progress: said.size, total, message: `Set ${said.size} of ${countOf(total, 'workload')}.` })
  }
  const now = total === 0 ? new Map<string, ChosenWorkload>() : await lookAgain(ctx, chosen)
  const outcomes = chosen.workloads.map((workload) => settle(workload, to, said.get(workload.href), now))
  return { outcomes, stopped }
}

async function sendOne(
  { pce }: Pick<ToolContext<true>, 'pce'>,
  request: readonly ChosenWorkload[],
  to: EnforcementMode,
  said: Map<string, Pick<WorkloadOutcome, 'outcome' | 'note'>>,
): Promise<void> {
  const results = await pce.workloads.bulkUpdate(bodyOf(request, to))
  const named = new Map(
    results.flatMap((result) => (result.href === undefined ? [] : [[result.href, result] as const])),
  )
  for (const [at, { href }] of request.entries()) {
    // The PCE sends one result per workload, in the order of the request. Some releases omit the href of a failure.
    const inPlace = results[at]
    const result = named.get(href) ?? (inPlace?.href === undefined ? inPlace : undefined)
    if (result === undefined) said.set(href, { outcome: 'unverified', note: 'The PCE did not say what became of it.' })
    else if (result.errors.length === 0) said.set(href, { outcome: 'changed' })
    else said.set(href, { outcome: 'failed', note: result.errors.map(describeError).join('; ') })
  }
}

const describeError = ({ token, message }: { token: string; message: string }) =>
  [token, message].filter((text) => text !== '').join(': ')

/**
 * Reads the modes back. Returns null instead of throwing if this fails, because the changes have been written and the
 * call must report them.
 */
async function lookAgain(
  { pce, signal }: Pick<ToolContext<true>, 'pce' | 'signal'>,
  chosen: ChosenWorkloads,
): Promise<ReadonlyMap<string, ChosenWorkload> | null> {
  try {
    return await readAgain({ pce, signal }, chosen)
  } catch {
    return null
  }
}

/** Determines the outcome of one workload from the PCE's answer and the mode that is stored now. */
function settle(
  workload: ChosenWorkload,
  to: EnforcementMode,
  said: Pick<WorkloadOutcome, 'outcome' | 'note'> | undefined,
  now: ReadonlyMap<string, ChosenWorkload> | null,
): WorkloadOutcome {
  if (!workload.isManaged) return { workload, outcome: 'unmanaged' }
  if (workload.mode === to) return { workload, outcome: 'already_there' }
  if (said === undefined) return { workload, outcome: 'not_attempted' }
  const stored = now?.get(workload.href)
  if (stored === undefined) return { workload, ...said, note: said.note ?? UNREAD }
  if (stored.mode === to) {
    // The stored mode decides about the outcome, even if the PCE's answer was lost or reported a failure.
    const note = said.outcome === 'failed' && said.note !== undefined ? { note: `${REFUSED_YET_SET} ${said.note}` } : {}
    return { workload, outcome: 'changed', now: to, ...note }
  }
  const outcome = said.outcome === 'changed' ? 'differs' : said.outcome
  return { workload, outcome, now: stored.mode, note: said.note ?? DIFFERS }
}

const UNREAD = 'It could not be read back.'
const DIFFERS = 'The PCE said it was changed, and shows another mode.'
const REFUSED_YET_SET = 'It reads back in the mode, though the PCE answered:'
