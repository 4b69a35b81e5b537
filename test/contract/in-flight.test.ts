/** What counts as a request in flight: whatever the server still works on (D12). */
import { once } from 'node:events'
import { type IncomingMessage, type Server, request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import { Type } from '@sinclair/typebox'
import { fastify } from 'fastify'
import t, { type Test } from 'tap'
import { endCalls } from '../../programs/process/end-calls.js'
import errors from '../../plugins/errors/index.js'
import inFlight, { holdPlaces } from '../../plugins/in-flight/index.js'
import requestId from '../../plugins/request-id/index.js'
import { defineTool } from '../../tools/define.js'
import { fakeClock } from '../fake-clock.js'
import { until } from '../until.js'
import { gate, insecureApp, openTool, parseEvents, request, testTools, type Line } from './insecure-app.js'

const http = (maxInFlight: number) => ({ host: '127.0.0.1', port: 0, allowedHosts: [], maxInFlight })
const tick = () => new Promise((resolve) => setImmediate(resolve))
const connectionsOf = ({ server }: { server: Server }) =>
  new Promise<number>((resolve) => server.getConnections((_error, count) => resolve(count)))

t.test('a change that outlives its client keeps its slot until it ends', async (t) => {
  const { tools, read, write } = testTools()
  const { app, audit, post } = await insecureApp(tools, { http: http(1) })
  t.teardown(() => app.close())
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  const connections = () =>
    new Promise<number>((resolve) => app.server.getConnections((_error, count) => resolve(count)))
  const leave = async (name: string, arrived: Promise<void>) => {
    const client = httpRequest(`${url}/mcp`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    })
    client.on('error', () => {})
    client.end(JSON.stringify(request('tools/call', { name })))
    await arrived
    client.destroy()
    await until(async () => (await connections()) === 0)
    await tick()
  }
  const hasEnded = (tool: string) => audit.some((entry: Line) => entry.phase === 'outcome' && entry.tool === tool)

  await leave('wait-write', write.arrived)
  t.equal((await post(request('ping'))).statusCode, 503)
  t.notOk(hasEnded('wait-write'))
  write.open()
  await until(() => hasEnded('wait-write'))
  t.equal((await post(request('ping'))).statusCode, 200)

  await leave('wait-read', read.arrived)
  await until(() => hasEnded('wait-read'))
  t.equal((await post(request('ping'))).statusCode, 200, 'a reading call goes with its client, and so does its place')
  t.equal((await post(request('ping'))).statusCode, 200, 'no place is given back twice')
  const both = [post(request('tools/call', { name: 'wait-write' })), post(request('ping'))]
  t.same((await Promise.all(both)).map(({ statusCode }) => statusCode).toSorted(), [200, 503])
})

t.test('work that starts after its client has left takes a slot again', async (t) => {
  let taken = 1
  const places = holdPlaces(Promise.resolve())
  places.add((by) => (taken += by))
  await tick()
  t.equal(taken, 0)
  let end = () => {}
  places.keepUntil(new Promise<void>((resolve) => (end = resolve)))
  places.keepUntil(Promise.reject(new Error('of its own')))
  await tick()
  t.equal(taken, 1)
  end()
  await tick()
  t.equal(taken, 0)
})

t.test('a batch takes one slot and runs one call at a time', async (t) => {
  let [running, most, runs] = [0, 0, 0]
  const counted = defineTool({
    ...openTool,
    name: 'counted',
    effect: 'read',
    input: Type.Object({}, { additionalProperties: false }),
    output: Type.Object({ nth: Type.Integer() }),
    async handler() {
      const nth = (runs += 1)
      most = Math.max(most, (running += 1))
      await tick()
      running -= 1
      return { nth }
    },
  })
  const { app, post } = await insecureApp([counted], { http: http(1) })
  t.teardown(() => app.close())
  const call = (id: number) => request('tools/call', { name: 'counted' }, id)
  const bad = request('tools/call', { name: 5 }, 90)
  const unready = request('tools/call', { name: 'counted', _meta: 5 }, 91)
  const batch = [unready, call(1), bad, call(2), request('ping', undefined, 92), unready, call(3)].map((one, at) =>
    at === 5 ? { ...one, id: 93 } : one,
  )
  const answers = (await post(batch)).json<{ id: number; result?: { structuredContent?: object }; error?: object }[]>()
  t.equal(most, 1)
  t.same(new Set(answers.map(({ id }) => id)), new Set([1, 2, 3, 90, 91, 92, 93]), 'each has its answer')
  t.same(
    [1, 2, 3].map((id) => answers.find((answer) => answer.id === id)?.result?.structuredContent),
    [{ nth: 1 }, { nth: 2 }, { nth: 3 }],
    'in the order of the batch',
  )
})

t.test('a batch starts no further call once its client has left', async (t) => {
  const { tools, write } = testTools()
  const { app, audit } = await insecureApp(tools)
  t.teardown(() => app.close())
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  const client = httpRequest(`${url}/mcp`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
  })
  client.on('error', () => {})
  client.end(JSON.stringify([1, 2, 3].map((id) => request('tools/call', { name: 'wait-write' }, id))))
  await write.arrived
  client.destroy()
  await until(async () => (await connectionsOf(app)) === 0)
  for (let turn = 0; turn < 20; turn++) await tick()
  write.open()
  await until(() => audit.some(({ phase }) => phase === 'outcome'))
  for (let turn = 0; turn < 20; turn++) await tick()
  t.equal(audit.filter(({ phase }) => phase === 'decision').length, 1)
})

/** A batch of 30 calls with half a megabyte of answer each, and the response, which nobody reads yet. */
async function longBatch(t: Test, accept: string, timers = fakeClock()) {
  let calls = 0
  const tell = defineTool({
    ...openTool,
    name: 'tell',
    effect: 'read',
    input: Type.Object({}, { additionalProperties: false }),
    output: Type.Object({ lines: Type.Array(Type.String()) }),
    handler() {
      calls += 1
      // An answer in JSON begins after 5 s; until then its texts are kept, more of them than a stream may hold.
      if (calls === 10) timers.advance(5000)
      return Promise.resolve({ lines: Array.from({ length: 1000 }, () => 'long '.repeat(100)) })
    },
  })
  const { app } = await insecureApp([tell], {}, { timers })
  t.teardown(() => app.close())
  const client = httpRequest(`${await app.listen({ port: 0, host: '127.0.0.1' })}/mcp`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept },
  })
  const ids = Array.from({ length: 30 }, (_, at) => at)
  client.end(JSON.stringify(ids.map((id) => request('tools/call', { name: 'tell', _meta: { progressToken: id } }, id))))
  const [response] = (await once(client, 'response')) as [IncomingMessage]
  return { app, response: response.setEncoding('utf8'), ids, calls: () => calls }
}

for (const accept of ['application/json, text/event-stream', 'application/json']) {
  t.test(`streams a batch while it runs, however long its answers and slow its client are: ${accept}`, async (t) => {
    const { response, ids } = await longBatch(t, accept)
    let text = ''
    for await (const piece of response) {
      text += piece
      for (let turn = 0; turn < 20; turn++) await tick()
    }
    const messages = accept.includes('event')
      ? parseEvents(text).events.map(({ data }) => data)
      : (JSON.parse(text) as { id: number }[])
    t.same(
      messages.flatMap((message) => ('id' in message ? [message.id] : [])),
      ids,
    )
  })

  t.test(`a batch whose client reads nothing is ended as if it had left: ${accept}`, async (t) => {
    const clock = fakeClock()
    const { app, ids, calls } = await longBatch(t, accept, clock)
    await until(async () => {
      clock.advance(1000)
      return (await connectionsOf(app)) === 0
    })
    await app.dispatcher.idle()
    const begun = calls()
    for (let turn = 0; turn < 20; turn++) await tick()
    t.equal(calls(), begun)
    t.ok(begun < ids.length, `${begun} calls`)
  })
}

/** A bound for all and one for each caller, with a check between them that waits for `checked`, as that of a token may. */
async function bounded(t: Test, { checked = Promise.resolve(), begins = () => {} }) {
  const all = new Map<string, number>()
  const each = new Map<string, number>()
  const app = fastify()
  t.teardown(() => app.close())
  await app.register(requestId)
  await app.register(errors)
  await app.register(inFlight, { max: 256, counts: all })
  app.addHook('onRequest', async () => {
    begins()
    await checked
  })
  await app.register(inFlight, { max: 32, keyOf: () => 'me', counts: each })
  app.get('/', async () => {
    await checked
    return 'done'
  })
  const url = new URL(await app.listen({ host: '127.0.0.1', port: 0 }))
  const send = (times: number) => {
    const socket = connect(Number(url.port), '127.0.0.1')
    socket.on('error', () => {})
    socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(times))
    return socket
  }
  return { all, each, send, counts: () => [...all.values(), ...each.values()].filter((count) => count !== 0) }
}

t.test('a client that leaves during authentication holds no slot', async (t) => {
  let checkAll = () => {}
  let begun = 0
  const checked = new Promise<void>((resolve) => (checkAll = resolve))
  const { send, counts } = await bounded(t, { checked, begins: () => (begun += 1) })
  const sockets = Array.from({ length: 40 }, () => send(1))
  await until(() => begun === 40)
  t.same(counts(), [40])
  for (const socket of sockets) socket.resetAndDestroy()
  await until(() => counts().length === 0)
  checkAll()
  for (let turn = 0; turn < 20; turn++) await tick()
  t.same(counts(), [])
})

t.test('pipelined requests free their slots when the connection breaks', async (t) => {
  for (const times of [20, 300]) {
    let begun = 0
    const { send, counts } = await bounded(t, { checked: new Promise(() => {}), begins: () => (begun += 1) })
    const socket = send(times)
    await until(() => begun >= Math.min(times, 256))
    t.same(counts(), [Math.min(times, 256)])
    socket.resetAndDestroy()
    await until(() => counts().length === 0)
    t.same(counts(), [])
  }
  const { send, counts } = await bounded(t, {})
  const socket = send(20)
  let text = ''
  socket.on('data', (chunk: Buffer) => (text += chunk.toString()))
  await until(() => text.split('done').length === 21)
  await until(() => counts().length === 0)
  socket.destroy()
})

t.test('whichever of several calls ends first, the others are still known to run', async (t) => {
  const names = ['a', 'b', 'c']
  for (const first of names) {
    const gates = new Map(names.map((name) => [name, gate()]))
    const hold = defineTool({
      ...openTool,
      name: 'hold',
      effect: 'read',
      example: { name: 'a' },
      input: Type.Object({ name: Type.String({ description: 'Which.' }) }, { additionalProperties: false }),
      output: Type.Object({ text: Type.String() }),
      async handler({ name }, { signal }) {
        const { arrive, opened } = gates.get(name)!
        arrive()
        await Promise.race([opened, once(signal, 'abort')])
        signal.throwIfAborted()
        return { text: name }
      },
    })
    const { app, post } = await insecureApp([hold])
    t.teardown(() => app.close())
    const calls = names.map((name) => post(request('tools/call', { name: 'hold', arguments: { name } })))
    await Promise.all([...gates.values()].map(({ arrived }) => arrived))
    const { dispatcher } = app
    const textOf = async (name: string) => (await calls[names.indexOf(name)]!).json().result.content[0].text as string

    gates.get(first)!.open()
    t.equal(await textOf(first), `{"text":"${first}"}`)
    let isIdle = false
    const idle = dispatcher.idle().then(() => (isIdle = true))
    await tick()
    t.equal(isIdle, false)
    dispatcher.abortAll()
    for (const name of names) if (name !== first) t.equal(JSON.parse(await textOf(name)).error, 'cancelled')
    await idle
  }
})

t.test('callers at rest are not remembered without end', async (t) => {
  const counts = new Map<string, number>()
  const app = fastify()
  t.teardown(() => app.close())
  await app.register(requestId)
  await app.register(errors)
  await app.register(inFlight, { max: 1, keyOf: ({ headers }) => String(headers.caller), counts })
  app.get('/', () => 'done')
  for (let caller = 0; caller < 1100; caller++) await app.inject({ url: '/', headers: { caller: String(caller) } })
  t.equal(counts.size, 1000)
  t.strictSame([...new Set(counts.values())], [0])
})

t.test('a running batch is finished or refused before the server reports idle', async (t) => {
  const batch = [1, 2, 3].map((id) => request('tools/call', { name: 'wait-write' }, id))
  const outcomes = (audit: Line[]) =>
    audit.flatMap(({ phase, decision, outcome, reason }) =>
      phase === 'outcome' ? [[outcome, reason]] : decision === 'allowed' ? [] : [[decision, reason]],
    )

  const finished = testTools()
  const first = await insecureApp(finished.tools)
  t.teardown(() => first.app.close())
  const answer = first.post(batch)
  await finished.write.arrived
  const whenIdle = first.app.dispatcher.idle().then(() => outcomes(first.audit))
  finished.write.open()
  t.same(await whenIdle, Array(3).fill(['success', undefined]))
  t.equal((await answer).json().length, 3)

  const cut = testTools()
  const second = await insecureApp(cut.tools)
  t.teardown(() => second.app.close())
  const late = second.post(batch)
  await cut.write.arrived
  t.equal(await endCalls(second.app.dispatcher, { finish: 0, lastWords: 0 }), false)
  t.same(outcomes(second.audit), [['error', 'outcome_unknown']], 'written before the process may end')
  t.equal((await late).json().length, 3)
  t.same(outcomes(second.audit), [
    ['error', 'outcome_unknown'],
    ['denied', 'cancelled'],
    ['denied', 'cancelled'],
  ])
  cut.write.open()
})
