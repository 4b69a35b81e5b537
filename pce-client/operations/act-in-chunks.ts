import { inChunks } from '../bulk.js'
import { PceError } from '../errors.js'
import type { BulkResultItem } from '../types.js'
import type { ActionError } from '../../schemas/pce/action-error.js'
import type { Reference } from '../../schemas/pce/reference.js'

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
