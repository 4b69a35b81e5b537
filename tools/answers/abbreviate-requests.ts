import type { PlannedRequest } from '../../schemas/dry-run.js'
import type { Limits } from '../../schemas/config.js'
import { answerBudget } from './byte-budget.js'

/** Maximum number of items of a list in a request that an answer at the standard level of detail shows. */
const MOST_ITEMS = 10

/**
 * Replaces each long list in the bodies of planned requests with a text that has its length. An answer shows beside them
 * what differs, because a PCE takes a list only as a whole, and a change of one item of ten thousand is not found in it.
 * With detail `full` the requests stay as they are, and so they do in an answer that is computed for a confirmation, which
 * is bound to all of what would be sent (D232).
 */
export function abbreviateRequests(
  requests: readonly PlannedRequest[],
  { detail, limits }: { detail: 'standard' | 'full'; limits: Limits },
): PlannedRequest[] {
  if (detail === 'full' || answerBudget(limits) === Infinity) return [...requests]
  return requests.map((request) => ({ ...request, body: abbreviate(request.body) }))
}

function abbreviate(value: unknown): unknown {
  if (Array.isArray(value)) {
    const { length } = value
    return length > MOST_ITEMS ? `${length} items: detail_level full shows them` : value.map(abbreviate)
  }
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([field, inner]) => [field, abbreviate(inner)]))
}
