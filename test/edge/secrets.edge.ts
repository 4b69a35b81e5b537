/**
 * Where secrets go: everything that a process writes at the most talkative log level, while everything is done with it that it
 * offers and much that it refuses, is searched for every secret it was ever given, in every spelling.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { tools } from '../../tools/index.js'
import { freePort } from '../free-port.js'
import { Browser } from '../identity/browser.js'
import { startIdentityProvider } from '../identity/identity-provider.js'
import { partial } from '../partial.js'
import { createWorld, GROUP_OF } from './support/authenticated-world.js'
import { readToolAnswer, type Json } from './support/call-tool.js'
import { sendRequest, type Answer, type Sent, type Target } from './support/send-request.js'

const HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
const canary = (name: string) => `CANARY-${name}-${Math.random().toString(36).slice(2)}+/=&<"é`

t.test('no secret is written anywhere', async (t) => {
  const idp = await startIdentityProvider(t, { people: { alice: { groups: [GROUP_OF.admin] } } })
  const port = await freePort()
  const base = `http://127.0.0.1:${port}`
  const client = idp.allowRedirects([`${base}/setup/callback`])
  const pceSecret = canary('api-secret')
  const pceKey = `api_canary${Math.random().toString(36).slice(2)}`
  const wrongSecret = canary('wrong-secret')
  const formSecret = canary('form-secret')
  const label = 'canary of a label'
  const argument = 'canary of an argument'
  const world = await createWorld(t, {
    publicUrl: base,
    idp,
    pce: { key: pceKey, secret: pceSecret, pollsUntilDone: 1 },
  })
  const env = {
    MCP_LOG_LEVEL: 'trace',
    MCP_AUDIT_LOG_PATH: world.auditPath,
    MCP_OAUTH_CLIENT_ID: client.clientId,
    MCP_OAUTH_CLIENT_SECRET: client.clientSecret,
    MCP_REFUSED_TOKENS_PER_MINUTE: '0',
    MCP_ALLOWED_PCE_HOSTS: '127.0.0.1,localhost',
    MCP_TOOLSETS: 'all',
  }
  const server = await world.serve({ args: ['--port', String(port)], env })
  const target: Target = { origin: base }
  const answers: Answer[] = []
  const send = async (sent: Sent) => {
    const answer = await sendRequest(target, sent)
    answers.push(answer)
    return answer
  }
  const { accessToken: token } = await idp.tokensFor('alice', { resource: base })
  const bearer = { ...HEADERS, authorization: `Bearer ${token}` }
  const call = async (name: string, args: object, meta: object = {}): Promise<Json> => {
    const params = { name, arguments: args, _meta: meta }
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })
    return readToolAnswer(await send({ headers: bearer, body }))
  }
  const { registration } = world.pce

  // What it is for: registrations good and bad, every tool, a confirmed change, the browser form.
  const register = (more: object) => call('register-pce-credentials', { ...registration, label, ...more })
  partial(t, await register({ api_secret: wrongSecret }), { connection: { ok: false } })
  await call('get-labels', {})
  partial(t, await register({}), { connection: { ok: true } })
  await register({ pce_host: '169.254.169.254', api_secret: wrongSecret })
  await register({ pce_host: `127.0.0.1/${wrongSecret}`, api_secret: wrongSecret })
  await register({ api_secret: 5, secret: wrongSecret, [wrongSecret]: wrongSecret })
  for (const { name, example } of tools) {
    if (!['register-pce-credentials', 'delete-pce-credentials'].includes(name)) await call(name, example)
  }
  world.pce.simulator.faults.add({
    kind: 'status',
    path: /labels$/,
    method: 'POST',
    status: 500,
    times: 1,
    body: { message: 'broken' },
  })
  world.pce.simulator.faults.add({ kind: 'reset', path: /labels$/, method: 'POST', times: 1 })
  const label500 = await call('create-label', { key: 'app', value: argument })
  const labelReset = await call('create-label', { key: 'app', value: argument })
  t.same([label500.error, labelReset.error], ['outcome_unknown', 'outcome_unknown'])
  await call('create-iplist', { name: argument, ip_ranges: [{ from_ip: '10.0.0.0/8' }] })
  const asked = await call('provision-policy', {})
  const confirmBody = JSON.stringify(asked.confirm.body)
  const minted = await sendRequest(target, { path: '/confirm', headers: bearer, body: confirmBody })
  const confirmToken: string = JSON.parse(minted.body).confirm_token
  t.ok(confirmToken)
  await call('provision-policy', { hrefs: ['/orgs/1/x'] }, { confirm_token: confirmToken })
  partial(t, await call('provision-policy', {}, { confirm_token: confirmToken }), { version: Number })
  await call('provision-policy', { _meta: { confirm_token: confirmToken } })

  // What it refuses.
  const spoilt = `${token.slice(0, -3)}xyz`
  for (const authorization of [`Bearer ${spoilt}`, `Basic ${token}`, `Bearer ${token} ${token}`, token])
    t.equal((await send({ headers: { ...HEADERS, authorization }, body: '{}' })).status, 401)
  await send({ path: `/mcp?access_token=${token}`, headers: HEADERS, body: '{}' })
  await send({
    path: `/confirm?confirm_token=${confirmToken}`,
    headers: bearer,
    body: JSON.stringify({ confirmToken }),
  })
  await send({ path: `/${token}`, method: 'GET' })
  await send({ headers: { ...bearer, 'x-request-id': token }, body: JSON.stringify({ token, wrongSecret }) })
  await send({ headers: bearer, body: `{"jsonrpc":"2.0","id":1,"method":"${wrongSecret}"` })
  await send({ headers: { ...bearer, cookie: `__Host-svc-mcp-setup=${token}` }, path: '/setup', method: 'GET' })

  const browser = new Browser()
  let page = await idp.logIn(browser, await browser.open(`${base}/setup`), 'alice')
  const code = canaryOfCallback()
  const cookie = browser.cookieHeader(`${base}/setup`).split('=').slice(1).join('=')
  t.ok(cookie.length > 50)
  const fields = { ...registration, pce_port: String(registration.pce_port), pce_org_id: '1', api_secret: formSecret }
  page = await browser.submit(page, { ...fields, pce_host: '127.0.0.1:99999/x' })
  t.equal(page.status, 400)
  const pages = [page]
  pages.push(await browser.submit(page, fields))
  pages.push(await browser.open(`${base}/setup`))
  partial(t, await register({}), { connection: { ok: true } })
  await send({
    path: `/setup/callback?code=${encodeURIComponent(code)}&state=x`,
    method: 'GET',
    headers: { accept: 'text/html' },
  })
  await call('delete-pce-credentials', {})
  partial(t, await register({ pce_host: 'localhost' }), { connection: { ok: true } })

  const onDisk = () =>
    readdirSync(world.folder)
      .filter((name) => name.startsWith('keystore'))
      .map((name) => readFileSync(join(world.folder, name)))
  const stored = Buffer.concat(onDisk())
  t.equal((await server.stop()).code, 0)
  const written: Record<string, Buffer> = {
    'standard output': Buffer.from(server.output.stdout),
    'the server log': Buffer.from(server.output.stderr),
    'the audit log': readFileSync(world.auditPath),
    'the keystore': Buffer.concat([stored, ...onDisk()]),
    'what clients got': Buffer.from(JSON.stringify(answers)),
    'what the browser showed': Buffer.from(pages.map(({ body }) => body).join()),
  }
  for (const name of ['the server log', 'the audit log', 'the keystore', 'what clients got'])
    t.ok(written[name]!.length > 10_000, `${name}: ${written[name]!.length} bytes`)

  const secrets: Record<string, Buffer[]> = {
    'the API secret': spellings(pceSecret),
    'an API secret that was wrong': spellings(wrongSecret),
    'an API secret from the form': spellings(formSecret),
    'the API key with its secret': spellings(`${pceKey}:${pceSecret}`),
    'the key of the keystore': keySpellings(world.secrets.kek),
    'the key of confirm tokens': keySpellings(world.secrets.hmac),
    "the client's secret": spellings(client.clientSecret!),
    'the access token': token
      .split('.')
      .slice(1)
      .map((part) => Buffer.from(part)),
    'the confirm token': [Buffer.from(confirmToken)],
    'the session cookie': spellings(cookie),
    'the code of a login': spellings(code),
  }
  for (const [where, bytes] of Object.entries(written)) {
    const found = Object.entries(secrets).filter(([, needles]) => needles.some((needle) => bytes.includes(needle)))
    t.same(
      found.map(([name]) => name),
      [],
      where,
    )
  }
  for (const [name, text] of Object.entries({ label, key: pceKey, host: 'localhost' }))
    t.notOk(written['the keystore']!.includes(text), `the ${name} of a registration cannot be read from the keystore`)
  t.notOk(written['the audit log']!.includes(argument), 'no argument is in the audit log')
  t.ok(written['what clients got']!.includes(argument), 'though clients get it')
})

const canaryOfCallback = () => canary('code')

/** A text as it is, and as it would look in a header, a URL, JSON, HTML or a dump. */
function spellings(text: string): Buffer[] {
  const bytes = Buffer.from(text)
  const html = text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/"/g, '&#34;')
  const forms = [
    text,
    JSON.stringify(text).slice(1, -1),
    encodeURIComponent(text),
    html,
    html.replace(/&#34;/g, '&quot;'),
  ]
  const encoded = [bytes.toString('base64'), bytes.toString('base64url'), bytes.toString('hex')]
  return [...forms, ...encoded].map((form) => Buffer.from(form))
}

/** A key as it was given, as its bytes, and as those would look. */
function keySpellings(base64: string): Buffer[] {
  const bytes = Buffer.from(base64, 'base64')
  return [
    bytes,
    ...[base64, bytes.toString('base64url'), bytes.toString('hex'), bytes.toJSON().data.join(',')].map((form) =>
      Buffer.from(form),
    ),
  ]
}
