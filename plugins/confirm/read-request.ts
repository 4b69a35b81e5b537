import { Value } from '@sinclair/typebox/value'
import type { AuditEntry } from '../../schemas/audit.js'
import type { Caller } from '../../schemas/caller.js'
import { type ErrorCode, ToolError } from '../../schemas/errors.js'
import { ConfirmRequest } from '../../schemas/http.js'
import type { ToolFacts } from '../../tools/listed-tool.js'
import { convertHttp } from '../errors/convert.js'

const SHAPES: Record<string, string> = {
  '/tool': 'must be the name of a tool',
  '/params_hash': 'must be 64 lowercase hex digits',
  '/challenge': 'must be 64 lowercase hex digits',
}

/**
 * Reads the body of POST /confirm. Throws ToolError `bad_request` if the body is not JSON, and `invalid_argument
 * {problems}` if it is not an object with exactly the fields `tool`, `params_hash` and, optionally, `challenge`.
 */
export function readRequest(body: Buffer): ConfirmRequest {
  const value = parse(body)
  if (Value.Check(ConfirmRequest, value)) return value
  const found = new Map<string, string>()
  for (const { path } of Value.Errors(ConfirmRequest, value)) {
    if (!found.has(path))
      found.set(path, SHAPES[path] ?? (path === '' ? 'must be an object' : 'is not a field of this request'))
  }
  const problems = [...found].map(([path, message]) => ({ path: path.slice(0, 200), message })).slice(0, 10)
  const said = problems.map(({ path, message }) => `${path || 'the body'} ${message}`).join('; ')
  throw new ToolError('invalid_argument', `The body must be {tool, params_hash, challenge?}: ${said}.`, { problems })
}

function parse(body: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body))
  } catch {
    throw new ToolError('bad_request', 'The body is not JSON.')
  }
}

/**
 * Returns the tool for which the token is requested. Throws ToolError `unknown_tool`, and `invalid_argument` for a tool
 * that needs no confirmation.
 */
export function requireConfirmed(tool: ToolFacts | undefined): ToolFacts {
  if (tool === undefined) throw new ToolError('unknown_tool', 'There is no tool with this name.')
  if (tool.requiresConfirm) return tool
  throw new ToolError('invalid_argument', `${tool.name} needs no confirmation: call it without a token.`)
}

export const ROUTE = '/confirm'

/** The facts about a request for a token that are known when it is granted or refused. */
export interface MintFacts {
  requestId: string
  /**
   * The sender of the request. The role is missing if the body cannot be read, because such a request is refused before
   * the role is determined.
   */
  caller: Partial<Caller>
  client?: string
  clientAddress?: string
  tool?: string
  paramsHash?: string
  jti?: string
}

/**
 * Builds an audit entry about a request for a token (D25). `reason` is null if the token was granted. `now` is in
 * milliseconds since the epoch.
 */
export function describeMint(facts: MintFacts, reason: ErrorCode | null, now: number): AuditEntry {
  const { requestId, caller, client, clientAddress, tool, paramsHash, jti } = facts
  return {
    ts: new Date(now).toISOString(),
    phase: 'decision',
    decision: reason === null ? 'allowed' : ERRORS.has(reason) ? 'error' : 'denied',
    ...(reason !== null && { reason }),
    ...(tool !== undefined && { tool }),
    route: ROUTE,
    role: caller.role ?? null,
    iss: caller.iss ?? null,
    sub: caller.sub ?? null,
    request_id: requestId,
    mode: caller.mode ?? 'unknown',
    transport: 'http',
    ...(client !== undefined && { client }),
    ...(clientAddress !== undefined && { client_address: clientAddress }),
    ...(paramsHash !== undefined && { params_hash: paramsHash }),
    ...(jti !== undefined && { confirm_jti: jti }),
  }
}

/**
 * The error codes that show a fault in the request itself or in the server, and for which the audit entry says `error`.
 * With any other code it says `denied`, as in the dispatcher.
 */
const ERRORS: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'unknown_tool',
  'invalid_argument',
  'bad_request',
  'unsupported_media_type',
  'payload_too_large',
  'request_timeout',
  'server_misconfigured',
  'internal',
])

/** Returns the error code that the client receives for any thrown value. */
export const codeOf = (thrown: unknown): ErrorCode => convertHttp(thrown).code
