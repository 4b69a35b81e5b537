import type { Preview } from '../../domain/call.js'
import { makeSafe } from '../../domain/text/escape-text.js'
import { MOST_SHOWN_BYTES, type ShownCall, type ShownObject } from '../../schemas/approvals.js'
import type { ConfirmedCall, Confirmations } from '../../schemas/confirmations.js'
import { type ErrorDetails, ToolError } from '../../schemas/errors.js'
import { convert } from '../errors/convert.js'
import type { ValidSubject } from './admit-call.js'
import { previewDryRun, takesDryRun } from './preview-call.js'

/** What the call would do now, as a digest; the whole preview for a tool that has no shorter way. */
export const findBinding = async ({ tool, args, context }: ValidSubject): Promise<string> =>
  tool.boundTo === undefined
    ? (await preview({ tool, args, context })).boundTo
    : tool.boundTo(args as never, context as never)

/** The tool's own preview, else its dry run (D77). */
async function preview({ tool, args, context }: Pick<ValidSubject, 'tool' | 'args' | 'context'>): Promise<Preview> {
  if (tool.preview !== undefined) return tool.preview(args as never, context as never)
  // It would run here. No tool that may ask for confirmation is without.
  if (!takesDryRun(tool)) throw new Error(`${tool.name} cannot show what it would do`)
  const answer = await tool.handler({ ...args, dry_run: true } as never, context as never)
  return previewDryRun(answer as Record<string, unknown>, args['dry_run'] === true)
}

/** What a call would do. */
export type Outlook =
  | { boundTo: string; summary: string; details: ErrorDetails; page: Preview['page'] }
  /** It cannot be told, and so there is nothing that anybody could agree to. */
  | { boundTo: null; summary: string; details: ErrorDetails }

/**
 * What the call would do, and what a consent to it is bound to. If the preview fails nothing is bound, since nothing can be shown, and the
 * answer says why. Throws only when the client has gone.
 */
export async function look(subject: ValidSubject): Promise<Outlook> {
  const { context } = subject
  try {
    const { summary, details = {}, page, boundTo } = await preview(subject)
    return { boundTo, summary, details, page }
  } catch (thrown) {
    if (context.signal.aborted) throw thrown
    const { code, message, hint, details } = convert(thrown)
    context.log.warn({ err: thrown, error: code }, 'a preview failed')
    return {
      boundTo: null,
      summary: `What this call would do could not be determined: ${message}`,
      details: { preview_error: { ...details, error: code, message, ...(hint && { hint }) } },
    }
  }
}

/** Which call it is that somebody has to confirm, by the hash of its arguments; the audit entries have that as well. */
export function describeCall(
  subject: ValidSubject,
  confirmations: Pick<Confirmations, 'hash' | 'describe'>,
): ConfirmedCall {
  const paramsHash = confirmations.hash(subject.call.arguments)
  const call = confirmations.describe(subject.callerContext, subject.tool.name, paramsHash)
  subject.note({ params_hash: paramsHash })
  return call
}

/** The refusal of a call that was let run before, with what it was let run by. */
export const replayed = (
  paramsHash: string,
  message = 'This confirm token was used before; the call did not run again.',
) => new ToolError('confirm_token_replay', message, { params_hash: paramsHash })

/** What is kept for the page of a call: safe to be shown, and of bounded size. */
export function showForPage({ summary, details, page }: Extract<Outlook, { boundTo: string }>): ShownCall {
  const whole = page ?? { warnings: [], objects: [], objects_total: 0, facts: details }
  return fitPage(makeSafe({ summary, ...whole }))
}

const LEFT_OUT =
  'What changes in it is left out here, because the whole would be too large: look at it in the PCE before you decide.'

/** The first objects whole, those that do not fit by their names alone, and at last only their number. */
function fitPage(shown: ShownCall): ShownCall {
  if (jsonBytes(shown) <= MOST_SHOWN_BYTES) return shown
  const { facts, ...rest } = shown
  const keptFacts = facts !== undefined && jsonBytes(facts) <= MOST_SHOWN_BYTES / 4 ? { facts } : {}
  const around = { ...rest, ...keptFacts, warnings: shown.warnings.slice(0, MOST_WARNINGS), truncated: true as const }
  const kept = { ...around, ...clipLists(around), objects: [] as ShownObject[] }
  let room = MOST_SHOWN_BYTES - jsonBytes(kept)
  // Room for the names of those that come later.
  const bare = shown.objects.map(({ fields: _fields, parts: _parts, warnings: _warnings, ...object }) => ({
    ...object,
    fields: [],
    note: LEFT_OUT,
  }))
  let reserved = bare.reduce((sum, object) => sum + jsonBytes(object) + 1, 0)
  for (const [at, object] of shown.objects.entries()) {
    const short = bare[at]!
    reserved -= jsonBytes(short) + 1
    const size = jsonBytes(object) + 1
    const chosen = size + Math.max(0, reserved) <= room ? object : short
    const needed = jsonBytes(chosen) + 1
    if (needed > room) break
    kept.objects.push(chosen)
    room -= needed
  }
  return kept
}

const jsonBytes = (value: unknown): number => Buffer.byteLength(JSON.stringify(value))

const MOST_WARNINGS = 50
const MOST_LISTED = 100

const clipLists = ({ dependencies, not_included: rest }: Omit<ShownCall, 'objects'>) => ({
  ...(dependencies && { dependencies: dependencies.slice(0, MOST_LISTED) }),
  ...(rest && { not_included: { ...rest, objects: rest.objects.slice(0, MOST_LISTED) } }),
})
