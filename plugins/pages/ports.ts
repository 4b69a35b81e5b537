import type { ApprovalDesk } from '../../schemas/approvals.js'
import type { AuditEntry } from '../../schemas/audit.js'
import type { Identity, Role } from '../../schemas/caller.js'
import type { PceMode } from '../../schemas/config.js'
import type { UsedTokens } from '../../schemas/state.js'
import type { ServiceError } from '../errors/convert.js'
import type { Fetch } from './login/find-provider.js'
import type { OfferedPce } from './setup/form-fields.js'

/**
 * The home page of this server: where a login redirects to, unless it was started from another page. The paths for
 * logging in and out begin with the path of the home page.
 */
export type HomePage = '/setup' | '/approve'

/** The options that the composition passes to the pages. `Request` and `Reply` are types of the web framework. */
export interface PagesOptions<Request, Reply> extends LoginPorts<Request> {
  mode: PceMode
  /** The public URL of this server, without a slash at the end. */
  publicUrl: string
  home: HomePage
  /** The key of 32 bytes that encrypts the session cookie, see `deriveSessionKey`. */
  sessionKey: Buffer
  /** The OAuth client with which people log in with a browser. If it is absent, there is no browser login. */
  login?: LoginOptions
  roleOf: (identity: Identity) => Role | null
  /** Returns true if the person's access was revoked after the session began. */
  isRevoked?: (identity: Identity) => boolean | Promise<boolean>
  /** Returns the value of WWW-Authenticate for a request without an access token. */
  challenge: () => string
  /** Writes an audit entry. Resolves when the entry is written, and rejects if it cannot be written. */
  audit: (entry: AuditEntry) => Promise<void>
  /** The options of the setup page; absent if users do not register PCEs. */
  setup?: SetupOptions<Request, Reply>
  /** The options of the approval pages; absent if nobody approves calls on a page. */
  approve?: ApproveOptions
}

/** The functions and facts that a login needs from other parts of the server. */
export interface LoginPorts<Request> {
  issuer: string
  groupsOfRole: Readonly<Record<Role, readonly string[]>>
  /**
   * Verifies an access token and resolves with its identity. Rejects with ToolError `unauthorized {reason}` or
   * `keys_unavailable`.
   */
  verifyToken: (token: string, request: Request) => Promise<Identity>
  /**
   * Counts a request towards the caller's limit. It is called for every request of a known person, and for every step
   * of a login, because a step may cause a request to the identity provider; during a login, `request.visit` is null.
   * It is not called for other requests of unknown visitors. Rejects with ToolError `rate_limited {retry_after}`.
   */
  limitCaller: (request: Request) => Promise<void>
  /** The record of completed logins and ended sessions, shared by all processes. */
  usedTokens: UsedTokens
  /** Rejects if the store cannot record used logins at the moment. */
  checkState: () => Promise<void>
  fetch?: Fetch
  /** Returns milliseconds since the epoch. */
  now?: () => number
}

/** Options of the page on which users register their PCE key. */
export interface SetupOptions<Request, Reply> {
  /** The PCEs that users may register; empty if users may register a PCE on any host. */
  offeredPces: readonly OfferedPce[]
  /** True if users may turn off the verification of their PCE's certificate. */
  allowInsecureTls: boolean
  /**
   * Identifies the sender of a request by its Authorization header. Rejects with ToolError `keys_unavailable`,
   * `rate_limited` or `unauthorized`. Before it rejects with `unauthorized`, it sets the challenge (WWW-Authenticate)
   * on the reply.
   */
  authenticate: (request: Request, reply: Reply) => Promise<Identity>
  /** Makes a tool call on behalf of this person. Never rejects. */
  callTool: (name: string, args: Record<string, unknown>, identity: Identity, request: Request) => Promise<ToolAnswer>
  /**
   * Counts a connection test towards the limit of the person in `request.visit`. Rejects with ToolError `rate_limited
   * {retry_after}`.
   */
  limitPceTries?: (request: Request) => Promise<void>
}

/** Options of the pages on which people approve calls. */
export interface ApproveOptions {
  desk: ApprovalDesk
  /** Maximum number of seconds between entering the password and making a decision; 0 means no limit. */
  maxAgeSeconds: number
}

/** The visitor of a page, and the way in which the request identified this person. */
export interface Visit {
  identity: Identity
  viaBearer: boolean
  /** True if the visitor's form has led to a tool call, which writes its own audit entries. */
  isDispatched: boolean
  /**
   * The time at which the visitor entered the password at the provider, in milliseconds since the epoch, if it is
   * known.
   */
  authenticatedAt?: number
}

/** The result of a tool call, in the form in which the dispatcher returns it. */
export type ToolAnswer = { ok: true; value: object } | { ok: false; error: ServiceError }

/**
 * A function that makes one tool call for the visitor, with the same gates, checks and audit entries as over MCP. It
 * never rejects.
 */
type CallTool = (name: string, args: Record<string, unknown>) => Promise<ToolAnswer>

/** The person at the /setup page, and the function that makes calls for this person. */
export interface Visitor {
  identity: Identity
  /** The person's role; null if the person's groups give no role. */
  role: Role | null
  call: CallTool
}

/** The OAuth client with which people log in with a browser, as registered at the identity provider (D17). */
export interface LoginOptions {
  clientId: string
  /** The client's secret; absent for a public client. PKCE is used in both cases. */
  clientSecret?: string
  /** The scopes that are requested in addition to `openid`, separated by blanks. */
  scope: string
  /** The audience that the access token must have. */
  audience: string
}
