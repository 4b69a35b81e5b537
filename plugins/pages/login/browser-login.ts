import {
  authorizationCodeGrant,
  buildAuthorizationUrl,
  calculatePKCECodeChallenge,
  type Configuration,
  type IDToken,
  randomNonce,
  randomPKCECodeVerifier,
  randomState,
} from 'openid-client'
import { clipText } from '../../../domain/text/escape-text.js'
import { ToolError } from '../../../schemas/errors.js'
import { LOGIN_SECONDS, type PendingLogin } from './browser-session.js'
import { explainLoginFailure, type Fetch, discoverProvider } from './find-provider.js'
import type { HomePage, LoginOptions } from '../ports.js'

/** What a login is begun for. */
export interface LoginWish {
  /** Makes the provider ask for the password, whoever is logged in there. */
  isAnew: boolean
  /** The page to come back to, where it is not the usual one. */
  backTo?: string
  /** Seconds after which the provider asks for the password again, where the page wants a recent login. */
  maxAgeSeconds?: number
}

export interface BrowserLogin {
  /** Where to send the browser, and what its answer will be checked against. */
  start(wish: LoginWish): Promise<{ url: string; pending: PendingLogin }>
  /** The access token for the query that the browser came back with, and what the provider says of the person and their login. */
  finish(query: string, pending: PendingLogin): Promise<FinishedLogin>
}

interface FinishedLogin {
  token: string
  name?: string
  /** When the provider last asked for the password (`auth_time`), in milliseconds since the epoch. */
  authenticatedAt?: number
}

/**
 * Authorization code with PKCE, state and nonce (OpenID Connect Core, 3.1; RFC 7636, 9207). Both steps reject with ToolError
 * `login_unavailable` when the provider does not answer and `login_failed` when it refuses, with the reason in our own words.
 */
export function createBrowserLogin(
  options: LoginOptions & { issuer: string; publicUrl: string; home: HomePage; fetch: Fetch; now: () => number },
): BrowserLogin {
  const { publicUrl, home, now, audience } = options
  const provider = discoverProvider(options)
  const redirectUri = `${publicUrl}${home}/callback`
  const resource = resourceOf(options, publicUrl)
  return {
    async start({ isAnew, backTo, maxAgeSeconds }) {
      const configuration = await provider()
      const [state, nonce, verifier] = [randomState(), randomNonce(), randomPKCECodeVerifier()]
      const url = buildAuthorizationUrl(configuration, {
        redirect_uri: redirectUri,
        scope: `openid ${knowsNames(configuration) ? 'profile ' : ''}${options.scope}`,
        ...resource,
        // Providers older than RFC 8707 ask for the audience by this name; the others ignore it.
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
      return { url: url.href, pending: { state, nonce, verifier, until, ...wish } }
    },
    async finish(query, { state, nonce, verifier }) {
      const configuration = await provider()
      const url = new URL(redirectUri)
      url.search = query
      const checks = { expectedState: state, expectedNonce: nonce, pkceCodeVerifier: verifier }
      try {
        const answer = await authorizationCodeGrant(configuration, url, checks, resource)
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

/** Asked for only where the provider announces it: others may refuse a scope that they do not know (RFC 6749, 3.3). */
const knowsNames = (provider: Configuration): boolean =>
  provider.serverMetadata().scopes_supported?.includes('profile') === true

/** The cookie of the session has room for this many characters. */
const LONGEST_NAME = 100

/** The first of these claims that is a name (OpenID Connect Core, 5.1). */
function readName(claims: IDToken | undefined): string | undefined {
  const names = [claims?.name, claims?.preferred_username, claims?.email]
  const found = names.find((name): name is string => typeof name === 'string' && name.trim() !== '')
  return found === undefined ? undefined : clipText(found.trim(), LONGEST_NAME)
}

/**
 * For which resource a token is to be (RFC 8707, 2): an absolute URI. An audience that is none belongs to the resource at our own
 * address, or to the one that the scope names (Entra ID, which refuses a `resource` that is not the same).
 */
function resourceOf({ audience, scope }: LoginOptions, publicUrl: string): { resource?: string } {
  if (URL.canParse(audience) && !audience.includes('#')) return { resource: audience }
  return URL.canParse(scope) ? {} : { resource: publicUrl }
}

/** Callbacks worked on at a time. Each costs the identity provider a request, and is over within seconds. */
const MOST_EXCHANGES = 16
/** Of these, one client's: where the provider is slow, nobody may hold all of them. */
const MOST_PER_CLIENT = 4
/** Seconds: about as long as a hanging provider may hold a place. */
const RETRY_AFTER = 5

/** `client`: the address it is known by. */
export type RunExchange = <Result>(client: string, exchange: () => Promise<Result>) => Promise<Result>

/**
 * Runs exchanges with the identity provider, a bounded number at a time, for each client and over all: anyone can begin logins, and
 * come back from them at the same moment. Rejects with ToolError `overloaded {retry_after}`, and begins nothing, beyond the bounds.
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
