import type { PceClient } from '../../pce-client/index.js'
import { ToolError } from '../../schemas/errors.js'
import type { PceObject } from '../../schemas/pce/reference.js'
import type { ToolContext } from '../call.js'
import { createNamed, findCreated, refuseTakenName } from '../drafts/create-named.js'
import type { Step } from '../history/plan-object.js'
import { readObject } from '../history/restore-object.js'
import { apiOf } from '../inventory/find-object.js'
import { parseHref, toDraftHref } from '../inventory/parse-href.js'
import { mayHaveHappened, withDetails } from '../inventory/pce-errors.js'
import { countOf } from '../text/describe-numbers.js'
import { mapBounded } from '../text/pace-work.js'
import { writeDocument } from './convert-objects.js'
import type { FileKind, NameBook } from './name-book.js'
import type { FilesPlan, PlannedObject } from './plan-writes.js'

type Context = Pick<ToolContext<true>, 'pce' | 'signal' | 'now' | 'inOrder'>

/** Which objects were written and which were not, as messages name them. */
export interface Applied {
  written: string[]
  /**
   * The object at which the writes stopped, and how many of its requests were sent; absent if everything was written.
   */
  stopped?: { what: string; done: number; of: number; isUncertain: boolean }
  notWritten: string[]
}

const IN_FLIGHT = 4

/**
 * Sends the write requests of a plan in order. Before the first request, it checks that no object has changed since the
 * plan was made. If a request fails, the remaining ones are not sent, and `applied` says what was written. Applying the
 * same files again then completes the work, because what was written no longer differs.
 *
 * @param applied filled while requests are sent, so it is complete even after a failure.
 * @throws {ToolError} already_exists {reason: changed_meanwhile} before the first write, or the error of the PCE client
 *   for the failed request with {partial, written_total, not_written_total}.
 */
export async function applyFiles(
  ctx: Context,
  { objects }: Pick<FilesPlan, 'objects'>,
  book: NameBook,
  applied: Applied,
  onWrite: (done: number, of: number) => void,
): Promise<void> {
  await mapBounded(objects, IN_FLIGHT, (one) => refuseChanged(ctx, one, book))
  const made = new Map<string, string>()
  const total = objects.reduce((sum, { steps }) => sum + steps.length, 0)
  let done = 0
  for (const [at, { what, steps, difference }] of objects.entries()) {
    let href = difference.before?.href ?? difference.object!.wire.href
    for (const [index, step] of steps.entries()) {
      try {
        ctx.signal.throwIfAborted()
        const created = await send(ctx, difference.kind, step, made, href)
        if (created !== null && index === 0 && difference.change === 'create') {
          made.set(href, created)
          href = created
        }
      } catch (error) {
        applied.notWritten = objects.slice(at + 1).map((one) => one.what)
        if (done === 0 && !mayHaveHappened(error)) {
          applied.notWritten.unshift(what)
          throw error
        }
        applied.stopped = { what, done: index, of: steps.length, isUncertain: mayHaveHappened(error) }
        const facts = { partial: true, written_total: at, not_written_total: objects.length - at }
        throw withDetails(
          error,
          facts,
          'Part of it is in the draft. When the cause is mended, the same command completes it.',
        )
      }
      onWrite(++done, total)
    }
    applied.written.push(
      `${what} (${toDraftHref(href)}): ${DEEDS[difference.change]}, ${countOf(steps.length, 'request')}`,
    )
  }
}

const DEEDS = { create: 'created', update: 'changed', delete: 'deleted' } as const

/** Throws if an object that would be written has changed since the plan was made. */
async function refuseChanged(ctx: Context, { difference, what }: PlannedObject, book: NameBook): Promise<void> {
  const { kind, name, before, written } = difference
  if (before === null) {
    if (kind !== 'label_groups') await refuseTakenName(ctx.pce, kind, name, ctx.signal)
    return
  }
  const now = await readObject(ctx, kind, before.href)
  const isSame =
    now !== null &&
    now.update_type !== 'delete' &&
    JSON.stringify(writeDocument(kind, now, book).document) === JSON.stringify(written!.document)
  if (isSame) return
  const text = `Somebody else changed ${what} during this command. Nothing was written.`
  throw new ToolError(
    'already_exists',
    text,
    { reason: 'changed_meanwhile', href: before.href },
    { hint: 'Run it again.' },
  )
}

/** Sends one request. Resolves with the href of the object that it created, or null if it created none. */
async function send(
  ctx: Context,
  kind: FileKind,
  { method, path, body }: Step,
  made: ReadonlyMap<string, string>,
  href: string,
): Promise<string | null> {
  const { pce } = ctx
  const sent = withMade(body, made) as { name: string }
  if (method === 'DELETE') await pce.delete(path, { includeOrg: false })
  else if (method === 'PUT') await pce.put(path, { includeOrg: false, json: sent })
  else {
    const rules = /\/(sec_rules|deny_rules)$/.exec(path)?.[1]
    if (rules !== undefined) return toDraftHref((await createRule(pce, rules, sent, href)).href)
    return toDraftHref((await createObject(ctx, kind, sent)).href)
  }
  return null
}

const createRule = (pce: PceClient, rules: string, body: object, ruleSet: string): Promise<PceObject> =>
  rules === 'deny_rules' ? pce.denyRules.create(body, ruleSet) : pce.rules.create(body, ruleSet)

async function createObject(ctx: Context, kind: FileKind, body: { name: string }): Promise<PceObject> {
  if (kind !== 'label_groups') return createNamed(ctx, kind, body)
  try {
    return await apiOf(ctx.pce, kind).create(body)
  } catch (error) {
    return findCreated(error, ctx.pce, kind, body.name, ctx.signal)
  }
}

/** Replaces made-up hrefs with those of the objects that were created for them. */
function withMade(value: unknown, made: ReadonlyMap<string, string>): unknown {
  if (Array.isArray(value)) return value.map((one) => withMade(one, made))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([field, inner]) => [
      field,
      field === 'href' && typeof inner === 'string' && parseHref(inner)?.id?.startsWith('new:') === true
        ? made.get(inner)
        : withMade(inner, made),
    ]),
  )
}
