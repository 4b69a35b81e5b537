import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import type { Tool } from '@modelcontextprotocol/sdk/types.js'
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/sdk/validation/ajv-provider.js'
import { answerCall, invalidParams, type CallTool } from './call-tool.js'
import { INSTRUCTIONS } from './instructions.js'
import { RPC } from './rpc-problem.js'
import { negotiate, type ProtocolVersion } from './versions.js'

export interface McpServerOptions {
  info: { name: string; version: string }
  /** The entries of tools/list, in order. */
  tools: readonly Tool[]
  callTool: CallTool
  /** The id under which one tool call appears in logs, audit and at the PCE. */
  requestId: () => string
  /** Told what the client said of itself, `name/version`, and the version both will speak. */
  onInitialize?: (client: string | undefined, version: ProtocolVersion) => void
}

/** One for the process: each Server would otherwise build an Ajv of its own, which halves the throughput. */
const jsonSchemaValidator = new AjvJsonSchemaValidator()

/**
 * The SDK's low-level Server for one connection (stdio) or one HTTP request. Its zod layer answers params of the wrong shape with
 * -32603 and a dump of its schema, and it would speak versions we do not offer, so the three methods of this server are answered
 * from the fallback handler, which gets requests as they came; ping, cancellation and everything unknown stay the SDK's.
 */
export function createMcpServer(options: McpServerOptions): Server {
  const server = new Server(options.info, { capabilities: { tools: {} }, jsonSchemaValidator })
  server.removeRequestHandler('initialize')
  server.fallbackRequestHandler = async ({ method, params }, extra) => {
    switch (method) {
      case 'initialize':
        return initialize(params, options)
      case 'tools/list':
        // The list has one page, so no cursor was ever handed out.
        if (params?.cursor !== undefined) throw invalidParams('params.cursor is not a cursor of this server')
        return { tools: [...options.tools] }
      case 'tools/call':
        return answerCall(params, {
          callTool: options.callTool,
          requestId: options.requestId(),
          signal: extra.signal,
          notify(params) {
            // Fails only when the client is gone, and then nobody misses it.
            extra.sendNotification({ method: 'notifications/progress', params }).catch(() => {})
          },
        })
      default:
        throw Object.assign(new Error('Method not found'), { code: RPC.methodNotFound })
    }
  }
  return server
}

function initialize(params: Record<string, unknown> | undefined, { info, onInitialize }: McpServerOptions) {
  const asked = params?.protocolVersion
  if (typeof asked !== 'string') throw invalidParams('params.protocolVersion must be a string')
  const protocolVersion = negotiate(asked)
  onInitialize?.(clientName(params?.clientInfo), protocolVersion)
  return { protocolVersion, capabilities: { tools: {} }, serverInfo: info, instructions: INSTRUCTIONS }
}

function clientName(info: unknown): string | undefined {
  if (typeof info !== 'object' || info === null || !('name' in info) || typeof info.name !== 'string') return undefined
  return 'version' in info && typeof info.version === 'string' ? `${info.name}/${info.version}` : info.name
}
