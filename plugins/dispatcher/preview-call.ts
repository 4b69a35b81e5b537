import { createHash } from 'node:crypto'
import type { Preview } from '../../domain/call.js'
import { clipText } from '../../domain/text/escape-text.js'
import type { ShownObject } from '../../schemas/approvals.js'
import { DRY_RUN_BINDING } from '../../schemas/dry-run.js'
import type { AnyTool } from '../../tools/define.js'

/** Whether a tool has a dry run, which shows its plan. */
export const takesDryRun = ({ input }: Pick<AnyTool, 'input'>): boolean => 'dry_run' in input.properties

/** Upper bounds that keep a summary at a few kilobytes. */
const MOST_LISTED = 10
const LONGEST_TEXT = 600
/**
 * The fields of a dry run's answer that define what would be written, so they go into the digest. Other fields, such as
 * counts of connections, may change on their own (D75).
 */
const BOUND = ['href', 'requests', 'previous', 'rules_removed'] as const

/**
 * Makes the preview of a tool from its dry run, for tools without a preview of their own (D77). `isDryRun` is true if
 * the call itself only asked for a dry run.
 */
export function previewDryRun(answer: Record<string, unknown>, isDryRun: boolean): Preview {
  const { message, previous, effect, observed } = answer
  const [requests, warnings] = [listOf(answer['requests']), listOf(answer['warnings'])]
  const dry = isDryRun ? ' This is a dry run: it only shows what a real call would send.' : ''
  const bound = BOUND.map((field) => [field, answer[field] ?? null])
  return {
    summary: `${typeof message === 'string' ? clipText(message, LONGEST_TEXT) : 'The dry run does not say what the call would do.'}${dry}`,
    details: {
      requests_total: requests.length,
      requests: requests.slice(0, MOST_LISTED).map(shortenFields),
      ...(previous !== undefined && { previous: shortenFields(previous) }),
      ...(effect !== undefined && { effect }),
      ...(observed !== undefined && { observed }),
      ...(warnings.length > 0 && {
        warnings_total: warnings.length,
        warnings: warnings.slice(0, MOST_LISTED).map(shorten),
      }),
    },
    page: {
      warnings: warnings.map((warning) => (typeof warning === 'string' ? warning : JSON.stringify(warning))),
      objects: requests.map((request) => showRequest(request, requests.length === 1 ? previous : undefined)),
      objects_total: requests.length,
      ...((effect ?? observed) !== undefined && {
        facts: { ...(effect !== undefined && { effect }), ...(observed !== undefined && { observed }) },
      }),
    },
    boundTo: isDryRun ? DRY_RUN_BINDING : createHash('sha256').update(JSON.stringify(bound)).digest('hex'),
  }
}

const CHANGES: Record<string, ShownObject['change']> = { POST: 'create', PUT: 'update', DELETE: 'delete' }

/** Shows a request of a dry run as the object that it changes. `previous` is the state that it replaces, if known. */
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
 * Shortens a value for display: a short value stays as it is, and of a longer one only the beginning of its text is
 * kept.
 */
function shorten(value: unknown): unknown {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? 'null')
  return text.length <= LONGEST_TEXT ? value : clipText(text, LONGEST_TEXT)
}

const shortenFields = (value: unknown): unknown =>
  typeof value === 'object' && value !== null
    ? Object.fromEntries(Object.entries(value).map(([field, inner]) => [field, shorten(inner)]))
    : shorten(value)
