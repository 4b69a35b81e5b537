import type { Writable } from 'node:stream'
import { fastify, type FastifyBaseLogger, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import type { AuthenticatedServer } from './composition/compose-authenticated.js'
import { composeUnauthenticated, LOCAL_ROLE } from './composition/compose-unauthenticated.js'
import { nameServer, type Observers } from './composition/observe.js'
import { createKnowledge } from '../knowledge/index.js'
import clientAddress from '../plugins/client-address/index.js'
import context, { readAllowed } from '../plugins/context/index.js'
import type { AdmissionOptions } from '../plugins/admission/index.js'
import dispatcher from '../plugins/dispatcher/index.js'
import errors, { answerHttpError, refuseUnreadable } from '../plugins/errors/index.js'
import health, { type HealthOptions } from '../plugins/health/index.js'
import inFlight, { type InFlightOptions } from '../plugins/in-flight/index.js'
import mcp, { type McpOptions } from '../plugins/mcp/index.js'
import metrics, { openMeter } from '../plugins/metrics/index.js'
import offer from '../plugins/offer/index.js'
import originGuard from '../plugins/origin-guard/index.js'
import type { Limit } from '../plugins/rate-limits/index.js'
import requestId, { REQUEST_ID_HEADER, requestIdOf, RequestLog } from '../plugins/request-id/index.js'
import securityHeaders from '../plugins/security-headers/index.js'
import type { SetupOptions } from '../plugins/pages/index.js'
import unreadBodies, { closeIfUnread } from '../plugins/unread-bodies/index.js'
import traceRequests, { openTracing } from '../plugins/tracing/index.js'
import type { PceClientOptions } from '../pce-client/index.js'
import type { Owner } from '../schemas/caller.js'
import type { HttpConfig, HttpListen, InsecureHttpConfig, PerUserConfig, SharedConfig } from '../schemas/config.js'
import { ToolError } from '../schemas/errors.js'
import type { Admissions } from '../schemas/state.js'
import type { ListedTool } from '../tools/listed-tool.js'

interface AppDeps extends AppBasis {
  tools: readonly ListedTool[]
  /** The module that worker threads load to run heavy tools. Without it, heavy tools run in the main thread. */
  worker?: URL
  /** The destination of audit entries if no audit file is configured. */
  auditStream?: Writable
  /** Returns milliseconds since the epoch. */
  now?: () => number
  timers?: McpOptions['timers']
  /** The source of time and waits of the PCE clients; tests replace it. */
  pceTimers?: PceClientOptions['timers']
}

/** Maximum number of times per minute that one person may test PCE credentials with the browser form. */
const PCE_TRIES_PER_MINUTE = 10

/**
 * Builds the HTTP server for the configured mode. Rejects with StartupError if the machine lacks something that the
 * configuration requires.
 */
export async function buildApp(config: HttpConfig, deps: AppDeps): Promise<FastifyInstance> {
  const observed = { ...deps, ...(await openObservers(config, deps.log)) }
  return config.mode === 'insecure' ? buildInsecure(config, observed) : buildAuthenticated(config, observed)
}

declare module 'fastify' {
  interface FastifyInstance {
    /**
     * The server that serves the metrics on a separate listener (see `metricsPlace`), closed together with the main
     * server. Null if metrics are off.
     */
    metricsServer: FastifyInstance | null
    /** Reads the file with the scopes of groups again; absent if no such file is configured. Never rejects. */
    reloadScopes?: (() => Promise<void>) | undefined
  }
}

/**
 * Returns the address on which metrics are served. The host is that of the server, or loopback if the server listens on
 * a Unix socket.
 */
export const metricsPlace = ({ http }: HttpConfig): HttpListen => {
  const { socket, ...listen } = http
  return { ...listen, port: http.metricsPort ?? 0, ...(socket !== undefined && { host: '127.0.0.1' }) }
}

async function openObservers(config: HttpConfig, log: FastifyBaseLogger): Promise<Watched> {
  const { name, version, replica } = nameServer(config)
  const tracing = config.tracing && (await openTracing({ name, version, replica, log, patienceMs: LAST_SPANS_MS }))
  if (config.http.metricsPort === undefined) return { tracing, metricsServer: null }
  const { meter, ...exposition } = await openMeter({ version, mode: config.mode })
  const place = metricsPlace(config)
  const metricsServer = await createServer(place, log)
  await metricsServer.register(originGuard, place)
  await metricsServer.register(metrics, exposition)
  answerUnknownPaths(metricsServer)
  return { tracing, meter, metricsServer }
}

type ObservedDeps = AppDeps & Watched

async function buildInsecure(config: InsecureHttpConfig, deps: ObservedDeps): Promise<FastifyInstance> {
  const composed = composeUnauthenticated(config, deps)
  const { name, version } = composed.server
  const app = await createApp(config, deps, [])
  app.addHook('onClose', () => composed.close())
  await app.register(dispatcher, composed.dispatcher)
  const inAll = placesFor(config)
  readFigures(deps.meter, inAll, composed)
  await app.register(async (open) => {
    await open.register(originGuard, config.http)
    await open.register(inFlight, inAll)
    await open.register(offer, composed.offers)
    await open.register(mcp, {
      info: { name, version },
      tools: deps.tools,
      knowledge: createKnowledge(composed.dispatcher),
      contextOf: (request) => ({
        ...composed.callerContext,
        offer: composed.offers.offerTo(LOCAL_ROLE, request.narrowedTo),
        clientAddress: addressOfClient(request),
      }),
      timers: deps.timers,
    })
    answerUnknownPaths(open)
  })
  return app
}

// Builds the server with authentication. A request to a secured route passes, in this order, the guards, the token
// check and the caller's limits; the caller's context is opened after the body has been read. Public routes are
// registered separately, so no list of exempt paths is needed.
async function buildAuthenticated(config: PerUserConfig | SharedConfig, deps: ObservedDeps): Promise<FastifyInstance> {
  // The parts that identify callers and keep state are loaded only here, because the unauthenticated mode starts
  // without them.
  const [{ composeAuthenticated }, auth, { default: rateLimits }, { default: admission }, { default: confirm }] =
    await Promise.all([
      import('./composition/compose-authenticated.js'),
      import('../plugins/auth/index.js'),
      import('../plugins/rate-limits/index.js'),
      import('../plugins/admission/index.js'),
      import('../plugins/confirm/index.js'),
    ])
  const { default: accessTokensGate, accessTokens, authMetadata } = auth
  let app: FastifyInstance | null = null
  const composed = await composeAuthenticated(config, { ...deps, listensAt: () => addressOf(app) })
  const { name, version } = composed.server
  const { publicUrl } = config.http
  const { oauth, rates } = config
  const checkKeys = () => {
    if (app?.areKeysLoaded() !== true) throw new Error('the keys of the identity provider have not been loaded yet')
  }
  const checks = [{ name: 'signing keys', run: checkKeys }, ...composed.checks]
  app = await createApp(config, deps, checks, composed.key?.problem)
  app.addHook('onClose', () => composed.close())
  app.decorate('reloadScopes', composed.reloadScopes)
  // The check of the shared PCE key runs in the background: it must neither delay nor prevent the start.
  app.addHook('onListen', () => void composed.key?.check())
  await app.register(dispatcher, composed.dispatcher)
  await app.register(rateLimits)
  const { meter, tracing, now } = deps
  await app.register(accessTokens, {
    oauth,
    publicUrl,
    ...rates,
    access: composed.access,
    ...(now && { now }),
    ...(meter && { meter }),
  })
  // These two limits, on the rate and on simultaneous requests, count all requests of a caller together, whatever the
  // route.
  const inAll = placesFor(config)
  readFigures(deps.meter, inAll, composed)
  const perCaller = { max: rates.inFlightPerCaller, keyOf: callerOf, counts: new Map<string, number>() }
  const chargeHere = app.createLimit({ max: rates.perCaller, keyOf: callerOf })
  const { admissions } = composed.state
  const charge = admissions ? overAll(admissions, 'requests', rates.perCaller, chargeHere) : chargeHere

  await app.register(async (open) => {
    await open.register(originGuard, config.http)
    await open.register(authMetadata, { oauth, publicUrl, name })
    if (config.mode === 'per_user' || composed.approvals !== undefined)
      await open.register(registerPages, { config, composed, inAll, perCaller, charge })
    answerUnknownPaths(open)
  })
  await app.register(async (secured) => {
    await secured.register(originGuard, config.http)
    await secured.register(inFlight, inAll)
    await secured.register(accessTokensGate, { ...(tracing && { tracing }), isAdmitted: admissions !== undefined })
    if (admissions) {
      const limits = { perMinute: rates.perCaller, atATime: rates.inFlightPerCaller }
      const requireAccess: AdmissionOptions['requireAccess'] = (request, reply, known) =>
        secured.requireAccess(request.identity!, request, reply, known)
      await secured.register(admission, { admissions, ...limits, ownerOf: knownCaller, chargeHere, requireAccess })
    } else {
      if (rates.perCaller > 0) secured.addHook('onRequest', (request) => charge(request))
      await secured.register(inFlight, perCaller)
    }
    await secured.register(offer, composed.offers)
    await secured.register(context, { openContext: composed.openContext })
    await secured.register(mcp, {
      info: { name, version },
      tools: composed.dispatcher.tools,
      knowledge: createKnowledge(composed.dispatcher),
      contextOf: ({ callerContext }) => callerContext!,
      ...(composed.approvals && {
        asking: {
          states: composed.confirmation.states,
          hash: composed.hashCall,
          watch: composed.approvals.watch,
        },
      }),
      charge,
      timers: deps.timers,
    })
    await secured.register(async (confirming) => {
      const mintHere = confirming.createLimit({ max: rates.confirmPerCaller, keyOf: callerOf })
      const chargeMint = admissions ? overAll(admissions, 'confirm', rates.confirmPerCaller, mintHere) : mintHere
      confirming.addHook('onRequest', (request) => chargeMint(request))
      await confirming.register(confirm, {
        tokens: composed.confirmation.tokens,
        tools: composed.dispatcher.tools,
        contextOf: ({ callerContext }) => callerContext,
        checkCall: (tool, { callerContext }) => composed.checkCall(tool, callerContext!),
        ownerOf: ({ identity }) => identity,
        audit: composed.auditRoute,
        now: composed.dispatcher.now,
      })
    })
  })
  return app
}

/**
 * Creates a rate limit for each caller that applies across all replicas. Requests of unknown callers are counted by
 * each replica on its own, so that they cannot put load on the database. While the database does not respond, requests
 * of known callers are counted in the same way.
 */
function overAll(admissions: Admissions, name: string, perMinute: number, here: Limit): Limit {
  return async (request, times = 1) => {
    const owner = knownCaller(request)
    if (owner === null) return here(request, times)
    try {
      await admissions.count(name, owner, perMinute, times)
    } catch (error) {
      if (error instanceof ToolError) throw error
      await here(request, times)
    }
  }
}

/** Creates the limit on simultaneous requests, which covers all routes together, and the counter for it. */
const placesFor = ({ http: { maxInFlight } }: HttpConfig) => ({ max: maxInFlight, counts: new Map<string, number>() })

/** Registers the gauges. Their values are read each time the metrics are collected. */
function readFigures(
  meter: Observers['meter'],
  { counts }: ReturnType<typeof placesFor>,
  {
    heavyFigures,
    state,
    notifier,
  }: Pick<AuthenticatedServer, 'heavyFigures'> & Partial<Pick<AuthenticatedServer, 'state' | 'notifier'>>,
): void {
  meter?.readFrom(() => {
    const { running, waiting } = heavyFigures()
    const pool = state?.pool?.()
    return {
      requestsInFlight: counts.get('') ?? 0,
      heavyRunning: running,
      heavyWaiting: waiting,
      ...(notifier && { notificationsWaiting: notifier.waiting() }),
      ...(pool && { pool }),
    }
  })
}

interface PagesRouteOptions {
  config: PerUserConfig | SharedConfig
  composed: AuthenticatedServer
  inAll: InFlightOptions
  perCaller: InFlightOptions
  charge: Limit
}

/**
 * Registers the pages for people. They have their own login, so they are not among the routes that require an access
 * token; the same guards protect them.
 */
async function registerPages(
  app: FastifyInstance,
  { config, composed, inAll, perCaller, charge }: PagesRouteOptions,
): Promise<void> {
  const [{ default: admission }, { default: pages, deriveSessionKey }] = await Promise.all([
    import('../plugins/admission/index.js'),
    import('../plugins/pages/index.js'),
  ])
  const { mode, oauth, login } = config
  const { desk } = composed.approvals ?? {}
  const { admissions } = composed.state
  await app.register(inFlight, inAll)
  await app.register(inFlight, { ...perCaller, hook: 'preParsing' })
  // The pages themselves count requests towards the rate limit, because only some of these requests are expensive.
  // Here, only the limit on simultaneous requests is applied.
  if (admissions)
    await app.register(admission, {
      admissions,
      perMinute: 0,
      atATime: perCaller.max,
      ownerOf: knownCaller,
      isCounted: false,
      hook: 'preParsing',
      chargeHere: () => Promise.resolve(),
    })
  await app.register(pages, {
    mode,
    publicUrl: config.http.publicUrl,
    home: mode === 'per_user' ? '/setup' : '/approve',
    issuer: oauth.issuer,
    sessionKey: deriveSessionKey(
      mode === 'per_user' ? config.keystore.kek : config.confirm.hmacKey,
      config.http.publicUrl,
    ),
    ...(login && { login: { ...login, scope: oauth.requestedScope ?? oauth.requiredScope, audience: oauth.audience } }),
    groupsOfRole: config.roles.groups,
    roleOf: composed.roleOf,
    isRevoked: (identity) => composed.access.isRevoked(identity),
    audit: composed.auditRoute,
    usedTokens: composed.state.usedTokens,
    checkState: () => composed.state.checkWritable(),
    now: composed.dispatcher.now,
    verifyToken: (token, request) => app.verifyToken(token, request),
    challenge: () => app.challenge(),
    limitCaller: (request) => charge(request),
    ...(mode === 'per_user' && { setup: setupOptions(app, config, composed) }),
    ...(desk && { approve: { desk, maxAgeSeconds: config.confirm.approval?.maxAgeSeconds ?? 0 } }),
  })
}

/** Assembles the options of the form with which users register their PCE key. */
function setupOptions(
  app: FastifyInstance,
  config: PerUserConfig,
  composed: AuthenticatedServer,
): SetupOptions<FastifyRequest, FastifyReply> {
  const { admissions } = composed.state
  const triesHere = app.createLimit({
    max: PCE_TRIES_PER_MINUTE,
    keyOf: ({ visit }) => keyOf(visit!.identity),
  })
  return {
    offeredPces: readAllowed(config.userPce.allowedHosts),
    allowInsecureTls: config.userPce.allowInsecureTls,
    authenticate: async (request, reply) => app.requireAccess(await app.authenticate(request, reply), request, reply),
    callTool: async (name, args, identity, request) => {
      // This signal never aborts: a tool call that a form has started is always completed.
      const { signal } = new AbortController()
      const call = {
        name,
        arguments: args,
        route: '/setup',
        requestId: request.id,
        sender: { signal },
        progress: () => {},
      }
      const callerContext = await composed.openContext(identity, {
        client: request.headers['user-agent'],
        clientAddress: addressOfClient(request),
      })
      // The operator's choice of tools restricts assistants, but not a person who uses the form: the person can
      // register a PCE key even if the tools on offer may write nothing.
      const work = app.dispatcher.dispatch(call, { ...callerContext, offer: undefined })
      request.heldPlaces?.keepUntil(work)
      return work
    },
    limitPceTries: admissions ? overAll(admissions, 'pce tries', PCE_TRIES_PER_MINUTE, triesHere) : triesHere,
  }
}

const addressOfClient = ({ clientAddress }: FastifyRequest) => clientAddress ?? undefined

function answerUnknownPaths(app: FastifyInstance): void {
  app.setNotFoundHandler(() => {
    throw new ToolError('not_found', 'There is nothing at this path.')
  })
}

function addressOf(app: FastifyInstance | null): { address: string; port: number } | null {
  const address = app?.server.address() ?? null
  return typeof address === 'string' ? null : address
}

/** Returns the identity with which a request was authenticated, by access token or by browser session. */
const identityOf = ({ identity, visit }: FastifyRequest): Owner | undefined => identity ?? visit?.identity

/** Returns the caller of a request as the owner of keystore records; null if the caller is unknown. */
function knownCaller(request: FastifyRequest): Owner | null {
  const known = identityOf(request)
  return known === undefined ? null : { iss: known.iss, sub: known.sub }
}

/**
 * Caches, for each identity, the key by which its requests are counted. A WeakMap works, because all requests with the
 * same cached access token share one identity object.
 */
const callerKeys = new WeakMap<Owner, string>()

/**
 * Returns the key of the caller towards whose limits a request counts. Unknown visitors of a public page are counted by
 * network address.
 */
function callerOf(request: FastifyRequest): string {
  const identity = identityOf(request)
  if (identity === undefined) return keyOf(nobodyAt(request))
  let key = callerKeys.get(identity)
  if (key === undefined) callerKeys.set(identity, (key = keyOf(identity)))
  return key
}

const nobodyAt = ({ clientNetwork }: FastifyRequest): Owner => ({ iss: '', sub: clientNetwork })
const keyOf = ({ iss, sub }: Owner) => JSON.stringify([iss, sub])

/**
 * Time limits, in milliseconds, that prevent a client from holding a connection by sending its headers or body slowly.
 */
/**
 * The settings of a Fastify server whose routes have no schemas. Fastify would otherwise load a compiler of validators
 * and one of serializers, 150 modules together, at every start. The answers of the few routes are checked by their types,
 * and the arguments of tools by the dispatcher.
 */
const WITHOUT_COMPILERS = {
  schemaController: { compilersFactory: { buildValidator: refuseSchema, buildSerializer: refuseSchema } },
}

function refuseSchema(): never {
  throw new Error('a route has a schema, for which this server has no compiler')
}

const TIMEOUTS = { headers: 10_000, request: 30_000, keepAlive: 75_000, silence: 120_000, checkEvery: 5_000 }
/** Maximum time, in milliseconds, for which the shutdown waits until the last spans are sent. */
const LAST_SPANS_MS = 1000
const MOST_CONNECTIONS = 2000
const MOST_REQUESTS_PER_CONNECTION = 1000
/**
 * The maximum size of all headers together, in bytes. An access token with about two hundred groups needs this size.
 */
const LARGEST_HEADERS = 32 * 1024

interface Watched extends Observers {
  metricsServer: FastifyInstance | null
}

interface AppBasis {
  log: FastifyBaseLogger
  /** Returns true when the process is stopping. */
  isDraining?: () => boolean
}

/** Creates the parts that all modes have: the listener that receives requests, and the public routes. */
async function createApp(
  { http }: HttpConfig,
  { log, isDraining = () => false, tracing, meter, metricsServer }: AppBasis & Watched,
  checks: HealthOptions['checks'],
  findKeyProblem?: HealthOptions['findKeyProblem'],
): Promise<FastifyInstance> {
  const app = await createServer(http, log, isDraining)
  app.decorate('metricsServer', metricsServer)
  // `onClose` hooks run in the reverse order of their registration. Metrics are registered first, so they stay
  // available until the last call has ended.
  app.addHook('onClose', () => metricsServer?.close())
  if (tracing !== undefined) {
    app.addHook('onClose', () => tracing.close())
    await app.register(traceRequests, { tracing })
  }
  await app.register(health, {
    isDraining,
    checks,
    ...(findKeyProblem && { findKeyProblem }),
    ...(meter && { meter }),
  })
  return app
}

/**
 * Creates a listener that limits slow and broken clients. A request that never reaches a route still gets an error in
 * this server's own format.
 */
async function createServer(
  http: HttpListen,
  log: FastifyBaseLogger,
  isDraining: () => boolean = () => false,
): Promise<FastifyInstance> {
  const app = fastify({
    ...WITHOUT_COMPILERS,
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
      // A missing Host header is refused by the origin guard instead of Node.js, whose own refusal would have no
      // request id.
      requireHostHeader: false,
    },
    // When the process must stop, running requests are completed instead of being answered with status 503.
    return503OnClosing: false,
    frameworkErrors(error, request, reply) {
      reply.headers(app.securityHeaders).header(REQUEST_ID_HEADER, request.id)
      // No hook runs for a request that Fastify refuses before routing, such as one with a malformed URL.
      closeIfUnread(request, reply, () => void answerHttpError(error, request, reply))
    },
    clientErrorHandler(error: NodeJS.ErrnoException, socket) {
      refuseUnreadable(socket, error.code, requestIdOf(), app.securityHeaders)
    },
  })
  app.server.maxConnections = MOST_CONNECTIONS
  // An unknown Expect header is ignored, which is allowed (RFC 9110, 10.1.1). Node's own 417 would have no request id.
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response))
  // A client that waits for `100 Continue` gets it only when its body is wanted. If a request is refused because of its
  // headers, the client does not send the body at all.
  app.server.on('checkContinue', (request, response) => {
    request.once('resume', () => {
      if (!response.headersSent) response.writeContinue()
    })
    app.server.emit('request', request, response)
  })

  await app.register(unreadBodies)
  let isClosing = false
  app.addHook('preClose', (done) => {
    isClosing = true
    done()
  })
  app.addHook('onSend', (_request, reply, payload, done) => {
    // `connection: close` makes clients that keep connections open, above all proxies, send their next request to
    // another process.
    if (isClosing || isDraining()) reply.header('connection', 'close')
    done(null, payload)
  })
  await app.register(requestId)
  await app.register(clientAddress, http)
  await app.register(securityHeaders, {
    isPublicHttps: http.publicUrl?.startsWith('https:') ?? false,
    probe: WITHOUT_COMPILERS,
  })
  await app.register(errors)
  return app
}
