/** The check of tokens within the whole service: real clients, running calls, and where a token must never go. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import type { OAuthClientProvider } from '@modelcontextprotocol/sdk/client/auth.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { OAuthClientInformationMixed as Registered, OAuthTokens } from '@modelcontextprotocol/sdk/shared/auth.js'
import { Type } from '@sinclair/typebox'
import t, { type Test } from 'tap'
import { freePort } from '../free-port.js'
import { defineTool, type AnyTool } from '../../tools/define.js'
import { tools } from '../../tools/index.js'
import { GROUP_OF, startService } from '../contract/authenticated-service.js'
import { Browser } from '../identity/browser.js'
import { startIdentityProvider, type IdentityProviderOptions } from '../identity/identity-provider.js'
import { partial } from '../partial.js'
import { DEFAULT_NAMES } from '../surface/contract.js'
import { sharedValidators } from '../shared-validators.js'

const UNAUTHORIZED = { message: 'Unauthorized' }
const CALLBACK = 'http://127.0.0.1:33333/callback'
/** The audience of its tokens, version 2: the id of the API's registration. */
const ENTRA_CLIENT_ID = '0b7c1f9d-4f0e-4a8e-8e0b-5264a66d2d1a'

/** What an MCP client keeps of its logins; it gives the address of the login page to the test in place of a browser. */
class Logins implements OAuthClientProvider {
  readonly redirectUrl = CALLBACK
  readonly clientMetadata = {
    redirect_uris: [CALLBACK],
    client_name: 'client of the test',
    grant_types: ['authorization_code'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  }
  page: URL | undefined
  asked = 0
  #client: Registered | undefined
  #tokens: OAuthTokens | undefined
  #verifier = ''
  clientInformation = () => this.#client
  saveClientInformation = (client: Registered) => void (this.#client = client)
  tokens = () => this.#tokens
  saveTokens = (tokens: OAuthTokens) => void (this.#tokens = tokens)
  redirectToAuthorization(page: URL) {
    this.page = page
    this.asked++
  }
  saveCodeVerifier = (verifier: string) => void (this.#verifier = verifier)
  codeVerifier = () => this.#verifier
}

/** The service on a port of its own, with a real provider whose tokens are for it. */
async function listening(t: Test, options: IdentityProviderOptions = {}) {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const idp = await startIdentityProvider(t, {
    people: { alice: { groups: [GROUP_OF.admin] } },
    audience: url,
    appIdUri: url,
    ...options,
  })
  const http = { host: '127.0.0.1', port, publicUrl: url, allowedHosts: [], maxInFlight: 256 }
  const service = await startService(t, { config: { http, oauth: idp.oauth() } })
  await service.app.listen({ host: '127.0.0.1', port })
  return { ...service, idp, url }
}

t.test('the SDK’s client: from a bare 401 through a login to a tool call', async (t) => {
  for (const vendor of ['entra', 'auth0', 'keycloak'] as const) {
    const people = { alice: { sub: `${vendor}|alice`, groups: [GROUP_OF.admin], roles: [GROUP_OF.admin] } }
    const audience = vendor === 'entra' ? { audience: ENTRA_CLIENT_ID } : {}
    const { idp, url, audit } = await listening(t, { vendor, people, ...audience })
    const logins = new Logins()
    const connect = () => new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { authProvider: logins })
    const first = connect()
    await t.rejects(new Client({ name: 'test', version: '1' }).connect(first), UNAUTHORIZED, `${vendor}: login first`)
    const scope = vendor === 'entra' ? `${url}/svc-mcp.use` : 'svc-mcp.use'
    t.equal(logins.page?.searchParams.get('scope'), scope, `${vendor}: it asks for the scope of the challenge`)
    t.equal(logins.page?.searchParams.get('resource'), url, `${vendor}: for this resource`)

    const browser = new Browser()
    const page = await browser.open(logins.page!.href, {}, CALLBACK)
    const back = new URL((await idp.logIn(browser, page, 'alice', CALLBACK)).url)
    await first.finishAuth(back.searchParams.get('code')!)
    const client = new Client({ name: 'test', version: '1' }, { jsonSchemaValidator: sharedValidators })
    await client.connect(connect())
    t.equal((await client.listTools()).tools.length, DEFAULT_NAMES.length, vendor)
    const result = await client.callTool({ name: 'check-pce-credentials-status', arguments: {} })
    partial(t, result.structuredContent, { registered: false, mode: 'per_user' }, vendor)
    const entry = audit.find(({ phase }) => phase === 'decision')
    partial(t, entry, { iss: idp.issuer, sub: `${vendor}|alice`, role: 'admin' }, vendor)
    await client.close()
    t.equal(logins.asked, 1, `${vendor}: one login`)
  }
})

t.test("the SDK's client does not loop when the scope is missing", async (t) => {
  const { url, log, idp } = await listening(t, { people: { alice: { claims: { scope: 'openid' } } } })
  const logins = new Logins()
  const first = new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { authProvider: logins })
  await t.rejects(new Client({ name: 'test', version: '1' }).connect(first), UNAUTHORIZED)
  const browser = new Browser()
  const page = await browser.open(logins.page!.href, {}, CALLBACK)
  const back = new URL((await idp.logIn(browser, page, 'alice', CALLBACK)).url)
  await first.finishAuth(back.searchParams.get('code')!)
  const again = new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { authProvider: logins })
  await t.rejects(new Client({ name: 'test', version: '1' }).connect(again))
  const refusals = log.filter(({ msg }) => msg === 'InvalidTokenError: missing required scope')
  t.ok(refusals.length >= 1 && refusals.length <= 2, `${refusals.length} tries`)
})

t.test('a running call finishes even if its token expires', async (t) => {
  const clock = { now: Date.now() }
  let finish = () => {}
  let arrive = () => {}
  const arrived = new Promise<void>((resolve) => (arrive = resolve))
  const slow = defineTool({
    name: 'slow',
    toolset: 'server',
    summary: 'A tool of the test.',
    effect: 'read',
    roles: ['admin'],
    requiresPce: false,
    requiresConfirm: false,
    input: Type.Object({}, { additionalProperties: false }),
    output: Type.Object({ text: Type.String() }),
    example: {},
    async handler() {
      arrive()
      await new Promise<void>((resolve) => (finish = resolve))
      return { text: 'done' }
    },
  }) as AnyTool
  const { tokenOf, send } = await startService(t, { tools: [slow], now: () => clock.now })
  const token = await tokenOf('ann')
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'slow', arguments: {} } }
  const running = send(token, call)
  await arrived
  clock.now += 700_000
  const late = await send(token, call)
  t.equal(late.statusCode, 401, 'the next call is refused')
  partial(t, late.json(), { error: { code: -32000, data: { error: 'unauthorized', reason: 'exp passed' } } })
  finish()
  partial(t, (await running).json(), { result: { structuredContent: { text: 'done' } } })
})

t.test('no tool passes the access token to the PCE', async (t) => {
  const { tokenOf, send, pce } = await startService(t, { mode: 'shared', estate: { pollsUntilDone: 1 } })
  const token = await tokenOf('ann')
  await Promise.all(
    tools.map(({ name, example }, id) =>
      send(token, { jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: example } }),
    ),
  )
  const { requests } = pce.simulator
  t.ok(requests.length > 50, `${requests.length} requests of ${tools.length} tools`)
  const seen = JSON.stringify(requests)
  for (const piece of token.split('.')) t.notOk(seen.includes(piece))
  t.notOk(/bearer/i.test(seen))
  t.same(new Set(requests.map(({ scheme }) => scheme)), new Set(['Basic']))
})

t.test('too many refused tokens, in the shape of the route', async (t) => {
  const { send, tokenOf } = await startService(t, { rates: { refusedTokensPerAddress: 2 } })
  const ping = { jsonrpc: '2.0', id: 1, method: 'ping' }
  for (let time = 0; time < 2; time++) t.equal((await send('x', ping)).statusCode, 401)
  const limited = await send('x', ping)
  t.equal(limited.statusCode, 429)
  partial(t, limited.json(), { jsonrpc: '2.0', id: null, error: { code: -32000, data: { error: 'rate_limited' } } })
  t.ok(Number(limited.headers['retry-after']) >= 1)
  t.equal((await send(await tokenOf('ann'), ping)).statusCode, 200)
  t.equal((await send(null, ping)).statusCode, 401)
})
