/**
 * A real OpenID provider on loopback, for tests: the library `oidc-provider` with people, services and the claims of
 * common vendors.
 */
import { createHash, randomBytes, randomUUID, type JsonWebKey } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { ClientMetadata, Configuration } from 'oidc-provider'
import type { OAuthConfig } from '../../schemas/config.js'
import { Browser, type Page } from './browser.js'
import { keyPairFor } from './key-pairs.js'
import { loadProvider } from './load-provider.js'
import { Storage } from './storage.js'
import { apiOf, refuseScopes, VENDORS, type Person, type Vendor, type VendorName } from './vendors.js'

export interface IdentityProviderOptions {
  /** Whose tokens these look like; `plain` is RFC 9068. Sets the path of the issuer too. */
  vendor?: VendorName
  /** People by login name, services by client id; read anew for every token. Anyone else who logs in has no groups. */
  people?: Record<string, Person>
  /**
   * `aud` of the access tokens. Without it the resource that the client names, and DEFAULT_AUDIENCE where it names
   * none.
   */
  audience?: string
  /** What stands before the scope in requests, where the vendor wants that; DEFAULT_AUDIENCE unless told. */
  appIdUri?: string
  /** The scope of the resource. */
  scope?: string
  tokenSeconds?: number
  algorithm?: 'RS256' | 'PS256' | 'ES256' | 'EdDSA'
  /** Fetches the documents in which clients describe themselves (client ID metadata documents); without it none is read. */
  fetchDocument?: typeof fetch
}

export interface Tokens {
  accessToken: string
  /** Only where the scope `openid` was asked for. */
  idToken?: string
  expiresIn: number
  scope: string
}

export interface LoginOptions {
  /** RFC 8707; none is named without it. */
  resource?: string
  scope?: string
  clientId?: string
  redirectUri?: string
  nonce?: string
}

export type IdentityProvider = Awaited<ReturnType<typeof startIdentityProvider>>

export const DEFAULT_AUDIENCE = 'https://mcp.example.test'
export const DEFAULT_SCOPE = 'svc-mcp.use'

export interface Faults {
  /** Every answer is an HTML error of this status until it is 0 again. */
  status: number
  /** Waited for before the token endpoint looks at a request. */
  beforeTokens: () => void | Promise<void>
}

/** Anything with tap's `teardown`. */
interface Test {
  teardown(fn: () => unknown): void
}

const CLI = { clientId: 'cli', redirectUri: 'http://127.0.0.1/callback' }
const SERVICE = { clientId: 'robot', secret: 'robot-secret-of-the-tests' }
const SETUP = { clientId: 'setup-page', secret: 'setup-secret-of-the-tests' }

/** Starts a provider that is stopped at the end of the test. */
export async function startIdentityProvider(t: Test, options: IdentityProviderOptions = {}) {
  const { Provider } = await loadProvider()
  const { vendor: vendorName = 'plain', people = {}, scope = DEFAULT_SCOPE, algorithm = 'RS256' } = options
  const vendor: Vendor = VENDORS[vendorName]
  const { appIdUri = DEFAULT_AUDIENCE } = options
  /** The scope as clients ask for it. */
  const scopeAt = (resource: string) => (vendor.qualifiesScopes ? `${resource}/${scope}` : scope)
  const storage = new Storage()
  const faults: Faults = { status: 0, beforeTokens: () => {} }
  const seen = { keyFetches: 0, tokenRequests: 0, registrations: 0, requests: 0 }
  let keys = [makeKey(algorithm)]
  let answer: (request: IncomingMessage, response: ServerResponse) => void = () => {}

  const server = createServer((request, response) => {
    // A client's pool would otherwise hold sockets that `stop` has cut.
    response.setHeader('connection', 'close')
    seen.requests++
    if (request.url === `${mount}/jwks`) seen.keyFetches++
    if (request.url === `${mount}/reg`) seen.registrations++
    const isForTokens = request.url === `${mount}/token`
    if (isForTokens) seen.tokenRequests++
    if (faults.status !== 0) {
      response.writeHead(faults.status, { 'content-type': 'text/html' }).end('<h1>broken</h1>')
      return
    }
    // The provider stands under the path of its issuer; OAuth metadata has the path after the well-known part (RFC
    // 8414, 3.1).
    const wellKnown = /^\/\.well-known\/(oauth-authorization-server|openid-configuration)/.exec(request.url ?? '')
    const isElsewhere = wellKnown !== null && mount !== '' && vendor.isFoundBelowPath !== true
    const url = isElsewhere ? `${mount}${wellKnown[0]}` : request.url!
    if (!url.startsWith(mount)) {
      response.writeHead(404).end()
      return
    }
    if (vendor.qualifiesScopes && url.startsWith(`${mount}/auth?`)) {
      const query = new URL(url, origin).searchParams
      const error = refuseScopes(query)
      if (error !== null) {
        const back = new URL(query.get('redirect_uri')!)
        back.search = new URLSearchParams({ error, state: query.get('state')!, iss: issuer }).toString()
        response.writeHead(302, { location: back.href }).end()
        return
      }
    }
    Object.assign(request, { originalUrl: url, url: url.slice(mount.length) || '/' })
    if (isForTokens) void Promise.resolve(faults.beforeTokens()).then(() => answer(request, response))
    else answer(request, response)
  })
  const port = await listen(server, 0)
  const origin = `http://127.0.0.1:${port}`
  const mount = vendor.path.replace(/\/$/, '')
  const issuer = `${origin}${vendor.path}`
  t.teardown(() => stop())

  for (const client of clients()) storage.putClient(client)
  install()

  /** Makes the provider anew around the same storage, as a restart with other keys would. */
  function install(): void {
    const handle = new Provider(issuer, configuration()).callback()
    answer = (request, response) => void handle(request, response)
  }

  function clients(): (ClientMetadata & { client_id: string })[] {
    const code = { grant_types: ['authorization_code'], response_types: ['code' as const] }
    return [
      {
        ...code,
        client_id: CLI.clientId,
        application_type: 'native',
        token_endpoint_auth_method: 'none',
        redirect_uris: [CLI.redirectUri],
      },
      {
        client_id: SERVICE.clientId,
        client_secret: SERVICE.secret,
        grant_types: ['client_credentials'],
        response_types: [],
        redirect_uris: [],
      },
    ]
  }

  function configuration(): Configuration {
    return {
      adapter: storage.adapter,
      jwks: { keys },
      scopes: ['openid', 'offline_access', scopeAt(appIdUri)],
      claims: { openid: ['sub'], profile: ['name'] },
      cookies: { keys: ['cookies of the tests'] },
      clientDefaults: { id_token_signed_response_alg: algorithm, subject_type: 'pairwise' },
      enabledJWA: { idTokenSigningAlgValues: ['RS256', 'PS256', 'ES256', 'EdDSA'] },
      clientBasedCORS: () => true,
      pkce: { required: () => true },
      renderError(ctx, out) {
        ctx.type = 'json'
        ctx.body = out
      },
      ttl: {
        AccessToken: options.tokenSeconds ?? 600,
        AuthorizationCode: 60,
        ClientCredentials: options.tokenSeconds ?? 600,
        Grant: 3600,
        IdToken: 600,
        Interaction: 600,
        Session: 3600,
      },
      // A person's `sub` need not be what they type; as pairwise identifier it stands in both tokens.
      subjectTypes: ['public', 'pairwise'],
      pairwiseIdentifier: (_ctx, login) => subOf(login),
      findAccount: (_ctx, login) => ({ accountId: login, claims: () => ({ sub: login, name: login }) }),
      extraTokenClaims: () => ({}),
      ...(options.fetchDocument && { fetch: options.fetchDocument }),
      features: {
        devInteractions: { enabled: true },
        ...(options.fetchDocument && { clientIdMetadataDocument: { enabled: true, ack: 'draft-02' } }),
        clientCredentials: { enabled: true },
        registration: { enabled: true },
        resourceIndicators: {
          enabled: true,
          defaultResource: (ctx) =>
            vendor.qualifiesScopes
              ? (apiOf(String(ctx.oidc.params?.scope)) ?? appIdUri)
              : (options.audience ?? DEFAULT_AUDIENCE),
          useGrantedResource: () => true,
          getResourceServerInfo: (_ctx, resource) => ({
            scope: scopeAt(resource),
            audience: options.audience ?? resource,
            accessTokenFormat: vendor.isOpaque === true ? ('opaque' as const) : ('jwt' as const),
            jwt: { sign: { alg: algorithm, kid: keys[0]!.kid } },
          }),
        },
      },
      formats: {
        customizers: {
          jwt(_ctx, token, parts) {
            const login = 'accountId' in token ? token.accountId : token.clientId!
            const person = people[login] ?? {}
            if (!('accountId' in token)) parts.payload.sub = subOf(login)
            vendor.shape(parts, person, { origin, login })
            Object.assign(parts.payload, person.claims)
          },
        },
      },
    }
  }

  function subOf(login: string): string {
    return people[login]?.sub ?? login
  }

  /** What a service under test is configured with for this provider. */
  function oauth(more: Partial<OAuthConfig> = {}): OAuthConfig {
    return {
      issuer,
      ...(vendor.tokenIssuer !== undefined && { tokenIssuer: vendor.tokenIssuer }),
      jwksUrl: `${origin}${mount}/jwks`,
      audience: options.audience ?? DEFAULT_AUDIENCE,
      requiredScope: scope,
      ...(vendor.qualifiesScopes && { requestedScope: scopeAt(appIdUri) }),
      groupsClaims: vendor.groupsClaims,
      ...more,
    }
  }

  /** Walks a person through login and consent from any page that leads there, up to `stopAt`. */
  async function logIn(browser: Browser, page: Page, login: string, stopAt?: string): Promise<Page> {
    let at = page
    while (at.status === 200 && at.url.startsWith(`${origin}${mount}/interaction/`)) {
      const isLogin = /name="prompt" value="login"/.test(at.body)
      at = await browser.submit(at, isLogin ? { login, password: 'any' } : {}, stopAt)
    }
    return at
  }

  /**
   * The authorization code flow with PKCE, as a command-line client does it. Throws with the provider's answer when
   * it refuses.
   */
  async function tokensFor(login: string, asked: LoginOptions = {}): Promise<Tokens> {
    const { clientId = CLI.clientId, redirectUri = CLI.redirectUri, resource } = asked
    const verifier = randomBytes(32).toString('base64url')
    const state = randomUUID()
    const target: Record<string, string> = resource === undefined ? {} : { resource }
    const query = new URLSearchParams({
      ...target,
      ...(asked.nonce !== undefined && { nonce: asked.nonce }),
      client_id: clientId,
      redirect_uri: redirectUri,
      response_type: 'code',
      scope: asked.scope ?? `openid ${scopeAt(resource ?? appIdUri)}`,
      state,
      code_challenge: createHash('sha256').update(verifier).digest('base64url'),
      code_challenge_method: 'S256',
    })
    const browser = new Browser()
    const page = await browser.open(`${origin}${mount}/auth?${query.toString()}`, {}, redirectUri)
    const back = new URL((await logIn(browser, page, login, redirectUri)).url)
    const code = back.searchParams.get('code')
    if (code === null || back.searchParams.get('state') !== state) throw new Error(`no code: ${back.href}`)
    return requestTokens({
      ...target,
      grant_type: 'authorization_code',
      code,
      code_verifier: verifier,
      client_id: clientId,
      redirect_uri: redirectUri,
    })
  }

  /** Client credentials of the service `robot`. */
  function serviceTokens(resource?: string): Promise<Tokens> {
    const basic = Buffer.from(`${SERVICE.clientId}:${SERVICE.secret}`).toString('base64')
    const target: Record<string, string> = resource === undefined ? {} : { resource }
    return requestTokens(
      { ...target, grant_type: 'client_credentials', scope: scopeAt(resource ?? appIdUri) },
      { authorization: `Basic ${basic}` },
    )
  }

  async function requestTokens(form: Record<string, string>, headers: Record<string, string> = {}): Promise<Tokens> {
    const response = await fetch(`${origin}${mount}/token`, {
      method: 'POST',
      headers,
      body: new URLSearchParams(form),
    })
    const body = (await response.json()) as Record<string, unknown>
    if (!response.ok) throw new Error(`no tokens: ${JSON.stringify(body)}`)
    return {
      accessToken: body.access_token as string,
      idToken: body.id_token as string | undefined,
      expiresIn: body.expires_in as number,
      scope: body.scope as string,
    }
  }

  /** Makes a browser client known (MCP_OAUTH_CLIENT_ID); again with other addresses to change them. */
  function allowRedirects(redirectUris: string[], { isPublic = false } = {}) {
    storage.putClient({
      client_id: SETUP.clientId,
      ...(!isPublic && { client_secret: SETUP.secret }),
      token_endpoint_auth_method: isPublic ? 'none' : 'client_secret_basic',
      grant_types: ['authorization_code'],
      response_types: ['code'],
      redirect_uris: redirectUris,
    })
    return { clientId: SETUP.clientId, ...(!isPublic && { clientSecret: SETUP.secret }) }
  }

  /** Signs with a new key from now on; the old ones stay published unless `removeOld`. */
  function rotateKeys({ removeOld = false } = {}): void {
    keys = [makeKey(algorithm), ...(removeOld ? [] : keys)]
    install()
  }

  /** Nobody listens any more at the same address. */
  async function stop(): Promise<void> {
    server.closeAllConnections()
    await new Promise<void>((resolve) => server.close(() => resolve()))
  }

  async function start(): Promise<void> {
    await listen(server, port)
  }

  return {
    issuer,
    origin,
    oauth,
    people,
    /** How often the keys, tokens, registrations, and anything at all, have been asked for. */
    seen,
    faults,
    tokensFor,
    serviceTokens,
    logIn,
    allowRedirects,
    rotateKeys,
    stop,
    start,
  }
}

type SigningKey = JsonWebKey & { kid: string; alg: string; use: 'sig' }

function makeKey(alg: NonNullable<IdentityProviderOptions['algorithm']>): SigningKey {
  return { ...keyPairFor(alg).privateKey.export({ format: 'jwk' }), kid: randomUUID(), alg, use: 'sig' }
}

async function listen(server: Server, port: number): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', () => resolve())
  })
  return (server.address() as AddressInfo).port
}
