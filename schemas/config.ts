import type { Role } from './caller.js'

/** A PCE reached with one key from the environment. */
export interface PceFromEnvironment {
  /** PCE address as given, scheme included where there was one. */
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
  /** Absent: as the client has it by default. */
  bounds?: PceBounds
}

/** How much of what a PCE answers is taken, and how long it may take (D74). */
export interface PceBounds {
  /** One answer, unpacked: MiB. */
  answerMib: number
  /** A list that is collected from a job, or a file: MiB. */
  listMib: number
  /** One request with its retries and waits. */
  timeoutSeconds: number
}

export interface Limits {
  /** JSON text of one answer, in bytes. */
  responseBudgetBytes: number
  trafficQueryTimeoutSeconds: number
  /** Parts that an analysis of all traffic may be read in. */
  trafficMaxParts: number
}

/** Calls of heavy tools, which run in worker threads (D61). */
export interface HeavyConfig {
  /** At a time: so many threads. */
  max: number
  /** Of these, one caller's. */
  perCaller: number
  /** Calls that wait for a place. */
  queue: number
  /** Of these, one caller's. */
  queuePerCaller: number
  /** Heap of one thread, in MiB. */
  memoryMb: number
}

/** Which tools are offered (D121); what is absent leaves nothing out. Names are checked against the tools at start-up. */
export interface OfferConfig {
  /** Only tools that read. */
  readOnly?: boolean
  /** Names of toolsets, `default` and `all`. Absent: `default`, or `all` where `tools` are named. */
  toolsets?: readonly string[]
  /** Of what the toolsets offer, these tools only. */
  tools?: readonly string[]
  /** Tools that are taken away. */
  excluded?: readonly string[]
  /** Callers are shown only what their role may call. */
  hideForbidden?: boolean
}

interface CommonConfig {
  logLevel: string
  auditLogPath?: string
  /** What this process is called; absent, the name of the host. */
  replicaId?: string
  /** Spans are sent where OTEL_EXPORTER_OTLP_ENDPOINT says. */
  tracing?: true
  limits: Limits
  /** Absent: the default offer. */
  offer?: OfferConfig
  heavy: HeavyConfig
  /** Sentences for the operator, shown once at start-up. */
  warnings: readonly string[]
}

export interface StdioConfig extends CommonConfig {
  mode: 'stdio'
  pce: PceFromEnvironment
  /** The person at the client is asked before a tool runs that needs confirmation. Absent, it runs at once. */
  confirm?: Pick<ConfirmConfig, 'tools'>
}

/** HTTP without authentication, for development (MCP_DEV_INSECURE=1). */
export interface InsecureHttpConfig extends CommonConfig {
  mode: 'insecure'
  http: HttpListen
  /** Absent when PCE_HOST is not set: the server starts and tools that need a PCE say so (D9). */
  pce?: PceFromEnvironment
}

/** How access tokens are checked (S10). */
export interface OAuthConfig {
  issuer: string
  /** `iss` of access tokens, where the provider calls itself otherwise there (AD FS); only a name, never fetched. */
  tokenIssuer?: string
  jwksUrl: string
  audience: string
  requiredScope: string
  /** What clients request to get it, where the provider names it differently (Entra ID: prefixed with the App ID URI). */
  requestedScope?: string
  /** Claims whose values are groups; their union counts. */
  groupsClaims: readonly string[]
}

/** Group identifiers by role, compared exactly (S13). */
export interface RoleMapping {
  groups: Readonly<Record<Role, readonly string[]>>
  /** For callers whose groups are on no list; null refuses them. */
  otherwise: Role | null
}

export interface ConfirmConfig {
  /** 32 bytes. */
  hmacKey: Buffer
  /** Still accepted, never used to sign. */
  previousHmacKey?: Buffer
  ttlSeconds: number
  /** Names of tools that ask for confirmation beside those that always do; checked against the tools at start-up. */
  tools?: readonly string[]
  /** Absent, a token that the client fetches is enough. */
  approval?: ApprovalConfig
}

/** What releases a call that needs confirmation: a token that its client fetches, a page for whoever asks, or one for another admin. */
export const APPROVAL_METHODS = ['token', 'page', 'two-person'] as const
/** Those where a person decides on a page. */
export type PersonMethod = Exclude<(typeof APPROVAL_METHODS)[number], 'token'>

/** Calls that need confirmation wait for a person, who decides on a page. */
export interface ApprovalConfig {
  method: PersonMethod
  /** From the question to the end of its answer's use. */
  ttlSeconds: number
  /** How long ago a login may be for a decision; 0 for as long as its session lasts. */
  maxAgeSeconds: number
}

/** Per minute unless said otherwise; 0 for no limit. */
export interface RateLimits {
  /** Requests of one caller at a time. */
  inFlightPerCaller: number
  perCaller: number
  confirmPerCaller: number
  refusedTokensPerAddress: number
}

/** The browser login's own client at the identity provider. */
export interface BrowserLoginConfig {
  clientId: string
  clientSecret?: string
}

/** Which PCE a user may register, and how it is reached. */
export interface UserPceConfig {
  /** Hosts, with or without a port; empty admits every host that the guard does not refuse. */
  allowedHosts: readonly string[]
  /** Whether users may turn off verification of the PCE's certificate. */
  allowInsecureTls: boolean
  tls: { verify: boolean; caFile?: string; clientCertFile?: string; clientKeyFile?: string }
  proxyUrl?: string
  bounds?: PceBounds
}

/** A PostgreSQL database that holds the state in place of a file (MCP_STATE_URL). */
export interface DatabaseConfig {
  /** `host` that begins with a slash is the folder of a Unix socket. */
  connection: { host: string; port: number; user: string; password?: string; database: string }
  /** Absent, connections are not encrypted. Otherwise the certificate and the name of the database are checked. */
  tls?: { rootCertFile?: string; certFile?: string; keyFile?: string }
  /** Host, port and database, for messages. */
  where: string
  /** How long a start waits for a database that does not answer. */
  connectTimeoutSeconds: number
  /** Connections of one process. */
  poolSize: number
  /** Whether limits per caller hold over all replicas, or are counted by each. */
  limits: 'shared' | 'replica'
}

interface AuthenticatedConfig extends CommonConfig {
  /** Absent, the state is in the file of the mode. */
  database?: DatabaseConfig
  http: HttpListen & { publicUrl: string }
  oauth: OAuthConfig
  roles: RoleMapping
  confirm: ConfirmConfig
  rates: RateLimits
  /** Absent without MCP_OAUTH_CLIENT_ID: /setup then takes bearer tokens only. In shared mode only approvals need it. */
  login?: BrowserLoginConfig
}

/** HTTP with bearer tokens, every user with a PCE key of their own. */
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

/** HTTP with bearer tokens, one PCE key for all. */
export interface SharedConfig extends AuthenticatedConfig {
  mode: 'shared'
  pce: PceFromEnvironment
  statePath: string
}

/** Which PCE mode authenticated HTTP runs in. */
export type PceMode = (PerUserConfig | SharedConfig)['mode']

/** What a command needs that works on the state beside the servers: no secret but what the URL of a database has in it. */
export interface StateFileConfig {
  mode: PceMode
  path: string
  /** The variable that names the path. */
  variable: string
  /** Where the state is instead. */
  database?: DatabaseConfig
  auditLogPath?: string
  replicaId?: string
  /** MCP_OAUTH_ISSUER. */
  issuer?: string
}

/** Whose X-Forwarded-For is believed (MCP_TRUSTED_PROXIES). */
export interface TrustedProxies {
  /** Addresses without a zone, with the length of their prefix in bits: 32 or 128 for a single one. */
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
  /** Absent, X-Forwarded-For is ignored. */
  trustedProxies?: TrustedProxies
  maxInFlight: number
  /** Absent: no metrics. On a Unix socket they are at this port of 127.0.0.1, otherwise of `host`. */
  metricsPort?: number
}

/** What the command line of svc-mcp-http says about where to listen. */
export type ListenOptions = Pick<HttpListen, 'host' | 'port' | 'socket'>

export type HttpConfig = InsecureHttpConfig | PerUserConfig | SharedConfig

/** A tagged union, so that a key exists only in the mode that needs it. */
export type Config = StdioConfig | HttpConfig

/** One thing that keeps a program from starting. */
export interface Fault {
  /** What is wrong, and of which setting: one line. Where the specification has words for it, exactly those. */
  problem: string
  /** What to do, or to write instead: one line. */
  remedy: string
}

/**
 * Raised at start-up; the process exits 1. `message` is the text for standard error: every fault that was found, each on a line of its own
 * with its remedy indented below it.
 */
export class StartupError extends Error {
  override readonly name = 'StartupError'
  readonly faults: readonly Fault[]
  /** What the operator should know beside the faults, and what may well explain one of them. */
  warnings: readonly string[] = []

  constructor(...faults: readonly Fault[]) {
    super(faults.map(({ problem, remedy }) => `${problem}\n  ${remedy}`).join('\n'))
    this.faults = faults
  }

  /** The same refusal, with these warnings. */
  with(warnings: readonly string[]): this {
    this.warnings = warnings
    return this
  }
}

/** What the codes of the system say to people. */
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

/** An error of the system for people, its code included: `permission denied (EACCES)`. Never its text, which may say more. */
export function inWords(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException
  if (typeof code !== 'string') return 'failed'
  const words = SYSTEM_WORDS[code]
  return words === undefined ? code : `${words} (${code})`
}
