import type { FastifyInstance, FastifyReply, FastifyRequest, HTTPMethods } from 'fastify'
import fp from 'fastify-plugin'
import { ACCESS_REVOKED, type AccessCheck } from '../../schemas/access.js'
import type { Identity } from '../../schemas/caller.js'
import { inWords, type OAuthConfig } from '../../schemas/config.js'
import { ToolError } from '../../schemas/errors.js'
import type { Meter } from '../../schemas/metrics.js'
import type { Revocation } from '../../schemas/state.js'
import { inStage, type Tracing } from '../../schemas/tracing.js'
import {
  describeResource,
  discoveryUrl,
  explainRefusal,
  METADATA_PATH,
  metadataUrl,
  renderChallenge,
} from './challenge.js'
import { authorizationsOf, InvalidTokenError, readBearer } from './read-token.js'
import { createSigningKeys, type Schedule } from './signing-keys.js'
import { createTokenVerifier } from './verify-token.js'

export interface AccessTokensOptions {
  oauth: OAuthConfig
  publicUrl: string
  /**
   * Maximum number of refused tokens per minute from one address; 0 means no limit. If more tokens are refused, the
   * answer is 429 instead of 401.
   */
  refusedTokensPerAddress: number
  /** Returns milliseconds since the epoch. */
  now?: () => number
  schedule?: Schedule
  meter?: Meter
  /** The checks of revoked access; absent if nobody's access can be revoked. */
  access?: Pick<AccessCheck, 'isRevoked' | 'isRevokedOnArrival'>
}

export interface AuthMetadataOptions {
  oauth: OAuthConfig
  publicUrl: string
  /** The name of this server (`resource_name` in the metadata), which people see when they are asked for consent. */
  name: string
}

declare module 'fastify' {
  interface FastifyInstance {
    /**
     * Verifies an access token, wherever it comes from, and resolves with its identity. Rejects with ToolError
     * `unauthorized {reason}`, also if the identity's access was revoked, or `keys_unavailable`. Every refusal is
     * logged with the id of the request.
     */
    verifyToken(token: string, request: FastifyRequest): Promise<Identity>
    /**
     * Returns the token in the Authorization header, or null if the header contains no Bearer token. Throws ToolError
     * `unauthorized {reason}`.
     */
    readBearer(request: FastifyRequest): string | null
    /**
     * Identifies the sender of a request by the access token in its Authorization header. The result is not a promise
     * if the token was verified a moment ago. The promise rejects with the errors of `verifyToken`, after setting
     * WWW-Authenticate on the reply, or with `rate_limited` if too many tokens from this address have been refused.
     * Never throws synchronously.
     */
    authenticate(request: FastifyRequest, reply: FastifyReply): Identity | Promise<Identity>
    /**
     * Refuses an identity whose access was revoked, with the same errors as `authenticate`. `known` is the revocation,
     * if it was already read. If the store can be read at once and the access was not revoked, the result is not a
     * promise.
     */
    requireAccess(
      identity: Identity,
      request: FastifyRequest,
      reply: FastifyReply,
      known?: Revocation | null,
    ): Identity | Promise<Identity>
    /** Returns the value of the header WWW-Authenticate for a request that has no access token. */
    challenge(): string
    /** Returns true if this server has loaded keys with which it can verify tokens. The readiness check calls this. */
    areKeysLoaded(): boolean
  }
  interface FastifyRequest {
    /**
     * The identity of the sender; null until the token has been verified, and on routes that do not authenticate
     * callers.
     */
    identity: Identity | null
  }
}

const REMEDY_OF_KEYS =
  'Check MCP_OAUTH_JWKS_URL, and whether this machine can reach it; for a private CA set NODE_EXTRA_CA_CERTS. Without keys no token can be checked.'

/** Returns why a call of `fetch` failed. The reason is in the `cause` of the error. */
function whyNot(error: unknown): string {
  const { message, cause } = error as Error
  return (cause as { code?: unknown } | undefined)?.code === undefined ? message : inWords(cause)
}

/**
 * Adds to the app the functions that verify access tokens. The identity provider's keys are loaded once the app is
 * ready; if that fails, the app starts nevertheless. This plugin itself refuses no request.
 */
export const accessTokens = fp<AccessTokensOptions>(
  (app, options, done) => {
    const { oauth, publicUrl, refusedTokensPerAddress, now = Date.now, schedule = unreferencedTimer, meter } = options
    const { isRevoked, isRevokedOnArrival } = options.access ?? NOBODY_IS_REVOKED
    const keys = createSigningKeys({
      url: oauth.jwksUrl,
      fetch: (...request) => fetch(...request),
      now,
      schedule,
      changed: (count) => app.log.info({ keys: count }, 'signing keys of the identity provider loaded'),
      ...(meter && { fetched: meter.keysFetched }),
      failed: (err, age_seconds) =>
        app.log.warn(
          { err, age_seconds, remedy: REMEDY_OF_KEYS },
          `signing keys of the identity provider cannot be loaded: ${whyNot(err)}`,
        ),
    })
    const verifier = createTokenVerifier({ oauth, keys, now })
    const terms = { metadataUrl: metadataUrl(publicUrl), scope: oauth.requestedScope ?? oauth.requiredScope }
    const countRefusal = app.createLimit({
      max: refusedTokensPerAddress,
      keyOf: ({ clientNetwork }) => clientNetwork,
    })

    /**
     * Logs the refusal of an access token (S12) and returns the error for the client. A missing token is logged only at
     * level info, because every client starts without a token.
     */
    function refusalOf(error: unknown, request: FastifyRequest): unknown {
      if (!(error instanceof InvalidTokenError)) return error
      meter?.tokenRefused(error.reason)
      const level = error.error === null ? 'info' : 'warn'
      request.log[level]({ client_address: request.clientAddress }, `${error.name}: ${error.reason}`)
      return explainRefusal(error)
    }

    app.decorateRequest('identity', null)
    app.decorate('challenge', () => renderChallenge(terms))
    app.decorate('areKeysLoaded', () => keys.isLoaded())
    app.decorate('readBearer', (request) => {
      try {
        return readBearer(authorizationsOf(request.raw.rawHeaders))
      } catch (error) {
        throw refusalOf(error, request)
      }
    })
    app.decorate('verifyToken', async (token, request) => {
      try {
        const identity = await verifier.verify(token)
        if (await isRevoked(identity)) throw revoked()
        return identity
      } catch (error) {
        throw refusalOf(error, request)
      }
    })
    app.decorate('requireAccess', (identity, request, reply, known) => {
      const found = isRevokedOnArrival(identity, known)
      const settle = (isOver: boolean) => (isOver ? refuse(revoked(), request, reply) : identity)
      return found instanceof Promise ? found.then(settle) : settle(found)
    })

    async function refuse(error: unknown, request: FastifyRequest, reply: FastifyReply): Promise<never> {
      const refusal = refusalOf(error, request)
      if (error instanceof InvalidTokenError) {
        reply.header('www-authenticate', renderChallenge(terms, error))
        // A token that has merely expired does not count towards the limit on refused tokens: all clients behind a
        // proxy may share one address, and they must still be able to renew their tokens.
        if (error.error !== null && !error.isGenuine) await countRefusal(request)
      }
      throw refusal
    }

    app.decorate('authenticate', (request, reply) => {
      try {
        const token = readBearer(authorizationsOf(request.raw.rawHeaders))
        if (token === null) throw new InvalidTokenError('no token', null)
        const identity = verifier.verify(token)
        return identity instanceof Promise ? identity.catch((error) => refuse(error, request, reply)) : identity
      } catch (error) {
        return refuse(error, request, reply)
      }
    })
    app.addHook('onReady', (ready) => {
      void keys.load()
      ready()
    })
    app.addHook('onClose', (_app, closed) => {
      keys.close()
      closed()
    })
    done()
  },
  { name: 'access-tokens', dependencies: ['errors', 'rate-limits', 'client-address'] },
)

const NOBODY_IS_REVOKED = { isRevoked: () => false, isRevokedOnArrival: () => false }

/**
 * Creates the refusal of a token whose owner's access was revoked. It does not count towards the limit on refused
 * tokens, which is meant for guessed tokens.
 */
const revoked = () => Object.assign(new InvalidTokenError(ACCESS_REVOKED), { isGenuine: true })

/**
 * Requires an access token on the routes that are registered beside this plugin, and sets `request.identity`. A request
 * without a valid token is refused before its body is read. So is a request of a person whose access was revoked,
 * unless `isAdmitted` says that the admission plugin checks this.
 */
export default fp<{ tracing?: Tracing; isAdmitted?: boolean }>(
  (app, { tracing, isAdmitted = false }, done) => {
    const identify = (request: FastifyRequest, reply: FastifyReply) => {
      const identity = app.authenticate(request, reply)
      if (isAdmitted) return identity
      if (identity instanceof Promise) return identity.then((known) => app.requireAccess(known, request, reply))
      return app.requireAccess(identity, request, reply)
    }
    app.addHook('onRequest', (request, reply, next) => {
      const identity = inStage(tracing, 'auth', () => identify(request, reply))
      if (identity instanceof Promise) return identity.then((known) => void (request.identity = known))
      // If the identity is already known, the hook returns no promise. While a hook waits, the stream must buffer the
      // arriving body, which is expensive (D211).
      request.identity = identity
      next()
      return undefined
    })
    done()
  },
  { name: 'auth', dependencies: ['access-tokens'] },
)

/** Serves the public documents that tell a client where to get a token. They can be read without a token. */
export function authMetadata(app: FastifyInstance, options: AuthMetadataOptions, done: () => void): void {
  const resource = describeResource(options.publicUrl, options.oauth, options.name)
  const elsewhere = discoveryUrl(options.oauth)
  for (const url of [METADATA_PATH, `${METADATA_PATH}/mcp`, `${METADATA_PATH}/mcp/`]) {
    app.get(url, (_request, reply) => reply.header('cache-control', CACHEABLE).send(resource))
    refuseOtherMethods(app, url)
  }
  // Clients of the MCP revision of March 2025 request the authorization server's metadata from this server. They are
  // redirected to the authorization server.
  app.get(AUTHORIZATION_SERVER_PATH, (_request, reply) =>
    reply.header('cache-control', CACHEABLE).redirect(elsewhere, 302),
  )
  refuseOtherMethods(app, AUTHORIZATION_SERVER_PATH)
  done()
}

const AUTHORIZATION_SERVER_PATH = '/.well-known/oauth-authorization-server'
const CACHEABLE = 'public, max-age=300'
const OTHER_METHODS: HTTPMethods[] = ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

function refuseOtherMethods(app: FastifyInstance, url: string): void {
  app.route({
    method: OTHER_METHODS,
    url,
    onRequest(_request, reply) {
      reply.header('allow', 'GET, HEAD')
      throw new ToolError('method_not_allowed', 'This document is read-only.')
    },
    handler: (_request, reply) => reply,
  })
}

/** Starts a timer that does not keep the process alive, and returns a function that stops it. */
function unreferencedTimer(fn: () => void, ms: number): () => void {
  const timer = setTimeout(fn, ms).unref()
  return () => clearTimeout(timer)
}
