import { PceApiError } from '../../pce-client/index.js'
import type { PlannedRequest } from '../../schemas/dry-run.js'
import { ToolError, type ErrorDetails } from '../../schemas/errors.js'
import type { PceObject } from '../../schemas/pce/reference.js'
import type { ToolContext } from '../call.js'
import { toDraftHref } from '../inventory/parse-href.js'
import { withDetails } from '../inventory/pce-errors.js'
import { explainFailedWrite } from './look-again.js'
import { warnOfOthers } from './warn-of-others.js'
import { findDifferences, type Difference } from '../policy/compare-stored.js'
import { capital } from '../text/capital.js'

/** An update of one object whose references have all been looked up. */
interface UpdatePlan<T extends PceObject> {
  /** The phrase that names the object in messages, such as `IP list "Branch offices"`. */
  what: string
  /** The current object. For an object that has policy versions, this is its draft. */
  current: T
  /** The PCE fields to send; undefined fields are left out. */
  body: Record<string, unknown>
  /** Reads the object again after the write. */
  read: (href: string) => Promise<T>
  warnings?: readonly string[]
  /** The object to provision, if this is not the changed object itself. For a rule, it is the rule set. */
  holder?: PceObject
  /** True if the object that contains this one is marked for deletion, so that the change will never take effect. */
  ends?: boolean
  /**
   * The name of the `inOrder` queue for writes to this object. It is set if other tools queue such writes under another
   * name than the href, which is the default.
   */
  order?: string
  /** True if the caller already holds the `inOrder` queue of this object and has read the object since then. */
  isFresh?: boolean
}

interface UpdateAnswer<T> {
  message: string
  href: string
  updated_fields?: string[]
  previous?: Record<string, unknown>
  differences?: Difference[]
  warnings?: string[]
  dry_run?: boolean
  requests?: PlannedRequest[]
  /**
   * The object as it was read back after the write, or as a dry run predicts it. Each tool shows it in its own form.
   */
  stored: T
}

/** Returns the answer without the object and its href, because each tool adds them in its own form. */
export function withoutStored<T>({
  stored: _stored,
  href: _href,
  ...answer
}: UpdateAnswer<T>): Omit<UpdateAnswer<T>, 'stored' | 'href'> {
  return answer
}

/** Throws no_update_fields if a caller names an object but no change to it. */
export function requireFields(body: Record<string, unknown>, offered: readonly string[]): void {
  if (Object.values(body).some((value) => value !== undefined)) return
  throw new ToolError('no_update_fields', `No change was given. Give one of ${offered.join(', ')}.`, {
    fields: [...offered],
  })
}

/**
 * Sends the fields that differ from the stored ones and reads the object back. The answer contains the sent fields,
 * their previous values and the values that the PCE stored. If all values are already stored, nothing is sent, so that
 * no pending change arises. With `dryRun`, the function returns the request and the predicted object instead.
 */
export async function updateObject<T extends PceObject>(
  { pce, signal, inOrder }: Pick<ToolContext<true>, 'pce' | 'signal' | 'inOrder'>,
  plan: UpdatePlan<T>,
  dryRun: boolean | undefined,
): Promise<UpdateAnswer<T>> {
  const { what, current, body, read, warnings: given = [], holder = current, ends = false } = plan
  const { order, isFresh = false } = plan
  const href = toDraftHref(current.href)
  const warnings = [...given, ...pendingDeletion(current)]
  const changed = new Set(findDifferences(body, current).map(({ field }) => field))
  const sent = Object.fromEntries(Object.entries(body).filter(([field]) => changed.has(field)))
  const fields = Object.keys(sent)
  const answer = (message: string, more: Partial<UpdateAnswer<T>>, stored: T): UpdateAnswer<T> => ({
    message,
    href,
    ...more,
    ...(warnings.length > 0 && { warnings }),
    stored,
  })
  if (fields.length === 0) {
    const dry = dryRun === true ? { dry_run: true, requests: [] } : {}
    return answer(
      `${capital(what)} already has these values; nothing was written.`,
      { updated_fields: [], ...dry },
      current,
    )
  }
  warnings.push(...(await warnOfOthers({ pce, signal }, holder)))
  const previous = Object.fromEntries(fields.map((field) => [field, current[field] ?? null]))
  if (dryRun === true) {
    const requests = [{ method: 'PUT', path: href, body: sent }]
    return answer(
      `Would change ${what}: ${fields.join(', ')}.`,
      { dry_run: true, requests, previous },
      { ...current, ...sent },
    )
  }
  const write = async () => {
    signal.throwIfAborted()
    await pce.put(href, { json: sent, includeOrg: false }).catch(async (error: unknown) => {
      throw await explainFailedWrite(pce, error, { what, href, current, body: sent })
    })
  }
  // The PCE replaces a list field as a whole (P7). An entry that another call added after `current` was read would be
  // lost.
  if (!isFresh && fields.some((field) => Array.isArray(sent[field])))
    await inOrder(order ?? href, async () => {
      const failed = async (error: unknown) => {
        const isGone = error instanceof PceApiError && error.isGone
        throw isGone ? await explainFailedWrite(pce, error, { what, href, current, body: sent }) : error
      }
      refuseOverwriting(what, { before: current, now: await read(href).catch(failed), body: sent })
      await write()
    })
  else await write()
  let stored = { ...current, ...sent }
  let differences: Difference[] = []
  try {
    stored = requireObject(await read(href))
    differences = findDifferences(sent, stored)
  } catch {
    warnings.push('It was changed, but could not be read back to check what was stored.')
  }
  const more = { updated_fields: fields, previous, ...(differences.length > 0 && { differences }) }
  return answer(`Changed ${what}: ${fields.join(', ')}.${ends ? '' : draftNote(current)}`, more, stored)
}

/**
 * Throws `already_exists {reason: changed_meanwhile}` if a list that the call replaces has changed since it was read,
 * because the replacement would undo somebody else's change.
 */
export function refuseOverwriting(
  what: string,
  { before, now, body }: { before: PceObject; now: PceObject; body: Record<string, unknown> },
): void {
  const changed = Object.keys(body).filter((field) => {
    if (!Array.isArray(body[field])) return false
    const isNow = (list: unknown) =>
      findDifferences({ [field]: list ?? [] }, { [field]: now[field] ?? [] }).length === 0 &&
      findDifferences({ [field]: now[field] ?? [] }, { [field]: list ?? [] }).length === 0
    return !isNow(before[field]) && !isNow(body[field])
  })
  if (changed.length === 0) return
  const text = `Somebody else changed ${changed.join(' and ')} of ${what} during this call, so it was not changed.`
  const details = { reason: 'changed_meanwhile', href: toDraftHref(before.href), fields: changed }
  throw new ToolError('already_exists', text, details, { hint: 'Look at what it is now, and repeat the call.' })
}

/**
 * Returns a note that says when an update takes effect. For an object with policy versions, only the draft changes. If
 * the object is marked for deletion, the change never takes effect.
 */
function draftNote({ href, update_type: updateType }: PceObject): string {
  return href.includes('/sec_policy/') && updateType !== 'delete' ? ' It takes effect when provisioned.' : ''
}

/** Returns a warning if a deletion is pending, because changing an object does not undo its deletion (P4). */
function pendingDeletion({ update_type: updateType }: PceObject): string[] {
  return updateType === 'delete' ? ['Its deletion is still pending: provisioning will delete it.'] : []
}

interface DeletePlan {
  /** The phrase that names the object in messages, such as `IP list "Branch offices"`. */
  what: string
  current: PceObject
  /**
   * Called when the PCE refuses the deletion (406). Returns the objects that refer to this one, as details for the
   * error. If it fails itself, its own error is ignored.
   */
  explainRefusal?: () => Promise<{ details: ErrorDetails; hint?: string }>
  warnings?: readonly string[]
  /** The object to provision, if this is not the deleted object itself. For a rule, it is the rule set. */
  holder?: PceObject
}

interface DeleteAnswer {
  message: string
  href: string
  warnings?: string[]
  dry_run?: boolean
  requests?: PlannedRequest[]
}

/**
 * Deletes the object or, in a dry run, returns the request that would do so. The message says whether the object is
 * gone or whether its deletion must still be provisioned.
 */
export async function deleteObject(
  { pce, signal }: Pick<ToolContext<true>, 'pce' | 'signal'>,
  { what, current, explainRefusal, warnings: given = [], holder = current }: DeletePlan,
  dryRun: boolean | undefined,
): Promise<DeleteAnswer> {
  const href = toDraftHref(current.href)
  const show = (warnings: readonly string[]) => ({ href, ...(warnings.length > 0 && { warnings: [...warnings] }) })
  if (current.update_type === 'delete') {
    const dry = dryRun === true ? { dry_run: true, requests: [] } : {}
    const message = `The deletion of ${what} is already pending; provision it to make it final. Nothing was written.`
    return { message, ...dry, ...show(given) }
  }
  const shown = show([...given, ...(await warnOfOthers({ pce, signal }, holder))])
  if (dryRun === true) {
    const requests = [{ method: 'DELETE', path: href, body: null }]
    return { dry_run: true, message: `Would delete ${what}.`, requests, ...shown }
  }
  signal.throwIfAborted()
  try {
    await pce.delete(href, { includeOrg: false })
  } catch (error) {
    const isRefused = error instanceof PceApiError && error.status === 406 && !error.isGone
    if (!isRefused || error.code === 'outcome_unknown' || explainRefusal === undefined)
      throw await explainFailedWrite(pce, error, { what, href, current, body: null })
    const why = await explainRefusal().catch(() => undefined)
    throw why === undefined ? error : withDetails(error, why.details, why.hint)
  }
  return { message: `Deleted ${what}.${deletionNote(current)}`, ...shown }
}

/**
 * Returns a note that says when a deletion takes effect. A provisioned object stays active until its deletion is
 * provisioned too (P4).
 */
function deletionNote({ href, update_type: updateType }: PceObject): string {
  if (!href.includes('/sec_policy/')) return ''
  return updateType === 'create'
    ? ' It had never been provisioned, so it is gone.'
    : ' It stays in force until the deletion is provisioned.'
}

/**
 * Reads back an object that was just created. A failure to read it is reported as a warning, not as an error, because
 * the object exists. The returned `warnings` can be spread into an answer.
 */
export async function readBack<T extends { href: string }>(
  created: T,
  read: () => Promise<T>,
): Promise<{ stored: T; warnings: { warnings?: string[] } }> {
  try {
    return { stored: requireObject(await read()), warnings: {} }
  } catch {
    const text = 'It was created, but could not be read back to check what was stored.'
    return { stored: created, warnings: { warnings: [text] } }
  }
}

/**
 * Throws if the given value is not a PCE object. A proxy in front of the PCE may answer with any JSON, which cannot be
 * used in an answer.
 */
export function requireObject<T extends { href: string }>(read: T): T {
  if (typeof (read as Partial<T> | null)?.href === 'string') return read
  throw new Error('something other than the object was read')
}
