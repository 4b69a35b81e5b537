import type { Identity, Owner, Role } from '../../schemas/caller.js'
import type { ErrorCode } from '../../schemas/errors.js'
import type { ServiceError } from '../errors/convert.js'

/** What a tool call came to, as the dispatcher tells it. */
export type ToolAnswer = { ok: true; value: object } | { ok: false; error: ServiceError }

/** One call of a tool on behalf of whoever is at the page: the same gates, checks and audit entries as over MCP. Never rejects. */
export type CallTool = (name: string, args: Record<string, unknown>) => Promise<ToolAnswer>

/** Who is at the page, and what they may have done for them. */
export interface Visitor {
  identity: Identity
  /** Null where the groups give none. */
  role: Role | null
  call: CallTool
}

/** A POST that never became a tool call, for the audit log. Holds nothing of what was sent. */
export interface RefusedPost {
  reason: ErrorCode
  /** The path, without its query. */
  route: string
  /** The tool that the form stands for, where it stands for one. */
  tool?: string
  /** Null where nobody was logged in. */
  identity: Owner | null
  role: Role | null
  requestId: string
  /** What the browser calls itself. */
  client?: string
}

/**
 * Which sessions were ended before their time. The cookie alone cannot know: whoever has a copy of it could go on using it. `until`, in
 * milliseconds since the epoch, is when the session ends by itself and may be forgotten here.
 */
export interface EndedSessions {
  add(id: string, until: number): Promise<void>
  has(id: string): Promise<boolean>
}

/**
 * Of all the callbacks with one `state`, in any number of processes, exactly one ever resolves with true. The state may be forgotten after
 * `until`, in milliseconds since the epoch.
 */
export type ClaimLogin = (state: string, until: number) => Promise<boolean>

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
