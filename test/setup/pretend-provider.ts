/** An OpenID provider that does what the test says, wrong things above all: discovery, keys and tokens, but nobody ever logs in at it. */
import { createHash, randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { GROUP_OF } from '../contract/authenticated-service.js'
import { claimsFor, forgeKey } from '../identity/forge.js'
import type { OAuthConfig } from '../../schemas/config.js'

export interface Person {
  sub?: string
  groups?: readonly string[]
  /** More claims of the access token; undefined removes one. */
  claims?: Record<string, unknown>
}

interface PendingCode {
  person: Person
  nonce: string
  challenge: string
}

/** What a provider may answer in place of what it should. */
export type Fault = (response: ServerResponse) => void

export interface Test {
  teardown(fn: () => unknown): void
}

const FORM_SCOPE = 'svc-mcp.use'
export const AUDIENCE = 'https://mcp.example.test'

export async function startPretendProvider(t: Test) {
  const key = forgeKey('RS256')
  const codes = new Map<string, PendingCode>()
  const knobs = {
    /** Answers in place of the document, the keys or the tokens. */
    faults: {} as Partial<Record<'discovery' | 'keys' | 'token', Fault>>,
    /** Laid over the discovery document. */
    document: {} as Record<string, unknown>,
    /** Laid over the answer of the token endpoint. */
    answer: {} as Record<string, unknown>,
    /** Laid over the claims of the ID token. */
    idToken: {} as Record<string, unknown>,
    /** Requests to the token endpoint. */
    tokenRequests: [] as { form: Record<string, string>; authorization: string | undefined }[],
    /** The one way in which it lets the client prove what it is. */
    takes: undefined as 'client_secret_basic' | 'client_secret_post' | undefined,
    discoveries: 0,
  }

  const server = createServer((request, response) => {
    response.setHeader('connection', 'close')
    void serve(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => (server.closeAllConnections(), server.close()))
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}/tenant`
  const oauth: OAuthConfig = {
    issuer,
    jwksUrl: `${issuer}/keys`,
    audience: AUDIENCE,
    requiredScope: FORM_SCOPE,
    groupsClaims: ['groups', 'roles'],
  }

  async function serve(request: IncomingMessage, response: ServerResponse) {
    const path = request.url!.replace('/tenant', '')
    const json = (body: object, status = 200) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    if (path === '/.well-known/openid-configuration') {
      knobs.discoveries++
      return knobs.faults.discovery ? knobs.faults.discovery(response) : json({ ...discovery(), ...knobs.document })
    }
    if (path === '/keys') return knobs.faults.keys ? knobs.faults.keys(response) : json({ keys: [key.jwk] })
    if (path !== '/token') return json({ error: 'not_found' }, 404)
    const form = Object.fromEntries(new URLSearchParams(await bodyOf(request)))
    knobs.tokenRequests.push({ form, authorization: request.headers.authorization })
    if (knobs.faults.token) return knobs.faults.token(response)
    const way = request.headers.authorization === undefined ? 'client_secret_post' : 'client_secret_basic'
    if (knobs.takes !== undefined && way !== knobs.takes) return json({ error: 'invalid_client' }, 401)
    const pending = codes.get(form.code ?? '')
    codes.delete(form.code ?? '')
    const proof = createHash('sha256')
      .update(form.code_verifier ?? '')
      .digest('base64url')
    if (pending?.challenge !== proof) return json({ error: 'invalid_grant', error_description: '<b>no</b>' }, 400)
    return json({
      token_type: 'Bearer',
      access_token: await tokenFor(pending.person),
      id_token: await key.sign(
        { ...claimsFor(oauth), aud: 'setup-page', sub: 'id-token-sub', nonce: pending.nonce, ...knobs.idToken },
        { typ: 'JWT' },
      ),
      expires_in: 600,
      ...knobs.answer,
    })
  }

  const discovery = () => ({
    issuer,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    jwks_uri: `${issuer}/keys`,
    response_types_supported: ['code'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['RS256'],
  })

  /** A good access token of this person. */
  const tokenFor = ({ sub = 'alice', groups = [GROUP_OF.operator], claims = {} }: Person = {}) =>
    key.sign(claimsFor(oauth, { sub, groups, ...claims }))

  /** As if the person had logged in where `authorizationUrl` leads to: the query they come back with. */
  function comeBack(authorizationUrl: string, person: Person = {}): URLSearchParams {
    const asked = new URL(authorizationUrl).searchParams
    const code = randomUUID()
    codes.set(code, { person, nonce: asked.get('nonce')!, challenge: asked.get('code_challenge')! })
    return new URLSearchParams({ code, state: asked.get('state')! })
  }

  return Object.assign(knobs, { issuer, oauth, tokenFor, comeBack })
}

export type PretendProvider = Awaited<ReturnType<typeof startPretendProvider>>

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}
