import type { Identity, Role } from '../../schemas/caller.js'
import type { Fetch } from './bounded-fetch.js'
import type { ClaimLogin, EndedSessions, LoginOptions, RefusedPost, ToolAnswer } from './ports.js'

/** What the composition wires to this room. `Request` and `Reply` are the web framework's. */
export interface SetupOptions<Request, Reply> {
  /** Without a slash at its end. */
  publicUrl: string
  issuer: string
  /** 32 bytes, see `deriveSessionKey`. */
  sessionKey: Buffer
  /** Absent, only bearer tokens are taken. */
  login?: LoginOptions
  groupsOfRole: Readonly<Record<Role, readonly string[]>>
  roleOf: (identity: Identity) => Role | null
  /** Whether users may go without the check of the PCE's certificate. */
  allowInsecureTls: boolean
  /**
   * Who sent a request, by its Authorization header. Rejects with ToolError `unauthorized`, with the challenge set on the reply,
   * `keys_unavailable` or `rate_limited`.
   */
  authenticate: (request: Request, reply: Reply) => Promise<Identity>
  /** Who an access token stands for. Rejects with ToolError `unauthorized {reason}` or `keys_unavailable`. */
  verifyToken: (token: string, request: Request) => Promise<Identity>
  /** The value of WWW-Authenticate for a request without a token. */
  challenge: () => string
  /** One tool call of this person. Never rejects. */
  callTool: (name: string, args: Record<string, unknown>, identity: Identity, request: Request) => Promise<ToolAnswer>
  /** Writes the refusal to the audit log. Rejects when it cannot be written. */
  auditRefused: (refused: RefusedPost) => void | Promise<void>
  /**
   * Asked before a test of the connection; `request.setupVisit` says who sends it. Rejects with ToolError
   * `rate_limited {retry_after}`.
   */
  limitPceTries?: (request: Request) => Promise<void>
  /**
   * Asked once for every request of somebody who is known, and for every step of a login, which may cost the identity provider something:
   * `request.setupVisit` is null there. What else a stranger may ask for is not limited by caller. Rejects with ToolError
   * `rate_limited {retry_after}`.
   */
  limitCaller: (request: Request) => Promise<void>
  claimLogin: ClaimLogin
  /** In memory, unless replicas share them. */
  endedSessions?: EndedSessions
  fetch?: Fetch
  /** Milliseconds since the epoch. */
  now?: () => number
}
