/** What becomes of a connection whose request is answered before its body has arrived (RFC 9112, 9.6; D248). */
import { once } from 'node:events'
import t, { type Test } from 'tap'
import { partial } from '../partial.js'
import { openRaw, rawAnswers, rawHead } from '../edge/support/raw-connection.js'
import type { Target } from '../edge/support/send-request.js'
import { found, within } from '../edge/support/within.js'
import { startService } from './authenticated-service.js'
import { insecureApp, request } from './insecure-app.js'

const MIB = 1024 * 1024
/** What has not come by then never comes. */
const PATIENCE_MS = 20_000
const HEADERS = { host: 'localhost', 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
const PING = JSON.stringify(request('ping'))
const PING_BYTES = { ...HEADERS, 'content-length': String(PING.length) }
const LIST = JSON.stringify(request('tools/call', { name: 'echo' }))
const NEXT = rawHead('POST', '/mcp', { ...HEADERS, 'content-length': String(LIST.length) }) + LIST
const BODY = { 'content-length': '1000' }

/** Requests that are answered without their body: why, the request line, headers, and the status. */
type Early = [string, string, string, Record<string, string>, number]
const EARLY: Early[] = [
  ['another Host', 'POST', '/mcp', { ...HEADERS, ...BODY, host: 'evil.example' }, 403],
  ['a path that cannot be decoded', 'POST', '/%zz', { ...HEADERS, ...BODY }, 400],
  ['another method', 'PUT', '/mcp', { ...HEADERS, ...BODY }, 405],
  ['another kind of body', 'POST', '/mcp', { ...HEADERS, ...BODY, 'content-type': 'text/plain' }, 415],
  ['a body without a length', 'PUT', '/mcp', { ...HEADERS, 'transfer-encoding': 'chunked' }, 405],
  ['a GET with a body', 'GET', '/healthz', { ...HEADERS, ...BODY }, 200],
  ['a body that is too long', 'POST', '/mcp', { ...HEADERS, 'content-length': String(3 * MIB) }, 413],
]

async function listening(t: { teardown(fn: () => unknown): void }) {
  const service = await insecureApp()
  t.teardown(() => service.app.close())
  return { ...service, target: { origin: await service.app.listen({ port: 0, host: '127.0.0.1' }) } }
}

t.test('an answer that does not wait for the body ends the connection, but the client may send it', async (t) => {
  const { target, audit, app } = await listening(t)
  for (const early of EARLY) await answersEarly(t, target, early)
  await app.dispatcher.idle()
  t.same(audit, [], 'a request behind the body is not run')
})

t.test('so does one of the gates behind a login', async (t) => {
  const { app, tokenOf, send } = await startService(t, { rates: { perCaller: 1 } })
  const target = { origin: await app.listen({ port: 0, host: '127.0.0.1' }) }
  const token = await tokenOf('ann')
  t.equal((await send(token, request('ping'))).statusCode, 200)
  const known = { authorization: `Bearer ${token}` }
  await answersEarly(t, target, ['no token', 'POST', '/mcp', { ...HEADERS, ...BODY }, 401])
  await answersEarly(t, target, ['too many requests', 'POST', '/mcp', { ...HEADERS, ...BODY, ...known }, 429])
})

async function answersEarly(t: Test, target: Target, [why, method, path, headers, status]: Early) {
  for (const expect of [{}, { expect: '100-continue' }] as Record<string, string>[]) {
    const { socket, received, closed } = await openRaw(target, { isStubborn: true })
    const errors: Error[] = []
    socket.on('error', (error) => errors.push(error))
    const ended = once(socket, 'end')
    socket.write(rawHead(method, path, { ...headers, ...expect }))
    await within(ended, `${why}: the server sends nothing more`, PATIENCE_MS)
    partial(t, rawAnswers(received()), [{ status, headers: { connection: 'close' } }], why)
    const rest =
      headers['transfer-encoding'] === undefined ? 'x'.repeat(Number(headers['content-length'])) : '0\r\n\r\n'
    await within(new Promise((resolve) => socket.write(rest, resolve)), `${why}: the body`, PATIENCE_MS)
    socket.end(NEXT)
    await within(closed, `${why}: the end`, PATIENCE_MS)
    t.same([rawAnswers(received()).length, errors], [1, []], `${why}: not reset`)
  }
}

t.test('a client that waits with its body is told to send it when it is wanted', async (t) => {
  const { target } = await listening(t)
  const { socket, received } = await openRaw(target)
  t.teardown(() => socket.destroy())
  for (const [path, status] of [
    ['/mcp', 200],
    ['/nothing', 404],
  ] as const) {
    const before = received().length
    const came = () => received().slice(before)
    socket.write(rawHead('POST', path, { ...PING_BYTES, expect: '100-continue' }))
    await found(() => came().includes('\r\n\r\n'), 'the interim answer', PATIENCE_MS)
    t.equal(came(), 'HTTP/1.1 100 Continue\r\n\r\n', path)
    socket.write(PING)
    await found(() => came().includes('"jsonrpc"') || came().includes('"error"'), 'the answer', PATIENCE_MS)
    t.match(came(), new RegExp(`^HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 ${status} `), path)
  }
})

t.test('a client that goes on sending is cut off', async (t) => {
  const { app, target } = await listening(t)
  let requests = 0
  app.server.on('request', () => requests++)
  const chunked = { ...HEADERS, 'transfer-encoding': 'chunked' }
  const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`
  const endless: [string, string, string][] = [
    ['a body that is read and too long', rawHead('POST', '/mcp', chunked), chunk],
    ['a body that nobody reads', rawHead('POST', '/mcp', { ...chunked, host: 'evil.example' }), chunk],
    [
      'a body with too long a length',
      rawHead('POST', '/mcp', { ...HEADERS, 'content-length': String(1024 * MIB) }),
      'x'.repeat(0x10000),
    ],
    [
      'requests behind it',
      rawHead('POST', '/mcp', { ...HEADERS, ...BODY, host: 'evil.example' }),
      'x'.repeat(1000) + NEXT.repeat(200),
    ],
  ]
  for (const [why, head, more] of endless) {
    requests = 0
    const { socket, closed } = await openRaw(target, { isStubborn: true })
    const ended = once(socket, 'end')
    socket.write(head)
    if (!why.includes('is read')) await within(ended, `${why}: the answer`, PATIENCE_MS)
    let bytes = 0
    while (!socket.destroyed && bytes < 64 * MIB) {
      bytes += more.length
      await new Promise((resolve) => socket.write(more, resolve))
    }
    const isCutOff = bytes < 32 * MIB
    socket.destroy()
    await within(closed, `${why}: the end`, PATIENCE_MS)
    t.ok(isCutOff, `${why}: ${bytes} bytes were taken, some of them by the kernel`)
    t.equal(requests, 1, `${why}: nothing else is parsed`)
  }
})

t.test('the end of a connection cannot be put off', async (t) => {
  const { app, target } = await listening(t)
  const late: (() => void)[] = []
  const { setTimeout: real } = globalThis
  const later = (...args: Parameters<typeof real>) => {
    if (args[1] === 30_000) late.push(args[0])
    return real(...args)
  }
  t.intercept(globalThis, 'setTimeout', { value: later })
  const { socket } = await openRaw(target, { isStubborn: true })
  const ended = once(socket, 'end')
  socket.write(rawHead('POST', '/mcp', { ...HEADERS, ...BODY, host: 'evil.example' }))
  await within(ended, 'the answer', PATIENCE_MS)
  const count = () => new Promise((resolve) => app.server.getConnections((_error, open) => resolve(open)))
  const before = await count()
  for (const run of late) run()
  t.same([before, await count()], [1, 0], 'after 30 s it is closed, even if the client has just sent something')
  socket.destroy()
})

t.test('a connection whose request has arrived completely stays open', async (t) => {
  const { target } = await listening(t)
  const whole: [string, string, number][] = [
    ['a refused request without a body', rawHead('GET', '/mcp', HEADERS), 405],
    ['an empty body', rawHead('POST', '/mcp', { ...HEADERS, 'content-length': '0' }), 400],
    ['a body that came with the headers', rawHead('POST', '/nothing', PING_BYTES) + PING, 404],
    ['a body that was read and refused', rawHead('POST', '/mcp', { ...HEADERS, 'content-length': '1' }) + '!', 400],
    ['a body that was read', rawHead('POST', '/mcp', PING_BYTES) + PING, 200],
  ]
  const { socket, received } = await openRaw(target)
  t.teardown(() => socket.destroy())
  for (const [at, [why, text, status]] of whole.entries()) {
    socket.write(text)
    const isAnswered = () => (received().match(/HTTP\/1\.1 \d/g)?.length ?? 0) > at
    await found(isAnswered, why, PATIENCE_MS)
    const { headers, ...answer } = rawAnswers(received()).at(-1)!
    t.same([answer.status, headers['connection'] ?? 'keep-alive'], [status, 'keep-alive'], why)
  }
})
