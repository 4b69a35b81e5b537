import type { TrafficFlow } from '../schemas/pce/traffic.js'
import type { Estate } from './model.js'
import type { FaultControl } from './http/inject-faults.js'
import type { RecordedRequest } from './http/record-requests.js'

/** The names of the profiles that determine the form of the simulator's answers. */
export const REALITIES = ['lab', 'core-25.2'] as const
export type Reality = (typeof REALITIES)[number]
export const DEFAULT_REALITY: Reality = 'core-25.2'

export interface PceSimulatorOptions {
  /** The seed (default 1). The same seed gives the same estate and the same ids, byte for byte. */
  seed?: number
  /** The number of workloads in the estate (default 400). */
  workloads?: number
  /** The number of rows that a traffic query without filters returns (default 20,000). */
  flows?: number
  /** The id of the organisation (default 1). */
  orgId?: number
  /**
   * The name of the first user's API key. By default, this name and the secret of the key are derived from the seed.
   */
  key?: string
  secret?: string
  /** The login password of the estate's first user, by default derived from the seed. */
  password?: string
  /** Additional users, each with one role and an API key; none by default. Every role may read everything (P72). */
  users?: readonly GivenRole[]
  /** A certificate and its key, both as PEM strings. With them, the simulator serves https. */
  tls?: { cert: string; key: string }
  /** The current time in milliseconds since the epoch (default Date.now). */
  now?: () => number
  /**
   * The number of polls after which a traffic query or job is done (default 3; with 1 it is done at the first poll).
   */
  pollsUntilDone?: number
  /** The maximum number of rows of a traffic query, even if it asks for more (default 200,000, as in a PCE; P48). */
  trafficRows?: number
  /**
   * If true, the rows of a traffic query are aggregated before they are limited to its window, so that their times may
   * be outside the window (P85). Default false.
   */
  addUpBeforeCutting?: boolean
  /** The Retry-After of 202 answers in whole seconds (default 1). */
  retryAfter?: number
  /**
   * The objects that X-Total-Count counts if there are filters (P6). With `matched` (default), it counts the matching
   * objects. With `all`, it counts every object of the collection, as observed at one 25.2 PCE, which gave the number
   * of matching objects in X-Matched-Count.
   */
  totalCount?: 'all' | 'matched'
  /**
   * The profile that determines the form of the answers. With `core-25.2` (default), they have the form of recorded
   * answers of PCEs of that release. With `lab`, every object has its full form, as the reference describes it. The
   * state of the simulator is the same with both.
   */
  reality?: Reality
  /**
   * If true, a traffic query also returns a few rows between Kubernetes workloads, in addition to the number of rows
   * that `flows` gives. Default false.
   */
  pods?: boolean
  /**
   * If false, the node is not available: `GET /node_available` answers 404, and `/health` shows the reason. Default
   * true.
   */
  nodeAvailable?: boolean
  /**
   * The PCE's role in a supercluster; undefined for a standalone PCE. A `member` answers 404 to `GET
   * /supercluster/leader`.
   */
  supercluster?: 'leader' | 'member'
  /** Rate limits, off by default (P48). DOCUMENTED_LIMITS contains those of a real PCE. */
  rateLimit?: RateLimits
  /** A hand-made estate that is used instead of a generated one. */
  estate?: Estate
  /** The host and port on which `listen` listens by default. */
  host?: string
  port?: number
}

export interface PceSimulator {
  /**
   * Starts to listen, and resolves with the origin, such as `http://127.0.0.1:40123`. By default, it uses any free
   * port.
   */
  listen(options?: { port?: number; host?: string }): Promise<string>
  /** The origin on which the simulator listens. Throws if it does not listen yet. */
  readonly url: string
  readonly orgId: number
  readonly credentials: { key: string; secret: string }
  /** The API keys of the additional users, in the order of the option `users`. */
  readonly keys: readonly RoleKey[]
  /** The user name and password of the estate's first user. */
  readonly login: { username: string; password: string }
  /** The last 10,000 requests since the start or the last `clearRequests`, oldest first. */
  readonly requests: RecordedRequest[]
  clearRequests(): void
  readonly faults: FaultControl
  readonly state: {
    /** Returns the body with which a GET of the href would be answered, or undefined. The request is not recorded. */
    find(href: string): Record<string, unknown> | undefined
    /** Lists the draft hrefs of all objects with pending changes. */
    pendingHrefs(): string[]
    /** The number of the active policy version. */
    readonly policyVersion: number
    /** Lists all flows with the decisions of this moment, as a traffic query without filters would. Nothing is recorded. */
    flows(): TrafficFlow[]
  }
  close(): Promise<void>
}

/** A role (P28) and its scope, which has at most one label for each key. A scope without labels covers everything. */
export interface GivenRole {
  role: string
  scope?: Readonly<Record<string, string>>
}

/** The API key of a user who has the role. */
export interface RoleKey extends GivenRole {
  key: string
  secret: string
}

/** The rate limits of the simulated PCE. Each limit is off unless it is given (P48). */
export interface RateLimits {
  /** Maximum number of requests per minute with one API key or session. */
  requestsPerMinute?: number
  /** Maximum number of calls of `workloads/unpair` per minute. The same limit applies separately to `vens/unpair`. */
  unpairsPerMinute?: number
  queryDeletesPerMinute?: number
  concurrentRuleSearches?: number
  concurrentBulkWorkloadOperations?: number
}
