import type { Writable } from 'node:stream'
import { fastify, type FastifyBaseLogger, type FastifyInstance } from 'fastify'
import { composeService } from './composition/compose-service.js'
import dispatcher from './plugins/dispatcher/index.js'
import errors, { answerClientError, answerHttpError } from './plugins/errors/index.js'
import health from './plugins/health/index.js'
import inFlight from './plugins/in-flight/index.js'
import mcp from './plugins/mcp/index.js'
import originGuard from './plugins/origin-guard/index.js'
import requestId, { REQUEST_ID_HEADER, requestIdOf } from './plugins/request-id/index.js'
import { RequestLog } from './plugins/request-log/index.js'
import securityHeaders from './plugins/security-headers/index.js'
import type { InsecureHttpConfig } from './schemas/config.js'
import { ToolError } from './schemas/errors.js'
import type { AnyTool } from './tools/define.js'

export interface AppDeps {
  tools: readonly AnyTool[]
  log: FastifyBaseLogger
  /** Where audit entries go when no file is configured. */
  auditStream?: Writable
  /** True once the process has been told to stop. */
  isDraining?: () => boolean
  /** Milliseconds since the epoch. */
  now?: () => number
}

/** A headers phase or body that crawls must not hold a connection: milliseconds. */
const TIMEOUTS = { headers: 10_000, request: 30_000, keepAlive: 75_000, silence: 120_000, checkEvery: 5_000 }
const MOST_CONNECTIONS = 2000

/** The HTTP service without authentication. Throws StartupError for what the configuration promises and the machine does not have. */
export async function buildApp(config: InsecureHttpConfig, deps: AppDeps): Promise<FastifyInstance> {
  const service = composeService(config, deps)
  const { name, version } = service.server
  const app = fastify({
    loggerInstance: deps.log,
    logController: new RequestLog(),
    genReqId: requestIdOf,
    connectionTimeout: TIMEOUTS.silence,
    requestTimeout: TIMEOUTS.request,
    keepAliveTimeout: TIMEOUTS.keepAlive,
    http: {
      headersTimeout: TIMEOUTS.headers,
      connectionsCheckingInterval: TIMEOUTS.checkEvery,
      // Node's own refusal would carry no request id; the guard has one.
      requireHostHeader: false,
    },
    // What is under way when the process must stop is finished, not refused.
    return503OnClosing: false,
    frameworkErrors(error, request, reply) {
      void answerHttpError(error, request, reply.headers(app.securityHeaders).header(REQUEST_ID_HEADER, request.id))
    },
    clientErrorHandler(error: NodeJS.ErrnoException, socket) {
      if (socket.writable) socket.end(answerClientError(error.code, requestIdOf()))
      else socket.destroy()
    },
  })
  app.server.maxConnections = MOST_CONNECTIONS
  // An expectation nobody knows may be ignored (RFC 9110, 10.1.1); Node's own 417 would carry no request id either.
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response))

  // The pipeline, in order: what stands in the secured scope answers to its guards, and in the authenticated modes to their login
  // and context, which follow the guards; health stands outside of it, so that no list of exempt paths has to be kept.
  await app.register(requestId)
  await app.register(securityHeaders, { isPublicHttps: config.http.publicUrl?.startsWith('https:') ?? false })
  await app.register(errors)
  await app.register(health, { isDraining: deps.isDraining ?? (() => false) })
  await app.register(dispatcher, service.dispatcher)
  await app.register(async (secured) => {
    await secured.register(originGuard, config.http)
    await secured.register(inFlight, { max: config.http.maxInFlight })
    await secured.register(mcp, { info: { name, version }, tools: deps.tools, sessionOf: () => service.session })
    secured.setNotFoundHandler(() => {
      throw new ToolError('not_found', 'There is nothing at this path.')
    })
  })
  return app
}
