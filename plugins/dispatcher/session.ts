import type { PceClient } from '../../pce-client/index.js'
import type { Caller } from '../../schemas/caller.js'
import type { ProgressUpdate } from '../../tools/define.js'

/** Who calls, over what, with which PCE: fixed by the composition (stdio, dev-insecure) or by the context of one HTTP request. */
export interface Session {
  caller: Caller
  transport: 'stdio' | 'http'
  /** Null where there are no PCE credentials. */
  pce: PceClient | null
  /** `name/version` of the MCP client where it has said so. */
  client?: string
}

/** One tool call as a transport hands it over. */
export interface ToolCall {
  name: string
  /** As the client sent it; absent arguments are `{}`. */
  arguments: Record<string, unknown>
  requestId: string
  /** Aborted when the client cancels the call or is gone. */
  signal: AbortSignal
  /** Called as often as the tool likes; the transport decides what the client hears. */
  progress(update: ProgressUpdate): void
}
