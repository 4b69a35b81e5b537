import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import type { RequestHandlerExtra } from '@modelcontextprotocol/sdk/shared/protocol.js'
import type {
  CallToolResult,
  JSONRPCRequest,
  ServerNotification,
  ServerRequest,
} from '@modelcontextprotocol/sdk/types.js'
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/sdk/validation/ajv-provider.js'
import type { ProgressUpdate, ToolContext } from '../../domain/call.js'
import type { Knowledge } from '../../knowledge/index.js'
import type { ServiceError } from '../errors/convert.js'
import { renderMcpError } from '../errors/render-errors.js'
import { answerKnowledge, FailedCall, KNOWLEDGE_CAPABILITIES } from './answer-knowledge.js'
import { instructionsFor } from './instructions.js'
import type { ListOffered } from './offered-tools.js'
import { startProgress, type Timers } from './progress.js'
import { negotiate, type ProtocolVersion, RPC } from './read-envelope.js'
import { invalidParams, refuseCursor, rpcFailure } from './rpc-failure.js'

interface McpServerOptions {
  info: { name: string; version: string }
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
  /** Told what the client said of itself, `name/version`, and the version both will speak. */
  onInitialize?: (client: string | undefined, version: ProtocolVersion) => void
}

/** Those of Node.js, for progress and signs of life. */
export const systemTimers: Timers = {
  now: () => performance.now(),
  after(ms, run) {
    const timer = setTimeout(run, ms)
    return () => clearTimeout(timer)
  },
}

const CAPABILITIES = { tools: {}, ...KNOWLEDGE_CAPABILITIES }

/** One for the process: each Server would otherwise build an Ajv of its own, which halves the throughput. */
const jsonSchemaValidator = new AjvJsonSchemaValidator()

/**
 * The SDK's low-level Server for one connection (stdio) or one HTTP request. Its zod layer answers params of the wrong shape with
 * -32603 and a dump of its schema, and it would speak versions we do not offer, so the methods of this server are answered
 * from the fallback handler, which gets requests as they came; ping, cancellation and everything unknown stay the SDK's.
 */
export function createMcpServer(options: McpServerOptions): Server {
  const server = new Server(options.info, { capabilities: CAPABILITIES, jsonSchemaValidator })
  server.removeRequestHandler('initialize')
  server.fallbackRequestHandler = async ({ method, params }, extra) => {
    switch (method) {
      case 'initialize':
        return initialize(params, options)
      case 'tools/list':
        refuseCursor(params)
        return { tools: offeredOf(options) }
      case 'tools/call':
        return withProgress(params, notifyBy(extra), true, (progress) =>
          answerCall(params, {
            callTool: options.callTool,
            requestId: options.requestId(),
            signal: extra.signal,
            progress,
          }),
        )
      default:
        return withProgress(params, notifyBy(extra), false, (progress) =>
          answerOther(method, params, options, { signal: extra.signal, progress }),
        )
    }
  }
  return server
}

type Params = JSONRPCRequest['params']
type Progress = (update: ProgressUpdate) => void
type Notify = (params: ProgressUpdate & { progressToken: string | number }) => void

const notifyBy =
  ({ sendNotification }: Pick<RequestHandlerExtra<ServerRequest, ServerNotification>, 'sendNotification'>): Notify =>
  (params) => {
    // Fails only when the client has gone.
    sendNotification({ method: 'notifications/progress', params }).catch(() => {})
  }

/**
 * Tells the client of progress where it asked for it, and nothing any more once the work is done. `eager`: of its start as well (D4);
 * otherwise only work that has progress to tell does.
 */
async function withProgress<T>(
  params: Params,
  notify: Notify,
  eager: boolean,
  work: (progress: Progress) => Promise<T>,
): Promise<T> {
  const progressToken = params?._meta?.progressToken
  if (progressToken === undefined) return work(() => {})
  let progress: ReturnType<typeof startProgress> | null = null
  const begin = () => (progress ??= startProgress((update) => notify({ ...update, progressToken }), systemTimers))
  try {
    if (eager) begin()
    return await work((update) => begin().update(update))
  } finally {
    // Assigned by then, which the compiler does not see.
    ;(progress as ReturnType<typeof startProgress> | null)?.stop()
  }
}

/** Longer nobody waits who is typing: milliseconds. */
const LOOK_UP_MS = 3000

/** Null for what is not there in time; it goes on for those who ask later. */
function inTime<T>(work: Promise<T | null>, timers: Timers): Promise<T | null> {
  let cancel = () => {}
  const late = new Promise<null>((resolve) => (cancel = timers.after(LOOK_UP_MS, () => resolve(null))))
  return Promise.race([work, late]).finally(() => cancel())
}

/** What is not about tools: documents, prompts, completions. */
async function answerOther(
  method: string,
  params: Params,
  { knowledge, offered, callTool, orgId, charge, onFailure, timers = systemTimers, ...options }: McpServerOptions,
  { signal, progress }: { signal: AbortSignal; progress: Progress },
): Promise<Record<string, unknown>> {
  const requestId = options.requestId()
  const answer = await answerKnowledge(method, params, {
    knowledge,
    offered,
    orgId,
    charge: (times) => charge?.(times) ?? Promise.resolve(),
    progress,
    async callTool(name, args) {
      const result = await callTool({ name, arguments: args, requestId, signal, progress: () => {} })
      if (!result.ok) throw new FailedCall(result.error)
      return result.value
    },
    lookUp: (tool, read) => inTime(options.lookUp({ tool, requestId, signal }, read), timers),
    requestId,
    onFailure,
  })
  if (answer === null) throw rpcFailure(RPC.methodNotFound, 'Method not found')
  return answer as Record<string, unknown>
}

const offeredOf = ({ listTools, offered }: McpServerOptions) => listTools(offered)

function initialize(params: Record<string, unknown> | undefined, options: McpServerOptions) {
  const asked = params?.protocolVersion
  if (typeof asked !== 'string') throw invalidParams('params.protocolVersion must be a string')
  const protocolVersion = negotiate(asked)
  options.onInitialize?.(clientName(params?.clientInfo), protocolVersion)
  const instructions = instructionsFor(offeredOf(options))
  return { protocolVersion, capabilities: CAPABILITIES, serverInfo: options.info, instructions }
}

function clientName(info: unknown): string | undefined {
  if (typeof info !== 'object' || info === null || !('name' in info) || typeof info.name !== 'string') return undefined
  return 'version' in info && typeof info.version === 'string' ? `${info.name}/${info.version}` : info.name
}

/** The dispatcher as a transport sees it: runs one call of one caller to its end and never rejects. */
type CallTool = (call: {
  name: string
  arguments: Record<string, unknown>
  /** `params._meta.confirm_token`, as it came. */
  confirmToken?: unknown
  requestId: string
  signal: AbortSignal
  progress: (update: ProgressUpdate) => void
}) => Promise<{ ok: true; value: object } | { ok: false; error: ServiceError }>

/** The dispatcher's, for the caller of this server. */
type LookUpFor = <T>(
  question: { tool: string; requestId: string; signal: AbortSignal },
  read: (context: ToolContext<true>) => Promise<T>,
) => Promise<T | null>

interface CallPorts {
  callTool: CallTool
  requestId: string
  /** Aborted when the client cancels or is gone. */
  signal: AbortSignal
  progress: Progress
}

/**
 * Answers tools/call. A failure of the tool is a result with isError; an unknown tool or params of the wrong shape are JSON-RPC
 * errors (MCP tools, "Error Handling"): thrown with the `code` that the SDK puts on the wire.
 */
async function answerCall(params: Params, { callTool, ...ports }: CallPorts): Promise<CallToolResult> {
  const { name, arguments: args = {}, _meta: meta } = params ?? {}
  if (typeof name !== 'string') throw invalidParams('params.name must be a string')
  if (!isObject(args)) throw invalidParams('params.arguments must be an object')
  const confirmToken = meta?.confirm_token
  const result = await callTool({
    name,
    arguments: args,
    ...(confirmToken !== undefined && { confirmToken }),
    ...ports,
  })
  if (result.ok) {
    return {
      content: [{ type: 'text', text: JSON.stringify(result.value) }],
      structuredContent: result.value as Record<string, unknown>,
    }
  }
  if (result.error.code === 'unknown_tool')
    throw invalidParams(result.error.message, { error: result.error.code, request_id: ports.requestId })
  return renderMcpError(result.error, ports.requestId)
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
