import { collect } from './async-job.js'
import { PceError } from './errors.js'
import type { ClientSettings } from './settings.js'
import { JsonArraySplitter, type ListBounds } from './split-json-array.js'
import { shareTurn } from './take-turns.js'
import { isRecord, listOf, notObjects, type Http, type SendOptions, type StreamHead } from './transport.js'
import type { RequestOptions, ScanOptions, ScanOutcome } from './types.js'

/**
 * Maximum number of objects that are requested in one synchronous answer. Longer lists are read through an asynchronous
 * job of the PCE, as the PCE's documentation says (P8, P10).
 */
const LARGEST_PAGE = 10_000
/** Page size of some PCE releases: they return at most this many objects, regardless of max_results. */
const PCE_PAGE = 500
/**
 * The factor by which a streamed list may be longer than a list that is collected in memory. Without a limit, an endless
 * answer would be read forever.
 */
const PASSING = 8
/**
 * Maximum number of rows passed on at a time. A batch of parsed rows is limited in bytes, but it could still contain a
 * hundred thousand very small rows.
 */
const ROWS_PER_STEP = 1000
/** Query parameters that change what the returned objects look like, but not which objects are returned. */
const SHAPING = new Set(['usage', 'include', 'include_deleted', 'max_results'])

/** The numbers of objects that the PCE reports in the headers of an answer. */
type Counts = Pick<ScanOutcome, 'totalCount' | 'matchCount'>

/** The list to read, and the callbacks that receive it. */
interface Reading<T> {
  endpoint: string
  request: RequestOptions
  most: number
  bounds: ListBounds
  onBegin: () => void
  onItems: (items: T[]) => void | Promise<void>
}

/** Thrown by a sink to end a download when no more of it is needed. */
class Enough extends Error {}

/**
 * Streams the objects of a collection, so that the complete text and the complete list are never held in memory (D132).
 * Up to 10,000 objects come in one synchronous answer. A longer list is recognised by the PCE's count in the headers,
 * or by an answer with as many objects as requested, and is read through the PCE's job.
 *
 * @param pageLimit maximum number of objects of this kind that the PCE returns in any way, even through a job.
 * @throws {PceError} like every call; `invalid_response` for anything but a list of objects; errors thrown by
 *   `onItems`.
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
    // An endpoint that ignores max_results returns more than requested; that answer is complete.
    const isShort = items < wanted && !isCutAtPage(items, counts)
    const isWhole = !isStopped && (isShort || items > wanted || items === counts.matchCount)
    if (isWhole || isStopped || (items === wanted && !mayGoOn)) return { ...counts, items, isWhole }
  }
  const taken = await readJob(http, settings, reading, counts)
  if (taken !== undefined) return { ...counts, items: taken.items, isWhole: !taken.isStopped }
  // This PCE does not start jobs, and has answered with a truncated list.
  const all = Math.min(most, counts.matchCount ?? counts.totalCount ?? LARGEST_PAGE)
  if (page !== 'declined' && wanted >= all) return { ...counts, items: page.items, isWhole: false }
  const { items, isStopped } = (await readPage(http, reading, all, () => true)) as Taken
  return { ...counts, items, isWhole: !isStopped && items < most && !isCutAtPage(items, counts) }
}

interface Taken {
  items: number
  /** True if reading stopped because the list has more objects than the caller wants. */
  isStopped: boolean
}

/** Reads a synchronous answer. Returns `declined`, without reading the body, if `isWanted` rejects its headers. */
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

/**
 * Reads the list through an asynchronous job of the PCE. Returns undefined if the PCE starts no job but answers with a
 * list that is truncated or too long.
 */
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

/**
 * Returns true if the PCE has truncated a list at its page size: the list's length is a multiple of the page size and
 * below the PCE's own count.
 */
function isCutAtPage(items: number, { totalCount, matchCount }: Counts): boolean {
  // An empty filtered list does not contradict the count of the whole collection.
  return items % PCE_PAGE === 0 && items < (matchCount ?? (items > 0 ? totalCount : null) ?? 0)
}

/**
 * Reads the PCE's counts from the headers of an answer. With filters, X-Total-Count may still count the whole
 * collection (P6); X-Matched-Count counts the matches (P81).
 */
function countsOf({ headers }: StreamHead, isFiltered: boolean): Counts {
  const totalCount = countOf(headers['x-total-count'])
  const matched = countOf(headers['x-matched-count'])
  return { totalCount, matchCount: isFiltered ? matched : totalCount }
}

/** Reads a count header; returns null if it is not a number. */
export function countOf(text: unknown): number | null {
  return typeof text === 'string' && /^\d{1,9}$/.test(text) ? Number(text) : null
}
