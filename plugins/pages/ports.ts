import type { ApprovalDesk } from '../../schemas/approvals.js'
import type { AuditEntry } from '../../schemas/audit.js'
import type { Identity, Role } from '../../schemas/caller.js'
import type { PceMode } from '../../schemas/config.js'
import type { UsedTokens } from '../../schemas/state.js'
import type { ServiceError } from '../errors/convert.js'
import type { Fetch } from './login/find-provider.js'
import type { OfferedPce } from './setup/form-fields.js'

/** The page that people come to after a login that was begun for no other; the paths of the login are below it. */
export type HomePage = '/setup' | '/approve'

/** What the composition wires to this room. `Request` and `Reply` are the web framework's. */
export interface PagesOptions<Request, Reply> extends LoginPorts<Request> {
  mode: PceMode
  /** Without a slash at its end. */
  publicUrl: string
  home: HomePage
  /** 32 bytes, see `deriveSessionKey`. */
  sessionKey: Buffer
  /** Absent, there is no browser login. */
  login?: LoginOptions
  roleOf: (identity: Identity) => Role | null
  /** The value of WWW-Authenticate for a request without a token. */
  challenge: () => string
  /** Resolves once the entry is written; rejects when it cannot be. */
  audit: (entry: AuditEntry) => Promise<void>
  /** Absent where users register no PCE. */
  setup?: SetupOptions<Request, Reply>
  /** Absent where nobody approves calls on a page. */
  approve?: ApproveOptions
}

/** What a login needs of the rest of the server. */
export interface LoginPorts<Request> {
  issuer: string
  groupsOfRole: Readonly<Record<Role, readonly string[]>>
  /** The identity an access token stands for. Rejects with ToolError `unauthorized {reason}` or `keys_unavailable`. */
  verifyToken: (token: string, request: Request) => Promise<Identity>
  /**
   * Asked once for every request of someone who is known, and for every step of a login, which may cost the identity provider
   * something: `request.visit` is null there. What else a stranger may ask for is not limited by caller. Rejects with
   * ToolError `rate_limited {retry_after}`.
   */
  limitCaller: (request: Request) => Promise<void>
  /** Where logins that were used and sessions that were ended are remembered, for every process. */
  usedTokens: UsedTokens
  /** Rejects when nothing could be recorded there now. */
  checkState: () => Promise<void>
  fetch?: Fetch
  /** Milliseconds since the epoch. */
  now?: () => number
}

/** Of the page where users register their PCE key. */
export interface SetupOptions<Request, Reply> {
  /** The PCEs that users may register; empty where any host may be tried. */
  offeredPces: readonly OfferedPce[]
  /** Whether users may go without the check of the PCE's certificate. */
  allowInsecureTls: boolean
  /**
   * Who sent a request, by its Authorization header. Rejects with ToolError `unauthorized`, with the challenge set on the reply,
   * `keys_unavailable` or `rate_limited`.
   */
  authenticate: (request: Request, reply: Reply) => Promise<Identity>
  /** One tool call of this person. Never rejects. */
  callTool: (name: string, args: Record<string, unknown>, identity: Identity, request: Request) => Promise<ToolAnswer>
  /**
   * Asked before a test of the connection; `request.visit` says who sends it. Rejects with ToolError
   * `rate_limited {retry_after}`.
   */
  limitPceTries?: (request: Request) => Promise<void>
}

/** Of the pages where people approve calls. */
export interface ApproveOptions {
  desk: ApprovalDesk
  /** How long ago whoever decides may have entered their password: seconds; 0 for any time. */
  maxAgeSeconds: number
}

/** Who is at a page, as far as the request itself says. */
export interface Visit {
  identity: Identity
  viaBearer: boolean
  /** Their form has become a call with audit entries of its own. */
  isDispatched: boolean
  /** When they entered their password at the provider, as far as that is known: milliseconds since the epoch. */
  authenticatedAt?: number
}

/** What a tool call came to, as the dispatcher tells it. */
export type ToolAnswer = { ok: true; value: object } | { ok: false; error: ServiceError }

/** One call of a tool on behalf of the visitor: the same gates, checks and audit entries as over MCP. Never rejects. */
type CallTool = (name: string, args: Record<string, unknown>) => Promise<ToolAnswer>

/** Who is at the page of /setup, and what they may have done for them. */
export interface Visitor {
  identity: Identity
  /** Null where the groups give none. */
  role: Role | null
  call: CallTool
}

/** How people log in with a browser: a client of the identity provider (D17). */
export interface LoginOptions {
  clientId: string
  /** Absent for a public client; PKCE is used in either case. */
  clientSecret?: string
  /** Scopes to ask for beside `openid`, separated by blanks. */
  scope: string
  /** Audience that the access token must be for. */
  audience: string
}
