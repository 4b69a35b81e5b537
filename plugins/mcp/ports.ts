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

/** What a server is to one client: of a request over HTTP, or of the process over stdio. */
export interface ServerPorts {
  info: ServerInfo
  /** The entries of tools/list, in order. */
  listTools: ListOffered
  /** Names of the tools that the caller is offered. */
  offered: ReadonlySet<string>
  knowledge: Knowledge
  callTool: CallTool
  lookUp: LookUpFor
  /** Of the wait for a look-up; default the system's. */
  timers?: Timers
  /** Organisation at the caller's PCE; absent without one. */
  orgId?: string
  /** Counts further tool calls of one request against the caller's limit; rejects when they are too many. */
  charge?: (times: number) => Promise<void>
  /** The id under which one tool call appears in logs, audit and at the PCE. */
  requestId: () => string
  /** Told what was thrown where no caller can do anything about it, for the log. */
  onFailure: (thrown: unknown) => void
  /** Absent where no call waits for a person, or nobody can be asked. */
  asking?: Asking
  /** Whether the client shows pages beside answers, where a request does not say so itself; absent, it does not. */
  showsApps?: () => boolean
  /**
   * Told what the client said of itself in its handshake: `name/version`, the version both will speak, and what it can show its person.
   */
  onInitialize?: (client: string | undefined, version: LegacyVersion, shows: { forms: boolean; apps: boolean }) => void
}

/** What the person at the client has said to a call, and whether they can be asked. */
export interface Said {
  consent?: { boundTo: string }
  declined?: DeclinedCall
  canAsk?: boolean
}

/** The dispatcher as a transport sees it: runs one call of one caller to its end and never rejects. */
export type CallTool = (
  call: {
    name: string
    arguments: Record<string, unknown>
    /** `params._meta.confirm_token`, as it came. */
    confirmToken?: unknown
    requestId: string
    sender: Departure
    progress: (update: ProgressUpdate) => void
    trace?: TraceOrigin
  } & Said,
  /** `InnerCall.client` */
  client: string | null | undefined,
) => Promise<CalledTool>

export type CalledTool = { ok: true; value: object } | { ok: false; error: ServiceError }

/** What it takes to ask the person of one caller in the middle of a call. */
export interface Asking {
  /** Null where nobody authenticates. */
  owner: Owner | null
  /** May be loaded with the first question. */
  states: { seal(state: RequestState): string | Promise<string>; open: RequestStates['open'] }
  /** Of arguments (D19). */
  hash: (args: Record<string, unknown>) => string | Promise<string>
  /** Where people decide on a page. */
  watch?: DecisionWatch
}

/** Has the client show its person a form, and resolves with its answer; with null where the client does not. */
export type Elicit = (form: { message: string; requestedSchema: object }) => Promise<unknown>

/** The dispatcher's, for the caller of this server. */
type LookUpFor = <T>(
  question: { tool: string; requestId: string; signal: AbortSignal },
  read: (context: ToolContext<true>) => Promise<T>,
) => Promise<T | null>

/** The end of a client's interest. */
export interface Departure {
  /** Aborted when the client cancels or is gone. */
  readonly signal: AbortSignal
  /** Whether it is, where that can be told without the signal, which costs more than many an answer. */
  hasLeft?(): boolean
}

/** Of one request. */
export interface RequestPorts {
  id: string | number
  client: Departure
  /** Where a client with a connection has said that its person can be asked. */
  elicit?: Elicit
  /** Sends a notification that belongs to the request. */
  readonly notify: (method: string, params: object) => void
}

/** Of one request, to a transport. */
export interface MessagePorts extends Departure {
  /** Sends a whole notification before the answer. */
  notify(message: object): void
}
