import { getListAsync } from './async-job.js'
import { PceError } from './errors.js'
import { listOf, type Answer, type Http } from './transport.js'
import type { ClientSettings } from './settings.js'
import type { CollectionOptions, Page, RequestOptions } from './types.js'

/** Asked for when the PCE does not say how many objects there are; known to be honoured (P8). */
const GENEROUS_MAX_RESULTS = 10_000
/** How many objects the PCE answers when it is not told; events and security principals have 100. */
const DEFAULT_PAGE = 500
export const SMALLEST_DEFAULT_PAGE = 100

/** A page of a collection with the total beside it. @throws {PceError} `invalid_response` when it is no list. */
export async function getPage<T>(http: Http, endpoint: string, options: RequestOptions = {}): Promise<Page<T>> {
  const answer = await http.send('GET', endpoint, { ...options, includeOrg: false })
  return { items: listOf<T>(answer, endpoint), totalCount: totalOf(answer) }
}

/**
 * Every object of a collection: the count first (`max_results=0`), then all of them (S9). An endpoint that ignores `max_results`
 * answers everything at once. The total is a hint, never an excuse to lose objects: it may be missing, wrong, unfiltered or
 * outgrown, so an answer as long as what was asked for is asked for again with more, and where even that can hide objects, or they
 * are too many for one answer, the asynchronous job decides.
 *
 * @param pageLimit the most objects a synchronous answer of this kind ever has.
 */
export async function getAll<T>(
  http: Http,
  settings: ClientSettings,
  endpoint: string,
  options: CollectionOptions = {},
  pageLimit = Infinity,
): Promise<T[]> {
  const page = (maxResults: number) =>
    getPage<T>(http, endpoint, { ...options, params: { ...options.params, max_results: maxResults } })
  const probe = await page(0)
  if (probe.items.length > 0) {
    const isWhole = probe.totalCount ? probe.totalCount <= probe.items.length : !isWholePages(probe.items.length)
    if (isWhole) return probe.items
  }

  const isFiltered = Object.entries(options.params ?? {}).some(
    ([name, value]) => name !== 'max_results' && value !== undefined,
  )
  let wanted = probe.totalCount || GENEROUS_MAX_RESULTS
  let most = probe.items
  for (let round = 0; wanted <= pageLimit && round < 3; round += 1) {
    const answer = await page(wanted).catch(unlessTooLarge)
    if (answer === undefined) break
    const { items, totalCount } = answer
    if (items.length === totalCount) return items
    if (items.length > most.length) most = items
    const total = totalCount || probe.totalCount || null
    if (items.length !== wanted) {
      // Fewer than asked for is everything, unless the release cuts at its page size whatever max_results says; more is what an
      // endpoint gives that does not look at it. With filters the total may be that of the whole collection, so there (and
      // without a total) only a round number looks cut.
      const isBelowTotal = total !== null && items.length < total && !isFiltered
      if (!isBelowTotal && !isWholePages(items.length)) return items
      break
    }
    // As many as were asked for, and no newer total to say that there are no more.
    if (totalCount === null || totalCount < wanted) break
    wanted = totalCount
  }
  const gathered = await getListAsync<T>(http, settings, endpoint, options)
  // A PCE that does not start a job answers with a plain, cut list.
  return gathered.length < most.length ? most : gathered
}

function unlessTooLarge(error: unknown): undefined {
  if (!(error instanceof PceError) || error.code !== 'body_too_large') throw error
}

function isWholePages(count: number): boolean {
  return count > 0 && count % DEFAULT_PAGE === 0
}

function totalOf(answer: Answer): number | null {
  const text = answer.headers['x-total-count']
  return typeof text === 'string' && /^\d{1,9}$/.test(text) ? Number(text) : null
}
