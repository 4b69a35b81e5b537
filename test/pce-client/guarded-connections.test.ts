/** What a host of this client may decide and hear about its connections: the lookup, the peer, the answers, and how failures are told. */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { LookupAddress } from 'node:dns'
import https from 'node:https'
import net, { type LookupFunction } from 'node:net'
import t, { type Test } from 'tap'
import { freePort } from '../free-port.js'
import { createPceClient } from '../../pce-client/index.js'
import type { AnswerFacts } from '../../pce-client/types.js'
import { partial } from '../partial.js'
import { makePki } from './contract/transport/make-pki.js'
import { startForwardProxy } from './contract/transport/start-forward-proxy.js'
import { clientOf, listen, recording, rejection, startServer, type Reply, type Seen } from './support.js'

const ok: Reply = { body: {} }

/** A name service with a script: the addresses of each question in turn, the last one from then on. */
function scripted(...answers: (string[] | Error)[]) {
  const asked: string[] = []
  const lookup: LookupFunction = (hostname, options, callback) => {
    const answer = answers[Math.min(asked.length, answers.length - 1)]!
    asked.push(hostname)
    if (answer instanceof Error) return callback(answer, [])
    const addresses: LookupAddress[] = answer.map((address) => ({ address, family: net.isIP(address) }))
    if (options.all === true) callback(null, addresses)
    else callback(null, addresses[0]!.address, addresses[0]!.family)
  }
  return { lookup, asked }
}

/** A listener that only counts who connects and what they send. */
async function startListener(t: Test) {
  const state = { connections: 0, bytes: 0, port: 0 }
  const server = net.createServer((socket) => {
    state.connections += 1
    socket.on('data', (piece) => (state.bytes += piece.length)).on('error', () => {})
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => void server.close())
  state.port = (server.address() as net.AddressInfo).port
  return state
}

t.test('the lookup', async (t) => {
  const server = await startServer(t, () => ok)
  const names = scripted(['127.0.0.1'])
  const client = clientOf(server, { url: 'http://pce.example.test', lookup: names.lookup })
  for (let call = 0; call < 5; call += 1) await client.get('x')
  t.same(names.asked, ['pce.example.test'], 'is asked for a new connection, not for every request')
  t.equal(server.seen.at(-1)?.headers.host, `pce.example.test:${server.port}`, 'the request still bears the name')
  client.close()
  await client.get('x')
  t.equal(names.asked.length, 2)

  const pki = makePki(t)
  const tls = { key: pki.read('server.key'), cert: pki.read('server.pem') }
  const port = await listen(
    t,
    https.createServer(
      tls,
      recording([], () => ok),
    ),
  )
  const overTls = scripted(['127.0.0.1'])
  const secure = clientOf({ port }, { url: 'https://localhost', lookup: overTls.lookup })
  secure.setTlsSettings(pki.path('ca.pem'))
  t.equal((await secure.get('x')).status, 200)
  t.same(overTls.asked, ['localhost'], 'over TLS as well')

  const literal = scripted(new Error('never asked'))
  await clientOf(server, { lookup: literal.lookup }).get('x')
  t.same(literal.asked, [], 'an address needs none')

  const proxy = await startForwardProxy(t)
  const behind = scripted(new Error('never asked'))
  const proxied = clientOf({ port }, { url: 'https://localhost', lookup: behind.lookup, checkPeer: () => t.fail() })
  proxied.setTlsSettings(pki.path('ca.pem'))
  proxied.setProxies(null, proxy.url)
  t.equal((await proxied.get('x')).status, 200, 'a proxy resolves the name itself')
  t.same(behind.asked, [])
})

t.test('a lookup that refuses', async (t) => {
  const listener = await startListener(t)
  for (const url of ['http://pce.example.test', 'https://pce.example.test']) {
    const names = scripted(new Error('that place is not for you'))
    const client = clientOf(listener, { url, lookup: names.lookup })
    for (const call of [() => client.get('x'), () => client.put('x'), () => client.post('x')]) {
      partial(t, await rejection(call()), {
        name: 'PceError',
        code: 'unreachable',
        reason: 'ADDRESS_REFUSED',
        message: /^(?:GET|PUT|POST) \/orgs\/1\/x: that place is not for you$/,
      })
    }
    t.equal(names.asked.length, 3, 'is not asked again')
    t.same(client.waits, [])
    const download = client.streamTrafficFlows('q', { max_results: 1 } as never, { onFlows: () => {} })
    partial(t, await rejection(download), { code: 'unreachable', message: /not for you/ })
  }
  t.equal(listener.connections, 0, 'nobody is connected to')

  const gone = scripted(Object.assign(new Error('x'), { code: 'ENOTFOUND' }))
  partial(t, await rejection(clientOf(listener, { url: 'http://pce.example.test', lookup: gone.lookup }).get('x')), {
    code: 'unreachable',
    reason: 'ENOTFOUND',
    message: /host name not found/,
  })
})

t.test('retries a name service that does not answer for now', async (t) => {
  const server = await startServer(t, () => ok)
  for (const code of ['EAI_AGAIN', 'ETIMEOUT']) {
    const silent = Object.assign(new Error('x'), { code })
    const names = scripted(silent, silent, ['127.0.0.1'])
    const client = clientOf(server, { url: 'http://pce.example.test', lookup: names.lookup })
    t.equal((await client.get('x')).status, 200, code)
    t.equal(names.asked.length, 3)
    const never = clientOf(server, { url: 'http://pce.example.test', lookup: scripted(silent).lookup, retryCount: 1 })
    partial(t, await rejection(never.get('x')), {
      code: 'unreachable',
      message: new RegExp(`name lookup .* \\(${code}\\)$`),
    })
  }
})

t.test('the check of the peer', async (t) => {
  const listener = await startListener(t)
  const refuse = (address: string) => {
    throw new Error(`not ${address}`)
  }
  for (const url of ['http://127.0.0.1', 'https://127.0.0.1', 'https://localhost']) {
    const before = listener.connections
    const { lookup } = scripted(['127.0.0.1'])
    const client = clientOf(listener, { url, lookup, checkPeer: refuse })
    for (const call of [() => client.get('x'), () => client.put('x'), () => client.post('x')]) {
      partial(t, await rejection(call()), { code: 'unreachable', message: /: not 127\.0\.0\.1$/ }, url)
    }
    t.equal(listener.connections - before, 3, 'once for each connection')
  }
  t.equal(listener.bytes, 0, 'nothing is sent before it, not even the beginning of TLS')

  const server = await startServer(t, () => ok)
  const checked: string[] = []
  const client = clientOf(server, { checkPeer: (address) => void checked.push(address) })
  await client.get('x')
  await client.get('x')
  t.same(checked, ['127.0.0.1'], 'a connection that is kept was checked already')
})

t.test('reports answers', async (t) => {
  const script: Reply[] = [
    { status: 503, headers: { 'x-request-id': 'first' } },
    { status: 200, body: {}, headers: { 'x-request-id': 'second' } },
    { status: 404, body: [], headers: { 'x-request-id': 'third' } },
    { status: 200, body: {}, headers: { 'x-request-id': 'x'.repeat(129) } },
    { status: 200, body: {}, headers: { 'x-request-id': 'two words' } },
    { status: 200, body: {} },
  ]
  const server = await startServer(t, (_seen, index) => script[index] ?? ok)
  const told: AnswerFacts[] = []
  const client = clientOf(server, { onAnswer: (facts) => told.push(facts) })
  await client.get('x')
  t.same(told.splice(0), [
    { status: 503, requestId: 'first' },
    { status: 200, requestId: 'second' },
  ])
  await rejection(client.get('x'))
  t.same(told.splice(0), [{ status: 404, requestId: 'third' }], 'errors too')
  for (const what of ['too long', 'no id', 'none']) {
    await client.get('x')
    t.same(told.splice(0), [{ status: 200 }], what)
  }

  const deaf = clientOf(server, {
    onAnswer: () => {
      throw new Error('disk full')
    },
  })
  t.equal((await deaf.get('x')).status, 200, 'a listener that fails spoils nothing')

  const refusing = await startServer(t, () => ({ status: 407 }))
  const proxied = clientOf(server, { onAnswer: (facts) => told.push(facts), retryCount: 0 })
  proxied.setProxies(`http://127.0.0.1:${refusing.port}`)
  await rejection(proxied.get('x'))
  t.same(told, [], 'what a proxy says is no answer of the PCE')
})

t.test('reports answers in the context of their call', async (t) => {
  const server = await startServer(t, ({ headers }, index) => {
    const flaps = index < 100 && index % 3 === 0
    return { ...ok, status: flaps ? 503 : 200, headers: { 'x-request-id': `pce-${String(headers['x-request-id'])}` } }
  })
  const context = new AsyncLocalStorage<string>()
  const told: [string | undefined, string | undefined][] = []
  const client = clientOf(server, {
    retryCount: 20,
    requestId: () => context.getStore(),
    onAnswer: ({ requestId }) => told.push([context.getStore(), requestId]),
  })
  const ids = Array.from({ length: 200 }, (_, index) => `call-${index}`)
  await Promise.all(ids.map((id) => context.run(id, () => client.get('x'))))
  t.ok(told.length > 200, 'repetitions are among them')
  t.same(
    told.filter(([id, requestId]) => requestId !== `pce-${id}`),
    [],
    'though the calls share 16 connections',
  )
  t.same(new Set(told.map(([id]) => id)), new Set(ids))

  told.length = 0
  await context.run('stream', async () => {
    await rejection(client.streamTrafficFlows('q', { max_results: 1 } as never, { onFlows: () => {} }))
  })
  t.same(new Set(told.map(([id]) => id)), new Set(['stream']), 'streams too')
})

t.test('a client that hides its reasons reports every failed connection alike', async (t) => {
  const pki = makePki(t)
  const tls = { key: pki.read('server.key'), cert: pki.read('server.pem') }
  const seen: Seen[] = []
  const ports = {
    'an unknown certificate': await listen(
      t,
      https.createServer(
        tls,
        recording(seen, () => ok),
      ),
    ),
    'no TLS at all': (await startServer(t, () => ok)).port,
    'something else than HTTP': await listenOverTls(t, tls, 'SSH-2.0-x\r\n\r\n'),
    'nobody there': await freePort(),
  }
  const messages = new Set<string>()
  for (const [what, port] of Object.entries(ports)) {
    const options = { url: 'https://localhost', port, retryCount: 0, requestTimeout: 2 }
    const terse = createPceClient({ ...options, hideReasons: true })
    const open = createPceClient(options)
    if (what.startsWith('something')) for (const client of [terse, open]) client.setTlsSettings(pki.path('ca.pem'))
    const hidden = await rejection(terse.get('x'))
    partial(t, hidden, { code: 'unreachable', reason: undefined, cause: undefined }, what)
    messages.add(hidden.message.replace(String(port), 'PORT'))
    const told = await rejection(open.get('x'))
    t.ok(told.reason, `${what}: by default it is said (${told.message})`)
    t.not(told.message, hidden.message)
  }
  t.same([...messages], ['GET /orgs/1/x: no usable connection to the PCE at https://localhost:PORT'])

  const refused = createPceClient({
    url: 'http://127.0.0.1',
    port: (await startServer(t, () => ({ status: 403 }))).port,
  })
  partial(t, await rejection(refused.get('x')), { code: 'api_error', status: 403 }, 'what a PCE answers is told')
})

async function listenOverTls(t: Test, tls: { key: string; cert: string }, banner: string): Promise<number> {
  const { createServer } = await import('node:tls')
  const server = createServer(tls, (socket) => socket.on('error', () => {}).end(banner))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => void server.close())
  return (server.address() as net.AddressInfo).port
}
