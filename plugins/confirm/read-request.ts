import { Value } from '@sinclair/typebox/value'
import { ToolError } from '../../schemas/errors.js'
import { ConfirmRequest } from '../../schemas/http/confirm.js'

const SHAPES: Record<string, string> = {
  '/tool': 'must be the name of a tool',
  '/params_hash': 'must be 64 lowercase hex digits',
  '/challenge': 'must be 64 lowercase hex digits',
}

/**
 * The body of POST /confirm. Throws ToolError `bad_request` for what is no JSON, and `invalid_argument {problems}` for anything but
 * the two fields, and `challenge` where one was given.
 */
export function readRequest(body: Buffer): ConfirmRequest {
  const value = parse(body)
  if (Value.Check(ConfirmRequest, value)) return value
  const found = new Map<string, string>()
  for (const { path } of Value.Errors(ConfirmRequest, value)) {
    if (!found.has(path))
      found.set(path, SHAPES[path] ?? (path === '' ? 'must be an object' : 'is no field of this request'))
  }
  const problems = [...found].map(([path, message]) => ({ path: path.slice(0, 200), message })).slice(0, 10)
  const said = problems.map(({ path, message }) => `${path || 'the body'} ${message}`).join('; ')
  throw new ToolError('invalid_argument', `The body must be {tool, params_hash, challenge?}: ${said}.`, { problems })
}

function parse(body: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body))
  } catch {
    throw new ToolError('bad_request', 'The body is no JSON text.')
  }
}
