import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import type { CallToolResult, JSONRPCRequest, Tool } from '@modelcontextprotocol/sdk/types.js'
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/sdk/validation/ajv-provider.js'
import type { ProgressUpdate } from '../../domain/call.js'
import type { Knowledge } from '../../knowledge/index.js'
import type { ServiceError } from '../errors/convert.js'
import { renderMcpError } from '../errors/render-errors.js'
import { answerKnowledge, KNOWLEDGE_CAPABILITIES } from './answer-knowledge.js'
import { INSTRUCTIONS } from './instructions.js'
import { startProgress, type Timers } from './progress.js'
import { negotiate, type ProtocolVersion, RPC } from './read-envelope.js'
import { invalidParams, refuseCursor, rpcFailure } from './rpc-failure.js'

interface McpServerOptions {
  info: { name: string; version: string }
  /** The entries of tools/list, in order, as far as the caller is offered them. */
  tools: readonly Tool[]
  /** Names of the tools that the caller is offered. */
  offered: ReadonlySet<string>
  knowledge: Knowledge
  callTool: CallTool
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
        return { tools: options.tools.filter(({ name }) => options.offered.has(name)) }
      case 'tools/call':
        return answerCall(params, {
          callTool: options.callTool,
          requestId: options.requestId(),
          signal: extra.signal,
          notify(params) {
            // Fails only when the client has gone.
            extra.sendNotification({ method: 'notifications/progress', params }).catch(() => {})
          },
        })
      default: {
        const answer = answerKnowledge(method, params, {
          knowledge: options.knowledge,
          offered: options.offered,
          requestId: options.requestId(),
          onFailure: options.onFailure,
        })
        if (answer === null) throw rpcFailure(RPC.methodNotFound, 'Method not found')
        return answer
      }
    }
  }
  return server
}

function initialize(params: Record<string, unknown> | undefined, { info, onInitialize }: McpServerOptions) {
  const asked = params?.protocolVersion
  if (typeof asked !== 'string') throw invalidParams('params.protocolVersion must be a string')
  const protocolVersion = negotiate(asked)
  onInitialize?.(clientName(params?.clientInfo), protocolVersion)
  return { protocolVersion, capabilities: CAPABILITIES, serverInfo: info, instructions: INSTRUCTIONS.join('\n') }
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

interface CallPorts {
  callTool: CallTool
  requestId: string
  /** Aborted when the client cancels or is gone. */
  signal: AbortSignal
  notify: (params: ProgressUpdate & { progressToken: string | number }) => void
}

/**
 * Answers tools/call. A failure of the tool is a result with isError; an unknown tool or params of the wrong shape are JSON-RPC
 * errors (MCP tools, "Error Handling"): thrown with the `code` that the SDK puts on the wire.
 */
async function answerCall(params: JSONRPCRequest['params'], ports: CallPorts): Promise<CallToolResult> {
  const { name, arguments: args = {}, _meta: meta } = params ?? {}
  if (typeof name !== 'string') throw invalidParams('params.name must be a string')
  if (!isObject(args)) throw invalidParams('params.arguments must be an object')
  const progressToken = meta?.progressToken
  const progress =
    progressToken === undefined
      ? null
      : startProgress((update) => ports.notify({ ...update, progressToken }), systemTimers)
  try {
    const { requestId, signal } = ports
    const result = await ports.callTool({
      name,
      arguments: args,
      ...(meta?.confirm_token !== undefined && { confirmToken: meta.confirm_token }),
      requestId,
      signal,
      progress: (update) => progress?.update(update),
    })
    if (result.ok) {
      return {
        content: [{ type: 'text', text: JSON.stringify(result.value) }],
        structuredContent: result.value as Record<string, unknown>,
      }
    }
    if (result.error.code === 'unknown_tool') {
      throw invalidParams(result.error.message, { error: result.error.code, request_id: requestId })
    }
    return renderMcpError(result.error, requestId)
  } finally {
    progress?.stop()
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
