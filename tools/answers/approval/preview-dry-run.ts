import type { Preview, ToolContext } from '../../../domain/call.js'
import { digestContents } from '../../../domain/policy/digest-content.js'
import { showNamesInside } from '../../../domain/policy/describe-changes.js'
import { type PlannedCall, readReferred, type ReferredObjects } from '../../../domain/policy/read-referred.js'
import { clipSentence, clipText, quote } from '../../../domain/text/escape-text.js'
import type { ShownObject } from '../../../schemas/approvals.js'
import { DRY_RUN_BINDING, type PlannedRequest } from '../../../schemas/dry-run.js'
import { describeReferred, nameReferred, showReferred, warnOfUnread } from './show-referred.js'

/**
 * Maximum number of requests or warnings in a preview, and of characters per value. These limits keep a preview to a
 * few kilobytes.
 */
const MOST_LISTED = 10
const LONGEST_TEXT = 600
/**
 * The fields in a dry run's answer that define what would be written. Only these fields are covered by the digest that
 * binds a confirmation to its call. Others, such as counts of connections, may change although the plan does not (D75).
 */
const BOUND = ['href', 'requests', 'previous', 'rules_removed'] as const
/** The fields in a dry run's answer that explain the change. They are shown unchanged to the person who confirms it. */
const FACTS = ['effect', 'effect_note', 'observed', 'note'] as const

/** The fields of a tool that are needed to create its preview. */
interface Previewed {
  effect: 'read' | 'write' | 'destroy'
  input: { properties: object }
  isHeavy?: true | ((args: never, act: 'handler' | 'preview' | 'boundTo' | 'plan') => boolean)
  handler(args: never, ctx: never): Promise<unknown>
  preview?(args: never, ctx: never): Promise<Preview>
}

/**
 * Adds a preview to a tool that changes something and does not define one. It shows the tool's dry run and the objects
 * to which the dry run's requests refer by href (D77, D232). It is heavy (it runs in a worker thread) if the dry run
 * is.
 */
export function withPreview<T extends Previewed>(tool: T): T {
  const { isHeavy, effect, input } = tool
  if (tool.preview !== undefined || effect === 'read' || !('dry_run' in input.properties)) return tool
  return {
    ...tool,
    preview: (args: Arguments, context: ToolContext) => previewByDryRun(tool, args, context),
    ...(typeof isHeavy === 'function' && {
      isHeavy: (args: Arguments, act: 'handler' | 'preview' | 'boundTo' | 'plan') =>
        act === 'preview' ? isHeavy({ ...args, dry_run: true } as never, 'handler') : isHeavy(args as never, act),
    }),
  }
}

type Arguments = Record<string, unknown>

async function previewByDryRun(tool: Previewed, args: Arguments, context: ToolContext): Promise<Preview> {
  // This answer is not sent. It must contain all requests, because they are what a confirmation covers, so its size is
  // unlimited.
  const whole = { ...context, limits: { ...context.limits, responseBudgetBytes: Infinity } }
  const answer = (await tool.handler({ ...args, dry_run: true } as never, whole as never)) as Arguments
  const isDryRun = args['dry_run'] === true
  const { referred, digest } = await bindAnswer(answer, context)
  const boundTo = isDryRun ? DRY_RUN_BINDING : digest
  // When a confirmation is redeemed, only `boundTo` is used and nobody sees the preview, so its summary stays empty.
  return context.isBindingOnly === true
    ? { summary: '', boundTo }
    : { ...previewAnswer(answer, referred, isDryRun), boundTo }
}

/**
 * Returns the digest that binds a confirmation to the plan in a dry run's answer, and the objects that the digest
 * covers besides the plan. A tool that plans again before it writes compares this digest with the approved one. The
 * answer must contain all requests.
 */
export async function bindAnswer(
  answer: Arguments,
  { pce, signal }: Pick<ToolContext, 'pce' | 'signal'>,
): Promise<{ referred: ReferredObjects | null; digest: string }> {
  const referred = pce === null ? null : await readReferred({ pce, signal }, planOf(answer))
  const bound = [...BOUND.map((field) => answer[field]), referred?.digest]
  return { referred, digest: await digestContents(bound, signal) }
}

/** Returns the requests in a dry run's answer, with the values that they would replace. */
const planOf = ({ requests, previous }: Arguments): PlannedCall => ({
  requests: listOf(requests) as PlannedRequest[],
  previous,
})

/** Converts a dry run's answer to a preview. `isDryRun` is true if the caller asked only for a dry run. */
function previewAnswer(
  answer: Arguments,
  referred: ReferredObjects | null,
  isDryRun: boolean,
): Omit<Preview, 'boundTo'> {
  const { message, previous } = answer
  const requests = listOf(answer['requests'])
  const warnings = [...(referred === null ? [] : warnOfUnread(referred)), ...warningsOf(answer)]
  const facts = Object.fromEntries(FACTS.flatMap((name) => (answer[name] === undefined ? [] : [[name, answer[name]]])))
  const behind = referred === null ? null : showReferred(referred)
  const named = <T>(value: T): T => (referred === null ? value : showNamesInside(value, nameReferred(referred)))
  const dry = isDryRun ? ' This is a dry run: it only shows what a real call would send.' : ''
  return {
    summary: `${typeof message === 'string' ? clipSentence(message, LONGEST_TEXT) : 'The dry run does not say what the call would do.'}${referred === null ? '' : describeReferred(referred)}${dry}`,
    details: {
      requests_total: requests.length,
      requests: requests.slice(0, MOST_LISTED).map(shortenFields),
      ...(previous !== undefined && { previous: shortenFields(previous) }),
      ...facts,
      ...behind?.rows,
      ...(warnings.length > 0 && {
        warnings_total: warnings.length,
        warnings: warnings.slice(0, MOST_LISTED).map((warning) => clipSentence(warning, LONGEST_TEXT)),
      }),
    },
    page: {
      warnings,
      objects: requests.map((request) => showRequest(named(request), requests.length === 1 ? named(previous) : null)),
      objects_total: requests.length,
      ...behind?.page,
      ...(Object.keys(facts).length > 0 && { facts }),
    },
  }
}

/**
 * Returns all warnings in an answer as sentences: those in the list `warnings`, and those in fields of their own, such
 * as `policy_widening_warning`.
 */
function warningsOf(answer: Arguments): string[] {
  const own = Object.entries(answer).flatMap(([name, value]) =>
    name.endsWith('_warning') && value !== undefined ? [value] : [],
  )
  return [...listOf(answer['warnings']), ...own].map(sayWarning)
}

function sayWarning(said: unknown): string {
  if (typeof said === 'string') return said
  const { message, warning } = fieldsOf(said)
  return [message, warning].find((text) => typeof text === 'string') ?? quote(JSON.stringify(said) ?? '')
}

const CHANGES: Record<string, ShownObject['change']> = { POST: 'create', PUT: 'update', DELETE: 'delete' }

/** Shows the object that a request of a dry run changes. `previous` is the object's current state, if it is known. */
function showRequest(request: unknown, previous: unknown): ShownObject {
  const { method = '', path = '', body } = request as { method?: string; path?: string; body?: unknown }
  const [before, after] = [fieldsOf(previous), fieldsOf(body)]
  const isDelete = method === 'DELETE'
  const names = [...new Set([...Object.keys(isDelete ? before : {}), ...Object.keys(after)])]
  return {
    kind: 'request',
    name: `${method} ${path}`,
    change: CHANGES[method] ?? 'unknown',
    fields: names.map((name) => ({
      path: name,
      ...(before[name] != null && { before: before[name] }),
      ...(after[name] != null && { after: after[name] }),
    })),
  }
}

const fieldsOf = (value: unknown): Record<string, unknown> => {
  if (Array.isArray(value)) return { items: value }
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}

const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])

/**
 * Shortens a value for display. A short value is returned unchanged; a longer one becomes the beginning of its JSON or
 * text.
 */
function shorten(value: unknown): unknown {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? 'null')
  return text.length <= LONGEST_TEXT ? value : clipText(text, LONGEST_TEXT)
}

const shortenFields = (value: unknown): unknown =>
  typeof value === 'object' && value !== null
    ? Object.fromEntries(Object.entries(value).map(([field, inner]) => [field, shorten(inner)]))
    : shorten(value)
