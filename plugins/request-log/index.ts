import { LogController, type FastifyReply, type FastifyRequest } from 'fastify'

const LONGEST_PATH = 200
/** Wherever a client has put an access token, its text does not reach the log. */
const TOKEN = /eyJ[\w-]*\.[\w-]+\.?[\w-]*/g

/** Without the query, where tokens, codes and states stand. */
const showPath = (url = '') => url.split('?', 1)[0]!.replace(TOKEN, '[token]').slice(0, LONGEST_PATH)

/** One line for every HTTP request, when it is over, in place of Fastify's two. */
export class RequestLog extends LogController {
  constructor() {
    super({ requestIdLogLabel: 'request_id' })
  }

  override incomingRequest(): void {}

  override requestCompleted(error: Error | null | undefined, request: FastifyRequest, reply: FastifyReply): void {
    const { method, url } = request.raw
    const facts = {
      method,
      path: showPath(url),
      status: reply.statusCode,
      ms: Math.round(reply.elapsedTime * 1000) / 1000,
    }
    if (error) reply.log.warn({ ...facts, err: error }, 'request failed')
    else reply.log.info(facts, 'request')
  }
}
