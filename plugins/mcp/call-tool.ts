import type { CallToolResult, JSONRPCRequest } from '@modelcontextprotocol/sdk/types.js'
import type { ProgressUpdate } from '../../domain/call.js'
import type { ServiceError } from '../errors/convert.js'
import { renderMcpError } from '../errors/render-mcp.js'
import { startProgress } from './progress.js'
import { RPC } from './rpc-problem.js'

/** The dispatcher as a transport sees it: runs one call of one caller to its end and never rejects. */
export type CallTool = (call: {
  name: string
  arguments: Record<string, unknown>
  /** `params._meta.confirm_token`, as it came. */
  confirmToken?: unknown
  requestId: string
  signal: AbortSignal
  progress: (update: ProgressUpdate) => void
}) => Promise<{ ok: true; value: object } | { ok: false; error: ServiceError }>

export interface CallPorts {
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
export async function answerCall(params: JSONRPCRequest['params'], ports: CallPorts): Promise<CallToolResult> {
  const { name, arguments: args = {}, _meta: meta } = params ?? {}
  if (typeof name !== 'string') throw invalidParams('params.name must be a string')
  if (!isObject(args)) throw invalidParams('params.arguments must be an object')
  const progressToken = meta?.progressToken
  const progress =
    progressToken === undefined ? null : startProgress((update) => ports.notify({ ...update, progressToken }))
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

/** A plain Error with a code: the SDK's own McpError would say the code twice in its message. */
export const invalidParams = (message: string, data?: object) =>
  Object.assign(new Error(message), { code: RPC.invalidParams, ...(data && { data }) })

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
