import { fastify, type FastifyBaseLogger, type FastifyInstance } from 'fastify'
import errors, { answerClientError, answerHttpError } from '../plugins/errors/index.js'
import health, { type HealthOptions } from '../plugins/health/index.js'
import requestId, { REQUEST_ID_HEADER, requestIdOf } from '../plugins/request-id/index.js'
import { RequestLog } from '../plugins/request-log/index.js'
import securityHeaders from '../plugins/security-headers/index.js'
import type { HttpConfig } from '../schemas/config.js'

/** A headers phase or body that crawls must not hold a connection: milliseconds. */
const TIMEOUTS = { headers: 10_000, request: 30_000, keepAlive: 75_000, silence: 120_000, checkEvery: 5_000 }
const MOST_CONNECTIONS = 2000
const MOST_REQUESTS_PER_CONNECTION = 1000
/** All headers together: access tokens with some two hundred groups are that long. */
const LARGEST_HEADERS = 32 * 1024
/** A body that is too large is read to its end, and dropped, when it says that it is no longer than this. */
const MOST_DROPPED = 4 * 1024 * 1024

export interface AppBasis {
  log: FastifyBaseLogger
  /** True once the process has been told to stop. */
  isDraining?: () => boolean
}

/** Everything that all modes share: how requests are taken in, and what is public in each of them. */
export async function createApp(
  { http }: HttpConfig,
  { log, isDraining = () => false }: AppBasis,
  checks: HealthOptions['checks'],
): Promise<FastifyInstance> {
  const app = fastify({
    loggerInstance: log,
    logController: new RequestLog(),
    genReqId: requestIdOf,
    connectionTimeout: TIMEOUTS.silence,
    requestTimeout: TIMEOUTS.request,
    keepAliveTimeout: TIMEOUTS.keepAlive,
    maxRequestsPerSocket: MOST_REQUESTS_PER_CONNECTION,
    http: {
      headersTimeout: TIMEOUTS.headers,
      connectionsCheckingInterval: TIMEOUTS.checkEvery,
      maxHeaderSize: LARGEST_HEADERS,
      // Node's own refusal would carry no request id; the guard has one.
      requireHostHeader: false,
    },
    // What is under way when the process must stop is finished, not refused.
    return503OnClosing: false,
    frameworkErrors(error, request, reply) {
      void answerHttpError(error, request, reply.headers(app.securityHeaders).header(REQUEST_ID_HEADER, request.id))
    },
    clientErrorHandler(error: NodeJS.ErrnoException, socket) {
      if (socket.writable) socket.end(answerClientError(error.code, requestIdOf(), app.securityHeaders))
      else socket.destroy()
    },
  })
  app.server.maxConnections = MOST_CONNECTIONS
  // An expectation nobody knows may be ignored (RFC 9110, 10.1.1); Node's own 417 would carry no request id either.
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response))

  app.addHook('onSend', (request, reply, payload, done) => {
    // Whoever keeps connections open, a proxy above all, sends its next request to another process.
    if (isDraining()) reply.header('connection', 'close')
    // Where the connection were closed on the rest of a refused body, a proxy that still sends would lose the answer.
    else if (reply.statusCode === 413 && Number(request.headers['content-length']) <= MOST_DROPPED)
      reply.removeHeader('connection')
    done(null, payload)
  })
  await app.register(requestId)
  await app.register(securityHeaders, { isPublicHttps: http.publicUrl?.startsWith('https:') ?? false })
  await app.register(errors)
  await app.register(health, { isDraining, checks })
  return app
}
