/**
 * Clients that take their time: requests that crawl, connections that say nothing, bodies that never end or lie about their
 * length, answers that nobody reads. They are ended in time or refused, and whoever else calls is answered in the meantime. Most
 * of it is waiting, so all of it waits at once.
 */
import t, { type Test } from 'tap'
import { contains, partial } from '../partial.js'
import { createWorld, type World } from './support/authenticated-world.js'
import { callTool } from './support/call-tool.js'
import {
  isLeftByPeer,
  memoryOf,
  openRaw,
  rawAnswers,
  rawHead,
  type RawAnswer,
  type RawConnection,
} from './support/raw-connection.js'
import { sendRequest, type Target } from './support/send-request.js'
import { found, within } from './support/within.js'

/** What the service allows: milliseconds, and how often it looks. */
const HEADERS_MS = 10_000
const REQUEST_MS = 30_000
const UNREAD_MS = 30_000
const LOOK_EVERY_MS = 5000
/** What comes so late never comes. */
const LATENESS_MS = 60_000
const MOST_CONNECTIONS = 2000

const IDLE = 1000
const OPENED_AT_ONCE = 100
const MIB = 1024 * 1024
/** By one who sends a body without an end. */
const MOST_SENT = 32 * MIB

const JSON_HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
const FORM_HEADERS = { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' }
const ROUTES = [
  { path: '/mcp', headers: JSON_HEADERS, largest: MIB },
  { path: '/confirm', headers: JSON_HEADERS, largest: 4096 },
  { path: '/setup', headers: FORM_HEADERS, largest: 16 * 1024 },
]

type Headers = Record<string, string>
type Serving = Awaited<ReturnType<World['serve']>>

t.test('slow clients', { timeout: 800_000 }, async (t) => {
  const world = await createWorld(t)
  // One for whoever is slow, and one for the crowd, which leaves no connection to anyone else.
  const [server, crowded] = await Promise.all([world.serve(), world.serve()])
  const { target } = server
  // One who calls while the others dawdle, one who sends badly, and two who do not read: a user has only so many requests in flight.
  const people = ['alice', 'bob', 'carol', 'dave']
  const [alice, bob, carol, dave] = await Promise.all(people.map((sub) => world.tokenOf(sub)))
  for (const token of [alice!, bob!, carol!, dave!])
    partial(t, await callTool(target, token, 'register-pce-credentials', world.pce.registration), { status: 'ok' })
  const from = (token: string, more: Headers): Headers => ({
    host: new URL(target.origin).host,
    authorization: `Bearer ${token}`,
    ...more,
  })
  const works = async (t: Test, at = target): Promise<void> => {
    partial(t, await callTool(at, alice!, 'get-labels', { key: 'env' }), { labels: Array })
  }

  // Before the others, which take memory as well.
  await t.test('unfinished bodies', async (t) => {
    const before = memoryOf(server.pid).now
    const sent = await Promise.all(
      ROUTES.flatMap(({ path, headers, largest }) => {
        const head = rawHead('POST', path, from(bob!, { ...headers, 'transfer-encoding': 'chunked' }))
        const polite = sendEndless(target, head, largest).then(({ text, bytes }) => {
          const [answer] = rawAnswers(text)
          t.equal(answer?.status, 413, path)
          const { error, request_id: id } = JSON.parse(answer!.body)
          t.equal(path === '/mcp' ? error.data.request_id : id, answer!.headers['x-request-id'])
          return bytes
        })
        // Whoever goes on sending may lose the answer when the connection is closed on what they send.
        const rude = Array.from({ length: 3 }, () =>
          sendEndless(target, head).then(({ text, bytes }) => {
            t.ok(bytes < MOST_SENT, `${path}: cut off after ${bytes} bytes`)
            t.match(text, /^(HTTP\/1\.1 413 |$)/)
            return bytes
          }),
        )
        return [polite, ...rude]
      }),
    )
    const grown = memoryOf(server.pid).most - before
    t.comment(`${sent.reduce((sum, bytes) => sum + bytes) / MIB} MiB were sent, ${grown} MiB more were used`)
    t.ok(grown < 128, `${grown} MiB more`)
    await works(t)
  })

  t.jobs = 10
  const tests = [
    t.test('slow headers', async (t) => {
      const { answer, took } = await crawl(target, 'POST /mcp HTTP/1.1\r\nhost: localhost\r\nx-slow: ', HEADERS_MS)
      isOwnError(t, answer)
      t.ok(took >= HEADERS_MS - LOOK_EVERY_MS, `it had its time: ${took} ms`)
    }),

    ...ROUTES.map(({ path, headers }) =>
      t.test(`a slow body to ${path}`, async (t) => {
        const head = rawHead('POST', path, from(alice!, { ...headers, 'content-length': '4000' }))
        let isOver = false
        const crawling = crawl(target, head, REQUEST_MS).finally(() => (isOver = true))
        await works(t)
        t.notOk(isOver, 'others are answered meanwhile')
        const { answer, took } = await crawling
        isOwnError(t, answer)
        t.ok(took >= REQUEST_MS - LOOK_EVERY_MS, `it had its time: ${took} ms`)
        await works(t)
      }),
    ),

    t.test('many silent connections, before and after a request', async (t) => {
      const silent = await openMany(crowded.target, IDLE)
      for (let n = 0; n < 20; n++) await works(t, crowded.target)
      const endings = Promise.all(silent.map(({ closed }) => closed))
      const answers = (await within(endings, 'the silent are thrown out')).flatMap(rawAnswers)
      t.same([...new Set(answers.map(({ status }) => status))], [408])
      t.equal(answers.length, IDLE)

      const idle = await openMany(crowded.target, MOST_CONNECTIONS, 'GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n')
      t.equal(idle.filter(({ received }) => received().startsWith('HTTP/1.1 200 ')).length, MOST_CONNECTIONS)
      const surplus = await openMany(crowded.target, 20)
      const dropped = await within(Promise.all(surplus.map(({ closed }) => closed)), 'the surplus is dropped')
      t.same([...new Set(dropped)], [''], 'without an answer')
      t.equal(idle.filter(({ socket }) => socket.destroyed).length, 0, 'existing connections stay')
      const [{ socket, received }] = idle as [RawConnection]
      const before = received()
      const body = JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name: 'get-server-changelog' },
      })
      const host = new URL(crowded.target.origin).host
      const length = String(Buffer.byteLength(body))
      socket.write(rawHead('POST', '/mcp', { ...from(alice!, JSON_HEADERS), host, 'content-length': length }) + body)
      await found(() => received().length > before.length, 'an answer on a connection that was there')
      t.match(received().slice(before.length), /^HTTP\/1\.1 200 /)
      for (const one of idle) one.socket.destroy()
      await found(
        () =>
          sendRequest(crowded.target, { method: 'GET', path: '/readyz' }).then(
            ({ status }) => status === 200,
            () => false,
          ),
        'there is room again',
      )
      await works(t, crowded.target)
    }),

    t.test('a wrong Content-Length', async (t) => {
      const call = JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name: 'get-server-changelog' },
      })
      const head = (token: string, length: number) =>
        rawHead('POST', '/mcp', from(token, { ...JSON_HEADERS, 'content-length': String(length) }))

      // Too short: what is over is read as a request of its own, and has to stand on its own feet.
      const cut = await openRaw(target)
      cut.socket.write(head(bob!, call.length - 10) + call)
      // The parser may give up on the rest before the first has been answered.
      const cutAnswers = rawAnswers(await within(cut.closed, 'half a body and the rest'))
      t.same([...new Set(cutAnswers.map(({ status }) => status))], [400], 'nothing is run')
      const hidden = await openRaw(target)
      const { authorization: _none, ...anonymous } = from('', {
        ...JSON_HEADERS,
        'content-length': String(call.length),
      })
      hidden.socket.write(
        head(bob!, call.length) + call + rawHead('POST', '/mcp', { ...anonymous, connection: 'close' }) + call,
      )
      const answers = rawAnswers(await within(hidden.closed, 'two answers'))
      t.same(
        answers.map(({ status }) => status),
        [200, 401],
        'a token is of one request',
      )

      // Too long: the rest never comes, or the client leaves.
      const left = await openRaw(target)
      left.socket.end(head(bob!, call.length + 10) + call)
      const leaving = rawAnswers(await within(left.closed, 'the end of a client that leaves'))
      t.ok(
        leaving.every(({ status }) => status >= 400),
        'half a request is not run',
      )
      await works(t)
      const begun = performance.now()
      const waiting = await openRaw(target)
      waiting.socket.write(head(bob!, call.length + 10) + call)
      const [late] = rawAnswers(
        await within(waiting.closed, 'an end of the wait', REQUEST_MS + LOOK_EVERY_MS + LATENESS_MS),
      )
      isOwnError(t, late)
      t.ok(performance.now() - begun >= REQUEST_MS - LOOK_EVERY_MS)
      await works(t)
    }),

    t.test('answers that are never read', (t) =>
      unread(t, server, { plain: from(dave!, JSON_HEADERS), stream: from(carol!, JSON_HEADERS), works }),
    ),
  ]
  await Promise.all(tests)
})

/**
 * One caller asks for more than it reads in plain JSON, request after request on one connection; another in streams. Lists of tools are
 * the longest answers.
 */
async function unread(
  t: Test,
  { target, pid }: Serving,
  { plain, stream, works }: { plain: Headers; stream: Headers; works: (t: Test) => Promise<void> },
) {
  const list = (id: number) => ({ jsonrpc: '2.0', id, method: 'tools/list' })
  const post = (headers: Headers, message: unknown) => {
    const body = JSON.stringify(message)
    return rawHead('POST', '/mcp', { ...headers, 'content-length': String(body.length) }) + body
  }
  const call = (id: number, params: object) => ({ jsonrpc: '2.0', id, method: 'tools/call', params })
  // A word of progress opens the stream; the call itself is refused. Ten megabytes in all, with calls of the PCE in between.
  const batch = [
    call(0, { name: 'get-traffic-flows', arguments: { lookback_days: 0 }, _meta: { progressToken: 1 } }),
    ...Array.from({ length: 99 }, (_, at) =>
      at % 7 === 0 ? call(at + 1, { name: 'get-labels', arguments: { key: 'env' } }) : list(at + 1),
    ),
  ]
  const before = memoryOf(pid).now
  const [pipelines, streams] = await Promise.all([
    Promise.all(Array.from({ length: 4 }, () => openRaw(target, { reads: false }))),
    Promise.all(Array.from({ length: 20 }, () => openRaw(target, { reads: false }))),
  ])
  for (const { socket } of pipelines) socket.write(post(plain, list(1)).repeat(500))
  for (const { socket } of streams) socket.write(post(stream, batch))
  const reader = await openRaw(target)
  reader.socket.write(post({ ...stream, connection: 'close' }, batch))
  const text = await reader.closed
  t.ok(hasLastOf(text, 99), 'a client that reads gets everything')
  for (let n = 0; n < 50; n++) await works(t)
  const grown = memoryOf(pid).most - before
  t.comment(`${grown} MiB more`)
  t.ok(grown < 200, `${grown} MiB more`)

  const areLeft = () => streams.every(({ socket }) => isLeftByPeer(socket))
  await found(areLeft, 'the streams are ended', UNREAD_MS + LATENESS_MS)
  // They read at last: what had been sent is there, and it is not all.
  for (const { socket } of streams) socket.resume()
  const endings = await within(Promise.all(streams.map(({ closed }) => closed)), 'the connections are closed')
  for (const text of endings) {
    t.match(text, /^HTTP\/1\.1 200 OK\r\n/)
    contains(t, text, 'content-type: text/event-stream')
    if (hasLastOf(text, 99)) t.fail('all of it was kept for somebody who does not read')
  }
  for (const { socket } of pipelines) socket.destroy()
  await works(t)
}

const hasLastOf = (text: string, id: number) => text.includes(`"jsonrpc":"2.0","id":${id}}\n`)

/** Sends the head, and then a byte every second, for as long as the other side lets it. `limit` in milliseconds. */
async function crawl(target: Target, head: string, limit: number) {
  const { socket, closed } = await openRaw(target, { isStubborn: true })
  const begun = performance.now()
  socket.write(head)
  const timer = setInterval(() => socket.write('x'), 1000)
  try {
    const text = await within(closed, 'an end of the crawl', limit + LOOK_EVERY_MS + LATENESS_MS)
    return { answer: rawAnswers(text)[0], took: performance.now() - begun }
  } finally {
    clearInterval(timer)
    socket.destroy()
  }
}

/** 408 in the shape of this service, with a request id. */
function isOwnError(t: Test, answer: RawAnswer | undefined) {
  partial(t, answer, { status: 408, headers: { connection: 'close', 'x-request-id': /./ } })
  const body = JSON.parse(answer?.body ?? '{}')
  partial(t, body, { error: 'request_timeout', message: String })
  t.equal(body.request_id, answer?.headers['x-request-id'])
}

/** Opens so many; with `words` each says them, and has been answered. */
async function openMany(target: Target, many: number, words = ''): Promise<RawConnection[]> {
  const opened: RawConnection[] = []
  while (opened.length < many) {
    const batch = Array.from({ length: Math.min(OPENED_AT_ONCE, many - opened.length) }, () => openRaw(target))
    const some = await Promise.all(batch)
    opened.push(...some)
    if (words === '') continue
    for (const { socket } of some) socket.write(words)
    const isAnswered = ({ socket, received }: RawConnection) => socket.destroyed || received() !== ''
    await found(() => some.every(isAnswered), 'an answer to each')
  }
  return opened
}

/**
 * Sends chunks until the connection is closed. What it sends is bounded, for a server that takes everything. With `waitsAt` it waits for an
 * answer once it has sent more than so many bytes.
 */
async function sendEndless(target: Target, head: string, waitsAt = Infinity) {
  const { socket, received, closed } = await openRaw(target)
  const piece = 'x'.repeat(8 * 1024)
  const chunk = `${piece.length.toString(16)}\r\n${piece}\r\n`
  let bytes = 0
  socket.write(head)
  while (!socket.destroyed && bytes < MOST_SENT) {
    bytes += piece.length
    await new Promise((resolve) => socket.write(chunk, resolve))
    if (bytes > waitsAt) await found(() => socket.destroyed || received() !== '', 'an answer to what is too long')
  }
  socket.end()
  return { text: await within(closed, 'the end of an endless body', REQUEST_MS + LOOK_EVERY_MS + LATENESS_MS), bytes }
}
