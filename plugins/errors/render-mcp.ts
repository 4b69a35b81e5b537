import type { ServiceError } from './convert.js'
import { renderError } from './render-error.js'

/** A failed tool call as MCP wants it. */
export type McpErrorResult = {
  isError: true
  content: [{ type: 'text'; text: string }]
}

/**
 * A tool failure is a result, so that the model reads what went wrong. It carries no structuredContent, because clients check
 * that against the tool's outputSchema even when isError is set.
 */
export function renderMcpError(error: ServiceError, requestId: string): McpErrorResult {
  return { isError: true, content: [{ type: 'text', text: JSON.stringify(renderError(error, requestId)) }] }
}
