import type { ActionError } from '../schemas/pce/ven.js'
import type { Reference } from '../schemas/pce/reference.js'
import { PceError } from './errors.js'
import type { BulkVerb } from './kinds.js'
import { isRecord, type TracedResponse } from './transport.js'
import type { BulkResultItem } from './types.js'

/** The PCE takes no more objects in one bulk call (P48). */
const CHUNK = 1000

const SUCCESS = new Set(['created', 'updated'])

interface RawItem {
  href?: string
  status?: string
  token?: string
  message?: string
  errors?: ({ token?: string; message?: string } | null)[]
}

export function inChunks<T>(items: readonly T[], size = CHUNK): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, index) =>
    items.slice(index * size, (index + 1) * size),
  )
}

/**
 * The items of a bulk answer in one form. The PCE has two: `{href, status, token?, message?}` for every input of a creation or an
 * update, `{href, errors}` for the failures alone of a deletion, where an item with empty `errors` is none. Any other item without
 * a good status and without errors becomes one error (P12).
 *
 * @param sent how many objects the call named.
 * @throws {PceError} `outcome_unknown` when the answer is not a list, or fewer results than objects where each has one: the call was
 *   accepted, but not what became of its items.
 */
export function toBulkResults(verb: BulkVerb, answer: TracedResponse, sent: number): BulkResultItem[] {
  const items = rawItems(verb, answer)
  if (verb !== 'delete') {
    if (items.length >= sent) return items.map(toResult)
    throw unclear(verb, answer, `its answer has ${items.length} results for ${sent} objects`)
  }
  const failures = items.filter(({ errors }) => !Array.isArray(errors) || errors.length > 0).map(toResult)
  // A repeated deletion no longer finds what the lost first attempt has deleted already.
  return answer.repeated ? failures.filter(({ errors }) => errors[0]?.token !== 'not_found_error') : failures
}

/** A deletion that answers nothing, or `{errors: []}` as the actions do, has no failure to tell (P63). */
function rawItems(verb: BulkVerb, answer: TracedResponse): RawItem[] {
  let body: unknown
  try {
    body = answer.json<unknown>()
  } catch {
    throw unclear(verb, answer, 'its answer is not a list of results')
  }
  if (verb === 'delete') {
    if (body === undefined || body === null) return []
    if (isRecord(body) && Array.isArray(body.errors) && body.errors.length === 0) return []
  }
  if (Array.isArray(body) && body.every(isRecord)) return body
  throw unclear(verb, answer, 'its answer is not a list of results')
}

function unclear(verb: BulkVerb, { status }: TracedResponse, why: string): PceError {
  const text = `bulk_${verb} was accepted (status ${status}), but ${why}. Check before repeating it.`
  return new PceError('outcome_unknown', text)
}

function toResult({ href, status, token, message, errors }: RawItem): BulkResultItem {
  if (Array.isArray(errors) && errors.length > 0) {
    return { href, errors: errors.map((error) => ({ token: error?.token ?? '', message: error?.message ?? '' })) }
  }
  if (SUCCESS.has(status ?? '')) return { href, errors: [] }
  return { href, errors: [{ token: token ?? 'bulk_change_error', message: message ?? '' }] }
}

/**
 * Does something to many objects in as many requests as the PCE's limit makes it, and joins what they answer. Each object is
 * named once, however often it was given.
 *
 * @throws {PceError} `invalid_argument` for no object at all, which the PCE may read as all of them; what a request throws,
 *   with the objects of the requests before it in `completed`.
 */
export async function actInChunks(
  what: string,
  hrefs: readonly string[],
  limit: number,
  act: (chunk: Reference[]) => Promise<ActionError[]>,
): Promise<ActionError[]> {
  if (hrefs.length === 0) throw new PceError('invalid_argument', `${what}: name at least one object`)
  const all = [...new Set(hrefs)].map((href) => ({ href }))
  const completed: BulkResultItem[] = []
  let errors: ActionError[] = []
  try {
    for (const chunk of inChunks(all, limit)) {
      const found = await act(chunk)
      errors = errors.concat(found)
      for (const result of resultsOf(chunk, found)) completed.push(result)
    }
  } catch (error) {
    if (error instanceof PceError) error.completed = completed
    throw error
  }
  return errors
}

/** What became of each object, so that `completed` reads as it does after other bulk calls. */
function resultsOf(chunk: readonly Reference[], found: readonly ActionError[]): BulkResultItem[] {
  const results = new Map<string, BulkResultItem>(chunk.map(({ href }) => [href, { href, errors: [] }]))
  const [only] = chunk.length === 1 ? chunk : []
  for (const { token, message, hrefs } of found) {
    const concerned = hrefs.length === 0 && only !== undefined ? [only.href] : hrefs
    for (const href of concerned) results.get(href)?.errors.push({ token, message })
  }
  return [...results.values()]
}
