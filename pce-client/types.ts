import type { AsyncTrafficQuery, TrafficFlow, TrafficQuery } from '../schemas/pce/traffic.js'
import type { PceObject, Reference } from '../schemas/pce/reference.js'
import type {
  ChangeSubsetType,
  PendingChange,
  PolicyDependency,
  PolicyImpact,
  PolicyVersion,
} from '../schemas/pce/policy.js'
import type { IpList } from '../schemas/pce/ip-list.js'
import type { Service } from '../schemas/pce/service.js'
import type { ProductVersion } from '../schemas/pce/status.js'
import type { PolicyVersionSelector } from '../schemas/common.js'
import type { KindAttribute, ObjectTypes } from './kinds.js'

export interface PceClientOptions {
  /** PCE address; `http://` or `https://` optional (https then). A path or port inside it is dropped (pce-api a.1). */
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
  /** Seconds for one call with all its retries and waits. Default 120 (design decision 23). */
  totalTimeout?: number
  /** Seconds a streamed body may stay silent. Default 60. */
  idleTimeout?: number
  /** Told about every retry before its wait; never sees headers or credentials. */
  onRetry?: (event: RetryEvent) => void
  /** The value of `X-Request-Id` sent upstream when a call's options name none. */
  requestId?: () => string | undefined
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
  /** Query parameters; undefined ones are left out, list values are sent as JSON (pce-api b.1). */
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

export interface PceResponse {
  status: number
  headers: Record<string, string | string[] | undefined>
  /** Raw text, at most 32 MiB. */
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

/** The generic operations of one object kind (specification 4.3). A verb the kind does not have throws PceError before any request. */
export interface ObjectApi<T extends object = PceObject> {
  getByReference(reference: ReferenceLike, options?: RequestOptions): Promise<T>
  /** Exact, though the PCE searches substrings; null when absent. Throws PceError when several objects bear the name. */
  getByName(name: string, policyVersion?: PolicyVersionSelector, options?: RequestOptions): Promise<T | null>
  get(policyVersion?: PolicyVersionSelector, parent?: ReferenceLike | null, options?: RequestOptions): Promise<T[]>
  /** As `get`, with the total the PCE reports beside the page. */
  getPage(
    policyVersion?: PolicyVersionSelector,
    parent?: ReferenceLike | null,
    options?: RequestOptions,
  ): Promise<Page<T>>
  /** Every object, in two requests: the count, then max_results set to it. */
  getAll(policyVersion?: PolicyVersionSelector, parent?: ReferenceLike | null, options?: RequestOptions): Promise<T[]>
  getAsync(policyVersion?: PolicyVersionSelector, parent?: ReferenceLike | null, options?: RequestOptions): Promise<T[]>
  create(body: object, parent?: ReferenceLike | null, options?: RequestOptions): Promise<T>
  update(reference: ReferenceLike, body: object, options?: RequestOptions): Promise<void>
  delete(reference: ReferenceLike, options?: RequestOptions): Promise<void>
  bulkCreate(objects: object[], options?: RequestOptions): Promise<BulkResultItem[]>
  bulkUpdate(objects: object[], options?: RequestOptions): Promise<BulkResultItem[]>
  bulkDelete(references: ReferenceLike[], options?: RequestOptions): Promise<BulkResultItem[]>
}

export interface TrafficQueryProgress {
  phase: 'submitted' | 'polling' | 'downloading' | 'done'
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
  /** Seconds until the query is given up and deleted at the PCE. Default 600 (design decision 4). */
  deadlineSeconds?: number
}

export interface TrafficQueryOutcome {
  query: AsyncTrafficQuery
  flows: number
  /** Rows that were not objects with a source, a destination and a service; left out of `flows`. */
  unparseable: number
  matchesCount: number | null
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
  setCredentials(username: string, password: string): void
  setProxies(httpProxy?: string | null, httpsProxy?: string | null): void
  /** Seconds. */
  setTimeout(timeout: number): void
  /** `verify`: true, false, or the path of a CA bundle. `cert`: one PEM with certificate and key, or [certificate, key]. */
  setTlsSettings(verify?: boolean | string, cert?: string | readonly [string, string] | null): void
  get(endpoint: string, options?: RequestOptions): Promise<PceResponse>
  post(endpoint: string, options?: RequestOptions): Promise<PceResponse>
  put(endpoint: string, options?: RequestOptions): Promise<PceResponse>
  delete(endpoint: string, options?: RequestOptions): Promise<PceResponse>
  /** The whole collection through the PCE's asynchronous job (pce-api b.3). */
  getCollection(endpoint: string, options?: RequestOptions): Promise<PceResponse>
  mustConnect(options?: RequestOptions): Promise<void>
  checkConnection(options?: RequestOptions): Promise<boolean>
  /** Closes idle keep-alive connections. */
  close(): void
}

export interface TrafficOperations {
  getTrafficFlowsAsync(
    queryName: string,
    trafficQuery: TrafficQuery,
    options?: Omit<StreamTrafficOptions, 'onFlows'>,
  ): Promise<TrafficFlow[]>
  /** The same query with its rows handed over as they arrive, so that no second copy of the result exists. */
  streamTrafficFlows(
    queryName: string,
    trafficQuery: TrafficQuery,
    options: StreamTrafficOptions,
  ): Promise<TrafficQueryOutcome>
}

/** A pending draft change with the change-subset type its bucket named. */
export type TypedPendingChange = PendingChange & { type: ChangeSubsetType }

export interface PolicyOperations {
  /** Throws PceError on an href that cannot be provisioned, before any request. Rule hrefs stand for their rule set. */
  provisionPolicyChanges(
    changeDescription: string,
    hrefs: readonly string[],
    options?: RequestOptions,
  ): Promise<PolicyVersion>
  /** The PCE answers an object of buckets; here it is one list. */
  getPendingPolicyChanges(options?: RequestOptions): Promise<TypedPendingChange[]>
  getPolicyDependencies(
    hrefs: readonly string[],
    policyVersion?: PolicyVersionSelector,
    options?: RequestOptions,
  ): Promise<PolicyDependency[]>
  analyzePolicyImpact(hrefs: readonly string[], options?: RequestOptions): Promise<PolicyImpact>
}

export interface StatusOperations {
  getProductVersion(options?: RequestOptions): Promise<ProductVersion>
}

export interface DefaultsOperations {
  /** The built-in list that covers every address, found by its exact name. */
  getDefaultIpList(options?: RequestOptions): Promise<IpList>
  /** The built-in All Services, found by its exact name. */
  getDefaultService(options?: RequestOptions): Promise<Service>
}

/** One generic API per attribute of the specification, camelCased: `client.ruleSets.getAll()`. */
export type ObjectApis = {
  readonly [K in KindAttribute]: ObjectApi<K extends keyof ObjectTypes ? ObjectTypes[K] : PceObject>
}

export type { KindAttribute }
