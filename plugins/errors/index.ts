import { type OutgoingHttpHeaders, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { ErrorCode } from '../../schemas/errors.js'
import { convertHttp } from './convert.js'
import { renderHttpError } from './render-errors.js'
import { ERROR_TABLE } from './table.js'

/**
 * Sends an error in the plain HTTP format. If the operator must act on the error, it is also logged with the id of the
 * request.
 */
export function answerHttpError(thrown: FastifyError, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const error = convertHttp(thrown)
  const { status, retryAfter, body } = renderHttpError(error, request.id)
  if (ERROR_TABLE[error.code].level === 'error') request.log.error({ err: thrown, error: error.code }, 'request failed')
  if (retryAfter !== undefined) reply.header('retry-after', retryAfter)
  return reply.code(status).send(body)
}

/** The error handler of all routes that have no error handler of their own. */
export default fp(
  (app, _options, done) => {
    app.setErrorHandler(answerHttpError)
    done()
  },
  { name: 'errors', dependencies: ['request-id'] },
)

const CODES: Record<string, ErrorCode> = {
  HPE_HEADER_OVERFLOW: 'headers_too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
}

/**
 * The time, in milliseconds, for which a connection stays open after an unreadable request was refused, so that the
 * client can read the answer.
 */
const LINGER_MS = 1000

/**
 * Answers a client whose bytes Node's parser rejected, and ends the connection. If it were closed at once, the answer
 * could be lost. If it stayed open, a client that keeps sending could occupy it for ever.
 *
 * @param headers the headers of every answer of the server.
 */
export function refuseUnreadable(
  socket: Socket,
  parserCode: string | undefined,
  requestId: string,
  headers: OutgoingHttpHeaders,
): void {
  if (!socket.writable) return void socket.destroy()
  socket.end(answerClientError(parserCode, requestId, headers))
  setTimeout(() => socket.destroy(), LINGER_MS).unref()
}

/**
 * Builds the complete HTTP answer for a client whose request could not be parsed (RFC 9110: 400, 408 or 431). No hook
 * runs, because there is no request, so the headers are added here.
 */
function answerClientError(parserCode: string | undefined, requestId: string, headers: OutgoingHttpHeaders): string {
  const code = CODES[parserCode ?? ''] ?? 'bad_request'
  const { status, body } = renderHttpError({ code, message: ERROR_TABLE[code].message, details: {} }, requestId)
  const text = JSON.stringify(body)
  return [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(text)}`,
    `X-Request-Id: ${requestId}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${String(value)}`),
    'Connection: close',
    '',
    text,
  ].join('\r\n')
}
