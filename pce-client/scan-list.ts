import { collect } from './async-job.js'
import { PceError } from './errors.js'
import type { ClientSettings } from './settings.js'
import { JsonArraySplitter, type ListBounds } from './split-json-array.js'
import { shareTurn } from './take-turns.js'
import { isRecord, listOf, notObjects, type Http, type SendOptions, type StreamHead } from './transport.js'
import type { RequestOptions, ScanOptions, ScanOutcome } from './types.js'

/** More than this a synchronous answer is not asked for: above it the PCE's job is what the documentation knows (P8, P10). */
const LARGEST_PAGE = 10_000
/** How many objects some releases answer at most, whatever max_results says. */
const PCE_PAGE = 500
/** Of a list that is not held, so many times as much is taken: an end to what has none. */
const PASSING = 8
/** Handed over together: rows. A batch of the smallest ones has a hundred thousand. */
const ROWS_PER_STEP = 1000
/** Parameters that shape the objects and select none. */
const SHAPING = new Set(['usage', 'include', 'include_deleted', 'max_results'])

/** How many objects there are, as far as the PCE says. */
type Counts = Pick<ScanOutcome, 'totalCount' | 'matchCount'>

/** What is read, and for whom. */
interface Reading<T> {
  endpoint: string
  request: RequestOptions
  most: number
  bounds: ListBounds
  onBegin: () => void
  onItems: (items: T[]) => void | Promise<void>
}

/** Ends a download of which nobody wants more. */
class Enough extends Error {}

/**
 * The objects of a collection, handed over while they arrive, so that neither its text nor its whole is ever held (D132). A list of
 * at most 10,000 comes in one synchronous answer. A longer one is noticed by the PCE's count, before its text, or by an answer that is
 * full, and comes through the PCE's job.
 *
 * @param pageLimit the most objects that the PCE ever gives of this kind; there is no job for more.
 * @throws {PceError} as every call; `invalid_response` for anything but a list of objects; what `onItems` throws.
 */
export async function scanList<T>(
  http: Http,
  settings: ClientSettings,
  endpoint: string,
  { most = Infinity, isHeld = false, onBegin = () => {}, onItems, ...options }: ScanOptions<T>,
  pageLimit = Infinity,
): Promise<ScanOutcome> {
  const request = { ...options, includeOrg: false }
  const { collected } = settings.bounds
  const bounds = isHeld ? collected : { bytes: PASSING * collected.bytes, rows: PASSING * collected.rows }
  const reading: Reading<T> = { endpoint, request, most, bounds, onBegin, onItems }
  const wanted = Math.min(most, pageLimit, LARGEST_PAGE)
  const isFiltered = Object.entries(options.params ?? {}).some(
    ([name, value]) => value !== undefined && !SHAPING.has(name),
  )
  const mayGoOn = wanted < Math.min(most, pageLimit)
  let counts: Counts = { totalCount: null, matchCount: null }
  const page = await readPage(http, reading, wanted, (head) => {
    counts = countsOf(head, isFiltered)
    return !mayGoOn || (counts.matchCount ?? 0) <= wanted
  })
  if (page !== 'declined') {
    const { items, isStopped } = page
    // More than was asked for is what an endpoint gives that does not look at it: everything.
    const isShort = items < wanted && !isCutAtPage(items, counts)
    const isWhole = !isStopped && (isShort || items > wanted || items === counts.matchCount)
    if (isWhole || isStopped || (items === wanted && !mayGoOn)) return { ...counts, items, isWhole }
  }
  const taken = await readJob(http, settings, reading, counts)
  if (taken !== undefined) return { ...counts, items: taken.items, isWhole: !taken.isStopped }
  // This PCE starts no job, and has answered a short list instead.
  const all = Math.min(most, counts.matchCount ?? counts.totalCount ?? LARGEST_PAGE)
  if (page !== 'declined' && wanted >= all) return { ...counts, items: page.items, isWhole: false }
  const { items, isStopped } = (await readPage(http, reading, all, () => true)) as Taken
  return { ...counts, items, isWhole: !isStopped && items < most && !isCutAtPage(items, counts) }
}

interface Taken {
  items: number
  /** More came than was wanted. */
  isStopped: boolean
}

/** A synchronous answer; `declined` by its headers. */
async function readPage<T>(
  http: Http,
  reading: Reading<T>,
  maxResults: number,
  isWanted: (head: StreamHead) => boolean,
): Promise<Taken | 'declined'> {
  const { endpoint, request } = reading
  const params = { ...request.params, max_results: maxResults }
  return receive(http, endpoint, { ...request, params }, reading, isWanted)
}

/** The file of the PCE's job; undefined where the PCE answers a list that is cut, or too long, instead of starting one. */
async function readJob<T>(
  http: Http,
  settings: ClientSettings,
  reading: Reading<T>,
  counts: Counts,
): Promise<Taken | undefined> {
  const { endpoint, request, most, onBegin, onItems } = reading
  let hasFile = false
  try {
    return await collect<Taken | undefined>(http, settings, endpoint, request, {
      direct: async (answer) => {
        const items = await listOf<T>(answer, endpoint)
        if (isCutAtPage(items.length, counts)) return undefined
        onBegin()
        await onItems(items.slice(0, most))
        return { items: Math.min(items.length, most), isStopped: items.length > most }
      },
      file: async (result, options) => {
        hasFile = true
        return (await receive(http, result, options, reading, () => true)) as Taken
      },
    })
  } catch (error) {
    if (!hasFile && error instanceof PceError && error.code === 'body_too_large') return undefined
    throw error
  }
}

async function receive<T>(
  http: Http,
  endpoint: string,
  request: SendOptions,
  { most, bounds, onBegin, onItems }: Reading<T>,
  isWanted: (head: StreamHead) => boolean,
): Promise<Taken | 'declined'> {
  let splitter = new JsonArraySplitter(bounds)
  let items = 0
  let isDeclined = false
  const begin = (head: StreamHead) => {
    isDeclined = !isWanted(head)
    if (isDeclined) throw new Enough()
    splitter = new JsonArraySplitter(bounds)
    items = 0
    onBegin()
  }
  const take = async (chunk: Buffer) => {
    await shareTurn()
    for (const batch of await splitter.pushInTurns(chunk)) {
      for (let at = 0; at < batch.length; at += ROWS_PER_STEP) {
        await shareTurn()
        const rows = batch.slice(at, at + ROWS_PER_STEP)
        if (!rows.every(isRecord)) throw notObjects(endpoint)
        const fresh = rows.slice(0, most - items) as T[]
        items += fresh.length
        if (fresh.length > 0) await onItems(fresh)
        if (fresh.length < rows.length) throw new Enough()
      }
    }
  }
  try {
    await http.stream(endpoint, request, { begin, take })
    splitter.end()
    return { items, isStopped: false }
  } catch (error) {
    if (!(error instanceof Enough)) throw error
    return isDeclined ? 'declined' : { items, isStopped: true }
  }
}

/** A whole number of the PCE's own pages, and fewer than it says there are: cut whatever was asked for. */
function isCutAtPage(items: number, { totalCount, matchCount }: Counts): boolean {
  // That a filter lets nothing through is no contradiction to the count of the whole collection.
  return items % PCE_PAGE === 0 && items < (matchCount ?? (items > 0 ? totalCount : null) ?? 0)
}

/** With filters X-Total-Count may be that of the whole collection (P6), X-Matched-Count is what they let through (P81). */
function countsOf({ headers }: StreamHead, isFiltered: boolean): Counts {
  const totalCount = countOf(headers['x-total-count'])
  const matched = countOf(headers['x-matched-count'])
  return { totalCount, matchCount: isFiltered ? matched : totalCount }
}

/** The number of such a header; null for anything else. */
export function countOf(text: unknown): number | null {
  return typeof text === 'string' && /^\d{1,9}$/.test(text) ? Number(text) : null
}
