import type { PolicyVersionSelector } from '../schemas/common.js'
import type { PceObject } from '../schemas/pce/reference.js'
import { getListAsync } from './async-job.js'
import { toBulkResults, inChunks } from './bulk.js'
import { PceError } from './errors.js'
import type { BulkVerb, Kind, Verb } from './kinds.js'
import { checkHref, collectionOf, draftHref, hasItems, hrefOf } from './endpoint.js'
import type { ClientSettings } from './settings.js'
import { bodyOf, createdOf, listOf, type Http, type TracedResponse } from './transport.js'
import { countOf, scanList } from './scan-list.js'
import type {
  BulkResultItem,
  CollectionOptions,
  ObjectApi,
  Page,
  ReferenceLike,
  RequestOptions,
  ScanOptions,
  ScanOutcome,
} from './types.js'

/**
 * The `max_results` of a request if the PCE does not say how many objects there are. PCEs are known to honour this
 * value (P8).
 */
const GENEROUS_MAX_RESULTS = 10_000
/**
 * Maximum number of objects in an answer of the PCE if the request has no `max_results`. For events and security
 * principals, the maximum is 100.
 */
const DEFAULT_PAGE = 500
const SMALLEST_DEFAULT_PAGE = 100

type Parent = ReferenceLike | null | undefined

/**
 * Creates the generic operations of one kind (S9), according to the definition of the kind in kinds.ts. Operations that
 * the kind does not support, and hrefs of other kinds, are refused before any request.
 */
export class KindApi<T extends object = PceObject> implements ObjectApi<T> {
  readonly #kind: Kind
  readonly #http: Http
  readonly #settings: ClientSettings

  constructor(kind: Kind, http: Http, settings: ClientSettings) {
    this.#kind = kind
    this.#http = http
    this.#settings = settings
  }

  async getByReference(reference: ReferenceLike, options: RequestOptions = {}): Promise<T> {
    requireVerb(this.#kind, 'GET', this.#kind.single === true ? 'collection' : 'item', 'read by reference')
    const href = checkHref(this.#kind, this.#orgId, reference)
    return bodyOf<T>(await this.#http.send('GET', href, below(options)), href, this.#kind.single !== true)
  }

  async getByName(
    name: string,
    policyVersion: PolicyVersionSelector = 'draft',
    options: RequestOptions = {},
  ): Promise<T | null> {
    const { specName, name: nameTrait, parent } = this.#kind
    if (nameTrait === undefined) {
      const instead = specName === 'labels' ? 'a label is found by params {key, value}' : 'its objects have no name'
      throw new PceError('unsupported', `${specName} cannot be found by name: ${instead}`)
    }
    if (parent !== undefined) {
      throw new PceError('unsupported', `${specName} cannot be found by name alone: list those of a parent and compare`)
    }
    // Without this check, an undefined name would match every object without a name.
    if (typeof name !== 'string') throw new PceError('invalid_argument', 'a name must be a string')
    const endpoint = this.#collection(policyVersion)
    const narrowed = nameTrait === 'filter' ? { ...options, params: { ...options.params, name } } : options
    const named = (await this.#everyMatch(endpoint, narrowed)).filter((object) => nameOf(object) === name)
    if (named.length < 2) return named[0] ?? null
    const hrefs = named.map((object) => hrefOf(object as ReferenceLike))
    throw new PceError('ambiguous_name', `${named.length} ${specName} are named ${JSON.stringify(name)}`, { hrefs })
  }

  async get(
    policyVersion: PolicyVersionSelector = 'draft',
    parent?: Parent,
    options: RequestOptions = {},
  ): Promise<T[]> {
    return (await this.getPage(policyVersion, parent, options)).items
  }

  async getPage(
    policyVersion: PolicyVersionSelector = 'draft',
    parent?: Parent,
    options: RequestOptions = {},
  ): Promise<Page<T>> {
    const endpoint = this.#collection(policyVersion, parent)
    if (this.#kind.single !== true) return getPage<T>(this.#http, endpoint, options)
    return { items: [bodyOf<T>(await this.#http.send('GET', endpoint, below(options)), endpoint)], totalCount: null }
  }

  async getAll(
    policyVersion: PolicyVersionSelector = 'draft',
    parent?: Parent,
    options: CollectionOptions = {},
  ): Promise<T[]> {
    if (this.#kind.single === true) return this.get(policyVersion, parent, options)
    const endpoint = this.#collection(policyVersion, parent)
    return getAll<T>(this.#http, this.#settings, endpoint, options, this.#kind.pageLimit)
  }

  async getAsync(
    policyVersion: PolicyVersionSelector = 'draft',
    parent?: Parent,
    options: CollectionOptions = {},
  ): Promise<T[]> {
    if (this.#kind.single === true) return this.get(policyVersion, parent, options)
    const endpoint = this.#collection(policyVersion, parent)
    return getListAsync<T>(this.#http, this.#settings, endpoint, options)
  }

  async scan(
    policyVersion: PolicyVersionSelector = 'draft',
    parent: Parent,
    options: ScanOptions<T>,
  ): Promise<ScanOutcome> {
    const endpoint = this.#collection(policyVersion, parent)
    if (this.#kind.single !== true)
      return scanList<T>(this.#http, this.#settings, endpoint, options, this.#kind.pageLimit)
    const { onBegin, onItems, most: _most, ...request } = options
    onBegin?.()
    await onItems(await this.get(policyVersion, parent, request))
    return { items: 1, isWhole: true, totalCount: null, matchCount: null }
  }

  async create(body: object, parent?: Parent, options: RequestOptions = {}): Promise<T> {
    requireVerb(this.#kind, 'POST', 'collection', 'created')
    const endpoint = this.#collection('draft', parent)
    // Service bindings and vulnerabilities can only be created as arrays, so a single object is wrapped in an array.
    const wrap = this.#kind.arrayCreate === true && !Array.isArray(body)
    const answer = await this.#http.send('POST', endpoint, { ...below(options), json: wrap ? [body] : body })
    return createdOf<T>(answer, endpoint, wrap ? 'wrapped' : Array.isArray(body) ? 'list' : 'one')
  }

  async update(reference: ReferenceLike, body: object, options: RequestOptions = {}): Promise<void> {
    requireVerb(this.#kind, 'PUT', hasItems(this.#kind) ? 'item' : 'collection', 'changed')
    const href = draftHref(this.#kind, checkHref(this.#kind, this.#orgId, reference))
    await this.#http.send('PUT', href, { ...below(options), json: body })
  }

  async delete(reference: ReferenceLike, options: RequestOptions = {}): Promise<void> {
    requireVerb(this.#kind, 'DELETE', 'item', 'deleted')
    const href = draftHref(this.#kind, checkHref(this.#kind, this.#orgId, reference))
    await this.#http.send('DELETE', href, below(options))
  }

  async bulkCreate(objects: object[], options: RequestOptions = {}): Promise<BulkResultItem[]> {
    return this.#bulk('create', objects, options)
  }

  async bulkUpdate(objects: object[], options: RequestOptions = {}): Promise<BulkResultItem[]> {
    requireBulk(this.#kind, 'update')
    const items = objects.map((object) => ({
      ...object,
      href: draftHref(this.#kind, checkHref(this.#kind, this.#orgId, object as ReferenceLike)),
    }))
    return this.#bulk('update', items, options)
  }

  async bulkDelete(references: ReferenceLike[], options: RequestOptions = {}): Promise<BulkResultItem[]> {
    requireBulk(this.#kind, 'delete')
    const items = references.map((reference) => ({ href: draftHref(this.#kind, this.#bulkHref(reference)) }))
    return this.#bulk('delete', items, options)
  }

  get #orgId(): string {
    return this.#settings.address.orgId
  }

  #collection(policyVersion: PolicyVersionSelector, parent?: Parent): string {
    return collectionOf(this.#kind, this.#orgId, policyVersion, parent)
  }

  /** Like `checkHref`, but also accepts a reference by `external_data_set`, which a bulk deletion may contain (P12). */
  #bulkHref(reference: ReferenceLike): string {
    const href = hrefOf(reference)
    const external = `${this.#collection('draft')}?external_data_set=`
    return href.startsWith(external) ? href : checkHref(this.#kind, this.#orgId, href)
  }

  /**
   * Returns all objects that match a filter. More than one request is made only if the first answer may be truncated.
   */
  async #everyMatch(endpoint: string, options: RequestOptions): Promise<T[]> {
    const { items, totalCount } = await getPage<T>(this.#http, endpoint, options)
    if (items.length < SMALLEST_DEFAULT_PAGE || items.length === totalCount) return items
    return getAll<T>(this.#http, this.#settings, endpoint, options, this.#kind.pageLimit)
  }

  async #bulk(verb: BulkVerb, items: object[], options: RequestOptions): Promise<BulkResultItem[]> {
    requireBulk(this.#kind, verb)
    const endpoint = `${this.#collection('draft')}/bulk_${verb}`
    const results: BulkResultItem[] = []
    try {
      for (const chunk of inChunks(items)) {
        const answer = await this.#http.send('PUT', endpoint, { ...below(options), json: chunk })
        results.push(...toBulkResults(verb, answer, chunk.length))
      }
    } catch (error) {
      if (error instanceof PceError) error.completed = results
      throw error
    }
    return results
  }
}

/** Returns the options with `includeOrg: false`, because hrefs and collection paths are already complete. */
function below(options: RequestOptions): RequestOptions {
  return { ...options, includeOrg: false }
}

/** Returns the name of an object. In network devices, the name is inside `config`. */
function nameOf(object: object): unknown {
  const { name, config } = object as { name?: unknown; config?: { name?: unknown } | null }
  return name ?? config?.name
}

/**
 * Checks that the kind supports an HTTP method on its collection or on single objects.
 *
 * @param what the past participle for the message: "labels cannot be <what>".
 * @throws {PceError} `unsupported`, listing what the kind does support.
 */
function requireVerb(kind: Kind, verb: Verb, place: 'item' | 'collection', what: string): void {
  const verbs = place === 'item' ? kind.itemVerbs : kind.collectionVerbs
  if (!verbs.includes(verb)) refuse(kind, what)
}

/** Checks that the kind supports a bulk operation. @throws {PceError} `unsupported`, like `requireVerb`. */
function requireBulk(kind: Kind, verb: BulkVerb): void {
  if (kind.bulk?.includes(verb) !== true) refuse(kind, `${verb}d in bulk`)
}

function refuse({ specName, collectionVerbs, itemVerbs, bulk }: Kind, what: string): never {
  const offered = [
    `${collectionVerbs.join(', ')} on the collection`,
    ...(itemVerbs.length > 0 ? [`${itemVerbs.join(', ')} on an object`] : []),
    ...(bulk ?? []).map((verb) => `bulk_${verb}`),
  ]
  throw new PceError('unsupported', `${specName} cannot be ${what}; the PCE offers ${offered.join('; ')}`)
}

/**
 * Fetches a page of a collection and the collection's total count.
 *
 * @throws {PceError} `invalid_response` if the answer is not a list.
 */
export async function getPage<T>(http: Http, endpoint: string, options: RequestOptions = {}): Promise<Page<T>> {
  const answer = await http.send('GET', endpoint, { ...options, includeOrg: false })
  return { items: await listOf<T>(answer, endpoint), totalCount: totalOf(answer) }
}

/**
 * Fetches every object of a collection (S9): first the count (`max_results=0`), then all objects. An endpoint that
 * ignores `max_results` returns everything at once. The reported total is only a hint, because it may be missing,
 * wrong, unfiltered or out of date. So if the answer has exactly the requested length, the list is requested again with
 * a larger limit. If even that answer could be truncated, or there are too many objects for one answer, the
 * asynchronous job is used.
 *
 * @param pageLimit maximum number of objects of this kind in any synchronous answer.
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
      // Fewer objects than requested are normally all there are, unless this PCE release truncates lists at its page
      // size. More objects than requested mean that the endpoint ignores max_results. With filters, the total may be
      // that of the whole collection. So with filters, and if there is no total, an answer is taken to be truncated
      // only if its length is a multiple of the page size.
      const isBelowTotal = total !== null && items.length < total && !isFiltered
      if (!isBelowTotal && !isWholePages(items.length)) return items
      break
    }
    // The answer has exactly the requested length, so it may be truncated. If the PCE reports a larger total, the next
    // request asks for that many objects.
    if (totalCount === null || totalCount < wanted) break
    wanted = totalCount
  }
  const gathered = await getListAsync<T>(http, settings, endpoint, options)
  // If the PCE does not start a job, it answers with an ordinary list, which may be shorter than a list that was read
  // before.
  return gathered.length < most.length ? most : gathered
}

function unlessTooLarge(error: unknown): undefined {
  if (!(error instanceof PceError) || error.code !== 'body_too_large') throw error
}

function isWholePages(count: number): boolean {
  return count > 0 && count % DEFAULT_PAGE === 0
}

function totalOf(answer: TracedResponse): number | null {
  return countOf(answer.headers['x-total-count'])
}
