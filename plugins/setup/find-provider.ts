import { allowInsecureRequests, ClientSecretBasic, ClientSecretPost, customFetch, discovery, None } from 'openid-client'
import type { ClientAuth, Configuration, ServerMetadata } from 'openid-client'
import { ToolError } from '../../schemas/errors.js'
import { boundFetch, type Fetch } from './bounded-fetch.js'
import { explainUnavailable } from './explain-login-failure.js'

export interface ProviderOptions {
  /** Compared exactly with what the provider calls itself. */
  issuer: string
  clientId: string
  clientSecret?: string
  fetch: Fetch
  /** Milliseconds since the epoch. */
  now: () => number
}

/** Seconds that one request to the provider may take. */
const PATIENCE_SECONDS = 5
/** Endpoints hardly ever move. */
const FRESH_MS = 60 * 60_000
/** A provider that is down is not asked again for each person who comes along. */
const COOLDOWN_MS = 5_000

/**
 * The endpoints of the identity provider, from its discovery document: loaded at the first login, once for all who wait, and again
 * after an hour. While the provider is down, what was loaded before stays in use. Rejects with ToolError
 * `login_unavailable` when it does not answer, or with a document that cannot be used.
 */
export function findProvider(options: ProviderOptions): () => Promise<Configuration> {
  let known: { configuration: Configuration; at: number } | null = null
  let failed: { error: Error; at: number } | null = null
  let loading: Promise<Configuration> | null = null

  async function load(): Promise<Configuration> {
    try {
      const configuration = await discover(options)
      known = { configuration, at: options.now() }
      failed = null
      return configuration
    } catch (error) {
      failed = { error: explainUnavailable(error), at: options.now() }
      if (known !== null) return known.configuration
      throw failed.error
    } finally {
      loading = null
    }
  }

  return () => {
    const now = options.now()
    if (known !== null && now - known.at < FRESH_MS) return Promise.resolve(known.configuration)
    if (failed !== null && now - failed.at < COOLDOWN_MS) {
      return known !== null ? Promise.resolve(known.configuration) : Promise.reject(failed.error)
    }
    return (loading ??= load())
  }
}

async function discover({ issuer, clientId, clientSecret, fetch }: ProviderOptions): Promise<Configuration> {
  const configuration = await discovery(
    new URL(issuer),
    clientId,
    clientSecret,
    // Which way a secret is to be sent stands in the document itself.
    (...args) => authenticate(args[0], clientSecret)(...args),
    {
      [customFetch]: boundFetch(fetch),
      timeout: PATIENCE_SECONDS,
      // The library would refuse plain http on loopback too; which addresses may be plain is checked below.
      execute: [allowInsecureRequests],
    },
  )
  checkMetadata(configuration.serverMetadata(), issuer)
  return configuration
}

function authenticate({ token_endpoint_auth_methods_supported: ways }: ServerMetadata, secret?: string): ClientAuth {
  if (secret === undefined) return None()
  // RFC 8414, 2: a provider that names no way knows client_secret_basic.
  return (ways ?? ['client_secret_basic']).includes('client_secret_basic')
    ? ClientSecretBasic(secret)
    : ClientSecretPost(secret)
}

function checkMetadata(metadata: ServerMetadata, issuer: string): void {
  if (metadata.issuer !== issuer) throw unusable('calls itself by another issuer')
  const endpoints = [metadata.authorization_endpoint, metadata.token_endpoint]
  if (!endpoints.every((endpoint) => isSafeAddress(endpoint, issuer))) {
    throw unusable('names no endpoints that can be used')
  }
}

/** https; plain http only on loopback, and only where the provider itself is there (D14). */
function isSafeAddress(address: string | undefined, issuer: string): boolean {
  if (address === undefined || !URL.canParse(address)) return false
  const { protocol, hostname } = new URL(address)
  const own = new URL(issuer)
  return protocol === 'https:' || (protocol === 'http:' && own.protocol === 'http:' && hostname === own.hostname)
}

const unusable = (what: string) => new ToolError('login_unavailable', `The identity provider ${what}.`)
