import { PceApiError, type PceClient } from '../../pce-client/index.js'
import type { ErrorDetails } from '../../schemas/errors.js'
import { forgetLabels } from '../inventory/labels.js'
import { mayHaveHappened, reasonOf, withDetails } from '../inventory/pce-errors.js'

/** What a call has created so far, in order. */
export interface Written {
  readonly hrefs: string[]
}

interface WritePlan<T> {
  /** The writes; each created object's href is pushed to `written` as soon as it is known. */
  write(written: Written): Promise<T>
  /** Facts for the error about what was written, of which only `left` (hrefs) still exists. */
  describe?: (left: readonly string[]) => ErrorDetails
  /**
   * Deleting the first object also undoes a write whose outcome was lost, because whatever it created lives inside that object (a
   * rule in its rule set). Elsewhere such a write may use what a rollback would delete.
   */
  nested?: boolean
}

/**
 * Runs writes that belong together. When one fails after the first, what was created is deleted again, newest first, and the error
 * carries `rolled_back: true`; where that is not possible it carries `partial: true` and `written: [{href}]` (D3). A failure before
 * anything was written passes as it is.
 */
export async function writeWithRollback<T>(pce: PceClient, plan: WritePlan<T>): Promise<T> {
  const written: Written = { hrefs: [] }
  try {
    return await plan.write(written)
  } catch (error) {
    if (written.hrefs.length === 0) throw error
    if (mayHaveHappened(error) && plan.nested !== true) throw partial(error, written.hrefs, plan)
    const left = await rollBack(pce, plan.nested === true ? written.hrefs.slice(0, 1) : written.hrefs)
    if (left.hrefs.length > 0) {
      const remaining = plan.nested === true ? written.hrefs : left.hrefs
      throw partial(error, remaining, plan, { rollback_error: left.reason })
    }
    const facts = { ...plan.describe?.([]), rolled_back: true }
    throw withDetails(error, facts, 'Everything this call had created was deleted again.')
  }
}

function partial(
  error: unknown,
  hrefs: readonly string[],
  { describe }: Pick<WritePlan<unknown>, 'describe'>,
  facts: ErrorDetails = {},
) {
  return withDetails(
    error,
    { ...describe?.(hrefs), ...facts, partial: true, written: hrefs.map((href) => ({ href })) },
    'Some of it was written. Look at the objects in `written` before you repeat the call.',
  )
}

/** Deletes newest first, and goes on past a failure. Returns what is still there. */
async function rollBack(pce: PceClient, hrefs: readonly string[]): Promise<{ hrefs: string[]; reason: string }> {
  const left: string[] = []
  let reason = ''
  for (const href of [...hrefs].reverse()) {
    try {
      await pce.delete(href, { includeOrg: false })
    } catch (error) {
      // Another call was faster.
      if (error instanceof PceApiError && error.isGone) continue
      left.unshift(href)
      reason = reasonOf(error)
    }
  }
  // Another call may have read a label created here; nothing may resolve to it any more.
  forgetLabels(pce)
  return { hrefs: left, reason }
}
