import type { PlannedRequest } from '../../schemas/dry-run.js'
import type { Limits } from '../../schemas/config.js'
import { answerBudget } from './byte-budget.js'

/** Maximum number of items that a list in a shown request has at detail `standard`. */
const MOST_ITEMS = 10

/**
 * Replaces each long list in the bodies of planned requests with a string that gives its length. A PCE takes a list
 * only as a whole, and a change of one item in ten thousand would not be noticed in it, so the answer shows the
 * differences next to the requests. Requests stay complete at detail `full`, and in an answer that is computed for a
 * confirmation, because the confirmation covers everything that would be sent (D232).
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
