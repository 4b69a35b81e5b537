/** What counts as a request in flight: whatever the server still works on (design decision 12). */
import { request as httpRequest } from 'node:http'
import { Type } from '@sinclair/typebox'
import t from 'tap'
import { holdPlaces } from '../../plugins/in-flight/held-places.js'
import { defineTool } from '../../tools/define.js'
import { insecureApp, request, testTools, type Line } from './insecure-app.js'

const http = (maxInFlight: number) => ({ host: '127.0.0.1', port: 0, allowedHosts: [], maxInFlight })
const tick = () => new Promise((resolve) => setImmediate(resolve))

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  for (let turn = 0; turn < 10_000; turn++) {
    if (await condition()) return
    await tick()
  }
  throw new Error('it never happened')
}

t.test('a change that outlives its client keeps its place until it has ended', async (t) => {
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

t.test('work that begins after its client has left takes its place back', async (t) => {
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

t.test('a batch takes one place, and works on one call at a time', async (t) => {
  let [running, most, runs] = [0, 0, 0]
  const counted = defineTool({
    name: 'counted',
    area: 'server',
    summary: 'Counts.',
    effect: 'read',
    roles: ['reader', 'operator', 'admin'],
    requiresPce: false,
    requiresConfirm: false,
    example: {},
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

t.test('what a batch has not begun when its client leaves is not begun', async (t) => {
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
  await until(() => new Promise((resolve) => app.server.getConnections((_error, count) => resolve(count === 0))))
  for (let turn = 0; turn < 20; turn++) await tick()
  write.open()
  await until(() => audit.some(({ phase }) => phase === 'outcome'))
  for (let turn = 0; turn < 20; turn++) await tick()
  t.equal(audit.filter(({ phase }) => phase === 'decision').length, 1)
})
