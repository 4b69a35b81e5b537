import { PceApiError, type PceClient } from '../../pce-client/index.js'
import type { ErrorDetails } from '../../schemas/errors.js'
import { forgetLabels } from '../inventory/labels.js'
import { mayHaveHappened, reasonOf, withDetails } from '../inventory/pce-errors.js'

/** Hrefs of the objects that a call has created so far, in order. */
export interface Written {
  readonly hrefs: string[]
}

interface WritePlan<T> {
  /** Performs the writes. It must push the href of each created object to `written` as soon as the href is known. */
  write(written: Written): Promise<T>
  /** Returns error details about the objects that were written. `left` contains the hrefs of those that still exist. */
  describe?: (left: readonly string[]) => ErrorDetails
  /**
   * True if everything is created inside the first object, as rules are inside their rule set. Deleting that object
   * then also undoes a write whose outcome is not known. Otherwise such a write may need objects that a rollback would
   * delete.
   */
  nested?: boolean
}

/**
 * Runs writes that belong together. If a write fails after objects were created, these objects are deleted again,
 * newest first, and the error contains `rolled_back: true`. If they cannot be deleted, it contains `partial: true` and
 * `written: [{href}]` (D3). If nothing was written before the failure, the error is thrown unchanged.
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

/** Deletes the objects, newest first, and does not stop at a failure. Returns the objects that still exist. */
async function rollBack(pce: PceClient, hrefs: readonly string[]): Promise<{ hrefs: string[]; reason: string }> {
  const left: string[] = []
  let reason = ''
  for (const href of [...hrefs].reverse()) {
    try {
      await pce.delete(href, { includeOrg: false })
    } catch (error) {
      // Another call has already deleted the object.
      if (error instanceof PceApiError && error.isGone) continue
      left.unshift(href)
      reason = reasonOf(error)
    }
  }
  // Another call may have cached a label that was created here and is now deleted, so the label cache is dropped.
  forgetLabels(pce)
  return { hrefs: left, reason }
}
