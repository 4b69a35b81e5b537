import { PceApiError, type PceClient } from '../../pce-client/index.js'
import { ToolError } from '../../schemas/errors.js'
import type { PceObject } from '../../schemas/pce/reference.js'
import { factsOf, mayHaveHappened, withDetails } from '../inventory/pce-errors.js'
import { findDifferences, type Difference } from '../policy/compare-stored.js'

/**
 * Time limit for checking whether a failed write took effect. It is short, because the caller has already waited for
 * the write.
 */
const LOOK_MS = 10_000

/** The state of an object on the PCE after a write whose outcome is not known. */
interface Look {
  state: 'as_sent' | 'unchanged' | 'differs' | 'gone' | 'deletion_pending' | 'still_there' | 'unreadable'
  /** The fields whose stored values differ from those that were sent. */
  differences?: Difference[]
}

const MEANINGS: Record<Look['state'], string> = {
  as_sent: 'Read back, it has the values that were sent: the change was made.',
  unchanged: 'Read back, it is as it was before: nothing was changed so far.',
  differs: 'Read back, it has some of the values that were sent. Compare before repeating the call.',
  gone: 'Read back, it does not exist any more.',
  deletion_pending: 'Read back, its deletion is pending: it was marked for deletion.',
  still_there: 'Read back, it still exists: nothing was deleted so far.',
  unreadable: 'It could not be read back. Check its current state before repeating the call.',
}

/** A write to one object. `body` contains the fields that were sent, and is null for a deletion. */
interface Write {
  /** The phrase that names the object in messages. */
  what: string
  href: string
  current: PceObject
  body: Record<string, unknown> | null
}

/**
 * Adds the current state of the object to the error of a failed PUT or DELETE. The error becomes `not_found` if
 * somebody else has deleted the object meanwhile, and `outcome_unknown` with `read_back {state, differences}` if it is
 * not known whether the PCE carried out the write (D71). Any other error is returned unchanged.
 */
export async function explainFailedWrite(pce: PceClient, error: unknown, write: Write): Promise<unknown> {
  const { what, href } = write
  if (mayHaveHappened(error)) {
    const look = await lookAt(pce, write)
    return withDetails(error, { href, read_back: look }, MEANINGS[look.state])
  }
  if (!(error instanceof PceApiError) || !error.isGone) return error
  const text = `There is no such object any more: ${what} (${href}) was deleted in the meantime.`
  return new ToolError('not_found', text, { href, ...factsOf(error) }, { cause: error })
}

async function lookAt(pce: PceClient, { href, current, body }: Write): Promise<Look> {
  let stored: (Partial<PceObject> & { deleted?: boolean }) | null
  try {
    stored = (await pce.get(href, { includeOrg: false, totalTimeoutMs: LOOK_MS })).json<Partial<PceObject> | null>()
  } catch (error) {
    return { state: error instanceof PceApiError && error.isGone ? 'gone' : 'unreadable' }
  }
  if (typeof stored?.href !== 'string') return { state: 'unreadable' }
  // Workloads and labels are soft-deleted: they can still be read at their hrefs (P14, P16).
  if (stored.deleted === true) return { state: 'gone' }
  if (body === null) return { state: stored.update_type === 'delete' ? 'deletion_pending' : 'still_there' }
  const differences = findDifferences(body, stored)
  if (differences.length === 0) return { state: 'as_sent' }
  const before = Object.fromEntries(Object.keys(body).map((field) => [field, current[field] ?? null]))
  return { state: findDifferences(before, stored).length === 0 ? 'unchanged' : 'differs', differences }
}
