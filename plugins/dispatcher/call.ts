import type { PceClient } from '../../pce-client/index.js'
import type { DeclinedCall } from '../../schemas/approvals.js'
import type { Caller } from '../../schemas/caller.js'
import type { CredentialsPort } from '../../schemas/credentials.js'
import type { ToolError } from '../../schemas/errors.js'
import type { Offer } from '../../schemas/offer.js'
import type { TraceOrigin } from '../../schemas/tracing.js'
import type { ProgressUpdate } from '../../domain/call.js'

/**
 * The caller, the transport and the PCE of a call. If callers are not authenticated (stdio, dev-insecure), the
 * composition fixes these three for all calls; otherwise, they are determined for each HTTP request.
 */
export interface CallerContext {
  caller: Caller
  /**
   * The reason why `caller.role` is null, which the role gate reports; absent if the caller's groups simply give no
   * role.
   */
  roleProblem?: ToolError
  transport: 'stdio' | 'http'
  /**
   * The tools that are offered to the request. Transports use the same offer for lists and for calls. If it is absent,
   * all tools of the dispatcher are offered.
   */
  offer?: Offer
  /** The client for the caller's PCE; null if there are no PCE credentials. */
  pce: PceClient | null
  /** The reason why `pce` is null, which the PCE gate reports; absent if the caller simply has no credentials. */
  pceProblem?: ToolError
  /**
   * Must be called before a tool call uses the registered address. Resolves if a PCE has answered this caller at that
   * address, earlier or now; otherwise, rejects with ToolError.
   */
  provePce?: (signal: AbortSignal) => Promise<void>
  /**
   * Resolves if the call may send its next change to the PCE. Rejects with PceError if the caller's access was revoked
   * in the meantime. Present only if callers must log in, and called only before changes.
   */
  mayWrite?: () => Promise<void>
  /** The interface through which tools read and change the caller's own PCE credentials. */
  credentials: CredentialsPort
  /** The MCP client as `name/version`; absent if the client has not named itself. */
  client?: string
  /**
   * The names of the person and of the client in the access token. They are only displayed and never used for
   * decisions.
   */
  tokenSays?: { name?: string; clientId?: string }
  /** The address of an HTTP client, as reported by the socket or by a trusted proxy. */
  clientAddress?: string
}

/** The context of a request that may list tools. It always has an offer: the tools that the caller may see (D121). */
export type OfferedContext = CallerContext & { offer: Offer }

/** Shows a call whether the sender of the request still waits for the answer. */
export interface Sender {
  /** Aborts when the client cancels the call or has left. */
  readonly signal: AbortSignal
  /**
   * Returns true if the client has left. It is present only if the transport can tell this without creating `signal`.
   */
  hasLeft?(): boolean
}

/** A tool call as the transport passes it to the dispatcher. */
export interface ToolCall {
  name: string
  /** The arguments as the client sent them; `{}` if it sent none. */
  arguments: Record<string, unknown>
  /** The confirm token in `params._meta.confirm_token`, unchecked. */
  confirmToken?: unknown
  /** The HTTP route that received the call, if it is not /mcp. */
  route?: string
  /**
   * The digest of what the person at a stdio client was shown and has approved; present if the transport itself asked
   * this person.
   */
  consent?: { boundTo: string }
  /**
   * The question that the person at the client has answered with no; present only if the transport itself asked. The
   * call then does not run, whatever the gates decide.
   */
  declined?: DeclinedCall
  /** True if the client can show its user a form (MCP elicitation). */
  canAsk?: boolean
  requestId: string
  /** The trace to which the call belongs, as the client states it, unchecked. */
  trace?: TraceOrigin
  readonly sender: Sender
  /** Reports progress. Tools may call this as often as they like; the transport decides what is sent to the client. */
  progress(update: ProgressUpdate): void
}

/** The part of the server log to which the dispatcher writes. */
export interface ServerLog {
  debug(facts: object, message: string): void
  info(facts: object, message: string): void
  warn(facts: object, message: string): void
  error(facts: object, message: string): void
}
