import type { Writable } from 'node:stream'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { createApp, type AppBasis } from './app/create-app.js'
import { composeAuthenticated, type AuthenticatedService } from './composition/compose-authenticated.js'
import { composeService } from './composition/compose-service.js'
import { composeSetup } from './composition/compose-setup.js'
import accessTokensGate, { accessTokens, authMetadata, remoteBlockOf } from './plugins/auth/index.js'
import confirm from './plugins/confirm/index.js'
import context from './plugins/context/index.js'
import dispatcher from './plugins/dispatcher/index.js'
import inFlight, { type InFlightOptions } from './plugins/in-flight/index.js'
import mcp from './plugins/mcp/index.js'
import originGuard from './plugins/origin-guard/index.js'
import rateLimits, { type Limit } from './plugins/rate-limits/index.js'
import setup from './plugins/setup/index.js'
import type { Owner } from './schemas/caller.js'
import type { HttpConfig, InsecureHttpConfig, PerUserConfig, SharedConfig } from './schemas/config.js'
import { ToolError } from './schemas/errors.js'
import type { AnyTool } from './tools/define.js'

export interface AppDeps extends AppBasis {
  tools: readonly AnyTool[]
  /** Where audit entries go when no file is configured. */
  auditStream?: Writable
  /** Milliseconds since the epoch. */
  now?: () => number
}

/** How often one person may have the browser form try their PCE. */
const PCE_TRIES_PER_MINUTE = 10

/**
 * The HTTP service in the mode of its configuration. Rejects with StartupError for what the configuration promises and the machine
 * does not have.
 */
export function buildApp(config: HttpConfig, deps: AppDeps): Promise<FastifyInstance> {
  return config.mode === 'insecure' ? buildInsecure(config, deps) : buildAuthenticated(config, deps)
}

async function buildInsecure(config: InsecureHttpConfig, deps: AppDeps): Promise<FastifyInstance> {
  const service = composeService(config, deps)
  const { name, version } = service.server
  const app = await createApp(config, deps, [])
  await app.register(dispatcher, service.dispatcher)
  await app.register(async (open) => {
    await open.register(originGuard, config.http)
    await open.register(inFlight, { max: config.http.maxInFlight })
    await open.register(mcp, { info: { name, version }, tools: deps.tools, sessionOf: () => service.session })
    answerUnknownPaths(open)
  })
  return app
}

// The pipeline, in order: what stands in the secured scope answers to its guards, then to the login, then to the caller's limits; its
// context is made once the body has been read. What is public stands outside of it, so that no list of exempt paths has to be kept.
async function buildAuthenticated(config: PerUserConfig | SharedConfig, deps: AppDeps): Promise<FastifyInstance> {
  let app: FastifyInstance | null = null
  const service = await composeAuthenticated(config, { ...deps, listensAt: () => addressOf(app) })
  const { name, version } = service.server
  const { publicUrl } = config.http
  const { oauth, rates } = config
  const checkKeys = () => {
    if (app?.areKeysLoaded() !== true) throw new Error('the keys of the identity provider were not loaded yet')
  }
  app = await createApp(config, deps, [{ name: 'signing keys', run: checkKeys }, ...service.checks])
  app.addHook('onClose', () => service.close())
  await app.register(dispatcher, service.dispatcher)
  await app.register(rateLimits)
  await app.register(accessTokens, { oauth, publicUrl, ...rates, ...(deps.now && { now: deps.now }) })
  // One bound and one limit for everything that a caller does, by whichever route.
  const inAll = { max: config.http.maxInFlight, counts: new Map<string, number>() }
  const perCaller = { max: rates.inFlightPerCaller, keyOf: callerOf, counts: new Map<string, number>() }
  const charge = app.createLimit({ max: rates.perCaller, keyOf: callerOf })

  await app.register(async (open) => {
    await open.register(originGuard, config.http)
    await open.register(authMetadata, { oauth, publicUrl, name })
    if (config.mode === 'per_user') await open.register(setupScope, { config, service, inAll, perCaller, charge })
    answerUnknownPaths(open)
  })
  await app.register(async (secured) => {
    await secured.register(originGuard, config.http)
    await secured.register(inFlight, inAll)
    await secured.register(accessTokensGate)
    secured.addHook('onRequest', (request) => charge(request))
    await secured.register(inFlight, perCaller)
    await secured.register(context, { openSession: service.openSession })
    await secured.register(mcp, {
      info: { name, version },
      tools: deps.tools,
      sessionOf: ({ callSession }) => callSession!,
      charge,
    })
    await secured.register(async (confirming) => {
      const chargeMint = confirming.createLimit({ max: rates.confirmPerCaller, keyOf: callerOf })
      confirming.addHook('onRequest', (request) => chargeMint(request))
      await confirming.register(confirm, {
        confirmations: service.confirmations,
        tools: deps.tools,
        sessionOf: ({ callSession }) => callSession,
        checkCall: (tool, { callSession }) => service.checkCall(tool, callSession!),
        ownerOf: ({ identity }) => identity,
        audit: service.auditRoute,
        now: service.dispatcher.now,
      })
    })
  })
  return app
}

interface SetupScopeOptions {
  config: PerUserConfig
  service: AuthenticatedService
  inAll: InFlightOptions
  perCaller: InFlightOptions
  charge: Limit
}

/** The browser form. It brings a login of its own, so it stands outside of the secured scope, behind the same guards. */
async function setupScope(
  app: FastifyInstance,
  { config, service, inAll, perCaller, charge }: SetupScopeOptions,
): Promise<void> {
  await app.register(inFlight, inAll)
  await app.register(inFlight, { ...perCaller, hook: 'preParsing' })
  await app.register(setup, {
    ...composeSetup(config, service),
    authenticate: (request, reply) => app.authenticate(request, reply),
    verifyToken: (token, request) => app.verifyToken(token, request),
    challenge: () => app.challenge(),
    callTool: async (name, args, identity, request) => {
      // What a form has begun is finished; nobody can cancel it.
      const { signal } = new AbortController()
      const call = { name, arguments: args, route: '/setup', requestId: request.id, signal, progress: () => {} }
      const session = await service.openSession(identity, request.headers['user-agent'])
      const work = app.dispatcher.dispatch(call, session)
      request.heldPlaces?.keepUntil(work)
      return work
    },
    limitCaller: (request) => charge(request),
    limitPceTries: app.createLimit({
      max: PCE_TRIES_PER_MINUTE,
      keyOf: ({ setupVisit }) => keyOf(setupVisit!.identity),
    }),
  })
}

function answerUnknownPaths(app: FastifyInstance): void {
  app.setNotFoundHandler(() => {
    throw new ToolError('not_found', 'There is nothing at this path.')
  })
}

function addressOf(app: FastifyInstance | null): { address: string; port: number } | null {
  const address = app?.server.address() ?? null
  return typeof address === 'string' ? null : address
}

/** Whoever it is; of those whom a public page of /setup does not know, all of one network address are one. */
const callerOf = (request: FastifyRequest) =>
  keyOf(request.identity ?? request.setupVisit?.identity ?? nobodyAt(request))
const nobodyAt = (request: FastifyRequest): Owner => ({ iss: '', sub: remoteBlockOf(request) })
const keyOf = ({ iss, sub }: Owner) => JSON.stringify([iss, sub])
