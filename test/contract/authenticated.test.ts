/**
 * The authenticated service as a whole, in both of its modes: the order of the pipeline, who gets in where, limits, readiness,
 * audit (S1, S6, S10, S19, S20, S21). Details of tokens, confirmations, the keystore and /setup have their own tests.
 */
import { getEventListeners } from 'node:events'
import { request as httpRequest } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { Type } from '@sinclair/typebox'
import t from 'tap'
import { defineTool, type AnyTool } from '../../tools/define.js'
import { partial } from '../partial.js'
import { DEFAULT_NAMES } from '../surface/contract.js'
import { registrationFor, startPce, startService, PUBLIC_URL, type Line } from './authenticated-service.js'
import { noCredentials } from '../tools/harness.js'
import { gate, openTool } from './insecure-app.js'

const HOST = { host: new URL(PUBLIC_URL).host }
const CHALLENGE =
  /^Bearer resource_metadata="https:\/\/mcp\.example\.test\/\.well-known\/oauth-protected-resource"(, error="invalid_token", error_description="[^"\\]*")?, scope="svc-mcp\.use"$/
const LIST = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
/** What `get-labels` answers about the environments of the simulated PCE. */
const ENVIRONMENTS = { labels: ['prod', 'staging', 'test', 'dev'].map((value) => ({ key: 'env', value })) }
const PING = { jsonrpc: '2.0', id: 1, method: 'ping' }

const answered = (entries: readonly Line[]) =>
  entries.map(({ phase, decision, outcome, tool, reason }) =>
    [phase, decision ?? outcome, tool, reason].filter(Boolean),
  )

/** Path → methods, from the tree that Fastify prints. */
function routesOf(tree: string): Map<string, string[]> {
  const path: string[] = []
  const routes = new Map<string, string[]>()
  for (const [, indent, part, methods] of tree.matchAll(/^(.*?)[├└]── (\S+)(?: \(([A-Z, ]+)\))?/gm)) {
    path.length = indent!.length / 4
    path.push(part!)
    const url = path.join('')
    if (methods !== undefined) routes.set(url, [...(routes.get(url) ?? []), ...methods.split(', ')])
  }
  return routes
}

const services = new Map<'per_user' | 'shared', ReturnType<typeof startService>>()

/** One service of each mode for the cases that need no other settings. */
function serviceOf(mode: 'per_user' | 'shared') {
  const service = services.get(mode) ?? startService(t, { mode })
  services.set(mode, service)
  return service
}

t.test('without a token only the public documents are reachable', async (t) => {
  const { app, send } = await serviceOf('per_user')
  const open: [string, number][] = [
    ['/healthz', 200],
    ['/readyz', 200],
    ['/.well-known/oauth-protected-resource', 200],
    ['/.well-known/oauth-protected-resource/mcp', 200],
    ['/.well-known/oauth-protected-resource/mcp/', 200],
    ['/.well-known/oauth-authorization-server', 302],
    ['/setup/logout', 200],
  ]
  const routes = routesOf(app.printRoutes({ commonPrefix: false }))
  for (const url of ['/mcp', '/confirm', '/setup', '/setup/remove', '/healthz']) t.ok(routes.has(url), url)
  for (const [url, methods] of routes) {
    const known = open.find(([path]) => path === url)?.[1]
    for (const method of methods) {
      const answer = await app.inject({ method: method as 'GET', url, headers: HOST })
      if (answer.statusCode === 401) partial(t, answer.headers['www-authenticate'], CHALLENGE, `${method} ${url}`)
      // 405: no method of this route; who asks is not asked.
      else t.equal(answer.statusCode, /GET|HEAD/.test(method) ? (known ?? 405) : 405, `${method} ${url}`)
      if (answer.statusCode === 405) t.ok(answer.headers.allow, `${method} ${url}`)
    }
  }
  for (const url of [
    '//mcp',
    '/MCP',
    '/mcp/',
    '/mcp%2f',
    '/mcp;a',
    '/mcp/..',
    '/./mcp',
    '/%6dcp',
    '/confirm/',
    '/mcp?x=1',
  ]) {
    const { statusCode } = await send(null, LIST, { url })
    t.ok(statusCode === 401 || statusCode === 404, `${url}: ${statusCode}`)
  }
})

t.test('both modes answer in the form of the route', async (t) => {
  for (const mode of ['per_user', 'shared'] as const) {
    const { app, send, confirm } = await serviceOf(mode)
    const mcp = await send(null, LIST, { headers: { 'x-request-id': 'of-the-proxy' } })
    t.equal(mcp.statusCode, 401, mode)
    partial(t, mcp.headers, {
      'www-authenticate': CHALLENGE,
      'cache-control': 'no-store',
      'x-request-id': 'of-the-proxy',
    })
    partial(t, mcp.json(), {
      jsonrpc: '2.0',
      id: null,
      error: { data: { error: 'unauthorized', request_id: 'of-the-proxy' } },
    })
    const minted = await confirm(null, {})
    partial(t, minted.json(), { error: 'unauthorized' }, 'plain HTTP has a plain body')
    partial(t, minted.headers['www-authenticate'], CHALLENGE)
    const page = await app.inject({ url: '/setup', headers: { ...HOST, accept: 'text/html' } })
    t.equal(page.statusCode, mode === 'shared' ? 404 : 401, `/setup in ${mode} mode`)
    const foreign = await app.inject({ url: '/setup', headers: { host: 'evil.example', accept: 'text/html' } })
    t.equal(foreign.statusCode, 403, 'the Host is asked for before the login')
    const gone = await app.inject({ url: '/.well-known/oauth-protected-resource', headers: { host: 'evil.example' } })
    t.equal(gone.statusCode, 403)
  }
})

t.test('does not read a body before its sender is authenticated', async (t) => {
  const { app } = await serviceOf('per_user')
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo
  const answer = await new Promise<string>((resolve, reject) => {
    const socket = connect(port, '127.0.0.1')
    let text = ''
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString()
      if (text.includes('\r\n\r\n')) resolve(text)
    })
    socket.on('error', reject)
    t.teardown(() => socket.destroy())
    // Ten megabytes are announced and none is sent.
    socket.write(
      `POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 10485760\r\n\r\n`,
    )
  })
  t.match(answer, /^HTTP\/1\.1 401 /)
})

t.test('what is taken of the PCE of a user, and how long it may take, is for the operator to say', async (t) => {
  const bounds = { answerMib: 1, listMib: 1, timeoutSeconds: 5 }
  const { tokenOf, call, pce } = await startService(t, { bounds })
  const token = await tokenOf('ann')
  await call(token, 'register-pce-credentials', registrationFor(pce))
  const body = [{ token: 'x', message: 'x'.repeat(1024 * 1024) }]
  pce.simulator.faults.add({ kind: 'status', path: /\/settings\/workloads/, times: 1, status: 200, body })
  partial(t, await call(token, 'check-pce-connection'), {
    error: 'pce_answer_too_large',
    message: /is larger than 1 MiB/,
  })
  pce.simulator.faults.add({ kind: 'hang', path: /\/events/, times: 1 })
  partial(t, await call(token, 'get-events'), { error: 'pce_unreachable', message: /not done within 5 s/ })
})

t.test('a user gets from nothing to a confirmed change', async (t) => {
  const { tokenOf, call, confirm, send, pce, audit, log } = await startService(t)
  const token = await tokenOf('ann')
  partial(t, await call(token, 'get-labels'), { error: 'no_pce_credentials', setup_path: '/setup' })
  const { tools } = (await send(token, LIST)).json<{ result: { tools: { name: string; description: string }[] } }>()
    .result
  const { description } = tools.find(({ name }) => name === 'register-pce-credentials')!
  t.notMatch(description, '/setup', 'without a login for browsers no description sends anybody there')
  partial(t, await call(token, 'check-pce-credentials-status'), { registered: false, mode: 'per_user' })
  partial(t, await call(token, 'get-server-changelog'), { server_version: String }, 'what needs no PCE answers')
  const registration = registrationFor(pce)
  partial(t, await call(token, 'register-pce-credentials', registration), { status: 'ok', connection: { ok: true } })
  partial(t, await call(token, 'get-labels', { key: 'env' }), ENVIRONMENTS, 'everything is there at once')
  await call(token, 'create-iplist', { name: 'fresh', ip_ranges: [{ from_ip: '10.9.0.0/16' }] })

  const asked = await call(token, 'provision-policy')
  partial(t, asked, { error: 'confirm_required', reason: 'missing', params_hash: /^[0-9a-f]{64}$/, summary: /IP list/ })
  const minted = await confirm(token, { tool: 'provision-policy', params_hash: asked.params_hash })
  partial(t, minted.json(), { confirm_token: String, expires_in: 120 })
  const meta = { confirm_token: minted.json().confirm_token }
  const runs = await Promise.all(Array.from({ length: 10 }, () => call(token, 'provision-policy', {}, meta)))
  t.equal(runs.filter(({ version }) => version !== undefined).length, 1, 'of ten at once one runs')
  t.equal(runs.filter(({ error }) => error === 'confirm_token_replay').length, 9)
  partial(t, await call(token, 'delete-pce-credentials'), { status: 'ok' })
  partial(t, await call(token, 'get-labels'), { error: 'no_pce_credentials' })

  const jti = audit.find(({ route }) => route === '/confirm')?.confirm_jti
  partial(
    t,
    audit
      .filter(({ confirm_jti }) => confirm_jti === jti && jti !== undefined)
      .map(({ phase, decision, outcome }) => [phase, decision ?? outcome].join(' '))
      .sort(),
    ['decision allowed', 'decision allowed', ...Array<string>(9).fill('decision denied'), 'outcome success'],
    'the id of the token ties its minting to its one use, and to the nine refusals',
  )
  t.ok(audit.every(({ sub, iss }) => sub === 'ann' && iss === 'https://idp.example.test/'))
  const everything = JSON.stringify([audit, log])
  for (const secret of [registration.api_secret, token, meta.confirm_token, token.split('.')[2]!])
    t.notMatch(everything, secret, 'no secret is in the audit log or, at level trace, in the log')
  for (const { scheme, headers, path } of pce.simulator.requests) {
    t.ok(scheme === 'Basic' || (scheme === null && path.endsWith('/health')), `${path}: ${scheme}`)
    t.notMatch(JSON.stringify(headers), token, 'the access token goes nowhere: the PCE sees its own key alone')
  }
})

t.test('roles', async (t) => {
  const { tokenOf, call, send, audit } = await serviceOf('shared')
  const before = audit.length
  const nobody = await tokenOf('nobody', null)
  t.equal((await send(nobody, LIST)).json().result.tools.length, DEFAULT_NAMES.length, 'the list needs no role')
  partial(t, await call(nobody, 'get-labels'), { error: 'forbidden_no_role' })
  partial(t, await call(await tokenOf('rae', 'reader'), 'create-label', { key: 'app', value: 'x' }), {
    error: 'forbidden',
    allowed_roles: ['operator', 'admin'],
  })
  partial(t, await call(await tokenOf('rae', 'reader'), 'get-labels', { key: 'env' }), ENVIRONMENTS)
  partial(t, await call(await tokenOf('otto', 'operator'), 'provision-policy'), { error: 'forbidden' })
  partial(
    t,
    await call(await tokenOf('otto', 'operator'), 'register-pce-credentials', {
      pce_host: 'x',
      pce_port: 1,
      pce_org_id: 1,
      api_key: 'a',
      api_secret: 'b',
    }),
    { error: 'shared_mode' },
  )
  partial(t, await call(await tokenOf('otto', 'operator'), 'check-pce-credentials-status'), {
    registered: true,
    mode: 'shared',
  })
  partial(t, await call(await tokenOf('otto', 'operator'), 'no-such-tool'), { error: { code: -32602 } })
  t.same(answered(audit.slice(before)), [
    ['decision', 'denied', 'get-labels', 'forbidden_no_role'],
    ['decision', 'denied', 'create-label', 'forbidden'],
    ['decision', 'allowed', 'get-labels'],
    ['outcome', 'success', 'get-labels'],
    ['decision', 'denied', 'provision-policy', 'forbidden'],
    ['decision', 'allowed', 'register-pce-credentials'],
    ['outcome', 'error', 'register-pce-credentials', 'shared_mode'],
    ['decision', 'allowed', 'check-pce-credentials-status'],
    ['outcome', 'success', 'check-pce-credentials-status'],
    ['decision', 'error', 'no-such-tool', 'unknown_tool'],
  ])
})

t.test('checks the role before the PCE', async (t) => {
  const { tokenOf, call, confirm } = await serviceOf('per_user')
  const refusals = async (token: string) => [
    (await call(token, 'provision-policy')).error,
    (await confirm(token, { tool: 'provision-policy', params_hash: 'a'.repeat(64) })).json().error,
  ]
  t.same(await refusals(await tokenOf('nobody', null)), ['forbidden_no_role', 'forbidden_no_role'])
  t.same(await refusals(await tokenOf('otto', 'operator')), ['forbidden', 'forbidden'])
  t.same(await refusals(await tokenOf('ann')), ['no_pce_credentials', 'no_pce_credentials'])
})

t.test('two users never share data', async (t) => {
  const { tokenOf, call, pce } = await startService(t)
  const second = await startPce(t, { seed: 2 })
  const [ann, ben] = [await tokenOf('ann'), await tokenOf('ben')]
  await call(ann, 'register-pce-credentials', registrationFor(pce))
  await call(ben, 'register-pce-credentials', registrationFor(second))
  pce.simulator.clearRequests()
  second.simulator.clearRequests()
  await call(ann, 'create-label', { key: 'app', value: 'of-ann' })
  await call(ben, 'create-label', { key: 'app', value: 'of-ben' })
  const written = (simulator: typeof pce.simulator) =>
    simulator.requests.flatMap(({ method, body }) => (method === 'POST' ? [(body as { value: string }).value] : []))
  t.same(written(pce.simulator), ['of-ann'])
  t.same(written(second.simulator), ['of-ben'])
  partial(t, await call(ann, 'get-labels', { key: 'app', value: 'of-ben' }), { total_count: 0 })
  const sameName = await tokenOf('ann', 'admin', { iss: 'https://idp.example.test/' })
  partial(t, await call(sameName, 'check-pce-credentials-status'), { registered: true })
})

t.test('a confirm token is valid only for its PCE and with its state file', async (t) => {
  const first = await startService(t)
  const { tokenOf, call, confirm, pce } = first
  const ann = await tokenOf('ann')
  const other = await startPce(t, { seed: 1 })
  await call(ann, 'register-pce-credentials', registrationFor(pce))
  const args = { hrefs: ['/orgs/1/sec_policy/draft/ip_lists/1'], dry_run: true }
  const asked = await call(ann, 'provision-policy', args)
  t.equal(asked.pce, `https://127.0.0.1:${pce.port} org 1`, 'who decides is told where it would happen')
  const minted = (await confirm(ann, { tool: 'provision-policy', params_hash: asked.params_hash })).json()
  await call(ann, 'create-iplist', { name: 'fresh', ip_ranges: [{ from_ip: '10.9.0.0/16' }] })
  const shown = (await call(ann, 'provision-policy')).confirm.body

  await call(ann, 'register-pce-credentials', registrationFor(other))
  other.simulator.clearRequests()
  const elsewhere = await call(ann, 'provision-policy', args, minted)
  partial(t, elsewhere, { error: 'confirm_required', reason: 'mismatch', pce: `https://127.0.0.1:${other.port} org 1` })

  partial(t, (await confirm(ann, shown)).json(), { error: 'confirm_required', reason: 'stale' }, 'nor is a question')

  const second = await startService(t)
  const annThere = await second.tokenOf('ann')
  await second.call(annThere, 'register-pce-credentials', registrationFor(pce))
  const again = await second.call(annThere, 'provision-policy', args, minted)
  partial(
    t,
    again,
    { error: 'confirm_required', reason: 'mismatch', pce: asked.pce },
    'another file has never seen it, though all else is the same',
  )
})

t.test("calls leave no listeners on their caller's signal", async (t) => {
  const { app } = await serviceOf('shared')
  const { signal } = new AbortController()
  const caller = { mode: 'shared', role: 'admin', iss: 'i', sub: 's' } as const
  for (const name of ['get-server-changelog', 'delete-label', 'no-such-tool']) {
    await app.dispatcher.dispatch(
      { name, arguments: {}, requestId: 'r', sender: { signal }, progress: () => {} },
      { caller, transport: 'http', pce: null, credentials: noCredentials },
    )
  }
  t.same(getEventListeners(signal, 'abort'), [])
})

t.test('the browser form counts against the same limit', async (t) => {
  const { app, tokenOf, send } = await startService(t, { rates: { perCaller: 3 } })
  const authorization = `Bearer ${await tokenOf('ann')}`
  const look = () => app.inject({ url: '/setup', headers: { ...HOST, authorization, accept: 'text/html' } })
  for (let time = 0; time < 3; time++) t.equal((await look()).statusCode, 200)
  t.equal((await look()).statusCode, 429)
  t.equal((await send(await tokenOf('ann'), PING)).statusCode, 429)
  t.equal((await send(await tokenOf('ann'), PING, { url: '/mcp/' })).statusCode, 429)
  t.equal((await send(await tokenOf('ben'), PING)).statusCode, 200)
})

t.test('/mcp/ is guarded as /mcp, and neither answers the preflight of a browser', async (t) => {
  const { app, send } = await serviceOf('per_user')
  for (const url of ['/mcp', '/mcp/']) {
    const bare = await send(null, PING, { url })
    t.equal(bare.statusCode, 401, url)
    partial(t, bare.headers, { 'www-authenticate': CHALLENGE }, url)
    for (const [origin, status] of [
      [PUBLIC_URL, 401],
      ['https://evil.example', 403],
    ] as const) {
      const headers = { ...HOST, origin, 'access-control-request-method': 'POST' }
      const answer = await app.inject({ method: 'OPTIONS', url, headers })
      const cors = Object.keys(answer.headers).filter((name) => name.startsWith('access-control-'))
      t.same([answer.statusCode, cors], [status, []], `${url} ${origin}`)
    }
  }
})

t.test('unknown callers cannot fill the audit log', async (t) => {
  const { app, audit, log, tokenOf } = await serviceOf('per_user')
  const before = { audit: audit.length, log: log.length }
  const forged = { authorization: `Bearer ${await tokenOf('ann', 'admin', { exp: 1 })}` }
  for (const url of ['/setup', '/confirm', '/mcp']) {
    for (const headers of [{}, forged]) {
      const refused = await app.inject({ method: 'POST', url, headers: { ...HOST, ...headers } })
      t.equal(refused.statusCode, 401, url)
    }
  }
  t.same(audit.slice(before.audit), [])
  const ERROR = 50
  t.same(
    log.slice(before.log).filter(({ level }) => Number(level) >= ERROR),
    [],
    'nor is it an error of this server',
  )
})

t.test('nor can callers over their limit', async (t) => {
  const { app, audit, log, tokenOf, confirm } = await startService(t, { rates: { perCaller: 3, confirmPerCaller: 1 } })
  const ann = await tokenOf('ann')
  const ask = { tool: 'provision-policy', params_hash: 'a'.repeat(64) }
  const answers = []
  for (let time = 0; time < 6; time++) answers.push((await confirm(ann, ask)).statusCode)
  t.same(answers, [403, 429, 429, 429, 429, 429])
  const form = await app.inject({ method: 'POST', url: '/setup', headers: { ...HOST, authorization: `Bearer ${ann}` } })
  t.equal(form.statusCode, 429)
  partial(t, audit, [{ route: '/confirm', sub: 'ann', reason: 'no_pce_credentials' }])
  t.equal(audit.length, 1)
  t.equal(log.filter(({ error }) => error === 'rate_limited').length >= 5, true, 'the server log has them')
})

t.test("logs a client's name short and on one line", async (t) => {
  const { audit, tokenOf, send, confirm } = await serviceOf('shared')
  const before = audit.length
  const ann = await tokenOf('ann')
  const headers = { 'user-agent': `agent/1\u0085\u009b31m ${'x'.repeat(500)}` }
  const params = { name: 'get-server-changelog' }
  await send(ann, { jsonrpc: '2.0', id: 1, method: 'tools/call', params }, { headers })
  await confirm(ann, { tool: 'provision-policy', params_hash: 'a'.repeat(64) }, headers)
  const written = audit.slice(before)
  t.same(new Set(written.map(({ client }) => client)), new Set([`agent/1 31m ${'x'.repeat(115)}`]))
  t.equal(written.length, 3)
})

t.test('keeps an access token in a request URL out of the log', async (t) => {
  const { app, log, tokenOf } = await serviceOf('shared')
  const before = log.length
  const token = await tokenOf('ann')
  for (const url of [`/${token}`, `/mcp/${token}/labels`, `/mcp?access_token=${token}`])
    await app.inject({ url, headers: HOST })
  const written = log.slice(before)
  const paths = written.flatMap(({ msg, path }) => (msg === 'request' ? [path] : []))
  t.same(paths, ['/[token]', '/mcp/[token]/labels', '/mcp'])
  t.equal(JSON.stringify(written).includes(token.split('.')[1]!), false)
})

t.test("one caller's limits do not affect others", async (t) => {
  const { tokenOf, send, confirm } = await startService(t, {
    mode: 'shared',
    rates: { perCaller: 5, confirmPerCaller: 2 },
  })
  const [loud, quiet] = [await tokenOf('loud'), await tokenOf('quiet')]
  for (let time = 0; time < 5; time++) t.equal((await send(loud, PING)).statusCode, 200)
  const refused = await send(loud, PING)
  t.equal(refused.statusCode, 429)
  const seconds = Number(refused.headers['retry-after'])
  t.ok(seconds >= 1 && seconds <= 60)
  partial(t, refused.json(), { error: { code: -32000, data: { error: 'rate_limited', retry_after: Number } } })
  t.equal((await send(quiet, PING)).statusCode, 200)
  const batch = Array.from({ length: 5 }, (_, id) => ({ ...PING, id }))
  const counted = await send(quiet, batch)
  t.equal(counted.statusCode, 429, 'a batch counts as often as it has requests')

  const third = await tokenOf('third')
  const ask = { tool: 'provision-policy', params_hash: 'a'.repeat(64) }
  t.equal((await confirm(third, ask)).statusCode, 200)
  t.equal((await confirm(third, ask)).statusCode, 200)
  const more = await confirm(third, ask)
  t.equal(more.statusCode, 429)
  partial(t, more.json(), { error: 'rate_limited' })
  t.equal((await send(third, PING)).statusCode, 200, 'which is a limit of its own')
})

t.test('one caller cannot take every slot', async (t) => {
  const hold = gate()
  const held = defineTool({
    ...openTool,
    name: 'hold',
    effect: 'read',
    input: Type.Object({}, { additionalProperties: false }),
    output: Type.Object({ text: Type.String() }),
    async handler() {
      hold.arrive()
      await hold.opened
      return { text: 'done' }
    },
  })
  const tools: readonly AnyTool[] = [held]
  const { tokenOf, send } = await startService(t, { mode: 'shared', tools, rates: { inFlightPerCaller: 1 } })
  const [busy, other] = [await tokenOf('busy'), await tokenOf('other')]
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'hold' } }
  const first = send(busy, call)
  await hold.arrived
  const second = await send(busy, PING)
  t.equal(second.statusCode, 503)
  partial(t, second.json(), { error: { data: { error: 'overloaded' } } })
  t.equal((await send(other, PING)).statusCode, 200)
  hold.open()
  t.equal((await first).statusCode, 200)
  t.equal((await send(busy, PING)).statusCode, 200, 'a place that was left is free again')
})

t.test('readiness reports the actual state', async (t) => {
  const { app, keys, lifecycle, send, tokenOf, log } = await startService(t, { keysAreDown: true })
  const ready = () => app.inject({ url: '/readyz', headers: { authorization: 'Basic garbage' } })
  const refused = await ready()
  t.equal(refused.statusCode, 503)
  t.same(refused.json(), { status: 'unavailable', check: 'signing keys' }, 'why is for the log')
  partial(
    t,
    log.filter(({ msg }) => msg === 'not ready'),
    [{ check: 'signing keys' }],
  )
  const unchecked = await send(await tokenOf('ann'), PING)
  t.equal(unchecked.statusCode, 503, 'keys that were never loaded say nothing about a token')
  t.ok(Number(unchecked.headers['retry-after']) >= 1)
  t.notOk(unchecked.headers['www-authenticate'])
  t.equal((await app.inject('/healthz')).statusCode, 200)
  t.ok(keys.fetches > 0)
  lifecycle.isDraining = true
  t.same((await ready()).json(), { status: 'draining' })
})

t.test('every answer carries a request id and the security headers', async (t) => {
  const { app, send, tokenOf } = await serviceOf('per_user')
  const token = await tokenOf('ann')
  const answers = {
    '/healthz': await app.inject('/healthz'),
    '/readyz': await app.inject('/readyz'),
    metadata: await app.inject({ url: '/.well-known/oauth-protected-resource', headers: HOST }),
    'no token': await send(null, PING),
    list: await send(token, LIST),
    'bad json': await send(token, '{'),
    'too large': await send(token, `{"a":"${'x'.repeat(1024 * 1024)}"}`),
    compressed: await send(token, PING, { headers: { 'content-encoding': 'gzip' } }),
    'confirm, unknown tool': await send(token, { tool: 'x', params_hash: 'a'.repeat(64) }, { url: '/confirm' }),
    'confirm, too large': await send(token, { tool: 'x'.repeat(5000), params_hash: '' }, { url: '/confirm' }),
    setup: await app.inject({
      url: '/setup',
      headers: { ...HOST, authorization: `Bearer ${token}`, accept: 'text/html' },
    }),
    unknown: await app.inject({ url: '/nothing', headers: HOST }),
    'wrong host': await app.inject({ url: '/mcp', headers: { host: 'evil.example' } }),
  }
  const statuses = Object.fromEntries(Object.entries(answers).map(([what, { statusCode }]) => [what, statusCode]))
  t.same(statuses, {
    '/healthz': 200,
    '/readyz': 200,
    metadata: 200,
    'no token': 401,
    list: 200,
    'bad json': 400,
    'too large': 413,
    compressed: 415,
    'confirm, unknown tool': 404,
    'confirm, too large': 413,
    setup: 200,
    unknown: 404,
    'wrong host': 403,
  })
  for (const [what, { headers }] of Object.entries(answers)) {
    partial(
      t,
      headers,
      {
        'x-request-id': /^[0-9a-f-]{36}$/,
        'x-content-type-options': 'nosniff',
        'x-frame-options': 'DENY',
        'referrer-policy': 'no-referrer',
        'content-security-policy': /default-src 'none'.*frame-ancestors 'none'/,
        'strict-transport-security': /max-age=\d{7,}/,
        'cache-control': what === 'metadata' ? 'public, max-age=300' : 'no-store',
      },
      what,
    )
    t.notOk(headers['x-powered-by'] ?? headers.server, 'it does not say what it is made of')
  }
})

t.test('long headers', async (t) => {
  const { app, tokenOf } = await serviceOf('shared')
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo
  const statusOf = (authorization: string, more: Record<string, string> = {}) =>
    new Promise<number | undefined>((resolve, reject) => {
      const headers = {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        authorization,
        ...more,
      }
      httpRequest({ port, host: '127.0.0.1', path: '/mcp', method: 'POST', headers }, (answer) => {
        answer.resume()
        resolve(answer.statusCode)
      })
        .on('error', reject)
        .end(JSON.stringify(PING))
    })
  const groups = Array.from({ length: 200 }, (_, index) => `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`)
  const token = await tokenOf('ann', 'admin', { groups: [...groups, 'g-admin'] })
  t.ok(token.length > 10_000)
  t.equal(await statusOf(`Bearer ${token}`), 200, 'a token with two hundred groups is taken')
  t.equal(await statusOf(`Bearer ${'x'.repeat(13_000)}`), 401, 'one beyond any use is refused unread')
  t.equal(await statusOf(`Bearer ${token}`, { 'x-more': 'x'.repeat(40_000) }), 431)
})
