/** What becomes of a connection whose request is answered before its body has arrived (RFC 9112, 9.6; D248). */
import { once } from 'node:events'
import t from 'tap'
import { partial } from '../partial.js'
import { openRaw, rawAnswers, rawHead } from '../edge/support/raw-connection.js'
import { found, within } from '../edge/support/within.js'
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
const EARLY: [string, string, string, Record<string, string>, number][] = [
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
  for (const [why, method, path, headers, status] of EARLY) {
    const { socket, received, closed } = await openRaw(target, { isStubborn: true })
    const errors: Error[] = []
    socket.on('error', (error) => errors.push(error))
    const ended = once(socket, 'end')
    socket.write(rawHead(method, path, headers))
    await within(ended, `${why}: the server sends nothing more`, PATIENCE_MS)
    partial(t, rawAnswers(received()), [{ status, headers: { connection: 'close' } }], why)
    const rest =
      headers['transfer-encoding'] === undefined ? 'x'.repeat(Number(headers['content-length'])) : '0\r\n\r\n'
    await within(new Promise((resolve) => socket.write(rest, resolve)), `${why}: the body`, PATIENCE_MS)
    socket.end(NEXT)
    await within(closed, `${why}: the end`, PATIENCE_MS)
    t.same([rawAnswers(received()).length, errors], [1, []], `${why}: not reset`)
  }
  await app.dispatcher.idle()
  t.same(audit, [], 'a request behind the body is not run')
})

t.test('a client that goes on sending is cut off', async (t) => {
  const { target } = await listening(t)
  const { socket, closed } = await openRaw(target, { isStubborn: true })
  socket.write(rawHead('POST', '/mcp', { ...HEADERS, 'transfer-encoding': 'chunked' }))
  const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`
  let bytes = 0
  while (!socket.destroyed && bytes < 64 * MIB) {
    bytes += chunk.length
    await new Promise((resolve) => socket.write(chunk, resolve))
  }
  await within(closed, 'the end', PATIENCE_MS)
  t.ok(bytes < 32 * MIB, `${bytes} bytes were taken, some of them by the kernel`)
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
