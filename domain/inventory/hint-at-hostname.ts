import { PceError, type ObjectApi, type RequestOptions } from '../../pce-client/index.js'

/**
 * Maximum number of matching objects that are counted: the page size that every release supports (P8). The objects in
 * the response body are counted, because not all releases send the total in a header.
 */
const MOST_COUNTED = 500

/** A query for workloads or VENs that found nothing. */
interface Question<T extends object> {
  api: Pick<ObjectApi<T>, 'getPage'>
  /** The filters that were sent to the PCE. */
  params: NonNullable<RequestOptions['params']>
  signal: AbortSignal
  /** True if this MCP server applied further filters itself, so that fewer objects may match than the PCE returns. */
  isNarrowed: boolean
}

/**
 * Returns a hint for a query by name that found nothing: the number of objects whose host name matches. Callers may
 * mean a host name, because consoles show it for an object without a name. This takes one request. Returns null if the
 * query has no name filter, if it already filters by host name, if no host name matches, or if the PCE does not answer.
 */
export async function hintAtHostname<T extends object>(question: Question<T>): Promise<string | null> {
  const { api, params, signal, isNarrowed } = question
  const { name, ...others } = params
  if (name === undefined || others['hostname'] !== undefined) return null
  try {
    const asked = { ...others, hostname: name, max_results: MOST_COUNTED }
    const { items } = await api.getPage('draft', null, { params: asked, signal })
    if (items.length === 0) return null
    const isAll = items.length < MOST_COUNTED
    const found = isNarrowed
      ? isAll
        ? `At most ${items.length}`
        : 'Some may'
      : `${items.length}${isAll ? '' : ' or more'}`
    const match = items.length === 1 ? 'matches' : 'match'
    return `${found} ${match} by hostname, which consoles show where a name is unset.`
  } catch (error) {
    if (!(error instanceof PceError) || signal.aborted) throw error
    return null
  }
}
