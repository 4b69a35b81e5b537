import type { Role } from './caller.js'
import type { GuardrailsConfig } from './guardrails.js'

/** A PCE that is reached with a single API key from the environment. */
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
  /** Limits for the PCE's answers; if absent, the client's defaults apply. */
  bounds?: PceBounds
}

/** Limits for the size of a PCE's answers and the time they may take (D74). */
export interface PceBounds {
  /** Maximum size of a single answer, in MiB of uncompressed data. */
  answerMib: number
  /** Maximum size of a downloaded file, or of a list that is collected from a job, in MiB. */
  listMib: number
  /** Time-out in seconds of one request, including its retries and waits. */
  timeoutSeconds: number
}

export interface Limits {
  /** Maximum size of the JSON text of a tool's answer, in bytes. */
  responseBudgetBytes: number
  trafficQueryTimeoutSeconds: number
  /** Maximum number of parts into which a traffic query is split if all of its rows are wanted. */
  trafficMaxParts: number
}

/** Limits for calls of heavy tools, which run in worker threads (D61). */
export interface HeavyConfig {
  /** Maximum number of calls that run at the same time, each in its own thread. */
  max: number
  /** Maximum number of calls of one caller that run at the same time. */
  perCaller: number
  /** Maximum number of calls that may wait for a free thread. */
  queue: number
  /** Maximum number of calls of one caller that may wait for a free thread. */
  queuePerCaller: number
  /** Maximum heap size of one thread, in MiB. */
  memoryMb: number
  /** The time in milliseconds after which a thread that gives no sign of life is terminated; 120,000 if absent. */
  silentMs?: number
}

/**
 * The settings that decide which tools are offered (D121). A setting that is absent excludes no tool, with one
 * exception: if both `toolsets` and `tools` are absent, only the default tools are offered. At start-up, names are
 * compared with the existing tools.
 */
export interface OfferConfig {
  /** If true, only tools that change nothing at the PCE are offered. */
  readOnly?: boolean
  /**
   * Names of the toolsets that are offered; `default` and `all` are also valid names. If absent, `default` is offered,
   * or `all` if `tools` is given.
   */
  toolsets?: readonly string[]
  /** Names of tools. If present, a tool is offered only if it is in this list and belongs to one of the toolsets. */
  tools?: readonly string[]
  /** Names of tools that are not offered, whatever the other settings say. */
  excluded?: readonly string[]
  /** If true, callers see only the tools that their role may call. */
  hideForbidden?: boolean
}

interface CommonConfig {
  logLevel: string
  auditLogPath?: string
  /** Name of this process; the default is the host name. */
  replicaId?: string
  /** True if traces are recorded. They are sent to OTEL_EXPORTER_OTLP_ENDPOINT. */
  tracing?: true
  limits: Limits
  /** The settings that decide which tools are offered; if absent, the default tools are offered. */
  offer?: OfferConfig
  heavy: HeavyConfig
  /** The operator's limits that apply to every caller; absent if there are none. */
  guardrails?: GuardrailsConfig
  /** Sentences for the operator, which are printed only once, at start-up. */
  warnings: readonly string[]
}

export interface StdioConfig extends CommonConfig {
  mode: 'stdio'
  pce: PceFromEnvironment
  /**
   * The settings for asking the person at the client before a tool that requires confirmation runs. If absent, such
   * tools run at once.
   */
  confirm?: Pick<ConfirmConfig, 'tools'>
}

/** The configuration for HTTP without authentication, which is for development (MCP_DEV_INSECURE=1). */
export interface InsecureHttpConfig extends CommonConfig {
  mode: 'insecure'
  http: HttpListen
  /**
   * The PCE. Absent if PCE_HOST is not set: the server then starts anyway, and tools that need a PCE report this (D9).
   */
  pce?: PceFromEnvironment
}

/** The settings for the verification of access tokens (S10). */
export interface OAuthConfig {
  issuer: string
  /** The `iss` of access tokens, if it differs from the issuer, as with AD FS. It is only compared, never fetched. */
  tokenIssuer?: string
  jwksUrl: string
  audience: string
  requiredScope: string
  /**
   * The scopes that clients must request instead of only `requiredScope`, separated by blanks. Entra ID, for example,
   * expects a scope that begins with the App ID URI, although its access tokens contain a different name. Other
   * providers issue tokens only if `openid` is requested as well.
   */
  requestedScope?: string
  /** Names of the claims that contain groups. A caller's groups are the values of all these claims together. */
  groupsClaims: readonly string[]
}

/** The groups whose members get each role, as group identifiers that must match exactly (S13). */
export interface RoleMapping {
  groups: Readonly<Record<Role, readonly string[]>>
  /** Role of callers who are in none of the listed groups; if null, such callers are refused. */
  otherwise: Role | null
}

export interface ConfirmConfig {
  /** The key of 32 bytes with which confirmations are signed. */
  hmacKey: Buffer
  /** The previous key. Its signatures are still accepted, but new signatures are made with `hmacKey`. */
  previousHmacKey?: Buffer
  ttlSeconds: number
  /**
   * Names of tools that need confirmation in addition to those that always need it; checked against the existing tools
   * at start-up.
   */
  tools?: readonly string[]
  /**
   * The settings for decisions on a page. If absent, a confirm token that the client itself fetches is enough to
   * confirm a call.
   */
  approval?: ApprovalConfig
}

/**
 * The ways in which a call is confirmed: with a confirm token that the client fetches (`token`), on a page by the asker
 * or an admin (`page`), or on a page by an admin who is not the asker (`two-person`). The asker is the person who made
 * the call.
 */
export const APPROVAL_METHODS = ['token', 'page', 'two-person'] as const
/** The methods with which a person decides on a page. */
export type PersonMethod = Exclude<(typeof APPROVAL_METHODS)[number], 'token'>

/** Settings for calls that wait until a person decides on a page. */
export interface ApprovalConfig {
  method: PersonMethod
  /** Lifetime of an approval in seconds, counted from the time at which the person was asked. */
  ttlSeconds: number
  /**
   * Maximum number of seconds between a browser login and a decision; if 0, a login is accepted for as long as its
   * session lasts.
   */
  maxAgeSeconds: number
}

/** The receiver of notifications about approvals, refusals and revocations (MCP_NOTIFY_WEBHOOK_URL). */
export interface NotifyConfig {
  /** The https URL to which messages are posted. Its path may be a secret, so only its host is ever shown. */
  url: string
  /** The key of 24 to 64 bytes with which messages are signed. */
  secret: Buffer
  /** True if messages may contain names and hrefs of PCE objects, and people's notes. */
  names: boolean
}

/** The rate limits: maximum numbers per minute, unless a field says otherwise; 0 means no limit. */
export interface RateLimits {
  /** Maximum number of requests of one caller that are processed at the same time. */
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

/** The settings that decide which PCEs users may register, and how the server reaches these PCEs. */
export interface UserPceConfig {
  /**
   * Permitted hosts, with or without a port. If the list is empty, every host that passes the address check is
   * permitted.
   */
  allowedHosts: readonly string[]
  /** True if users may turn off the verification of their PCE's certificate. */
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
   * The certificate files for TLS. If absent, connections are not encrypted; otherwise the certificate and host name of
   * the database server are verified.
   */
  tls?: { rootCertFile?: string; certFile?: string; keyFile?: string }
  /** Host, port and database name, in the form in which messages show them. */
  where: string
  /** Seconds that the program waits at start-up for a database that does not respond. */
  connectTimeoutSeconds: number
  /** Maximum number of database connections of one process. */
  poolSize: number
  /** `shared` if limits per caller apply to all replicas together, `replica` if they apply to each one separately. */
  limits: 'shared' | 'replica'
}

interface AuthenticatedConfig extends CommonConfig {
  /** The database that holds the state. If absent, the state is kept in a file: `keystore.path` or `statePath`. */
  database?: DatabaseConfig
  http: HttpListen & { publicUrl: string }
  oauth: OAuthConfig
  roles: RoleMapping
  /** The path of the file with the scopes of groups. If absent, every caller writes to everything that the role allows. */
  scopesPath?: string
  confirm: ConfirmConfig
  /** The receiver of notifications; absent if no notifications are sent. */
  notify?: NotifyConfig
  rates: RateLimits
  /**
   * The settings of the browser login. Absent without MCP_OAUTH_CLIENT_ID; then /setup accepts bearer tokens only. In
   * shared mode, the browser login is used only for approvals.
   */
  login?: BrowserLoginConfig
}

/** The configuration for HTTP with bearer tokens if every user has their own API key of a PCE. */
export interface PerUserConfig extends AuthenticatedConfig {
  mode: 'per_user'
  keystore: {
    path: string
    /** The key-encryption key of 32 bytes, which encrypts the data keys of the stored credentials. */
    kek: Buffer
    previousKek?: Buffer
  }
  userPce: UserPceConfig
}

/** The configuration for HTTP with bearer tokens if all users share one API key of a PCE. */
export interface SharedConfig extends AuthenticatedConfig {
  mode: 'shared'
  pce: PceFromEnvironment
  statePath: string
}

/**
 * The modes of a server with authentication: either every user has their own API key of a PCE, or all users share one
 * API key.
 */
export type PceMode = (PerUserConfig | SharedConfig)['mode']

/**
 * The settings that a command needs to work on the servers' state, even while servers are running. They contain no
 * secret except a password in the database URL.
 */
export interface StateFileConfig {
  mode: PceMode
  path: string
  /** Name of the environment variable that contains `path`. */
  variable: string
  /** The database that holds the state instead of the file, if there is one. */
  database?: DatabaseConfig
  auditLogPath?: string
  replicaId?: string
  /**
   * The facts about the server that notifications about a command contain; absent if the servers send no notifications.
   */
  notify?: Pick<NotifyConfig, 'names'> & { publicUrl: string }
  /** The issuer of the identity provider: the value of MCP_OAUTH_ISSUER. */
  issuer?: string
}

/** The settings of a command that can also open users' sealed PCE credentials, if it is given the keys. */
export interface StateKeysConfig extends StateFileConfig {
  /** The key-encryption key, 32 bytes; absent in shared mode, or if MCP_KEK is not set. */
  kek?: Buffer
  previousKek?: Buffer
}

/** The peers whose X-Forwarded-For header is trusted (MCP_TRUSTED_PROXIES). */
export interface TrustedProxies {
  /**
   * Networks, each as an address without an IPv6 zone and the length of its prefix in bits. For a single address, this
   * length is 32 or 128.
   */
  networks: readonly { address: string; prefix: number }[]
  /** True if the peer of a Unix socket is trusted. */
  unix: boolean
}

export interface HttpListen {
  host: string
  port: number
  socket?: string
  publicUrl?: string
  allowedHosts: string[]
  /** The peers whose X-Forwarded-For header is trusted; if absent, the header is ignored. */
  trustedProxies?: TrustedProxies
  maxInFlight: number
  /**
   * Port of the metrics; if absent, there are no metrics. They are served on this port of `host`, or of 127.0.0.1 if
   * the server listens on a Unix socket.
   */
  metricsPort?: number
}

/** The listen address from the command line of svc-mcp-http. */
export type ListenOptions = Pick<HttpListen, 'host' | 'port' | 'socket'>

export type HttpConfig = InsecureHttpConfig | PerUserConfig | SharedConfig

/**
 * The configuration in any mode, as a union that is tagged by `mode`, so that each key exists only in the modes that
 * need it.
 */
export type Config = StdioConfig | HttpConfig

/** A reason why the program cannot start. */
export interface Fault {
  /**
   * One line that says what is wrong, and with which setting. If the specification gives a wording, it is used exactly.
   */
  problem: string
  /** One line that says what to do, or what to write instead. */
  remedy: string
}

/**
 * The error thrown at start-up; the process then exits with 1. `message` is what is printed on standard error: one line
 * for each fault, with its remedy indented below it.
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

  /** Sets the warnings of this error and returns the error. */
  with(warnings: readonly string[]): this {
    this.warnings = warnings
    return this
  }
}

/** For each error code of the operating system, an explanation for people. */
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
 * Describes a system error for people, with its code: `permission denied (EACCES)`. The error's own message is not
 * used, since it may reveal more.
 */
export function inWords(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException
  if (typeof code !== 'string') return 'failed'
  const words = SYSTEM_WORDS[code]
  return words === undefined ? code : `${words} (${code})`
}
