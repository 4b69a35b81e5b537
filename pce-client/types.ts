import type { LookupFunction } from 'node:net'
import type { AsyncTrafficQuery, TrafficFlow, TrafficQuery as TrafficQueryBody } from '../schemas/pce/traffic.js'
import type { PceObject, Reference } from '../schemas/pce/reference.js'
import type { PolicyVersionSelector } from '../schemas/common.js'
import type { KindAttribute, ObjectTypes, SingleAttribute } from './kinds.js'

export interface PceClientOptions {
  /** PCE address; `http://` or `https://` optional (https then). A path or port inside it is dropped (P1). */
  url: string
  /** Default `443`. 1..65535, else PceIntegerError. */
  port?: string | number
  /** Default `v2`. */
  version?: string
  /** Default `1`. At least 1, else PceIntegerError. */
  orgId?: string | number
  /** Retries after the first attempt, 0 or more. Default 5. */
  retryCount?: number
  /** Seconds for one attempt up to its response headers. Default 30. */
  requestTimeout?: number
  /** Seconds for one call with all its retries and waits. Default 120 (D23). */
  totalTimeout?: number
  /** Seconds a streamed body may stay silent. Default 60. */
  idleTimeout?: number
  /** MiB of one answer, unpacked; more is `body_too_large`. 1 to 256, default 32. */
  maxAnswerMib?: number
  /** MiB of a list or file that is read in pieces and collected: the result of a job, traffic flows, a download. 1 to 4096, default 256. */
  maxListMib?: number
  /**
   * Requests, retries included, that may start within any minute; the others wait their turn. No limit by default. The PCE refuses
   * more than 500 (P48), so stay below, and below your share where several clients use one API key.
   */
  maxRequestsPerMinute?: number
  /** Called before the wait of every retry; never sees headers or credentials. */
  onRetry?: (event: RetryEvent) => void
  /** Called for every answer from the PCE, retried ones included, when its call ends and in that call's own context. */
  onAnswer?: (facts: AnswerFacts) => void
  /**
   * Called when a request begins, retries are part of it: what it returns adds headers to it, and is told how it ended. `operation` is its
   * method and path without organisation, ids and names, of a fixed set: `GET workloads/{id}`, or `other`.
   */
  onRequest?: (request: { method: string; operation: string }) => WatchedRequest
  /** The value of `X-Request-Id` sent upstream when a call's options name none. */
  requestId?: () => string | undefined
  /**
   * Resolves the PCE's name for every new connection; Node's `dns.lookup` by default. An error without a `code` is the caller's
   * own refusal: the call ends as `unreachable` with its message and is not retried. Not called for an IP address, nor with a
   * proxy, which resolves the name itself.
   */
  lookup?: LookupFunction
  /**
   * Called with the peer's IP address for every new connection, before anything is sent over it; throws to refuse it, as `lookup`
   * does. Not called with a proxy.
   */
  checkPeer?: (address: string) => void
  /**
   * Reports only that a connection failed, not why: for callers who may choose the address and must not learn from it what
   * listens there. Default false.
   */
  hideReasons?: boolean
  /** Clock, wait and jitter, replaced in tests. */
  timers?: Timers
}

export interface Timers {
  /** Milliseconds since the epoch. */
  now(): number
  /** Resolves after `ms`; rejects with the signal's reason when it aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
  /** 0 <= x < 1 */
  random(): number
}

export interface AnswerFacts {
  status: number
  /** The `X-Request-Id` that the PCE gave its answer. */
  requestId?: string
}

export interface WatchedRequest {
  headers?: Readonly<Record<string, string>>
  ended(outcome: RequestOutcome): void
}

export interface RequestOutcome {
  /** Of the last answer; undefined where the PCE gave none. */
  status: number | undefined
  /** The code of the error that the call ended with; undefined where it did not. */
  failure: string | undefined
  /** After the first attempt. */
  retries: number
  /** Milliseconds between the attempts. */
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

/** Extra options of every call: the last argument of each operation. */
export interface RequestOptions {
  signal?: AbortSignal
  /** Query parameters; undefined ones are left out, list values are sent as JSON (P8). */
  params?: Record<string, string | number | boolean | readonly unknown[] | undefined>
  headers?: Record<string, string>
  /** JSON body of post and put. */
  json?: unknown
  /** Overrides the client's `includeOrg` for this call. */
  includeOrg?: boolean
  /** `X-Request-Id` for the PCE's own log. */
  requestId?: string
  /** Milliseconds for this call with all its retries and waits; the client's `totalTimeout` by default. */
  totalTimeoutMs?: number
}

export interface CollectionProgress {
  phase: 'submitted' | 'polling' | 'downloading' | 'done'
  /** What the PCE says of the job. */
  status?: string
  /** Milliseconds since the call began. */
  elapsedMs: number
}

export interface CollectionOptions extends RequestOptions {
  /** Told about the PCE's asynchronous job where one runs: its start, every poll, the download and its end. */
  onProgress?: (progress: CollectionProgress) => void
}

export interface ScanOptions<T> extends CollectionOptions {
  /** Before the first objects, and again where the list is read anew from its beginning: what was handed over before is void. */
  onBegin?: () => void
  /** Batches of objects, in the PCE's order; awaited, so a slow consumer slows the download. */
  onItems: (items: T[]) => void | Promise<void>
  /** Objects that are read at most. Default: all. */
  most?: number
  /** The consumer keeps them all: no more is taken than of other lists that are collected. Default false. */
  isHeld?: boolean
}

export interface ScanOutcome {
  /** Objects handed over. */
  items: number
  /** They are all that the parameters match. */
  isWhole: boolean
  /** X-Total-Count, or null when the PCE sent none. */
  totalCount: number | null
  /** How many objects the parameters match, as the PCE says; null where it does not, or may mean those of the whole collection. */
  matchCount: number | null
}

export interface PceResponse {
  status: number
  headers: Record<string, string | string[] | undefined>
  /** Raw text, at most `maxAnswerMib`. */
  text: string
  /** The parsed JSON; undefined for an empty body. Throws PceError when the text is not JSON. */
  json<T = unknown>(): T
}

/** An href, a reference object, or a whole object. */
export type ReferenceLike = string | Reference | PceObject

export interface BulkResultItem {
  href?: string
  errors: { token: string; message: string }[]
}

export interface Page<T> {
  items: T[]
  /** X-Total-Count, or null when the PCE sent none. With filters some releases still report the unfiltered total. */
  totalCount: number | null
}

/** The generic operations of one object kind (S9). A verb the kind does not have throws PceError before any request. */
export interface ObjectApi<T extends object = PceObject> {
  /** Returns the object that an href, a reference or a whole object names; refuses one of another kind or organisation. */
  getByReference(reference: ReferenceLike, options?: RequestOptions): Promise<T>
  /**
   * Returns the object of exactly this name, though the PCE searches substrings; null when absent. Throws PceError when several
   * objects have the name.
   */
  getByName(name: string, policyVersion?: PolicyVersionSelector, options?: RequestOptions): Promise<T | null>
  /** Lists objects, truncated by the PCE, usually after 500; `options.params` narrow the list. */
  get(policyVersion?: PolicyVersionSelector, parent?: ReferenceLike | null, options?: RequestOptions): Promise<T[]>
  /** Like `get`, but together with the total the PCE reports. */
  getPage(
    policyVersion?: PolicyVersionSelector,
    parent?: ReferenceLike | null,
    options?: RequestOptions,
  ): Promise<Page<T>>
  /** Lists every object, in two requests: the count, then max_results set to it. */
  getAll(
    policyVersion?: PolicyVersionSelector,
    parent?: ReferenceLike | null,
    options?: CollectionOptions,
  ): Promise<T[]>
  /** Lists every object through the PCE's asynchronous job, within 10 minutes unless `totalTimeoutMs` says otherwise. */
  getAsync(
    policyVersion?: PolicyVersionSelector,
    parent?: ReferenceLike | null,
    options?: CollectionOptions,
  ): Promise<T[]>
  /** Hands over every object while the list arrives, so that none is held: through one answer, or the PCE's job where there are many. */
  scan(
    policyVersion: PolicyVersionSelector | undefined,
    parent: ReferenceLike | null | undefined,
    options: ScanOptions<T>,
  ): Promise<ScanOutcome>
  /** Creates an object and returns it as the PCE does, including secrets that are shown once. */
  create(body: object, parent?: ReferenceLike | null, options?: RequestOptions): Promise<T>
  /** Changes the fields that are sent; lists inside are replaced as a whole. Of versioned kinds the draft is changed. */
  update(reference: ReferenceLike, body: object, options?: RequestOptions): Promise<void>
  /** Deletes an object; a provisioned one is only marked until its deletion is provisioned. */
  delete(reference: ReferenceLike, options?: RequestOptions): Promise<void>
  /** Creates objects, 1000 per request, and reports the result for each. */
  bulkCreate(objects: object[], options?: RequestOptions): Promise<BulkResultItem[]>
  /** Changes objects given with their hrefs, 1000 per request, and reports the result for each. */
  bulkUpdate(objects: object[], options?: RequestOptions): Promise<BulkResultItem[]>
  /** Deletes objects, 1000 per request, and names those that could not be deleted. */
  bulkDelete(references: ReferenceLike[], options?: RequestOptions): Promise<BulkResultItem[]>
}

/** What traffic is asked for, as the PCE takes it. Without `max_results` it is as much as the operation can get. */
export type TrafficQuery = Omit<TrafficQueryBody, 'max_results'> & Partial<Pick<TrafficQueryBody, 'max_results'>>

export interface TrafficQueryProgress {
  phase: 'submitted' | 'polling' | 'draft' | 'downloading' | 'done'
  status?: string
  /** Milliseconds since the query was submitted. */
  elapsedMs: number
  /** Rows handed over so far. */
  flows: number
  matchesCount?: number
}

export interface StreamTrafficOptions extends RequestOptions {
  /** Batches of parsed rows, in the PCE's order; awaited, so a slow consumer slows the download. */
  onFlows: (flows: TrafficFlow[]) => void | Promise<void>
  /** After every poll and during the download. */
  onProgress?: (progress: TrafficQueryProgress) => void
  /** Seconds until the query is given up and deleted at the PCE. Default 600 (D4). */
  deadlineSeconds?: number
  /**
   * Have the PCE work out what the draft policy would decide, before the download: rows then have `draft_policy_decision` and
   * `rules`. Takes some 10 s more. Default false.
   */
  draftDecisions?: boolean
  /**
   * Leave out the download where the PCE says beforehand that there are as many rows as `max_results` allows, so that there may be
   * more: for callers that would divide the query and read its parts. Default false.
   */
  skipFull?: boolean
}

export interface TrafficQueryOutcome {
  query: AsyncTrafficQuery
  flows: number
  /** Rows that were not objects with a source, a destination and a service; left out of `flows`. */
  unparseable: number
  matchesCount: number | null
  /** Only with `draftDecisions`: null, or why rows have no draft decision. */
  draftUnavailable?: string | null
  /** Only with `skipFull`: nothing was downloaded. */
  skipped?: true
}

/** The transport operations of the specification. */
export interface PceTransport {
  /** Prefix endpoints with `orgs/{orgId}` (default true). */
  includeOrg: boolean
  readonly orgId: string
  /** Scheme, host and port, for messages and logs. */
  readonly origin: string
  /** @deprecated since v1.0.3 of the specification: `http[s]://<host>:<port>/api/<version>`. */
  readonly baseUrl: string
  /** Sets the API key and its secret, or a session's user and token, for all requests from now on. */
  setCredentials(username: string, password: string): void
  /** Sets the proxies for a PCE under http:// and under https://; null means none. */
  setProxies(httpProxy?: string | null, httpsProxy?: string | null): void
  /** Sets the seconds of one attempt up to its response headers. */
  setTimeout(timeout: number): void
  /**
   * Sets which certificates to trust and present. `verify`: true, false, or the path of a CA bundle. `cert`: one PEM with
   * certificate and key, or [certificate, key].
   */
  setTlsSettings(verify?: boolean | string, cert?: string | readonly [string, string] | null): void
  /** Sends a GET to a path below `/api/<version>` and returns the answer. */
  get(endpoint: string, options?: RequestOptions): Promise<PceResponse>
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

/** One generic API per attribute of the specification, camelCased: `client.ruleSets.getAll()`. */
export type ObjectApis = {
  readonly [K in KindAttribute]: K extends SingleAttribute ? SingleObjectApi<ObjectTypes[K]> : ObjectApi<ObjectTypes[K]>
}

/** A kind that is one object: where others want a reference, it takes that object, which may have no href, or `{}`. */
export interface SingleObjectApi<T extends object = PceObject> extends ObjectApi<T> {
  getByReference(reference: ReferenceLike | Partial<T>, options?: RequestOptions): Promise<T>
  update(reference: ReferenceLike | Partial<T>, body: object, options?: RequestOptions): Promise<void>
}

export type { KindAttribute }
