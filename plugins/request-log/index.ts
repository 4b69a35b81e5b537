import { LogController, type FastifyReply, type FastifyRequest } from 'fastify'

/**
 * One line for every HTTP request, when it is over, in place of Fastify's two. The path goes without its query, where a client
 * may have put a token.
 */
export class RequestLog extends LogController {
  constructor() {
    super({ requestIdLogLabel: 'request_id' })
  }

  override incomingRequest(): void {}

  override requestCompleted(error: Error | null | undefined, request: FastifyRequest, reply: FastifyReply): void {
    const { method, url } = request.raw
    const facts = {
      method,
      path: url?.split('?', 1)[0],
      status: reply.statusCode,
      ms: Math.round(reply.elapsedTime * 1000) / 1000,
    }
    if (error) reply.log.warn({ ...facts, err: error }, 'request failed')
    else reply.log.info(facts, 'request')
  }
}
