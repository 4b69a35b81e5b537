import type { LookupFunction } from 'node:net'
import type { AsyncTrafficQuery, TrafficFlow, TrafficQuery as TrafficQueryBody } from '../schemas/pce/traffic.js'
import type { PceObject, Reference } from '../schemas/pce/reference.js'
import type { PolicyVersionSelector } from '../schemas/common.js'
import type { KindAttribute, ObjectTypes, SingleAttribute } from './kinds.js'

export interface PceClientOptions {
  /**
   * Address of the PCE. `http://` or `https://` is optional, with https as the default; a path or port in it is ignored
   * (P1).
   */
  url: string
  /** The port of the PCE. Default `443`. Must be 1..65535, else PceIntegerError. */
  port?: string | number
  /** Version of the PCE's API. Default `v2`. */
  version?: string
  /** Id of the organisation. Default `1`. Must be at least 1, else PceIntegerError. */
  orgId?: string | number
  /** Number of retries after the first attempt, 0 or more. Default 5. */
  retryCount?: number
  /** Time-out of one attempt up to its response headers, in seconds. Default 30. */
  requestTimeout?: number
  /** Time-out of one call with all its retries and waits, in seconds. Default 120 (D23). */
  totalTimeout?: number
  /** Maximum number of seconds that may pass without new data of an answer's body. Default 60. */
  idleTimeout?: number
  /**
   * Maximum size of an answer, in MiB of uncompressed text; a larger one fails with `body_too_large`. 1 to 256, default
   * 32.
   */
  maxAnswerMib?: number
  /**
   * Maximum size of a list or file that is read in pieces and collected, in MiB: the result of a job, traffic flows, a
   * download. 1 to 4096, default 256.
   */
  maxListMib?: number
  /**
   * Maximum number of requests that may start within any minute, retries included; further requests wait. No limit by
   * default. The PCE refuses more than 500 (P48), so stay below that, or below your share of it if several clients use
   * one API key.
   */
  maxRequestsPerMinute?: number
  /** Called for every retry, before the wait. The event never contains headers or credentials. */
  onRetry?: (event: RetryEvent) => void
  /**
   * Called for every answer of the PCE, including answers after which the request was retried. All answers to a call
   * are reported when the call ends, in the call's own async context.
   */
  onAnswer?: (facts: AnswerFacts) => void
  /**
   * Called once per request with all its retries, before the first attempt. Returns headers to add to the request, and
   * a callback that is called when the request has ended. `operation` is the method and path without organisation, ids
   * and names, from a fixed set: `GET workloads/{id}`, or `other`.
   */
  onRequest?: (request: { method: string; operation: string }) => WatchedRequest
  /** Returns the `X-Request-Id` to send to the PCE if the options of a call contain none. */
  requestId?: () => string | undefined
  /**
   * Resolves the PCE's host name for every new connection; Node's `dns.lookup` by default. An error without a `code`
   * counts as a refusal by the caller: the call ends as `unreachable` with the error's message and is not retried. Not
   * called for an IP address, nor with a proxy, which resolves the name itself.
   */
  lookup?: LookupFunction
  /**
   * Called with the peer's IP address for every new connection, before anything is sent over it. If it throws, the
   * connection is refused, as with `lookup`. Not called with a proxy.
   */
  checkPeer?: (address: string) => void
  /**
   * If true, errors say only that a connection failed, not why. Meant for programs whose users may choose the address
   * of the PCE, but must not find out which hosts and ports exist. Default false.
   */
  hideReasons?: boolean
  /** The client's source of time, waits and random numbers; tests replace it. */
  timers?: Timers
}

export interface Timers {
  /** Returns the current time in milliseconds since the epoch. */
  now(): number
  /** Waits `ms` milliseconds; rejects with the signal's reason when the signal aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
  /** Returns a random number with 0 <= x < 1. */
  random(): number
}

export interface AnswerFacts {
  status: number
  /** The `X-Request-Id` of the PCE's answer. */
  requestId?: string
}

export interface WatchedRequest {
  headers?: Readonly<Record<string, string>>
  ended(outcome: RequestOutcome): void
}

export interface RequestOutcome {
  /** Status of the last answer; undefined if the PCE gave none. */
  status: number | undefined
  /** Code of the error with which the call ended; undefined if it succeeded. */
  failure: string | undefined
  /** Number of attempts after the first. */
  retries: number
  /** Milliseconds spent waiting between the attempts. */
  waitedMs: number
}

export interface RetryEvent {
  method: string
  path: string
  attempt: number
  waitMs: number
  status?: number
  code?: string
}

/** Options that every call takes as its last argument. */
export interface RequestOptions {
  signal?: AbortSignal
  /** Query parameters. Undefined ones are left out, lists are sent as JSON (P8). */
  params?: Record<string, string | number | boolean | readonly unknown[] | undefined>
  headers?: Record<string, string>
  /** The JSON body of a POST or PUT request. */
  json?: unknown
  /** Overrides, for this call, the client's setting `includeOrg`. */
  includeOrg?: boolean
  /** The `X-Request-Id` to send, which then appears in the PCE's log. */
  requestId?: string
  /** Time-out of this call with all its retries and waits, in milliseconds. Default: the client's `totalTimeout`. */
  totalTimeoutMs?: number
  /**
   * Maximum size of each answer to this call, in bytes of uncompressed text. It also applies to streamed answers, such
   * as the result of a job or traffic query, and to downloads. A larger answer fails with `body_too_large`. The client's
   * own limits always apply as well.
   */
  maxBytes?: number
}

export interface CollectionProgress {
  phase: 'submitted' | 'polling' | 'downloading' | 'done'
  /** Status of the job, exactly as the PCE reports it. */
  status?: string
  /** Milliseconds since the call began. */
  elapsedMs: number
}

export interface CollectionOptions extends RequestOptions {
  /**
   * Called as the PCE's asynchronous job proceeds, if there is one: when it starts, after every poll, and at the start
   * and end of the download.
   */
  onProgress?: (progress: CollectionProgress) => void
}

export interface ScanOptions<T> extends CollectionOptions {
  /**
   * Called before the first objects, and again if the list is read anew from its beginning; all objects passed on
   * before must then be discarded.
   */
  onBegin?: () => void
  /**
   * Receives batches of objects in the PCE's order. Its promise is awaited, so that a slow consumer slows the download.
   */
  onItems: (items: T[]) => void | Promise<void>
  /** Maximum number of objects to read. By default, all are read. */
  most?: number
  /** If true, the consumer keeps all objects in memory, so the limits for collected lists apply. Default false. */
  isHeld?: boolean
}

export interface ScanOutcome {
  /** Number of objects passed to `onItems`. */
  items: number
  /** True if every object that matches the parameters has been passed to `onItems`. */
  isWhole: boolean
  /** The value of X-Total-Count, or null when the PCE sent none. */
  totalCount: number | null
  /**
   * Number of objects that match the parameters, according to the PCE; null if the PCE does not say, or if its number
   * may be the size of the whole collection.
   */
  matchCount: number | null
}

/** Receives an object in parts, in the order in which the PCE sends them. The promises that it returns are awaited. */
export interface PartsSink {
  /** Receives a field of the object whose value is not a list. */
  onField: (field: string, value: unknown) => void | Promise<void>
  /** Receives a batch of items of a field whose value is a list. The first batch of each such field is empty. */
  onItems: (field: string, items: readonly unknown[]) => void | Promise<void>
}

export interface PartsOptions extends RequestOptions, PartsSink {
  /**
   * Called before the first part, and again if the download starts over: all parts received before must then be
   * discarded.
   */
  onBegin: () => void
}

export interface PceResponse {
  status: number
  headers: Record<string, string | string[] | undefined>
  /** The body of the answer as text, at most `maxAnswerMib` MiB long. */
  text: string
  /** The parsed JSON; undefined for an empty body. Throws PceError when the text is not JSON. */
  json<T = unknown>(): T
}

/** An href, a reference object (`{href}`), or a whole object. */
export type ReferenceLike = string | Reference | PceObject

export interface BulkResultItem {
  href?: string
  errors: { token: string; message: string }[]
}

export interface Page<T> {
  items: T[]
  /**
   * The value of X-Total-Count, or null when the PCE sent none. With filters some releases still report the unfiltered
   * total.
   */
  totalCount: number | null
}

/**
 * The generic operations of one object kind (S9). An operation that the kind does not support throws PceError before
 * any request.
 */
export interface ObjectApi<T extends object = PceObject> {
  /**
   * Returns the object to which an href, a reference or a whole object refers. References to another kind or
   * organisation are refused with a PceError.
   */
  getByReference(reference: ReferenceLike, options?: RequestOptions): Promise<T>
  /**
   * Returns the object that has exactly this name, or null if there is none. The PCE's own search would also find longer
   * names that contain it. Throws PceError if several objects have the name.
   */
  getByName(name: string, policyVersion?: PolicyVersionSelector, options?: RequestOptions): Promise<T | null>
  /** Lists objects; the PCE truncates the list, usually after 500 objects. `options.params` can filter it. */
  get(policyVersion?: PolicyVersionSelector, parent?: ReferenceLike | null, options?: RequestOptions): Promise<T[]>
  /** Like `get`, but also returns the total number of objects that the PCE reports. */
  getPage(
    policyVersion?: PolicyVersionSelector,
    parent?: ReferenceLike | null,
    options?: RequestOptions,
  ): Promise<Page<T>>
  /** Lists every object, normally in two requests: one for the count, and one with max_results set to that count. */
  getAll(
    policyVersion?: PolicyVersionSelector,
    parent?: ReferenceLike | null,
    options?: CollectionOptions,
  ): Promise<T[]>
  /** Lists every object through the PCE's asynchronous job, within 10 minutes unless `totalTimeoutMs` is given. */
  getAsync(
    policyVersion?: PolicyVersionSelector,
    parent?: ReferenceLike | null,
    options?: CollectionOptions,
  ): Promise<T[]>
  /**
   * Passes on every object while the list arrives, without holding the whole list in memory. The list comes from a
   * single answer or, if there are many objects, from the PCE's job.
   */
  scan(
    policyVersion: PolicyVersionSelector | undefined,
    parent: ReferenceLike | null | undefined,
    options: ScanOptions<T>,
  ): Promise<ScanOutcome>
  /** Creates an object and returns the PCE's answer, including secrets that are shown only once. */
  create(body: object, parent?: ReferenceLike | null, options?: RequestOptions): Promise<T>
  /** Changes the given fields; lists in them are replaced as a whole. For versioned kinds, the draft is changed. */
  update(reference: ReferenceLike, body: object, options?: RequestOptions): Promise<void>
  /** Deletes an object. A provisioned object is only marked for deletion until the deletion is provisioned. */
  delete(reference: ReferenceLike, options?: RequestOptions): Promise<void>
  /** Creates objects, 1000 per request, and returns a result for each. */
  bulkCreate(objects: object[], options?: RequestOptions): Promise<BulkResultItem[]>
  /** Changes objects, each given with its href, 1000 per request, and returns a result for each. */
  bulkUpdate(objects: object[], options?: RequestOptions): Promise<BulkResultItem[]>
  /** Deletes objects, 1000 per request, and returns a result for each object that could not be deleted. */
  bulkDelete(references: ReferenceLike[], options?: RequestOptions): Promise<BulkResultItem[]>
}

/**
 * A traffic query in the form that the PCE expects. Without `max_results`, the operation asks for the largest number of
 * rows that the PCE allows.
 */
export type TrafficQuery = Omit<TrafficQueryBody, 'max_results'> & Partial<Pick<TrafficQueryBody, 'max_results'>>

export interface TrafficQueryProgress {
  phase: 'submitted' | 'polling' | 'draft' | 'downloading' | 'done'
  status?: string
  /** Milliseconds since the query was submitted. */
  elapsedMs: number
  /** Number of rows passed to `onFlows` so far. */
  flows: number
  matchesCount?: number
}

export interface StreamTrafficOptions extends RequestOptions {
  /**
   * Receives batches of parsed rows in the PCE's order. Its promise is awaited, so that a slow consumer slows the
   * download.
   */
  onFlows: (flows: TrafficFlow[]) => void | Promise<void>
  /** Called after every poll and during the download. */
  onProgress?: (progress: TrafficQueryProgress) => void
  /** Seconds after which the query is abandoned and deleted at the PCE. Default 600 (D4). */
  deadlineSeconds?: number
  /**
   * If true, the PCE computes the decisions of the draft policy before the rows are downloaded; rows then have
   * `draft_policy_decision` and `rules`. Takes about 10 s longer. Default false.
   */
  draftDecisions?: boolean
  /**
   * If true, no rows are downloaded when the PCE reports as many of them as `max_results` allows, because there may be
   * more. Meant for callers that then split the query and read its parts. Default false.
   */
  skipFull?: boolean
}

export interface TrafficQueryOutcome {
  query: AsyncTrafficQuery
  flows: number
  /** Number of rows that lack a source, destination or service; they are not counted in `flows`. */
  unparseable: number
  matchesCount: number | null
  /** The reason why the rows have no draft decision; null if they have one. Set only with `draftDecisions`. */
  draftUnavailable?: string | null
  /** True if the download was skipped. Set only with `skipFull`. */
  skipped?: true
  /** Number of rows that the PCE returned and a limited client did not pass on; they are not counted in `flows`. */
  hidden?: number
}

/** The client's operations for sending requests, as the specification defines them. */
export interface PceTransport {
  /** If true, endpoints are prefixed with `orgs/{orgId}` (default true). */
  includeOrg: boolean
  readonly orgId: string
  /** Scheme, host and port of the PCE, for messages and logs. */
  readonly origin: string
  /** @deprecated since v1.0.3 of the specification: `http[s]://<host>:<port>/api/<version>`. */
  readonly baseUrl: string
  /** Sets the API key and secret, or a session's user and token, for all further requests. */
  setCredentials(username: string, password: string): void
  /**
   * Returns true if the client's credentials have this user name, such as the `auth_username` of an API key. The name
   * itself is never exposed.
   */
  isUserName(name: string): boolean
  /**
   * Sets the proxy to use if the PCE's address is http://, and the proxy to use if it is https://; null means no proxy.
   */
  setProxies(httpProxy?: string | null, httpsProxy?: string | null): void
  /** Sets the time-out of one attempt, in seconds, up to its response headers. */
  setTimeout(timeout: number): void
  /**
   * Sets which certificates to trust and to present.
   *
   * @param verify true for the default authorities, false to accept any certificate, or the path of a CA bundle to
   *   trust instead.
   * @param cert path of one PEM file with certificate and key, or the paths [certificate, key].
   */
  setTlsSettings(verify?: boolean | string, cert?: string | readonly [string, string] | null): void
  /** Sends a GET to a path below `/api/<version>` and returns the answer. */
  get(endpoint: string, options?: RequestOptions): Promise<PceResponse>
  /**
   * Sends a GET whose answer is one object, and passes the object on in parts, so that it is never held in memory as a
   * whole. The size of the answer is limited like that of any other answer. Returns this size in bytes of uncompressed
   * text.
   */
  getInParts(endpoint: string, options: PartsOptions): Promise<{ bytes: number }>
  /** Sends a POST with `options.json` as its body. */
  post(endpoint: string, options?: RequestOptions): Promise<PceResponse>
  /** Sends a PUT with `options.json` as its body. */
  put(endpoint: string, options?: RequestOptions): Promise<PceResponse>
  /** Sends a DELETE. */
  delete(endpoint: string, options?: RequestOptions): Promise<PceResponse>
  /** Returns a whole collection through the PCE's asynchronous job (P10). */
  getCollection(endpoint: string, options?: CollectionOptions): Promise<PceResponse>
  /** Verifies that the PCE answers and accepts the credentials and the organisation; throws PceApiError otherwise. */
  mustConnect(options?: RequestOptions): Promise<void>
  /** Like `mustConnect`, but returns false instead of throwing. */
  checkConnection(options?: RequestOptions): Promise<boolean>
  /** Closes idle keep-alive connections. */
  close(): void
}

/** The generic APIs of all object kinds, by the kind's attribute in camel case: `client.ruleSets.getAll()`. */
export type ObjectApis = {
  readonly [K in KindAttribute]: K extends SingleAttribute ? SingleObjectApi<ObjectTypes[K]> : ObjectApi<ObjectTypes[K]>
}

/**
 * The API of a kind that consists of a single object. In place of a reference, it also accepts the object itself, which
 * need not have an href, or `{}`.
 */
export interface SingleObjectApi<T extends object = PceObject> extends ObjectApi<T> {
  getByReference(reference: ReferenceLike | Partial<T>, options?: RequestOptions): Promise<T>
  update(reference: ReferenceLike | Partial<T>, body: object, options?: RequestOptions): Promise<void>
}

export type { KindAttribute }
