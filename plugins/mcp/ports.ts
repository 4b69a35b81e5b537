import type { ProgressUpdate, ToolContext } from '../../domain/call.js'
import type { Knowledge } from '../../knowledge/index.js'
import type { DeclinedCall, DecisionWatch, RequestState, RequestStates } from '../../schemas/approvals.js'
import type { Owner } from '../../schemas/caller.js'
import type { ServiceError } from '../errors/convert.js'
import type { TraceOrigin } from '../../schemas/tracing.js'
import type { ServerInfo } from './eras.js'
import type { ListOffered } from './offered-tools.js'
import type { Timers } from './progress.js'
import type { LegacyVersion } from './versions.js'

/** The server as one client sees it: for a request over HTTP, or for the process over stdio. */
export interface ServerPorts {
  info: ServerInfo
  /** The entries of tools/list, in order. */
  listTools: ListOffered
  /** The names of the tools that the caller is offered. */
  offered: ReadonlySet<string>
  knowledge: Knowledge
  callTool: CallTool
  lookUp: LookUpFor
  /** The timers for the time limit of lookups; by default the system's timers. */
  timers?: Timers
  /** The organisation at the caller's PCE; absent without a PCE. */
  orgId?: string
  /** Counts further tool calls of one request against the caller's limit; rejects if there are too many. */
  charge?: (times: number) => Promise<void>
  /** Returns the id under which one tool call appears in logs, in the audit log and at the PCE. */
  requestId: () => string
  /** Called with errors that no caller can do anything about, for the log. */
  onFailure: (thrown: unknown) => void
  /** The means to ask the caller's user; absent if calls never wait for a person, or nobody can be asked. */
  asking?: Asking
  /**
   * Returns whether the client shows pages beside answers, for requests that do not say so themselves. If absent, the
   * client shows none.
   */
  showsApps?: () => boolean
  /**
   * Called with what the client said about itself in its handshake: `name/version`, the version that both will use, and
   * what it can show to its user.
   */
  onInitialize?: (client: string | undefined, version: LegacyVersion, shows: { forms: boolean; apps: boolean }) => void
}

/** What the person at the client has said about a call, and whether they can be asked. */
export interface Said {
  consent?: { boundTo: string }
  declined?: DeclinedCall
  canAsk?: boolean
}

/**
 * The dispatcher as a transport sees it: it runs one call of one caller from the gates to the outcome, and never
 * rejects.
 */
export type CallTool = (
  call: {
    name: string
    arguments: Record<string, unknown>
    /** The confirm token in `params._meta.confirm_token`, unchecked. */
    confirmToken?: unknown
    requestId: string
    sender: Departure
    progress: (update: ProgressUpdate) => void
    trace?: TraceOrigin
  } & Said,
  /** The client as in `InnerCall.client`. */
  client: string | null | undefined,
) => Promise<CalledTool>

export type CalledTool = { ok: true; value: object } | { ok: false; error: ServiceError }

/** What is needed to ask the caller's user in the middle of a call. */
export interface Asking {
  /** The caller; null if callers are not authenticated. */
  owner: Owner | null
  /** Seals and opens the state of a question; may be loaded with the first question. */
  states: { seal(state: RequestState): string | Promise<string>; open: RequestStates['open'] }
  /** Hashes arguments (D19). */
  hash: (args: Record<string, unknown>) => string | Promise<string>
  /** The watch for decisions; present if people decide on a page. */
  watch?: DecisionWatch
}

/**
 * Makes the client show a form to its user. Resolves with the answer, or with null if the client does not show the
 * form.
 */
export type Elicit = (form: { message: string; requestedSchema: object }) => Promise<unknown>

/** Looks something up through the dispatcher, on behalf of the caller of this server. */
type LookUpFor = <T>(
  question: { tool: string; requestId: string; signal: AbortSignal },
  read: (context: ToolContext<true>) => Promise<T>,
) => Promise<T | null>

/** Whether the client still waits for the answer. */
export interface Departure {
  /** Aborts when the client cancels or has left. */
  readonly signal: AbortSignal
  /**
   * Returns whether the client has left. Present if the transport knows this without the signal, because creating the
   * signal costs more than answering a simple request.
   */
  hasLeft?(): boolean
}

/** The facts and functions of a request that its answer needs. */
export interface RequestPorts {
  id: string | number
  client: Departure
  /** Present if the client has a connection and has said that its user can be asked. */
  elicit?: Elicit
  /** Sends a notification that belongs to the request. */
  readonly notify: (method: string, params: object) => void
}

/** What the transport provides for one request. */
export interface MessagePorts extends Departure {
  /** Sends a complete notification before the answer. */
  notify(message: object): void
}
