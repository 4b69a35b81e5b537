/**
 * svc-mcp-http behind nginx with the example configuration that users copy: two processes on Unix sockets that share one keystore, TLS,
 * HTTP/1.1 and HTTP/2.
 */
import { statSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { freePort } from '../free-port.js'
import { Browser } from '../identity/browser.js'
import { startIdentityProvider } from '../identity/identity-provider.js'
import { contains, partial } from '../partial.js'
import { createWorld, GROUP_OF, type World } from './support/authenticated-world.js'
import { callTool, confirm, eventsOf, mintFor, post, type Json } from './support/call-tool.js'
import { sendRequest, type Target } from './support/send-request.js'
import { startNginx } from './support/start-nginx.js'
import { trustingFetch } from './support/trusting-fetch.js'
import { found, within } from './support/within.js'

const VERSIONS = ['1.1', '2'] as const
const PING = { jsonrpc: '2.0', id: 1, method: 'ping' }
/** How often a request is repeated that a proxy loses now and then. */
const REPEATS = 10
const LOAD = 4
const dayOf = (daysAgo: number) => new Date(Date.now() - daysAgo * 86_400_000).toISOString().slice(0, 10)
const LAST_WEEK = { start_date: dayOf(7), end_date: dayOf(0) }

const port = await freePort()
const PUBLIC_URL = `https://localhost:${port}`
const idp = await startIdentityProvider(t, {
  people: {
    alice: { groups: [GROUP_OF.admin] },
    // Entra ID and its like put a GUID there for every group.
    many: {
      groups: [
        GROUP_OF.admin,
        ...Array.from({ length: 210 }, (_, n) => `7c1f9d52-64a6-4f0e-8e0b-${String(n).padStart(12, '0')}`),
      ],
    },
    longest: { sub: 'ü'.repeat(250), groups: [GROUP_OF.reader] },
  },
})
const client = idp.allowRedirects([`${PUBLIC_URL}/setup/callback`])
const world = await createWorld(t, { publicUrl: PUBLIC_URL, idp })
const { pce } = world
Object.assign(world.env, {
  MCP_OAUTH_CLIENT_ID: client.clientId,
  MCP_OAUTH_CLIENT_SECRET: client.clientSecret,
  MCP_RESPONSE_BUDGET_BYTES: '800000',
  MCP_TRUSTED_PROXIES: 'unix',
})

const socketOf = (name: string) => join(world.folder, `${name}.sock`)
const auditOf = (name: string) => join(world.folder, `${name}.audit`)
/** Starts one of the two; a second time after the first has ended. */
const start = (name: 'a' | 'b') =>
  world.serve({ args: ['--socket', socketOf(name)], env: { MCP_AUDIT_LOG_PATH: auditOf(name) } })
const processes = { a: await start('a'), b: await start('b') }
const nginx = await startNginx(t, {
  port,
  certificate: world.certificate,
  servers: ['a', 'b'].map((name) => `server unix:${socketOf(name as 'a' | 'b')} max_fails=0;`),
})

const over = (version: '1.1' | '2'): Target => ({ origin: PUBLIC_URL, ca: world.certificate.cert, version })
const direct = over('1.1')
const tokenOf = async (login: string) => (await idp.tokensFor(login, { resource: PUBLIC_URL })).accessToken
const alice = await tokenOf('alice')
const audit = () => ['a', 'b'].flatMap((name) => world.auditEntries(auditOf(name)))

await callTool(direct, alice, 'register-pce-credentials', pce.registration)

t.test('challenge and metadata name the public URL, whatever the Host', async (t) => {
  for (const version of VERSIONS) {
    const refused = await post(over(version), null, PING)
    t.equal(refused.status, 401)
    contains(
      t,
      refused.headers['www-authenticate'],
      `Bearer resource_metadata="${PUBLIC_URL}/.well-known/oauth-protected-resource"`,
    )
    t.equal(refused.headers['cache-control'], 'no-store')
    t.equal((await post(over(version), alice, PING, { path: '/mcp/' })).status, 200)
    for (const end of ['', '/mcp', '/mcp/']) {
      const path = `/.well-known/oauth-protected-resource${end}`
      const headers = { 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'http' }
      const metadata = await sendRequest(over(version), { method: 'GET', path, headers })
      partial(t, JSON.parse(metadata.body), { resource: PUBLIC_URL, authorization_servers: [idp.issuer] })
    }
    const health = await sendRequest(over(version), { method: 'GET', path: '/readyz' })
    t.same([health.status, JSON.parse(health.body)], [200, { status: 'ready' }])
  }
})

t.test('Authorization passes unchanged, even a token of 12 KB', async (t) => {
  const long = await tokenOf('many')
  t.ok(long.length > 11_500 && long.length <= 12_288, `${long.length} characters`)
  for (const version of VERSIONS) {
    for (const token of [alice, long]) t.equal((await post(over(version), token, PING)).status, 200)
    const spoilt = `${alice.slice(0, -2)}${alice.endsWith('AA') ? 'BB' : 'AA'}`
    t.equal((await post(over(version), spoilt, PING)).status, 401)
    t.equal((await post(over(version), null, PING, { headers: { authorization: `bearer ${alice}` } })).status, 200)
  }
})

t.test('headers that narrow the offer reach the server', async (t) => {
  const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
  const headers = {
    'X-MCP-Readonly': 'true',
    'X-MCP-Toolsets': 'rules,provisioning',
    'X-MCP-Exclude-Tools': 'get-events',
  }
  for (const version of VERSIONS) {
    const { body } = await post(over(version), alice, list, { headers })
    const names = JSON.parse(body).result.tools.map(({ name }: { name: string }) => name)
    t.same(names, ['check-pce-credentials-status', 'compare-draft-active', 'get-rulesets'], version)
    const refused = await post(over(version), alice, list, { headers: { 'X-MCP-Tools': 'no-such-tool' } })
    t.equal(refused.status, 400, version)
  }
})

t.test('the audit log names the client as nginx sees it, whatever the client claims', async (t) => {
  const call = { ...PING, method: 'tools/call', params: { name: 'get-labels', arguments: { key: 'env' } } }
  const headers = { 'x-test-address': '203.0.113.50', 'x-forwarded-for': '6.6.6.6', 'x-real-ip': '6.6.6.6' }
  for (const version of VERSIONS) {
    const answer = await post(over(version), alice, call, { headers })
    t.equal(answer.status, 200)
    const id = answer.headers['x-request-id']
    t.same(
      audit().flatMap(({ request_id, client_address }) => (request_id === id ? [client_address] : [])),
      ['203.0.113.50', '203.0.113.50'],
    )
  }
})

t.test('the same request id appears in the answer, in the audit log and at the PCE', async (t) => {
  const ask = async (version: '1.1' | '2', headers: Record<string, string>) => {
    pce.simulator.clearRequests()
    const call = { ...PING, method: 'tools/call', params: { name: 'get-labels', arguments: { key: 'env' } } }
    const answer = await post(over(version), alice, call, { headers })
    t.equal(answer.status, 200)
    const id = answer.headers['x-request-id'] as string
    t.same(
      audit()
        .filter(({ request_id: noted }) => noted === id)
        .map(({ phase }) => phase),
      ['decision', 'outcome'],
      'both audit entries bear it',
    )
    const atPce = pce.simulator.requests.map((request) => request.headers['x-request-id'])
    t.ok(atPce.length > 0 && atPce.every((other) => other === id), 'as does every request at the PCE')
    return id
  }
  for (const version of VERSIONS) {
    const given = `trace-${version}:1_a`
    t.equal(await ask(version, { 'x-request-id': given }), given)
    const made = await ask(version, {})
    t.match(made, /^[0-9a-f]{32}$/)
    t.not(await ask(version, {}), made)
    for (const odd of ['two words', 'x'.repeat(129), '"><script>'])
      t.match(await ask(version, { 'x-request-id': odd }), /^[0-9a-f]{32}$/, `not ${odd.slice(0, 12)}`)
  }
})

t.test('progress arrives before the answer', async (t) => {
  for (const version of VERSIONS) {
    const held = pce.hold(({ method, path }) => method === 'GET' && path.includes('/async_queries/'))
    let text = ''
    let arrived = () => {}
    const first = new Promise<void>((resolve) => (arrived = resolve))
    const params = {
      name: 'get-traffic-flows',
      arguments: LAST_WEEK,
      _meta: { progressToken: 0 },
    }
    const call = post(
      over(version),
      alice,
      { ...PING, method: 'tools/call', params },
      {
        onData(chunk) {
          text += chunk
          if (eventsOf(text).length > 0) arrived()
        },
      },
    )
    await within(held.reached, 'the query is asked for')
    await within(first, `HTTP/${version}: an event while the PCE keeps the answer back`)
    t.ok(
      eventsOf(text).every(({ method }) => method === 'notifications/progress'),
      'which is progress',
    )
    held.release()
    const answer = await call
    contains(t, answer.headers['content-type'], 'text/event-stream')
    const events = eventsOf(answer.body)
    const steps: number[] = events.slice(0, -1).map(({ params: { progress } }) => progress)
    t.ok(steps.length > 1 && steps.every((step, n) => n === 0 || step > steps[n - 1]!), `it goes on: ${steps.join()}`)
    t.ok(events.at(-1).result.structuredContent, 'the answer comes last')
  }
})

t.test('a client that leaves ends a read but not a write', async (t) => {
  for (const version of VERSIONS) {
    const leave = async (name: string, args: object, matches: Parameters<typeof pce.hold>[0]) => {
      const id = `left-${version}-${name}`
      const held = pce.hold(matches)
      const leaving = new AbortController()
      const call = callTool(over(version), alice, name, args, {
        signal: leaving.signal,
        headers: { 'x-request-id': id },
      })
      await within(held.reached, 'the PCE is asked')
      const before = abandoned()
      leaving.abort()
      await t.rejects(call)
      await found(() => abandoned() !== before, 'nginx has hung up on the service too')
      // Whatever the service is asked after that, it has heard of the end of the connection by the time it answers.
      for (const { target } of Object.values(processes)) await callTool(target, alice, 'get-server-changelog')
      const outcomeOf = () => audit().find((entry) => entry.request_id === id && entry.phase === 'outcome')
      return { held, outcome: () => found(outcomeOf, 'the outcome is audited') }
    }
    const reading = await leave('get-workloads', {}, ({ path }) => path.endsWith('/workloads'))
    await within(reading.held.gone, `HTTP/${version}: the request to the PCE is given up`)
    partial(t, await reading.outcome(), { outcome: 'error', reason: 'cancelled', client_gone: true })
    reading.held.release()

    const label = { key: 'app', value: `left-over-${version}` }
    const isWrite = ({ method, path }: { method: string; path: string }) =>
      method === 'POST' && path.endsWith('/labels')
    const writing = await leave('create-label', label, isWrite)
    writing.held.release()
    partial(t, await writing.outcome(), { outcome: 'success', client_gone: true })
    const { labels } = await callTool(direct, alice, 'get-labels', label)
    t.equal(labels.length, 1, 'the label was made')
  }
})

t.test("large answers arrive complete, and large bodies get the server's own refusal", async (t) => {
  const big = JSON.stringify({ ...PING, params: { filler: 'x'.repeat(1024 * 1024) } })
  for (let n = 0; n < 4; n++) {
    const ranges = Array.from({ length: 200 }, (_, m) => ({
      from_ip: `10.${n}.${m}.0/24`,
      description: 'y'.repeat(900),
    }))
    await callTool(direct, alice, 'create-iplist', { name: `large-${n}`, ip_ranges: ranges })
  }
  for (const version of VERSIONS) {
    const call = { ...PING, method: 'tools/call', params: { name: 'get-iplists', arguments: { name: 'large' } } }
    const answer = await post(over(version), alice, call)
    t.ok(answer.body.length > 500_000, `${answer.body.length} characters`)
    t.ok(JSON.parse(answer.body).result.structuredContent)
    for (let n = 0; n < REPEATS; n++) {
      const refused = await post(over(version), alice, big)
      const { jsonrpc, error } = refused.body.startsWith('{') ? JSON.parse(refused.body) : ({} as Json)
      partial(
        t,
        { status: refused.status, jsonrpc, error },
        { status: 413, jsonrpc: '2.0', error: { data: { error: 'payload_too_large' } } },
      )
      t.equal((await post(over(version), null, big)).status, 401, 'without a token, as if it were small')
    }
  }
})

t.test('/setup in a browser: redirects, cookies and forms belong to the public URL', async (t) => {
  const load = trustingFetch(world.certificate.cert)
  const browser = new Browser(load)
  const first = await browser.fetch(`${PUBLIC_URL}/setup`)
  t.equal(first.status, 302)
  t.equal(new URL(first.headers.get('location')!, PUBLIC_URL).href, `${PUBLIC_URL}/setup/login`)
  const login = await browser.fetch(`${PUBLIC_URL}/setup/login`)
  const authorize = new URL(login.headers.get('location')!)
  t.equal(authorize.origin, idp.origin)
  t.equal(authorize.searchParams.get('redirect_uri'), `${PUBLIC_URL}/setup/callback`)
  const [cookie = ''] = login.headers.getSetCookie()
  t.match(cookie, /^__Host-[^;]+;/)
  for (const part of ['Secure', 'HttpOnly', 'Path=/', 'SameSite=Lax']) contains(t, cookie, part)

  let page = await idp.logIn(browser, await browser.open(`${PUBLIC_URL}/setup`), 'alice')
  t.same([page.url, page.status], [`${PUBLIC_URL}/setup`, 200])
  const fields = Object.fromEntries(Object.entries(pce.registration).map(([name, value]) => [name, String(value)]))
  page = await browser.submit(page, fields)
  t.same([page.url, page.status], [`${PUBLIC_URL}/setup`, 200])
  t.match(page.body, /127\.0\.0\.1/, 'what is registered is shown')
  t.notMatch(page.body, pce.simulator.credentials.secret)
  for (let n = 0; n < 4; n++) t.equal((await browser.open(`${PUBLIC_URL}/setup`)).status, 200, 'at either process')
  const foreign = await browser.open(`${PUBLIC_URL}/setup`, {
    method: 'POST',
    headers: { origin: 'https://evil.example', 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams(fields),
  })
  t.equal(foreign.status, 403)

  const longest = new Browser(load)
  await idp.logIn(longest, await longest.open(`${PUBLIC_URL}/setup`), 'longest')
  for (let n = 0; n < 4; n++)
    t.equal((await longest.fetch(`${PUBLIC_URL}/setup/login?again=1`)).status, 302, 'the longest cookie passes')
})

t.test('both processes share credentials and used tokens', async (t) => {
  const [a, b] = [processes.a.target, processes.b.target]
  const registered = (target: Target) => callTool(target, alice, 'check-pce-credentials-status')
  partial(t, await callTool(a, alice, 'delete-pce-credentials'), { status: 'ok' })
  partial(t, await registered(b), { registered: false }, 'what one removes the other has not any more')
  partial(t, await callTool(b, alice, 'get-labels'), { error: 'no_pce_credentials' })
  await callTool(b, alice, 'register-pce-credentials', pce.registration)
  partial(t, await registered(a), { registered: true })

  for (let round = 0; round < 5; round++) {
    await callTool(a, alice, 'create-iplist', { name: `twice-${round}`, ip_ranges: [{ from_ip: '10.0.0.0/8' }] })
    const asked = await callTool(a, alice, 'provision-policy')
    const { json } = await confirm(b, alice, asked.confirm.body)
    const meta = { confirm_token: json.confirm_token }
    pce.simulator.clearRequests()
    const answers = await Promise.all(
      [a, b, a, b].map((target) => callTool(target, alice, 'provision-policy', {}, { meta })),
    )
    t.equal(provisionsAt(world), 1, 'sent to the PCE once')
    t.same(answers.map(({ error, version }) => error ?? typeof version).toSorted(), [
      'confirm_token_replay',
      'confirm_token_replay',
      'confirm_token_replay',
      'number',
    ])
  }
})

t.test('through nginx, any process can show, mint and redeem', async (t) => {
  for (const version of VERSIONS) {
    const name = `round-trip-${version}`
    await callTool(over(version), alice, 'create-iplist', { name, ip_ranges: [{ from_ip: '10.0.0.0/8' }] })
    const meta = { confirm_token: await mintFor(over(version), alice, 'provision-policy') }
    partial(t, await callTool(over(version), alice, 'provision-policy', {}, { meta }), { version: Number })
    partial(t, await callTool(over(version), alice, 'provision-policy', {}, { meta }), {
      error: 'confirm_token_replay',
    })
  }
})

t.test('a rolling restart under load loses no request', async (t) => {
  const load = startLoad(t)
  await load.grow(5 * LOAD)
  for (const name of ['a', 'b'] as const) {
    const { code } = await processes[name].stop()
    t.equal(code, 0, `${name} ends well`)
    await load.grow(5 * LOAD)
    processes[name] = await start(name)
    await load.grow(5 * LOAD)
  }
  const { answered, failures } = await load.stop()
  t.same(failures, [], `0 of ${answered} requests failed`)
  const callsOf = (name: string) =>
    world.auditEntries(auditOf(name)).filter(({ request_id: id }) => id === 'load').length
  t.ok(callsOf('a') > 0 && callsOf('b') > 0, `${callsOf('a')} and ${callsOf('b')} audit entries`)
  t.equal(callsOf('a') + callsOf('b'), 2 * answered, 'each call has its two')
})

t.test('a change is not resent when its process dies', async (t) => {
  const label = { key: 'app', value: 'once' }
  const held = pce.hold(({ method, path }) => method === 'POST' && path.endsWith('/labels'))
  const call = post(direct, alice, {
    ...PING,
    method: 'tools/call',
    params: { name: 'create-label', arguments: label },
  })
  await within(held.reached, 'the PCE is asked')
  const isAt = (name: 'a' | 'b') => (world.auditEntries(auditOf(name)).at(-1)?.tool === 'create-label' ? name : null)
  const busy = isAt('a') ?? isAt('b')!
  await processes[busy].stop('SIGKILL')
  const answer = await call
  t.equal(answer.status, 502)
  t.ok(answer.headers['x-request-id'], 'nginx names the request too')
  pce.simulator.clearRequests()
  held.release()
  partial(t, await callTool(direct, alice, 'get-labels', { key: 'env' }), { labels: Array }, 'the other one serves on')
  const writes = pce.simulator.requests.filter(({ method }) => method === 'POST')
  t.ok(writes.length <= 1, 'nobody tried again')
})

t.test('a socket accepts connections from those the umask allows', async (t) => {
  for (const [umask, mode] of [
    ['0007', 0o770],
    ['0077', 0o700],
  ] as const) {
    const path = socketOf(umask)
    const program = await world.serve({
      args: ['--socket', path],
      env: { MCP_AUDIT_LOG_PATH: auditOf(umask) },
      through: ['bash', '-c', `umask ${umask}; exec "$@"`, 'bash'],
    })
    t.equal(statSync(path).mode & 0o777, mode)
    t.equal(statSync(auditOf(umask)).mode & 0o777, 0o600, 'the audit log stays its own')
    t.equal((await program.stop()).code, 0)
  }
})

t.test('a public URL with a path', async (t) => {
  const port = await freePort()
  const publicUrl = `https://localhost:${port}/policy`
  idp.allowRedirects([`${publicUrl}/setup/callback`])
  t.teardown(() => idp.allowRedirects([`${PUBLIC_URL}/setup/callback`]))
  const path = socketOf('path')
  const env = { MCP_AUDIT_LOG_PATH: auditOf('path'), MCP_PUBLIC_URL: publicUrl }
  await world.serve({ args: ['--socket', path], env })
  const { certificate } = world
  await startNginx(t, { port, certificate, servers: [`server unix:${path};`], hasPath: true })
  const target: Target = { origin: new URL(publicUrl).origin, ca: certificate.cert }
  const get = (path: string) => sendRequest(target, { method: 'GET', path })

  const call = { path: '/policy/mcp', body: JSON.stringify(PING) }
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
  const refused = await sendRequest(target, { ...call, headers })
  t.equal(refused.status, 401)
  const named = /resource_metadata="([^"]+)"/.exec(refused.headers['www-authenticate']!)![1]!
  t.equal(named, `${publicUrl}/.well-known/oauth-protected-resource`)
  const wellKnown = '/.well-known/oauth-protected-resource/policy'
  const places = [new URL(named).pathname, wellKnown].flatMap((place) => [place, `${place}/mcp`, `${place}/mcp/`])
  for (const place of places) partial(t, JSON.parse((await get(place)).body), { resource: publicUrl }, place)
  const admitted = await sendRequest(target, { ...call, headers: { ...headers, authorization: `Bearer ${alice}` } })
  t.equal(admitted.status, 200)

  const browser = new Browser(trustingFetch(certificate.cert))
  let page = await idp.logIn(browser, await browser.open(`${publicUrl}/setup`), 'alice')
  t.same([page.url, page.status], [`${publicUrl}/setup`, 200])
  const fields = Object.fromEntries(Object.entries(pce.registration).map(([name, value]) => [name, String(value)]))
  page = await browser.submit(page, fields)
  t.same([page.url, page.status], [`${publicUrl}/setup`, 200])
  const { refused: late, served } = await insist(target, '/policy/setup/login', () => '192.0.2.2')
  t.equal(late.status, 429, `logins are limited, after ${served}`)
})

t.test("nginx's own answers carry a request id too", async (t) => {
  const id = 'answered-by-nginx'
  for (const version of VERSIONS) {
    const ask = (path: string, headers: Record<string, string> = {}) =>
      sendRequest(over(version), { method: 'GET', path, headers: { 'x-request-id': id, ...headers } })
    const large = await post(over(version), alice, 'x'.repeat(2 * 1024 * 1024 + 1), { headers: { 'x-request-id': id } })
    t.same([large.status, large.headers['x-request-id']], [413, id])
    contains(t, large.body, '<html>', 'by nginx')
    const broken = await ask('/%00')
    t.equal(broken.status, 400)
    t.match(broken.headers['x-request-id'], /./, 'also where no location was found')

    const { refused } = await insist(over(version), '/setup/login', () => '192.0.2.1', { 'x-request-id': id })
    t.same([refused.status, refused.headers['x-request-id']], [429, id])
    t.match(refused.headers['retry-after'], /^[1-9]\d*$/)
  }
})

t.test('flooding /setup does not lock others out', async (t) => {
  const ask = (path: string, address: string) =>
    sendRequest(direct, { method: 'GET', path, headers: { 'x-test-address': address } })
  const statusesOf = async (address: string) => [
    (await ask('/setup/login', address)).status,
    (await ask('/setup/logout', address)).status,
  ]
  for (const [network, addressOf, neighbour] of [
    ['an IPv4 address', () => '203.0.113.7', '203.0.113.8'],
    ['an IPv4 address in IPv6 clothes', () => '::ffff:203.0.113.9', '::ffff:203.0.113.10'],
    ['a /64', (n: number) => `2001:db8:1:2:${n.toString(16)}::${n + 1}`, '2001:db8:1:3::1'],
    ['a /64 with bytes that are none of a text', (n: number) => `2001:a0a:0:0:${n.toString(16)}::a`, '2001:a0a:0:a::a'],
  ] as const) {
    const logins = await insist(direct, '/setup/login', addressOf)
    t.equal(logins.refused.status, 429, `${network} is limited as one`)
    t.ok(logins.served >= 100, `after ${logins.served} logins at once`)
    t.equal((await ask('/setup/logout', addressOf(9))).status, 200, 'in what it may begin, not in the rest of /setup')
    // The bucket leaks: on a slow machine some more fit in by now.
    const later = await insist(direct, '/setup/login', (n) => addressOf(n + 9))
    t.ok(later.served < logins.served / 4, `${later.served} logins fit in again`)
    const pages = await insist(direct, '/setup/logout', addressOf)
    partial(t, pages.refused, { status: 429, headers: { 'retry-after': /^[1-9]/ } }, 'which has a limit of its own')
    t.same((await ask('/readyz', addressOf(9))).status, 200, 'and nothing else has one')
    t.same(await statusesOf(neighbour), [302, 200], 'others notice nothing')
  }
})

t.test("nginx's logs contain no secrets", async (t) => {
  const logs = nginx.log('access') + nginx.log('error')
  for (const secret of [alice, pce.simulator.credentials.secret, client.clientSecret!]) t.notMatch(logs, secret)
  const worries = logs
    .split('\n')
    .filter((line) => /\[(crit|alert|emerg)\]/.test(line) && !/unix:.* failed \(2: No such/.test(line))
  t.same(worries, [], 'nor anything that worries it, but for processes that were not there')
})

/** Asks again and again, each time from the next address, until it is refused; resolves with how often it was served before. */
async function insist(
  target: Target,
  path: string,
  addressOf: (n: number) => string,
  headers: Record<string, string> = {},
) {
  for (let served = 0; ; served++) {
    const sent = { method: 'GET', path, headers: { ...headers, 'x-test-address': addressOf(served) } }
    const refused = await sendRequest(target, sent)
    if (refused.status >= 400 || served === 1000) return { served, refused }
  }
}

/** How many requests nginx has given up because the client was gone. */
const abandoned = () => nginx.log('access').match(/" 499 /g)?.length ?? 0

/** How often the PCE was told to make policy active. */
function provisionsAt({ pce: { simulator } }: World): number {
  return simulator.requests.filter(({ method, path }) => method === 'POST' && path.endsWith('/sec_policy')).length
}

/** Reads, one after the other by each of a few clients of either version, until it is told to stop. */
function startLoad(t: Test) {
  let isOver = false
  let answered = 0
  const failures: string[] = []
  t.teardown(() => (isOver = true))
  const call = { ...PING, method: 'tools/call', params: { name: 'get-labels', arguments: { key: 'env' } } }
  const clients = Array.from({ length: LOAD }, async (_, n) => {
    while (!isOver) {
      try {
        const answer = await post(over(VERSIONS[n % 2]!), alice, call, { headers: { 'x-request-id': 'load' } })
        if (answer.status !== 200 || JSON.parse(answer.body).result.isError === true)
          failures.push(`${answer.status} ${answer.body.slice(0, 200)}`)
      } catch (error) {
        failures.push(String(error))
      }
      answered++
    }
  })
  return {
    /** Resolves once so many more have been answered. */
    async grow(by: number) {
      const goal = answered + by
      await found(() => answered >= goal, `${by} more are answered`)
    },
    async stop() {
      isOver = true
      await Promise.all(clients)
      return { answered, failures }
    },
  }
}
