import {
  allowInsecureRequests,
  AuthorizationResponseError,
  ClientError,
  Configuration,
  customFetch,
  discovery,
  None,
  ResponseBodyError,
  type ServerMetadata,
} from 'openid-client'
import { ToolError } from '../../../schemas/errors.js'
import { waysToAuthenticate } from './authenticate-client.js'

interface ProviderOptions {
  /** The issuer, spelt exactly as the provider itself spells it. */
  issuer: string
  clientId: string
  clientSecret?: string
  fetch: Fetch
  /** Returns milliseconds since the epoch. */
  now: () => number
}

/** Time limit of one request to the provider, in seconds. */
const PATIENCE_SECONDS = 5
/** The age, in milliseconds, at which the provider's endpoints are read again. They hardly ever change. */
const FRESH_MS = 60 * 60_000
/**
 * The time, in milliseconds, for which a provider that is down is not asked again, even if many people want to log in.
 */
const COOLDOWN_MS = 5_000

/**
 * The endpoints of the identity provider, once for each way in which this client can authenticate there, in the order
 * in which they are tried. There is at least one.
 */
export type Provider = readonly [Configuration, ...Configuration[]]

/**
 * Creates the function that returns the endpoints of the identity provider. It reads them from the provider's discovery
 * document at the first login, and again when they are an hour old. Simultaneous logins share one download. While the
 * provider is down, the endpoints that were read before are used. If there are none, the function rejects with
 * ToolError `login_unavailable`, because the provider does not answer or its document is unusable.
 */
export function discoverProvider(options: ProviderOptions): () => Promise<Provider> {
  let known: { provider: Provider; at: number } | null = null
  let failed: { error: Error; at: number } | null = null
  let loading: Promise<Provider> | null = null

  async function load(): Promise<Provider> {
    try {
      const provider = await discover(options)
      known = { provider, at: options.now() }
      failed = null
      return provider
    } catch (error) {
      failed = { error: explainUnavailable(error), at: options.now() }
      if (known !== null) return known.provider
      throw failed.error
    } finally {
      loading = null
    }
  }

  return () => {
    const now = options.now()
    if (known !== null && now - known.at < FRESH_MS) return Promise.resolve(known.provider)
    if (failed !== null && now - failed.at < COOLDOWN_MS) {
      return known !== null ? Promise.resolve(known.provider) : Promise.reject(failed.error)
    }
    return (loading ??= load())
  }
}

async function discover({ issuer, clientId, clientSecret, fetch }: ProviderOptions): Promise<Provider> {
  const send = boundFetch(fetch)
  const found = await discovery(new URL(issuer), clientId, undefined, None(), {
    [customFetch]: send,
    timeout: PATIENCE_SECONDS,
    // The library itself would refuse plain http even on loopback. `checkMetadata` decides which addresses may use
    // plain http.
    execute: [allowInsecureRequests],
  })
  const metadata = found.serverMetadata()
  checkMetadata(metadata, issuer)
  const configurations = waysToAuthenticate(metadata, clientSecret).map((way) => {
    const configuration = new Configuration(metadata, clientId, undefined, way)
    configuration[customFetch] = send
    configuration.timeout = PATIENCE_SECONDS
    allowInsecureRequests(configuration)
    return configuration
  })
  return configurations as [Configuration, ...Configuration[]]
}

function checkMetadata(metadata: ServerMetadata, issuer: string): void {
  if (metadata.issuer !== issuer) throw unusable('names another issuer')
  const endpoints = [metadata.authorization_endpoint, metadata.token_endpoint]
  if (!endpoints.every((endpoint) => isSafeAddress(endpoint, issuer))) {
    throw unusable('names no usable endpoints')
  }
}

/**
 * Returns true if an address uses https. Also returns true if it uses plain http and the issuer does so on the same
 * host, which only an issuer on loopback may do (D14).
 */
function isSafeAddress(address: string | undefined, issuer: string): boolean {
  if (address === undefined || !URL.canParse(address)) return false
  const { protocol, hostname } = new URL(address)
  const own = new URL(issuer)
  return protocol === 'https:' || (protocol === 'http:' && own.protocol === 'http:' && hostname === own.hostname)
}

const unusable = (what: string) => new ToolError('login_unavailable', `The identity provider ${what}.`)

export type Fetch = typeof globalThis.fetch

/** Maximum size of an answer in bytes. Metadata and token answers are only a few kilobytes. */
const LARGEST_ANSWER = 256 * 1024

/**
 * Creates a `fetch` for the identity provider that follows no redirects and reads at most 256 KiB. It rejects with
 * ToolError `login_unavailable` if the answer is larger; all other errors are those of `fetch`. Challenges are left out,
 * because the library reads no error beside one, whatever the status. An answer 401 is returned as the refusal of the
 * client that it is (RFC 6749, 5.2), even if it has no readable body.
 */
function boundFetch(fetch: Fetch): Fetch {
  return async (input, init) => {
    const response = await fetch(input, { ...init, redirect: 'manual' })
    const { status, statusText } = response
    const headers = new Headers(response.headers)
    headers.delete('www-authenticate')
    const body = await readBounded(response)
    if (status === 401) return Response.json({ error: errorIn(body) ?? 'invalid_client' }, { status })
    return new Response(body.length === 0 ? null : body, { status, statusText, headers })
  }
}

/** Returns the error that a body names; returns undefined if it names none. */
function errorIn(body: Buffer): string | undefined {
  try {
    const { error } = JSON.parse(body.toString()) as { error?: unknown }
    return typeof error === 'string' && error !== '' ? error : undefined
  } catch {
    return undefined
  }
}

async function readBounded(response: Response): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    length += chunk.length
    if (length > LARGEST_ANSWER) throw tooLarge()
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

const tooLarge = () => new ToolError('login_unavailable', 'The identity provider sends answers that are too large.')

/**
 * The error codes that a provider may return (RFC 6749, 4.1.2.1 and 5.2; OpenID Connect Core, 3.1.2.6; RFC 8707, 2). No
 * other text of a provider's error is used.
 */
const KNOWN_ERRORS = new Set([
  'access_denied',
  'account_selection_required',
  'consent_required',
  'interaction_required',
  'invalid_client',
  'invalid_grant',
  'invalid_request',
  'invalid_scope',
  'invalid_target',
  'login_required',
  'server_error',
  'temporarily_unavailable',
  'unauthorized_client',
  'unsupported_response_type',
])
const PASSING = new Set(['server_error', 'temporarily_unavailable'])

/** The library's error codes for unintelligible or missing answers of the provider. */
const NO_ANSWER = new Set([
  'OAUTH_TIMEOUT',
  'OAUTH_RESPONSE_IS_NOT_CONFORM',
  'OAUTH_RESPONSE_IS_NOT_JSON',
  'OAUTH_PARSE_ERROR',
])

const OPERATOR_HINT = 'Try again; if this keeps happening, ask the operator of this server to check its log.'

/**
 * Explains a failed login in this server's own words. The provider's text is not passed on, because anyone can choose
 * it. The text of the library's error is not passed on either, because it may contain the answer with its tokens.
 * `details.reason` of the ToolError is short and safe to log.
 */
export function explainLoginFailure(error: unknown): ToolError {
  if (isRefusedClient(error)) return refusedClient(error.error)
  if (error instanceof AuthorizationResponseError || error instanceof ResponseBodyError)
    return explainRefusal(error.error)
  const code = error instanceof ClientError ? (error.code ?? 'unknown') : null
  if (code === null || NO_ANSWER.has(code) || isOwn(error)) return explainUnavailable(error)
  return failed("The identity provider's answer does not belong to this login.", code)
}

/**
 * Returns true if the token endpoint refused this server as a client, and not the login. Providers also say so with
 * `unauthorized_client` (Keycloak), or with 401 and another error (Auth0: `access_denied`).
 */
export const isRefusedClient = (error: unknown): error is ResponseBodyError =>
  error instanceof ResponseBodyError &&
  (error.error === 'invalid_client' ||
    error.error === 'unauthorized_client' ||
    (error.status === 401 && error.error !== 'invalid_grant'))

/**
 * Returns true if the token endpoint accepted this server as a client, although the login failed: the provider refused
 * the code, or sent tokens that do not belong to this login.
 */
export const isAcceptedClient = (error: unknown): boolean =>
  error instanceof ResponseBodyError
    ? error.error === 'invalid_grant'
    : error instanceof ClientError && error.code !== undefined && !NO_ANSWER.has(error.code)

/** Explains a failure that occurred before a login could begin, in the same way as `explainLoginFailure`. */
function explainUnavailable(error: unknown): ToolError {
  if (error instanceof ToolError) return error
  if (isOwn(error)) return error.cause
  return unavailable(error instanceof ClientError ? (error.code ?? 'unknown') : networkReason(error))
}

/** Returns true if the error was thrown by `boundFetch` and then wrapped by the library. */
const isOwn = (error: unknown): error is ClientError & { cause: ToolError } =>
  error instanceof ClientError && error.cause instanceof ToolError

/** Returns the error code in the error's cause, such as ECONNREFUSED; returns `network` if there is none. */
function networkReason(error: unknown): string {
  const { cause } = error as { cause?: { code?: unknown } }
  return typeof cause?.code === 'string' ? cause.code : 'network'
}

function explainRefusal(named: string): ToolError {
  const error = KNOWN_ERRORS.has(named) ? named : 'unknown'
  if (PASSING.has(error)) return unavailable(error)
  if (error === 'access_denied') return failed('The login was refused or cancelled at the identity provider.', error)
  if (error === 'invalid_client' || error === 'unauthorized_client') return unprovenRefusal(error)
  if (error === 'invalid_grant') return failed('This login was already used or took too long.', error)
  return failed(`The identity provider did not accept the login request (${error}).`, error)
}

const unavailable = (reason: string) =>
  new ToolError(
    'login_unavailable',
    'The identity provider is not answering properly, so nobody can log in right now.',
    { reason },
    { hint: 'Nothing was changed. Try again in a minute.' },
  )

const failed = (message: string, reason: string) =>
  new ToolError('login_failed', message, { reason }, { hint: OPERATOR_HINT })

function refusedClient(named: string): ToolError {
  const reason = named === 'unauthorized_client' ? named : 'invalid_client'
  return new ToolError(
    'login_failed',
    `The identity provider refused the client with which this server logs people in (${reason}).`,
    { reason, remedy: REMEDY_OF_CLIENT },
    { hint: `Nobody can log in until the operator has mended it. ${REMEDY_OF_CLIENT}` },
  )
}

/**
 * Explains an error in the browser's query that says that the provider refused this server as a client. Anyone who
 * started the login can have forged it.
 */
function unprovenRefusal(reason: string): ToolError {
  const remedy = `If every login ends like this, the operator must mend it. ${REMEDY_OF_CLIENT}`
  return new ToolError(
    'login_failed',
    `The answer that came back names ${reason}: the identity provider seems to refuse the client of this server.`,
    { reason, remedy },
    { hint: remedy },
  )
}

const REMEDY_OF_CLIENT =
  'MCP_OAUTH_CLIENT_ID and MCP_OAUTH_CLIENT_SECRET must be those of one client at MCP_OAUTH_ISSUER, which may use the authorization code flow and whose secret has not expired. A public client has no secret, a confidential one must have it.'
