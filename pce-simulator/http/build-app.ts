import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { requireRight } from '../access/authorize.js'
import { type FaultControl, injectFaults } from './inject-faults.js'
import { Refusal, invalidInput, methodNotAllowed, notFound } from '../refusal.js'
import type { World } from '../world.js'
import { addControlRoutes } from './control-routes.js'
import { authenticate } from './authenticate.js'
import { limitRate } from './limit-rate.js'
import { recordRequests, type RecordedRequest } from './record-requests.js'
import type { Action, Call, Verb } from './route.js'
import type { FindRoute } from './find-route.js'
import { sendAnswer, sendErrors } from './send-answer.js'

const BASE = '/api/v2'

const METHODS = ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'HEAD', 'OPTIONS'] as const

/** Maximum size of a request body in bytes: more than enough for a bulk call with 1,000 workloads. */
const BODY_LIMIT = 32 * 1024 * 1024

/**
 * Builds the HTTP server of the simulator. Every request is recorded and passes the injection of faults, authentication
 * and rate limits before it reaches a route of the PCE.
 */
export function buildApp(
  world: World,
  findRoute: FindRoute,
  requests: RecordedRequest[],
): { app: FastifyInstance; faults: FaultControl } {
  const tls = world.options.tls
  const app = Fastify({
    bodyLimit: BODY_LIMIT,
    forceCloseConnections: true,
    exposeHeadRoutes: false,
    routerOptions: { maxParamLength: 16_384 },
    ...(tls ? { https: { cert: tls.cert, key: tls.key } } : {}),
  }) as unknown as FastifyInstance

  readBodies(app)
  app.addHook('onRequest', (request, reply, done) => {
    void reply.header('x-request-id', readRequestId(request) ?? world.ids.uuid('request'))
    void reply.header('cache-control', 'no-store')
    done()
  })
  // Fastify adds a charset, but clients of the PCE expect the bare media type (P7).
  app.addHook('onSend', (_request, reply, payload, done) => {
    const type = reply.getHeader('content-type')
    if (typeof type === 'string') void reply.header('content-type', type.replace(/;\s*charset=utf-8$/i, ''))
    done(null, payload)
  })
  recordRequests(app, requests)
  const faults = injectFaults(app)
  authenticate(app, world)
  limitRate(app, world)

  addControlRoutes(app, faults, requests)
  // Fastify gets only one route. The routes of the PCE are in a table that `findRoute` searches. All simulators share
  // this table, which is built only once.
  app.route({ method: [...METHODS], url: `${BASE}/*`, handler: (request, reply) => answer(request, reply) })
  app.setNotFoundHandler((_request, reply) => sendErrors(reply, 404, notFound().errors))
  app.setErrorHandler((error, _request, reply) => sendError(error, reply))
  return { app, faults }

  function answer(request: FastifyRequest, reply: FastifyReply): FastifyReply {
    const found = findRoute(pathOf(request))
    if (found === null) throw notFound()
    // The route is found by its path alone, so that a known path without the requested method is answered with 405
    // rather than 404.
    const action = (found.route.verbs as Partial<Record<string, Action>>)[request.method]
    if (!action) throw methodNotAllowed()
    return run(world, action, found.params, request, reply)
  }
}

/** Returns the path of a request below `/api/v2`, without the query. */
const pathOf = (request: FastifyRequest) => request.target.pathname.slice(BASE.length)

function run(
  world: World,
  action: Action,
  params: Record<string, string>,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  if (request.caller) world.user = request.caller
  const url = request.target
  const call: Call = {
    world,
    verb: request.method as Verb,
    path: spellPath(url.pathname.slice(BASE.length)),
    params,
    query: url.searchParams,
    headers: request.headers,
    body: request.body,
    sourceIp: request.ip,
    fault: request.fault,
  }
  try {
    if (action.event && request.caller) requireRight(call, action.event)
    if ((call.verb === 'POST' || call.verb === 'PUT') && call.body === undefined && !action.emptyBody) {
      throw invalidInput(`No payload provided for ${call.verb} request`)
    }
    const answer = action.handle(call)
    if (action.event) world.events.recordWrite(action.event, call, answer)
    return sendAnswer(request, reply, answer)
  } catch (error) {
    if (action.event && error instanceof Refusal) world.events.recordFailedWrite(action.event, call, error)
    throw error
  }
}

/**
 * Encodes each segment of a path with `encodeURIComponent`, as hrefs are encoded, so that differently encoded forms of
 * a path mean the same object (P45).
 */
function spellPath(path: string): string {
  return path
    .split('/')
    .map((segment) => encodeURIComponent(decodeURIComponent(segment)))
    .join('/')
}

/**
 * Accepts JSON bodies, CSV bodies for the one route that takes CSV, and no other content type. The handler decides
 * whether the body may be missing (P5).
 */
function readBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'string' }, (request, text: string, done) => {
    if (text === '') return done(null, undefined)
    if (/^text\/csv\b/i.test(request.headers['content-type'] ?? '')) return done(null, text)
    if (!/^application\/json\b/i.test(request.headers['content-type'] ?? '')) {
      return done(new Refusal(400, [{ token: 'bad_request', message: 'Content-Type must be application/json' }]))
    }
    try {
      done(null, JSON.parse(text) as unknown)
    } catch {
      done(new Refusal(400, [{ token: 'bad_request', message: 'Malformed JSON in the request body' }]))
    }
  })
}

function sendError(error: unknown, reply: FastifyReply): FastifyReply {
  if (error instanceof Refusal) return sendErrors(reply, error.status, error.errors)
  const { statusCode, message } = error as { statusCode?: number; message: string }
  if (statusCode !== undefined && statusCode < 500) {
    return sendErrors(reply, 400, [{ token: 'bad_request', message }])
  }
  // An unexpected error is a bug in the simulator, so it is printed and appears in the output of the tests.
  console.error(error)
  return sendErrors(reply, 500, [{ token: 'internal_server_error', message }])
}

function readRequestId(request: FastifyRequest): string | null {
  const id = request.headers['x-request-id']
  return typeof id === 'string' && /^[\w.-]{1,128}$/.test(id) ? id : null
}
