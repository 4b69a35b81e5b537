import type { ApprovalDesk } from '../../schemas/approvals.js'
import type { AuditEntry } from '../../schemas/audit.js'
import type { Identity, Role } from '../../schemas/caller.js'
import type { PceMode } from '../../schemas/config.js'
import type { UsedTokens } from '../../schemas/state.js'
import type { ServiceError } from '../errors/convert.js'
import type { Fetch } from './login/find-provider.js'
import type { OfferedPce } from './setup/form-fields.js'

/**
 * The page that people reach after a login that was not started for another page; the paths of the login are below it.
 */
export type HomePage = '/setup' | '/approve'

/** What the composition passes to the pages. `Request` and `Reply` are types of the web framework. */
export interface PagesOptions<Request, Reply> extends LoginPorts<Request> {
  mode: PceMode
  /** The public URL, without a slash at the end. */
  publicUrl: string
  home: HomePage
  /** A key of 32 bytes, see `deriveSessionKey`. */
  sessionKey: Buffer
  /** The OAuth client of the browser login. If absent, there is no browser login. */
  login?: LoginOptions
  roleOf: (identity: Identity) => Role | null
  /** Returns the value of WWW-Authenticate for a request without a token. */
  challenge: () => string
  /** Writes an audit entry. Resolves when the entry is written, and rejects if it cannot be written. */
  audit: (entry: AuditEntry) => Promise<void>
  /** The options of the setup page; absent if users do not register PCEs. */
  setup?: SetupOptions<Request, Reply>
  /** The options of the approval pages; absent if nobody approves calls on a page. */
  approve?: ApproveOptions
}

/** The parts of the rest of the server that a login needs. */
export interface LoginPorts<Request> {
  issuer: string
  groupsOfRole: Readonly<Record<Role, readonly string[]>>
  /**
   * Resolves with the identity of an access token. Rejects with ToolError `unauthorized {reason}` or
   * `keys_unavailable`.
   */
  verifyToken: (token: string, request: Request) => Promise<Identity>
  /**
   * Counts a request against its caller's limit. It is called for every request of a known person, and for every step
   * of a login, because a step may cause a request to the identity provider; `request.visit` is null then. Other
   * requests of unknown visitors are not limited by caller. Rejects with ToolError `rate_limited {retry_after}`.
   */
  limitCaller: (request: Request) => Promise<void>
  /** Remembers used logins and ended sessions for every process. */
  usedTokens: UsedTokens
  /** Rejects if `usedTokens` can record nothing at the moment. */
  checkState: () => Promise<void>
  fetch?: Fetch
  /** Returns milliseconds since the epoch. */
  now?: () => number
}

/** Options of the page where users register their PCE key. */
export interface SetupOptions<Request, Reply> {
  /** The PCEs that users may register; empty if any host may be tried. */
  offeredPces: readonly OfferedPce[]
  /** Whether users may turn off the verification of the PCE's certificate. */
  allowInsecureTls: boolean
  /**
   * Identifies the sender of a request by its Authorization header. Rejects with ToolError `unauthorized`, after
   * setting the challenge on the reply, with `keys_unavailable` or with `rate_limited`.
   */
  authenticate: (request: Request, reply: Reply) => Promise<Identity>
  /** Makes one tool call on behalf of this person. Never rejects. */
  callTool: (name: string, args: Record<string, unknown>, identity: Identity, request: Request) => Promise<ToolAnswer>
  /**
   * Counts a test of the PCE connection against the limit of its sender, who is in `request.visit`. Rejects with
   * ToolError `rate_limited {retry_after}`.
   */
  limitPceTries?: (request: Request) => Promise<void>
}

/** Options of the pages where people approve calls. */
export interface ApproveOptions {
  desk: ApprovalDesk
  /** Maximum number of seconds between entering the password and deciding; 0 means no limit. */
  maxAgeSeconds: number
}

/** The visitor of a page, as far as the request itself identifies them. */
export interface Visit {
  identity: Identity
  viaBearer: boolean
  /** True if the visitor's form has become a tool call, which has audit entries of its own. */
  isDispatched: boolean
  /** When the visitor entered their password at the provider, if known, in milliseconds since the epoch. */
  authenticatedAt?: number
}

/** The result of a tool call, as the dispatcher returns it. */
export type ToolAnswer = { ok: true; value: object } | { ok: false; error: ServiceError }

/**
 * Makes one tool call on behalf of the visitor, with the same gates, checks and audit entries as over MCP. Never
 * rejects.
 */
type CallTool = (name: string, args: Record<string, unknown>) => Promise<ToolAnswer>

/** The person at the /setup page, and the calls that can be made for them. */
export interface Visitor {
  identity: Identity
  /** The person's role; null if their groups give none. */
  role: Role | null
  call: CallTool
}

/** How people log in with a browser: the client registration at the identity provider (D17). */
export interface LoginOptions {
  clientId: string
  /** The client's secret; absent for a public client. PKCE is used in both cases. */
  clientSecret?: string
  /** Scopes to request besides `openid`, separated by blanks. */
  scope: string
  /** The audience that the access token must have. */
  audience: string
}
