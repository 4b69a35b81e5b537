import type { Estate } from './model.js'
import type { FaultControl } from './http/inject-faults.js'
import type { RecordedRequest } from './http/record-requests.js'

export interface PceSimulatorOptions {
  /** Default 1. The same seed gives the same estate and the same ids, byte for byte. */
  seed?: number
  /** Default 400. */
  workloads?: number
  /** Default 20,000: the aggregated conversations of the estate. */
  flows?: number
  /** Default 1. */
  orgId?: number
  /** Defaults follow from the seed. */
  key?: string
  secret?: string
  /** Of the estate's first user, to log in with; default follows from the seed. */
  password?: string
  /** Further users, each with one role and an API key of its own; whoever it is may read everything (P72). Default none. */
  users?: readonly GivenRole[]
  /** PEM texts; given, the simulator speaks https. */
  tls?: { cert: string; key: string }
  /** Milliseconds since the epoch; default Date.now. */
  now?: () => number
  /** How many times a traffic query or job is read until it is done. Default 3; 1 is done at once. */
  pollsUntilDone?: number
  /** Rows of one traffic query, whatever it asks for. Default 200,000, as a PCE has (P48). */
  trafficRows?: number
  /** Add up the rows of a traffic query before they are cut to its window, so that their times reach outside (P85). Default false. */
  addUpBeforeCutting?: boolean
  /** The Retry-After of 202 answers, whole seconds. Default 1. */
  retryAfter?: number
  /**
   * What X-Total-Count counts when filters are given (P6). `matched` (default): the matching objects. `all` is what one 25.2 PCE
   * was seen to do: every object of the collection, with the matching ones in X-Matched-Count.
   */
  totalCount?: 'all' | 'matched'
  /** Default true; false: `GET /node_available` answers 404, and `/health` says why. */
  nodeAvailable?: boolean
  /** Absent: a PCE of its own. A `member` answers 404 to `GET /supercluster/leader`. */
  supercluster?: 'leader' | 'member'
  /** Off by default (P48); DOCUMENTED_LIMITS holds what a PCE allows. */
  rateLimit?: RateLimits
  /** A hand-made estate instead of a generated one. */
  estate?: Estate
  /** Defaults of `listen`. */
  host?: string
  port?: number
}

export interface PceSimulator {
  /** Resolves with the origin, for instance `http://127.0.0.1:40123`. Default port 0: any free one. */
  listen(options?: { port?: number; host?: string }): Promise<string>
  /** The origin once it listens; throws before. */
  readonly url: string
  readonly orgId: number
  readonly credentials: { key: string; secret: string }
  /** The keys of `users`, in their order. */
  readonly keys: readonly RoleKey[]
  /** The estate's first user, who may log in. */
  readonly login: { username: string; password: string }
  /** Every request since the start or the last `clearRequests`, oldest first; the last 10,000 are kept. */
  readonly requests: RecordedRequest[]
  clearRequests(): void
  readonly faults: FaultControl
  readonly state: {
    /** What a GET of the href would answer, or undefined; leaves no request on record. */
    find(href: string): Record<string, unknown> | undefined
    /** Draft hrefs of everything that waits for provisioning. */
    pendingHrefs(): string[]
    /** The number of the active policy version. */
    readonly policyVersion: number
  }
  close(): Promise<void>
}

/** A role of P28 and what it is limited to: labels by key and value, one of a key; none means everything. */
export interface GivenRole {
  role: string
  scope?: Readonly<Record<string, string>>
}

/** The API key of a user with that role. */
export interface RoleKey extends GivenRole {
  key: string
  secret: string
}

/** What a PCE allows; each limit is off unless it is given (P48). */
export interface RateLimits {
  /** Of one API key or session. */
  requestsPerMinute?: number
  /** Of `workloads/unpair`, and as many of `vens/unpair`. */
  unpairsPerMinute?: number
  queryDeletesPerMinute?: number
  concurrentRuleSearches?: number
  concurrentBulkWorkloadOperations?: number
}
