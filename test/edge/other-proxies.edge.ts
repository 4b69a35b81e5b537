/** svc-mcp-http behind HAProxy and Apache, with the example configurations that users copy, over HTTP/1.1 and HTTP/2. */
import { connect } from 'node:http2'
import t, { type Test } from 'tap'
import { freePort } from '../free-port.js'
import { partial } from '../partial.js'
import { createWorld } from './support/authenticated-world.js'
import { callTool, eventsOf, post, type Json } from './support/call-tool.js'
import { sendRequest, type Target } from './support/send-request.js'
import { startApache, startHaproxy } from './support/start-other-proxies.js'
import { found, within } from './support/within.js'

const VERSIONS = ['1.1', '2'] as const
const PING = { jsonrpc: '2.0', id: 1, method: 'ping' }
const LABELS = { ...PING, method: 'tools/call', params: { name: 'get-labels', arguments: { key: 'env' } } }
const MIB = 1024 * 1024
/** How often a request is repeated that a proxy loses now and then. */
const REPEATS = 5
const STRANGERS = 12
/** What has not come by then never comes. Apache takes some seconds to notice that a client has left. */
const PATIENCE_MS = 40_000
/** A call that reports progress at least every two seconds. */
const LONG_CALL = {
  ...PING,
  method: 'tools/call',
  params: { name: 'get-workloads', arguments: {}, _meta: { progressToken: 0 } },
}

const [serverPort, haproxyPort, reusingPort, apachePort] = [
  await freePort(),
  await freePort(),
  await freePort(),
  await freePort(),
]
const world = await createWorld(t, { publicUrl: 'https://localhost' })
const { pce, certificate } = world
const server = await world.serve({
  args: ['--port', String(serverPort)],
  env: {
    MCP_TRUSTED_PROXIES: '127.0.0.1',
    MCP_AUDIT_LOG_PATH: world.auditPath,
    MCP_REFUSED_TOKENS_PER_MINUTE: '0',
  },
})
await startHaproxy(t, { port: haproxyPort, certificate, serverPort })
await startHaproxy(t, { port: reusingPort, certificate, serverPort, reuses: true })
await startApache(t, { port: apachePort, certificate, serverPort })
const alice = await world.tokenOf('alice')
const many = Array.from({ length: 200 }, (_, n) => `7c1f9d52-64a6-4f0e-8e0b-${String(n).padStart(12, '0')}`)
const long = await world.tokenOf('alice', 'admin', { groups: ['g-admin', ...many] })
const over = (port: number, version: '1.1' | '2'): Target => ({
  origin: `https://localhost:${port}`,
  ca: certificate.cert,
  version,
})
await callTool(server.target, alice, 'register-pce-credentials', pce.registration)

for (const [name, port] of [
  ['HAProxy', haproxyPort],
  ['Apache', apachePort],
] as const)
  t.test(name, (t) => behind(t, port))

/** What every example has to do. */
async function behind(t: Test, port: number) {
  for (const version of VERSIONS) {
    const target = over(port, version)
    await t.test(`HTTP/${version}: headers`, async (t) => {
      t.ok(long.length > 10_000, `a token of ${long.length} characters`)
      const headers = { 'x-forwarded-for': '6.6.6.6', 'x-forwarded-host': 'evil.example', 'x-request-id': `id-${port}` }
      const answer = await post(target, long, LABELS, { headers })
      t.same([answer.status, answer.headers['x-request-id']], [200, `id-${port}`])
      t.same(
        world.auditEntries().flatMap((entry) => (entry.request_id === `id-${port}` ? [entry.client_address] : [])),
        Array.from({ length: VERSIONS.indexOf(version) * 2 + 2 }, () => '127.0.0.1'),
        'the client is as the proxy sees it',
      )
      t.equal((await post(target, null, PING)).status, 401)
    })

    await t.test(`HTTP/${version}: an answer is streamed`, async (t) => {
      const held = pce.hold(({ path }) => path.endsWith('/workloads'))
      let text = ''
      const call = post(target, alice, LONG_CALL, { onData: (chunk) => (text += chunk) })
      await within(held.reached, 'the PCE is asked', PATIENCE_MS)
      const seen = eventsOf(text).length
      const isMore = () => eventsOf(text).length > seen
      await found(isMore, 'progress arrives while the PCE keeps the answer back', PATIENCE_MS)
      held.release()
      const events = eventsOf((await call).body)
      t.ok(events.at(-1).result.structuredContent)
    })

    await t.test(`HTTP/${version}: a client that leaves ends its call`, async (t) => {
      const held = pce.hold(({ path }) => path.endsWith('/workloads'))
      const leaving = new AbortController()
      const id = `left-${port}-${version}`
      const call = post(target, alice, LONG_CALL, { signal: leaving.signal, headers: { 'x-request-id': id } })
      await within(held.reached, 'the PCE is asked', PATIENCE_MS)
      leaving.abort()
      await call.catch(() => {})
      await within(held.gone, 'the request to the PCE is given up', PATIENCE_MS)
      held.release()
      const isOutcome = (entry: Json) => entry.request_id === id && entry.phase === 'outcome'
      const outcome = await found(() => world.auditEntries().find(isOutcome), 'the outcome is audited', PATIENCE_MS)
      partial(t, outcome, { reason: 'cancelled', client_gone: true })
    })

    await t.test(`HTTP/${version}: large bodies are refused, and the refusal arrives`, async (t) => {
      for (let n = 0; n < REPEATS; n++) {
        const large = await post(target, alice, 'x'.repeat(3 * MIB))
        const { error } = JSON.parse(large.body) as Json
        partial(t, { status: large.status, error }, { status: 413, error: { data: { error: 'payload_too_large' } } })
        t.equal((await post(target, null, 'x'.repeat(3 * MIB))).status, 401)
      }
    })
  }
}

t.test('a flood of logins ends at HAProxy', async (t) => {
  const target = over(haproxyPort, '1.1')
  const statuses: number[] = []
  for (let n = 0; n < 102; n++)
    statuses.push((await sendRequest(target, { method: 'GET', path: '/setup/login' })).status)
  t.same([statuses[99], statuses[101]], [statuses[0], 429])
  t.not(statuses[0], 429)
  t.equal((await sendRequest(target, { method: 'GET', path: '/readyz' })).status, 200)
})

t.test('requests of others do not end up behind half a body that was refused', async (t) => {
  const target = over(reusingPort, '2')
  const strange = async () => {
    const session = connect(target.origin, { ca: certificate.cert })
    const stream = session.request({
      ':method': 'POST',
      ':path': '/mcp',
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'content-length': '140000',
    })
    const status = new Promise((resolve) => stream.once('response', (headers) => resolve(headers[':status'])))
    stream.on('error', () => {}).resume()
    stream.write('x'.repeat(70_000))
    t.equal(await within(status, 'the refusal'), 401)
    stream.close(8)
    const innocent = await within(post(over(reusingPort, '1.1'), alice, PING), 'the answer of somebody else', 10_000)
    session.destroy()
    return innocent.status
  }
  const statuses = await Promise.all(Array.from({ length: STRANGERS }, strange))
  t.same(
    statuses,
    Array.from({ length: STRANGERS }, () => 200),
  )
})
