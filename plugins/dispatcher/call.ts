import type { PceClient } from '../../pce-client/index.js'
import type { DeclinedCall } from '../../schemas/approvals.js'
import type { Caller } from '../../schemas/caller.js'
import type { CredentialsPort } from '../../schemas/credentials.js'
import type { ToolError } from '../../schemas/errors.js'
import type { Offer } from '../../schemas/offer.js'
import type { TraceOrigin } from '../../schemas/tracing.js'
import type { ProgressUpdate } from '../../domain/call.js'

/**
 * The caller, the transport and the PCE of a call. They are fixed by the composition (stdio, dev-insecure) or come from
 * the context of one HTTP request.
 */
export interface CallerContext {
  caller: Caller
  /**
   * Why `caller.role` is null, if there is a more specific reason than that the groups give none; the role gate reports
   * it.
   */
  roleProblem?: ToolError
  transport: 'stdio' | 'http'
  /**
   * The tools that the request is offered. Transports use the same offer for lists and for calls. If absent, every tool
   * of the dispatcher is offered.
   */
  offer?: Offer
  /** The client for the caller's PCE; null if there are no PCE credentials. */
  pce: PceClient | null
  /** Why `pce` is null, if the reason is not simply missing credentials; the PCE gate reports it. */
  pceProblem?: ToolError
  /**
   * Called before a tool call uses the PCE. Rejects with ToolError if the PCE has never answered this caller and does
   * not answer now.
   */
  provePce?: (signal: AbortSignal) => Promise<void>
  /** The caller's own PCE credentials. */
  credentials: CredentialsPort
  /** `name/version` of the MCP client, if it has given them. */
  client?: string
  /** The names of the person and of the client in the access token, only for display and never for decisions. */
  tokenSays?: { name?: string; clientId?: string }
  /** The address of an HTTP client, from the socket or a trusted proxy. */
  clientAddress?: string
}

/** The context of a request that may list tools. It always has an offer, the tools that the caller may see (D121). */
export type OfferedContext = CallerContext & { offer: Offer }

/** Whether the sender of a call still wants its answer. */
export interface Sender {
  /** Aborts when the client cancels the call or has left. */
  readonly signal: AbortSignal
  /** Returns whether the client has left; present only if the transport knows this without the signal. */
  hasLeft?(): boolean
}

/** One tool call, as a transport passes it on. */
export interface ToolCall {
  name: string
  /** The arguments as the client sent them; `{}` if it sent none. */
  arguments: Record<string, unknown>
  /** The confirm token in `params._meta.confirm_token`, unchecked. */
  confirmToken?: unknown
  /** The HTTP route that received the call, if it is not /mcp. */
  route?: string
  /**
   * The digest of what the person at a stdio client was shown and agreed to, if the transport itself asked the person.
   */
  consent?: { boundTo: string }
  /**
   * The question to which the person at the client said no, if the transport itself asked the person. The call then
   * does not run, whatever the gates say.
   */
  declined?: DeclinedCall
  /** Whether the client can show its user a form (MCP elicitation). */
  canAsk?: boolean
  requestId: string
  /** The trace that the client says the call belongs to, unchecked. */
  trace?: TraceOrigin
  readonly sender: Sender
  /** Reports progress. Tools may call this as often as they like; the transport decides what is sent to the client. */
  progress(update: ProgressUpdate): void
}

/** The part of the server log that the dispatcher writes to. */
export interface ServerLog {
  debug(facts: object, message: string): void
  info(facts: object, message: string): void
  warn(facts: object, message: string): void
  error(facts: object, message: string): void
}
