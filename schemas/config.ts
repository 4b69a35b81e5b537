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
}

export interface Limits {
  /** JSON text of one answer, in bytes. */
  responseBudgetBytes: number
  trafficQueryTimeoutSeconds: number
}

interface CommonConfig {
  logLevel: string
  auditLogPath?: string
  limits: Limits
  /** What the operator should hear once at start, in sentences. */
  warnings: readonly string[]
}

export interface StdioConfig extends CommonConfig {
  mode: 'stdio'
  pce: PceFromEnvironment
}

/** HTTP without authentication, for development (MCP_DEV_INSECURE=1). */
export interface InsecureHttpConfig extends CommonConfig {
  mode: 'insecure'
  http: HttpListen
  /** Absent when PCE_HOST is not set: the server starts and tools that need a PCE say so (design decision 9). */
  pce?: PceFromEnvironment
}

export interface HttpListen {
  host: string
  port: number
  socket?: string
  publicUrl?: string
  allowedHosts: string[]
  maxInFlight: number
}

/** What the command line of svc-mcp-http says about where to listen. */
export type ListenOptions = Pick<HttpListen, 'host' | 'port' | 'socket'>

/** A tagged union, so that a key exists only in the mode that needs it. The authenticated modes join with their rooms. */
export type Config = StdioConfig | InsecureHttpConfig

/** Raised while reading the configuration; `message` is the exact line for standard error, the process exits 1. */
export class StartupError extends Error {
  override readonly name = 'StartupError'
}
