import type { ErrorCode, ErrorDetails } from '../errors.js'

/** An error as clients read it, over MCP and HTTP alike: details stand at the top level beside these (D3). */
export interface ErrorBody extends ErrorDetails {
  error: ErrorCode
  message: string
  request_id: string
  hint?: string
}
