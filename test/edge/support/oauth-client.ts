/** An MCP client that knows nothing but the address of the server, and a person at a browser who logs in for it. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { UnauthorizedError, type OAuthClientProvider } from '@modelcontextprotocol/sdk/client/auth.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { OAuthClientInformationMixed, OAuthTokens } from '@modelcontextprotocol/sdk/shared/auth.js'
import { Browser } from '../../identity/browser.js'
import type { IdentityProvider } from '../../identity/identity-provider.js'

/** Where the provider sends the person back to. Nobody listens there: the scripted browser stops before it. */
export const REDIRECT = 'http://127.0.0.1/oauth/callback'

export interface PersonOptions {
  /** The client as the provider knows it. Without it the client registers itself. */
  client?: OAuthClientInformationMixed
  /** Where the client describes itself (its metadata document), for providers that read that. */
  clientMetadataUrl?: string
}

export interface Seen {
  method: string
  url: string
  status: number
}

export interface Person extends OAuthClientProvider {
  /** Every request of the client, in order. */
  seen: Seen[]
  /** Where the person was sent to log in, in order. */
  logins: URL[]
  /** What came back from the last login, once. */
  takeCode(): string
  held: { tokens?: OAuthTokens }
  fetch: typeof fetch
}

/** The SDK's client side of OAuth for one person, who logs in as soon as they are sent to the provider. */
export function createPerson(
  idp: Pick<IdentityProvider, 'logIn'>,
  login: string,
  { client, clientMetadataUrl }: PersonOptions = {},
): Person {
  const held: { tokens?: OAuthTokens; client?: OAuthClientInformationMixed; verifier?: string; code?: string } = {
    ...(client && { client }),
  }
  const seen: Seen[] = []
  const logins: URL[] = []
  return {
    seen,
    logins,
    held,
    redirectUrl: REDIRECT,
    ...(clientMetadataUrl !== undefined && { clientMetadataUrl }),
    clientMetadata: {
      client_name: 'a client nobody has registered',
      redirect_uris: [REDIRECT],
      grant_types: ['authorization_code'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
    },
    clientInformation: () => held.client,
    saveClientInformation: (client) => void (held.client = client),
    tokens: () => held.tokens,
    saveTokens: (tokens) => void (held.tokens = tokens),
    saveCodeVerifier: (verifier) => void (held.verifier = verifier),
    codeVerifier: () => held.verifier!,
    async redirectToAuthorization(url) {
      logins.push(url)
      const browser = new Browser()
      const page = await idp.logIn(browser, await browser.open(url.href, {}, REDIRECT), login, REDIRECT)
      const code = new URL(page.url).searchParams.get('code')
      if (code === null) throw new Error(`no code: ${page.url} ${page.body}`)
      held.code = code
    },
    takeCode() {
      const { code } = held
      if (code === undefined) throw new Error('nobody was sent to log in')
      delete held.code
      return code
    },
    async fetch(input, init) {
      const url = input instanceof Request ? input.url : String(input)
      const response = await fetch(input, init)
      seen.push({ method: init?.method ?? 'GET', url, status: response.status })
      return response
    },
  }
}

export interface Connected {
  client: Client
  /** Runs something that may need a login first; it is begun again after one, once. */
  orLogIn: <T>(work: () => Promise<T>) => Promise<T>
}

/** Connects as clients do: begins, is refused, lets the person log in, and begins again. */
export async function connectAs(url: string, person: Person): Promise<Connected> {
  let transport = newTransport()
  let client = newClient()
  function newTransport() {
    return new StreamableHTTPClientTransport(new URL(url), { authProvider: person, fetch: person.fetch })
  }
  try {
    await client.connect(transport)
  } catch (error) {
    if (!(error instanceof UnauthorizedError)) throw error
    await transport.finishAuth(person.takeCode())
    transport = newTransport()
    client = newClient()
    await client.connect(transport)
  }
  return {
    client,
    async orLogIn(work) {
      try {
        return await work()
      } catch (error) {
        if (!(error instanceof UnauthorizedError)) throw error
        await transport.finishAuth(person.takeCode())
        return work()
      }
    },
  }
}

const newClient = () => new Client({ name: 'edge-suite', version: '1.0.0' })
