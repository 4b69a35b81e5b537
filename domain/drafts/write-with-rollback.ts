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
  /** Returns error details about the written objects. `left` contains the hrefs of the objects that still exist. */
  describe?: (left: readonly string[]) => ErrorDetails
  /**
   * True if everything is created inside the first object, as rules are created inside their rule set. Deleting that
   * object then also undoes a write with an unknown outcome. Otherwise, such a write may depend on objects that a
   * rollback would delete.
   */
  nested?: boolean
}

/**
 * Runs writes that belong together. If a write fails after objects were created, these are deleted again, newest first,
 * and the error contains `rolled_back: true`. If they cannot be deleted, the error contains `partial: true` and
 * `written: [{href}]` (D3). A failure before anything was written is thrown unchanged.
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

/** Deletes the objects, newest first. A failure does not stop it. Returns the objects that still exist. */
async function rollBack(pce: PceClient, hrefs: readonly string[]): Promise<{ hrefs: string[]; reason: string }> {
  const left: string[] = []
  let reason = ''
  for (const href of [...hrefs].reverse()) {
    try {
      await pce.delete(href, { includeOrg: false })
    } catch (error) {
      // The object no longer exists, because another call has deleted it.
      if (error instanceof PceApiError && error.isGone) continue
      left.unshift(href)
      reason = reasonOf(error)
    }
  }
  // Another call may have cached a label that was created here, so the label cache is dropped.
  forgetLabels(pce)
  return { hrefs: left, reason }
}
