import type { Role } from './caller.js'

/** A PCE that is reached with a single key from the environment. */
export interface PceFromEnvironment {
  /** The PCE's address as given, including the scheme if there was one. */
  url: string
  port: string
  orgId: string
  apiKey: string
  apiSecret: string
  tls: {
    verify: boolean
    caFile?: string
    clientCertFile?: string
    clientKeyFile?: string
  }
  proxyUrl?: string
  /** If absent, the client's defaults apply. */
  bounds?: PceBounds
}

/** Limits for the size of a PCE's answers and the time they may take (D74). */
export interface PceBounds {
  /** Largest single answer, in MiB of uncompressed data. */
  answerMib: number
  /** Largest list that is collected from a job, and largest file, in MiB. */
  listMib: number
  /** Time-out of one request with its retries and waits. */
  timeoutSeconds: number
}

export interface Limits {
  /** Largest JSON text of one answer, in bytes. */
  responseBudgetBytes: number
  trafficQueryTimeoutSeconds: number
  /** Maximum number of parts into which a query is split when all traffic is analysed. */
  trafficMaxParts: number
}

/** Limits for calls of heavy tools, which run in worker threads (D61). */
export interface HeavyConfig {
  /** Calls that run at the same time, each in a thread of its own. */
  max: number
  /** Running calls of one caller. */
  perCaller: number
  /** Calls that may wait for a free place. */
  queue: number
  /** Waiting calls of one caller. */
  queuePerCaller: number
  /** Heap of one thread, in MiB. */
  memoryMb: number
}

/**
 * Which tools are offered (D121). An absent setting excludes nothing. Names are checked against the existing tools at
 * start-up.
 */
export interface OfferConfig {
  /** Offer only tools that read. */
  readOnly?: boolean
  /** Names of toolsets, including `default` and `all`. If absent: `default`, or `all` if `tools` is given. */
  toolsets?: readonly string[]
  /** Offer only these of the tools in the toolsets. */
  tools?: readonly string[]
  /** Tools that are not offered. */
  excluded?: readonly string[]
  /** Show callers only the tools that their role may call. */
  hideForbidden?: boolean
}

interface CommonConfig {
  logLevel: string
  auditLogPath?: string
  /** Name of this process; the host name if absent. */
  replicaId?: string
  /** Set if traces are recorded. They are sent to OTEL_EXPORTER_OTLP_ENDPOINT. */
  tracing?: true
  limits: Limits
  /** If absent, the default tools are offered. */
  offer?: OfferConfig
  heavy: HeavyConfig
  /** Sentences for the operator, printed once at start-up. */
  warnings: readonly string[]
}

export interface StdioConfig extends CommonConfig {
  mode: 'stdio'
  pce: PceFromEnvironment
  /**
   * If set, the person at the client is asked before a tool that needs confirmation runs. If absent, such tools run at
   * once.
   */
  confirm?: Pick<ConfirmConfig, 'tools'>
}

/** HTTP without authentication, for development (MCP_DEV_INSECURE=1). */
export interface InsecureHttpConfig extends CommonConfig {
  mode: 'insecure'
  http: HttpListen
  /** Absent if PCE_HOST is not set: the server then starts anyway, and tools that need a PCE report this (D9). */
  pce?: PceFromEnvironment
}

/** How access tokens are verified (S10). */
export interface OAuthConfig {
  issuer: string
  /**
   * The `iss` of access tokens, if the provider uses another name there (AD FS). It is only compared, never fetched.
   */
  tokenIssuer?: string
  jwksUrl: string
  audience: string
  requiredScope: string
  /**
   * The scope that clients must request to get it, if the provider names it differently (Entra ID: prefixed with the
   * App ID URI).
   */
  requestedScope?: string
  /** Claims that contain groups; the values of all of them count. */
  groupsClaims: readonly string[]
}

/** Group identifiers by role, compared exactly (S13). */
export interface RoleMapping {
  groups: Readonly<Record<Role, readonly string[]>>
  /** Role of callers whose groups are not listed; null refuses them. */
  otherwise: Role | null
}

export interface ConfirmConfig {
  /** 32 bytes. */
  hmacKey: Buffer
  /** The previous key: its signatures are still accepted, but it no longer signs. */
  previousHmacKey?: Buffer
  ttlSeconds: number
  /**
   * Names of tools that need confirmation in addition to those that always do; checked against the existing tools at
   * start-up.
   */
  tools?: readonly string[]
  /** If absent, a token that the client itself fetches is enough. */
  approval?: ApprovalConfig
}

/**
 * What releases a call that needs confirmation: a token that the client fetches, a page on which the asker decides, or
 * a page on which another admin decides.
 */
export const APPROVAL_METHODS = ['token', 'page', 'two-person'] as const
/** The methods with which a person decides on a page. */
export type PersonMethod = Exclude<(typeof APPROVAL_METHODS)[number], 'token'>

/** Settings for calls that wait until a person decides on a page. */
export interface ApprovalConfig {
  method: PersonMethod
  /** Seconds from the question until the approval can no longer be used. */
  ttlSeconds: number
  /** Maximum number of seconds between a login and a decision; 0 accepts a login for as long as its session lasts. */
  maxAgeSeconds: number
}

/** Limits per minute, unless a field says otherwise; 0 means no limit. */
export interface RateLimits {
  /** Simultaneous requests of one caller. */
  inFlightPerCaller: number
  perCaller: number
  confirmPerCaller: number
  refusedTokensPerAddress: number
}

/** The client registration at the identity provider that the browser login uses. */
export interface BrowserLoginConfig {
  clientId: string
  clientSecret?: string
}

/** Which PCEs users may register, and how they are reached. */
export interface UserPceConfig {
  /**
   * Permitted hosts, with or without a port. If empty, every host is permitted that the address check does not refuse.
   */
  allowedHosts: readonly string[]
  /** Whether users may turn off the verification of their PCE's certificate. */
  allowInsecureTls: boolean
  tls: { verify: boolean; caFile?: string; clientCertFile?: string; clientKeyFile?: string }
  proxyUrl?: string
  bounds?: PceBounds
}

/** A PostgreSQL database that holds the state instead of a file (MCP_STATE_URL). */
export interface DatabaseConfig {
  /** A `host` that begins with a slash is the directory of a Unix socket. */
  connection: { host: string; port: number; user: string; password?: string; database: string }
  /**
   * If absent, connections are not encrypted. Otherwise the certificate and host name of the database server are
   * verified.
   */
  tls?: { rootCertFile?: string; certFile?: string; keyFile?: string }
  /** Host, port and database name, for messages. */
  where: string
  /** How long a start waits for a database that does not respond. */
  connectTimeoutSeconds: number
  /** Maximum number of connections of one process. */
  poolSize: number
  /** Whether limits per caller apply to all replicas together or to each one separately. */
  limits: 'shared' | 'replica'
}

interface AuthenticatedConfig extends CommonConfig {
  /** If absent, the state is kept in the file of the mode. */
  database?: DatabaseConfig
  http: HttpListen & { publicUrl: string }
  oauth: OAuthConfig
  roles: RoleMapping
  confirm: ConfirmConfig
  rates: RateLimits
  /**
   * Absent without MCP_OAUTH_CLIENT_ID: /setup then accepts bearer tokens only. In shared mode, only approvals need it.
   */
  login?: BrowserLoginConfig
}

/** HTTP with bearer tokens, in which every user has their own PCE key. */
export interface PerUserConfig extends AuthenticatedConfig {
  mode: 'per_user'
  keystore: {
    path: string
    /** 32 bytes. */
    kek: Buffer
    previousKek?: Buffer
  }
  userPce: UserPceConfig
}

/** HTTP with bearer tokens, in which all users share one PCE key. */
export interface SharedConfig extends AuthenticatedConfig {
  mode: 'shared'
  pce: PceFromEnvironment
  statePath: string
}

/** The PCE mode of authenticated HTTP. */
export type PceMode = (PerUserConfig | SharedConfig)['mode']

/**
 * What a command needs to work on the state while servers may be running. It contains no secret except a password in
 * the database URL.
 */
export interface StateFileConfig {
  mode: PceMode
  path: string
  /** The environment variable that names the path. */
  variable: string
  /** The database that holds the state instead, if there is one. */
  database?: DatabaseConfig
  auditLogPath?: string
  replicaId?: string
  /** The value of MCP_OAUTH_ISSUER. */
  issuer?: string
}

/** The peers whose X-Forwarded-For header is trusted (MCP_TRUSTED_PROXIES). */
export interface TrustedProxies {
  /** Addresses without a zone, and the length of their prefix in bits: 32 or 128 for a single address. */
  networks: readonly { address: string; prefix: number }[]
  /** Whether the peer of a Unix socket is trusted. */
  unix: boolean
}

export interface HttpListen {
  host: string
  port: number
  socket?: string
  publicUrl?: string
  allowedHosts: string[]
  /** If absent, X-Forwarded-For is ignored. */
  trustedProxies?: TrustedProxies
  maxInFlight: number
  /**
   * If absent, there are no metrics. They are served on this port of `host`, or of 127.0.0.1 if the server listens on a
   * Unix socket.
   */
  metricsPort?: number
}

/** The listen address from the command line of svc-mcp-http. */
export type ListenOptions = Pick<HttpListen, 'host' | 'port' | 'socket'>

export type HttpConfig = InsecureHttpConfig | PerUserConfig | SharedConfig

/** A tagged union, so that each key exists only in the modes that need it. */
export type Config = StdioConfig | HttpConfig

/** One problem that keeps a program from starting. */
export interface Fault {
  /**
   * States in one line what is wrong, and with which setting. If the specification gives a wording, it is used exactly.
   */
  problem: string
  /** What to do, or what to write instead, in one line. */
  remedy: string
}

/**
 * Thrown at start-up; the process exits with 1. `message` is the text for standard error: each fault that was found on
 * a line of its own, with its remedy indented below it.
 */
export class StartupError extends Error {
  override readonly name = 'StartupError'
  readonly faults: readonly Fault[]
  /** Warnings that the operator should see beside the faults; they often explain a fault. */
  warnings: readonly string[] = []

  constructor(...faults: readonly Fault[]) {
    super(faults.map(({ problem, remedy }) => `${problem}\n  ${remedy}`).join('\n'))
    this.faults = faults
  }

  /** A copy of this error with these warnings. */
  with(warnings: readonly string[]): this {
    this.warnings = warnings
    return this
  }
}

/** Explanations of system error codes. */
const SYSTEM_WORDS: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EADDRINUSE: 'another program listens there',
  ECONNREFUSED: 'connection refused',
  EADDRNOTAVAIL: 'this machine has no such address',
  EDQUOT: 'the quota is used up',
  EINVAL: 'the system does not take it',
  EIO: 'the disk fails',
  EISDIR: 'it is a folder',
  ELOOP: 'its symbolic links lead in a circle',
  EMFILE: 'too many files are open',
  ENAMETOOLONG: 'the name is too long',
  ENOENT: 'there is no such file or folder',
  ENOSPC: 'no space is left on the device',
  ENOTDIR: 'a part of the path is a file, not a folder',
  ENOTFOUND: 'no name service knows the name',
  ENXIO: 'it is a pipe or device that nobody reads',
  EPERM: 'the system does not permit it',
  ETIMEDOUT: 'nothing came from it in time',
  EROFS: 'the file system is read-only',
  ESTALE: 'the network mount is gone',
}

/**
 * Describes a system error for people, with its code: `permission denied (EACCES)`. Its own message is not used, since
 * it may reveal more.
 */
export function inWords(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException
  if (typeof code !== 'string') return 'failed'
  const words = SYSTEM_WORDS[code]
  return words === undefined ? code : `${words} (${code})`
}
