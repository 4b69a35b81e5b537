/** What repeating a request, or losing its answer, would mean. */
export interface RequestNature {
  /** It may be sent again when its outcome is not known. */
  repeatable: boolean
  /** It may change something at the PCE, so a lost answer leaves its outcome unknown. */
  writes: boolean
}

/** POSTs that only compute an answer. */
const READING_POSTS = new Set([
  'dependencies',
  'impact',
  'rule_search',
  'statistics',
  'traffic_analysis_queries',
  'verify_connection',
])

/** A login that got no answer has changed nothing, but another one may count as another try at the password. */
const LOGIN = '/login_users/authenticate'

/** PUTs that create or start something, so that a second one could do it twice. Every other PUT sets a state. */
const STARTING_PUTS = new Set([
  'bulk_create',
  'bulk_import',
  'unpair',
  'upgrade',
  'remote_action',
  'authentication_recovery',
  'update_rules',
  'assign_labels',
])

/**
 * D23 by method and path: GET, PUT and DELETE of one object, bulk_update and bulk_delete may be repeated; what creates or starts
 * something may not, whatever its verb. Discarding all pending changes (DELETE sec_policy/pending) or reverting some (PUT
 * sec_policy/delete) is no operation on one object: a repetition would also undo edits made in between.
 */
export function classifyRequest(method: string, path: string): RequestNature {
  if (method === 'GET' || method === 'HEAD') return { repeatable: true, writes: false }
  const last = path.slice(path.lastIndexOf('/') + 1)
  if (path.endsWith(LOGIN)) return { repeatable: false, writes: false }
  if (method === 'POST')
    return READING_POSTS.has(last) ? { repeatable: true, writes: false } : { repeatable: false, writes: true }
  const isDiscard = path.endsWith('/sec_policy/pending') || path.endsWith('/sec_policy/delete')
  return { repeatable: !isDiscard && !(method === 'PUT' && STARTING_PUTS.has(last)), writes: true }
}
