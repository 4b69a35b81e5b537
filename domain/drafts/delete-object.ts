import { PceApiError } from '../../pce-client/index.js'
import type { PlannedRequest } from '../../schemas/dry-run.js'
import type { ErrorDetails } from '../../schemas/errors.js'
import type { PceObject } from '../../schemas/pce/reference.js'
import type { ToolContext } from '../call.js'
import { toDraftHref } from '../inventory/parse-href.js'
import { withDetails } from '../inventory/pce-errors.js'

export interface DeletePlan {
  /** The object for messages: `IP list "Branch offices"`. */
  what: string
  current: PceObject
  /** Asked when the PCE refuses (406): who uses the object, for the error. A failure to find out is passed over. */
  explainRefusal?: () => Promise<{ details: ErrorDetails; hint?: string }>
  warnings?: readonly string[]
}

export interface DeleteAnswer {
  message: string
  href: string
  warnings?: string[]
  dry_run?: boolean
  requests?: PlannedRequest[]
}

/** Deletes exactly this object, or shows the request. The message says whether it is gone or waits for provisioning. */
export async function deleteObject(
  { pce, signal }: Pick<ToolContext<true>, 'pce' | 'signal'>,
  { what, current, explainRefusal, warnings = [] }: DeletePlan,
  dryRun: boolean | undefined,
): Promise<DeleteAnswer> {
  const href = toDraftHref(current.href)
  const shown = { href, ...(warnings.length > 0 && { warnings: [...warnings] }) }
  if (current.update_type === 'delete') {
    const dry = dryRun === true ? { dry_run: true, requests: [] } : {}
    const message = `The deletion of ${what} was pending already; provision it to make it final. Nothing was written.`
    return { message, ...dry, ...shown }
  }
  if (dryRun === true) {
    const requests = [{ method: 'DELETE', path: href, body: null }]
    return { dry_run: true, message: `Would delete ${what}.`, requests, ...shown }
  }
  signal.throwIfAborted()
  try {
    await pce.delete(href, { includeOrg: false })
  } catch (error) {
    if (!(error instanceof PceApiError) || error.status !== 406 || explainRefusal === undefined) throw error
    const why = await explainRefusal().catch(() => undefined)
    throw why === undefined ? error : withDetails(error, why.details, why.hint)
  }
  return { message: `Deleted ${what}.${deletionNote(current)}`, ...shown }
}

/** What is provisioned stays in force until its deletion is provisioned too (P4). */
function deletionNote({ href, update_type: updateType }: PceObject): string {
  if (!href.includes('/sec_policy/')) return ''
  return updateType === 'create'
    ? ' It had never been provisioned, so it is gone.'
    : ' It stays in force until the deletion is provisioned.'
}
