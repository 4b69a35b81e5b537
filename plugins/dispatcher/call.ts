import type { PceClient } from '../../pce-client/index.js'
import type { DeclinedCall } from '../../schemas/approvals.js'
import type { Caller } from '../../schemas/caller.js'
import type { CredentialsPort } from '../../schemas/credentials.js'
import type { ToolError } from '../../schemas/errors.js'
import type { Offer } from '../../schemas/offer.js'
import type { TraceOrigin } from '../../schemas/tracing.js'
import type { ProgressUpdate } from '../../domain/call.js'

/** Who calls, over what, with which PCE: fixed by the composition (stdio, dev-insecure) or by the context of one HTTP request. */
export interface CallerContext {
  caller: Caller
  /** Why `caller.role` is null, where there is more to say than that the groups give none: what the role gate then says. */
  roleProblem?: ToolError
  transport: 'stdio' | 'http'
  /** Which tools the request is offered. The transports list and call by the same one; absent, every tool of the dispatcher. */
  offer?: Offer
  /** Null where there are no PCE credentials. */
  pce: PceClient | null
  /** Why `pce` is null, where the reason is not simply that there are no credentials: what the PCE gate then says. */
  pceProblem?: ToolError
  /** Asked before a call goes to the PCE: rejects with ToolError where that has never answered this caller and does not now. */
  provePce?: (signal: AbortSignal) => Promise<void>
  /** The caller's own PCE credentials. */
  credentials: CredentialsPort
  /** `name/version` of the MCP client where it has said so. */
  client?: string
  /** What the caller's access token says of whom it was issued for and to: to be shown, and to decide nothing. */
  tokenSays?: { name?: string; clientId?: string }
  /** Where the client is, over HTTP: by the socket, or by a trusted proxy. */
  clientAddress?: string
}

/** The context of a request that may list tools: it always says which (D121). */
export type OfferedContext = CallerContext & { offer: Offer }

/** Whether the sender of a call still wants its answer. */
export interface Sender {
  /** Aborted when the client cancels the call or is gone. */
  readonly signal: AbortSignal
  /** Whether the client is gone, for a transport that can tell without the signal. */
  hasLeft?(): boolean
}

/** One tool call as a transport hands it over. */
export interface ToolCall {
  name: string
  /** As the client sent it; absent arguments are `{}`. */
  arguments: Record<string, unknown>
  /** `params._meta.confirm_token`, unchecked. */
  confirmToken?: unknown
  /** Where the call came from, when not from /mcp. */
  route?: string
  /** What the person at a client of stdio has been shown and said yes to, where the transport itself has asked them. */
  consent?: { boundTo: string }
  /** What the person at the client has said no to, where the transport has asked them: it does not run, whatever the gates say. */
  declined?: DeclinedCall
  /** Whether the client can ask its person by a form (MCP elicitation). */
  canAsk?: boolean
  requestId: string
  /** The trace that the client counts it to, where the message itself says so, unchecked. */
  trace?: TraceOrigin
  readonly sender: Sender
  /** Called as often as the tool likes; the transport decides what is sent to the client. */
  progress(update: ProgressUpdate): void
}

/** The part of the server log that the dispatcher writes to. */
export interface ServerLog {
  debug(facts: object, message: string): void
  info(facts: object, message: string): void
  warn(facts: object, message: string): void
  error(facts: object, message: string): void
}
