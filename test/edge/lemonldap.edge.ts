/** A provider that nobody here wrote, as docs/identity-providers/lemonldap-ng.md sets it up: pages, and a client from a bare 401. */
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js'
import t, { type Test } from 'tap'
import { allowInsecureRequests, authorizationCodeGrant, Configuration, type ServerMetadata } from 'openid-client'
import { waysToAuthenticate } from '../../plugins/pages/login/authenticate-client.js'
import { freePort } from '../free-port.js'
import { Browser } from '../identity/browser.js'
import { contains, partial } from '../partial.js'
import { createWorld, targetOf, untilReady } from './support/authenticated-world.js'
import type { Json } from './support/call-tool.js'
import { connectAs, createPerson, REDIRECT } from './support/oauth-client.js'
import { startLemonldap } from './support/start-lemonldap.js'
import { startProgram, type Program } from './support/start-program.js'
import { found } from './support/within.js'

// What RFC 6749 (2.3.1) has encoded in a header, and this provider does not decode.
const SETUP = { id: 'svc-mcp-setup.v2_1', secret: 'of-the_tests.1' }
const CLI = { id: 'svc-mcp-clients', redirectUri: REDIRECT }

/** The portal, and a process whose settings are those of the page. */
async function serve(t: Test) {
  const [port, otherPort] = [await freePort(), await freePort()]
  const [base, other] = [port, otherPort].map((at) => `http://127.0.0.1:${at}`) as [string, string]
  const provider = await startLemonldap(t, {
    audience: base,
    clients: [{ ...SETUP, redirectUri: `${base}/setup/callback ${other}/setup/callback` }, CLI],
  })
  const world = await createWorld(t, { publicUrl: base })
  const start = async (at: number, env: Record<string, string> = {}) => {
    const program = startProgram(t, {
      args: ['--port', String(at)],
      env: {
        ...world.env,
        MCP_OAUTH_ISSUER: provider.origin,
        MCP_OAUTH_JWKS_URL: `${provider.origin}/oauth2/jwks`,
        MCP_OAUTH_AUDIENCE: base,
        MCP_OAUTH_REQUEST_SCOPE: 'openid svc-mcp.use',
        MCP_OAUTH_CLIENT_ID: SETUP.id,
        MCP_OAUTH_CLIENT_SECRET: SETUP.secret,
        MCP_ROLE_GROUPS_ADMIN: 'timelords',
        MCP_ROLE_GROUPS_READER: 'users',
        MCP_APPROVAL: 'page',
        MCP_AUDIT_LOG_PATH: world.auditPath,
        ...env,
      },
    })
    await untilReady(targetOf(await program.listening))
    return program
  }
  return {
    ...world,
    base,
    provider,
    program: await start(port),
    /** Starts one more process at an address of its own. */
    serveOther: async (env: Record<string, string>) => ({
      ...(await start(otherPort, { MCP_PUBLIC_URL: other, ...env })),
      base: other,
    }),
  }
}

/** Its log reaches this process a moment after its answers. */
const logged = ({ output }: Pick<Program, 'output'>, what: string) => found(() => output.stderr.includes(what), what)

const valueOf = (result: unknown): Json => {
  const { structuredContent, content } = result as CallToolResult
  return structuredContent ?? JSON.parse((content[0] as { text: string }).text)
}

t.test('LemonLDAP::NG lets people and clients in', async (t) => {
  const { base, provider, program, pce, auditEntries, serveOther } = await serve(t)
  const dwho = createPerson(provider, 'dwho', { client: { client_id: CLI.id } })
  const { client } = await connectAs(`${base}/mcp`, dwho)
  const call = async (name: string, args: object = {}) =>
    valueOf(await client.callTool({ name, arguments: { ...args } }))

  const [login] = dwho.logins
  t.same(
    ['code_challenge_method', 'scope', 'client_id'].map((name) => login!.searchParams.get(name)),
    ['S256', 'openid svc-mcp.use', CLI.id],
    'the client asked for what the 401 said',
  )
  partial(t, await call('register-pce-credentials', pce.registration), { status: 'ok', connection: { ok: true } })

  await t.test('a person logs in to /setup', async (t) => {
    const browser = new Browser()
    const page = await provider.logIn(browser, await browser.open(`${base}/setup/login`), 'rtyler')
    t.equal(page.status, 200, page.body)
    t.equal(page.url, `${base}/setup`)
    contains(t, page.body, 'Rose Tyler')
    contains(t, page.body, 'reader')
  })

  await t.test('a person approves a call', async (t) => {
    await call('create-iplist', { name: 'From nothing', ip_ranges: [{ from_ip: '10.0.0.0/8' }] })
    const before = pce.simulator.state.policyVersion
    const asked = await call('provision-policy')
    partial(t, asked, { error: 'confirm_required', approval_url: /\/approve\// })
    const browser = new Browser()
    const to = new URL(asked.approval_url as string).pathname
    const shown = await provider.logIn(browser, await browser.open(`${base}/setup/login?to=${to}`), 'dwho')
    t.equal(shown.url, asked.approval_url, shown.body)
    const decided = await browser.submit(shown, { verdict: 'approve' })
    t.match(decided.body, /<h1>[^]*Approved/)
    partial(t, await call('provision-policy'), { version: before + 1 })
    partial(
      t,
      auditEntries().find(({ approval }) => approval === 'approved'),
      { sub: 'dwho', iss: provider.origin, role: 'admin' },
    )
  })

  await t.test('its ID tokens are no access tokens', async (t) => {
    const { id_token: idToken = '' } = dwho.held.tokens!
    const answer = await fetch(`${base}/mcp`, { method: 'POST', headers: { authorization: `Bearer ${idToken}` } })
    t.equal(answer.status, 401)
    await logged(program, 'InvalidTokenError: not an access token')
  })

  await t.test('it reads the id and the secret in the header as they are written there', async (t) => {
    const [inHeader] = waysToAuthenticate(
      { token_endpoint_auth_methods_supported: ['client_secret_basic'] },
      SETUP.secret,
    )
    const metadata = provider.metadata as Pick<ServerMetadata, 'issuer' | 'token_endpoint'>
    const configuration = new Configuration(metadata, SETUP.id, undefined, inHeader)
    allowInsecureRequests(configuration)
    const callback = new URL(`${base}/setup/callback?code=invented`)
    const asked = authorizationCodeGrant(configuration, callback, { pkceCodeVerifier: 'x'.repeat(43) })
    partial(t, await asked.catch((error: unknown) => error), { status: 400, error: 'invalid_grant' })
  })

  await t.test('a wrong secret is told as that', async (t) => {
    const wrong = await serveOther({ MCP_OAUTH_CLIENT_SECRET: 'not-the_secret' })
    const browser = new Browser()
    const page = await provider.logIn(browser, await browser.open(`${wrong.base}/setup/login`), 'dwho')
    t.equal(page.status, 403)
    contains(t, page.body, 'refused the client with which this server logs people in (invalid_client)')
    await logged(wrong, '"reason":"invalid_client"')
    t.notMatch(wrong.output.stderr, /not-the_secret/)
  })
})
