import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { answerClientError } from './answer-client-error.js'
import { convertHttp } from './convert.js'
import { renderHttpError } from './render-http.js'
import { ERROR_TABLE } from './table.js'

export { answerClientError }

/** Answers an error in the plain HTTP shape and logs it under its request id, with its cause only where we did not expect it. */
export function answerHttpError(thrown: FastifyError, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const error = convertHttp(thrown)
  const { status, retryAfter, body } = renderHttpError(error, request.id)
  if (ERROR_TABLE[error.code].level === 'error') request.log.error({ err: thrown, error: error.code }, 'request failed')
  if (retryAfter !== undefined) reply.header('retry-after', retryAfter)
  return reply.code(status).send(body)
}

/** The error handler of every route that brings none of its own. */
export default fp(
  (app, _options, done) => {
    app.setErrorHandler(answerHttpError)
    done()
  },
  { name: 'errors', dependencies: ['request-id'] },
)
