import type { ActionError } from '../schemas/pce/ven.js'
import type { Reference } from '../schemas/pce/reference.js'
import { PceError } from './errors.js'
import type { BulkVerb } from './kinds.js'
import { isRecord, type TracedResponse } from './transport.js'
import type { BulkResultItem } from './types.js'

/** Maximum number of objects that the PCE accepts in one bulk call (P48). */
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
 * Converts the items of a bulk answer to a common form. The PCE uses two forms (P12): for a creation or an update it
 * returns `{href, status, token?, message?}` for every object, for a deletion `{href, errors}` for the failures only.
 * In a deletion, an item with empty `errors` is not a failure. Any other item that has neither a success status nor
 * errors is reported with one error.
 *
 * @param sent number of objects in the bulk call.
 * @throws {PceError} `outcome_unknown` when the answer is not a list, or when a creation or update has fewer results
 *   than objects: the PCE accepted the call, but it is not known what happened to the objects.
 */
export function toBulkResults(verb: BulkVerb, answer: TracedResponse, sent: number): BulkResultItem[] {
  const items = rawItems(verb, answer)
  if (verb !== 'delete') {
    if (items.length >= sent) return items.map(toResult)
    throw unclear(verb, answer, `its answer has ${items.length} results for ${sent} objects`)
  }
  const failures = items.filter(({ errors }) => !Array.isArray(errors) || errors.length > 0).map(toResult)
  // If the call was repeated, an earlier attempt may already have deleted some objects. For them, "not found" means
  // success.
  return answer.repeated ? failures.filter(({ errors }) => errors[0]?.token !== 'not_found_error') : failures
}

/**
 * Returns the items of a bulk answer. If a deletion has no failures, the PCE may answer with an empty body or, as its
 * action endpoints do, with `{errors: []}` (P63).
 */
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
 * Applies an action to many objects, in as many requests as the PCE's limit requires, and returns the errors of all
 * these requests. Each href is sent only once, even if the list contains it several times.
 *
 * @throws {PceError} `invalid_argument` for an empty list, which the PCE may read as "all objects". If a request fails,
 *   its error is passed on, with the results of the earlier requests in `completed`.
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

/** Returns one result for each object of a chunk. Each result has the errors that concern its object. */
function resultsOf(chunk: readonly Reference[], found: readonly ActionError[]): BulkResultItem[] {
  const results = new Map<string, BulkResultItem>(chunk.map(({ href }) => [href, { href, errors: [] }]))
  const [only] = chunk.length === 1 ? chunk : []
  for (const { token, message, hrefs } of found) {
    const concerned = hrefs.length === 0 && only !== undefined ? [only.href] : hrefs
    for (const href of concerned) results.get(href)?.errors.push({ token, message })
  }
  return [...results.values()]
}
