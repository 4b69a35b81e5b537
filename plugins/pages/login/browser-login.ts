import { createHash } from 'node:crypto'
import {
  authorizationCodeGrant,
  buildAuthorizationUrl,
  calculatePKCECodeChallenge,
  type Configuration,
  type IDToken,
  randomNonce,
  randomPKCECodeVerifier,
  randomState,
  type ResponseBodyError,
} from 'openid-client'
import { clipText } from '../../../domain/text/escape-text.js'
import { ToolError } from '../../../schemas/errors.js'
import { LOGIN_SECONDS, type PendingLogin } from './browser-session.js'
import {
  explainLoginFailure,
  type Fetch,
  discoverProvider,
  isAcceptedClient,
  isRefusedClient,
  type Provider,
} from './find-provider.js'
import type { HomePage, LoginOptions } from '../ports.js'

/** The conditions of a login, and the page to redirect to after it. */
export interface LoginWish {
  /** If true, the provider asks for the password even if the person is already logged in there. */
  isAnew: boolean
  /** The page to redirect to after the login. If it is absent, this is the server's home page (`HomePage`). */
  backTo?: string
  /**
   * The maximum age, in seconds, of a login at the provider. If the login is older, the provider asks for the password
   * again. Present for pages that require a recent login.
   */
  maxAgeSeconds?: number
}

export interface BrowserLogin {
  /**
   * Starts a login. Returns the URL to which the browser is sent, and the facts with which the provider's answer will
   * be compared.
   */
  start(wish: LoginWish): Promise<{ url: string; pending: PendingLogin }>
  /**
   * Finishes a login. `query` is the query with which the browser has returned. Resolves with the access token, and
   * with what the provider says about the person and the login.
   */
  finish(query: string, pending: PendingLogin): Promise<FinishedLogin>
}

interface FinishedLogin {
  token: string
  name?: string
  /** The time at which the provider last asked for the password (`auth_time`), in milliseconds since the epoch. */
  authenticatedAt?: number
}

/**
 * Creates the browser login, which uses the authorization code flow with PKCE, state and nonce (OpenID Connect Core,
 * 3.1; RFC 7636, 9207). `start` and `finish` reject with ToolError `login_unavailable` if the provider does not answer
 * properly. `finish` rejects with `login_failed` if the login does not succeed. The error gives the reason in this
 * server's own words.
 */
export function createBrowserLogin(
  options: LoginOptions & { issuer: string; publicUrl: string; home: HomePage; fetch: Fetch; now: () => number },
): BrowserLogin {
  const { publicUrl, home, now, audience } = options
  const provider = discoverProvider(options)
  const exchangeCode = createCodeExchange(now)
  const redirectUri = `${publicUrl}${home}/callback`
  const resource = resourceOf(options, publicUrl)
  // The hash of the issuer is short, because several logins must fit into one cookie.
  const at = createHash('sha256').update(options.issuer).digest('base64url').slice(0, 8)
  return {
    async start({ isAnew, backTo, maxAgeSeconds }) {
      const [configuration] = await provider()
      const [state, nonce, verifier] = [randomState(), randomNonce(), randomPKCECodeVerifier()]
      const url = buildAuthorizationUrl(configuration, {
        redirect_uri: redirectUri,
        scope: scopesOf(options.scope, configuration),
        ...resource,
        // Providers that predate RFC 8707 read the audience from `audience` instead of `resource`; other providers
        // ignore `audience`.
        audience,
        state,
        nonce,
        code_challenge: await calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
        ...(isAnew && { prompt: 'login' }),
        ...(maxAgeSeconds !== undefined && { max_age: String(maxAgeSeconds) }),
      })
      const until = now() + LOGIN_SECONDS * 1000
      const wish = {
        ...(isAnew && { isAnew }),
        ...(backTo !== undefined && { backTo }),
        ...(maxAgeSeconds !== undefined && { maxAgeSeconds }),
      }
      return { url: url.href, pending: { state, nonce, verifier, until, at, ...wish } }
    },
    async finish(query, { state, nonce, verifier, at: begunAt = at }) {
      // An authorization code of one provider must not be sent to another provider (RFC 9700, 4.4).
      if (begunAt !== at) throw otherProvider()
      const endpoints = await provider()
      const url = new URL(redirectUri)
      url.search = query
      const checks = { expectedState: state, expectedNonce: nonce, pkceCodeVerifier: verifier }
      try {
        const answer = await exchangeCode(endpoints, (one) => authorizationCodeGrant(one, url, checks, resource))
        const claims = answer.claims()
        const [name, authTime] = [readName(claims), claims?.auth_time]
        return {
          token: answer.access_token,
          ...(name !== undefined && { name }),
          ...(typeof authTime === 'number' && { authenticatedAt: authTime * 1000 }),
        }
      } catch (error) {
        throw explainLoginFailure(error)
      }
    },
  }
}

/**
 * The time, in milliseconds after the provider refused both ways of authentication, during which each code exchange
 * tries only one way.
 */
const ONE_WAY_MS = 60_000

/**
 * Creates the function that exchanges an authorization code for tokens. There may be two ways in which this server
 * authenticates as a client. If the provider refuses the first way, the exchange is repeated with the other way: a
 * provider authenticates the client before it looks at the code (RFC 6749, 4.1.3), so the code should still be valid.
 * If the provider accepts the client in the other way, even if it then refuses the code, later exchanges begin with
 * that way. If the other way fails for any other reason, the first refusal is thrown. After both ways were refused,
 * each exchange of the next minute tries only one of them, alternately, because a provider may count failures and lock
 * the client out.
 */
function createCodeExchange(now: () => number) {
  let first = 0
  let oneWayUntil = 0
  return async <Answer>(
    provider: Provider,
    exchange: (configuration: Configuration) => Promise<Answer>,
  ): Promise<Answer> => {
    const at = first % provider.length
    const other = (at + 1) % provider.length
    let refusal: ResponseBodyError
    try {
      return await exchange(provider[at]!)
    } catch (error) {
      if (other === at || !isRefusedClient(error)) throw error
      refusal = error
    }
    if (now() < oneWayUntil) {
      first = other
      throw refusal
    }
    try {
      const answer = await exchange(provider[other]!)
      first = other
      return answer
    } catch (error) {
      if (isAcceptedClient(error)) {
        first = other
        throw error
      }
      if (isRefusedClient(error)) oneWayUntil = now() + ONE_WAY_MS
      throw refusal
    }
  }
}

const otherProvider = () =>
  new ToolError(
    'login_failed',
    'The identity provider of this server has changed since this login was started.',
    {},
    { hint: 'Start again.' },
  )

/**
 * Returns the scopes of the login: `openid`, those that clients are told to request, and `profile` if the provider
 * announces it, because a provider may refuse a scope that it does not know (RFC 6749, 3.3). `offline_access` is left
 * out, because a login needs its token once and never renews it.
 */
function scopesOf(requested: string, provider: Configuration): string {
  const knowsNames = provider.serverMetadata().scopes_supported?.includes('profile') === true
  const scopes = new Set(['openid', ...(knowsNames ? ['profile'] : []), ...requested.split(' ')])
  scopes.delete('offline_access')
  return [...scopes].join(' ')
}

/** Maximum number of characters of a name in the session cookie. */
const LONGEST_NAME = 100

/** Returns the first of these claims that contains a name (OpenID Connect Core, 5.1). */
function readName(claims: IDToken | undefined): string | undefined {
  const names = [claims?.name, claims?.preferred_username, claims?.email]
  const found = names.find((name): name is string => typeof name === 'string' && name.trim() !== '')
  return found === undefined ? undefined : clipText(found.trim(), LONGEST_NAME)
}

/**
 * Returns the resource for which a token is requested (RFC 8707, 2). It must be an absolute URI, so it is the audience
 * or, if the audience is not a URI, this server's own address. If a scope is a URI and the audience is not, no resource
 * is sent, because Entra ID refuses a `resource` that differs from its scope.
 */
function resourceOf({ audience, scope }: LoginOptions, publicUrl: string): { resource?: string } {
  if (URL.canParse(audience) && !audience.includes('#')) return { resource: audience }
  return scope.split(' ').some((one) => URL.canParse(one)) ? {} : { resource: publicUrl }
}

/**
 * Maximum number of callbacks (returns from the identity provider) that are processed at the same time. Each callback
 * causes at most two requests to the identity provider and ends within seconds.
 */
const MOST_EXCHANGES = 16
/**
 * Maximum number of callbacks of one client that are processed at the same time, so that no client can prevent everyone
 * else's logins while the provider is slow.
 */
const MOST_PER_CLIENT = 4
/**
 * The value of `retry_after`, in seconds. It is the time after which a request to a provider that does not respond is
 * given up. A callback makes a second request only after an answer to the first.
 */
const RETRY_AFTER = 5

/** A function that runs one exchange with the identity provider. `client` is the network of the client's address. */
export type RunExchange = <Result>(client: string, exchange: () => Promise<Result>) => Promise<Result>

/**
 * Creates the function that runs exchanges with the identity provider. It limits the simultaneous exchanges for each
 * client and in total, because anyone can start many logins and return from all of them at the same moment. Beyond the
 * limits, it rejects with ToolError `overloaded {retry_after}` without starting the exchange.
 */
export function boundExchanges(): RunExchange {
  const clients: string[] = []
  return async (client, exchange) => {
    const own = clients.filter((one) => one === client).length
    if (clients.length >= MOST_EXCHANGES || own >= MOST_PER_CLIENT) throw tooMany()
    clients.push(client)
    try {
      return await exchange()
    } finally {
      clients.splice(clients.indexOf(client), 1)
    }
  }
}

const tooMany = () =>
  new ToolError(
    'overloaded',
    'Too many people are logging in right now.',
    { retry_after: RETRY_AFTER },
    { hint: 'Reload this page in a few seconds: your login is not lost.' },
  )
