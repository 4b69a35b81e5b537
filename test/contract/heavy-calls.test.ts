/** Heavy tools in worker threads (D61): the same answers, and nobody suffers but the call itself. */
import { request as httpRequest } from 'node:http'
import { pathToFileURL } from 'node:url'
import t, { type Test } from 'tap'
import type { InsecureHttpConfig } from '../../schemas/config.js'
import { createPceSimulator } from '../../pce-simulator/index.js'
import { tools } from '../../tools/index.js'
import { partial } from '../partial.js'
import { compiled } from '../suite-folder.js'
import { heavyTools } from './heavy-tools.js'
import { insecureApp, parseEvents, request, testTools, textOf, type Line } from './insecure-app.js'

const HEAVY = { max: 2, perCaller: 2, queue: 4, queuePerCaller: 4, memoryMb: 64 }
const OWN = pathToFileURL(compiled('test/contract/heavy-worker.ts'))
const REAL = pathToFileURL(compiled('worker.ts'))

/** The server with the tools of heavy-tools.ts and some light ones, and a simulated PCE. */
async function start(t: Test, heavy: Partial<typeof HEAVY> = {}) {
  const pce = await startPce(t)
  const light = testTools()
  const config = { heavy: { ...HEAVY, ...heavy }, pce: pce.config }
  const served = await insecureApp([...heavyTools, ...light.tools], config, { worker: OWN })
  t.teardown(() => served.app.close())
  const url = await served.app.listen({ port: 0, host: '127.0.0.1' })
  return { ...served, url, simulator: pce.simulator }
}

async function startPce(t: Test) {
  // Its clock stands still, because new traffic would be a difference between two answers.
  const started = Date.now()
  const paces = { pollsUntilDone: 1, retryAfter: 0, now: () => started }
  const simulator = await createPceSimulator({ flows: 500, ...paces })
  t.teardown(() => simulator.close())
  const { protocol, hostname, port } = new URL(await simulator.listen())
  const config: NonNullable<InsecureHttpConfig['pce']> = {
    url: `${protocol}//${hostname}`,
    port,
    orgId: String(simulator.orgId),
    apiKey: simulator.credentials.key,
    apiSecret: simulator.credentials.secret,
    tls: { verify: true },
  }
  return { simulator, config }
}

/** A call over a connection of its own. `said` resolves once the tool has reported what it does, `leave` breaks the connection. */
function callAndLeave(url: string, name: string) {
  let leave = () => {}
  const said = new Promise<void>((resolve) => {
    const client = httpRequest(`${url}/mcp`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    })
    leave = () => client.destroy()
    client.on('error', () => {})
    client.on('response', (response) => {
      // The first report of progress comes from the transport and has no words.
      response.on('data', (piece: Buffer) => piece.includes('"message":') && resolve())
    })
    client.end(JSON.stringify(request('tools/call', { name, _meta: { progressToken: 1 } })))
  })
  return { said, leave: () => leave() }
}

async function until(condition: () => boolean): Promise<void> {
  const end = Date.now() + 30_000
  while (!condition()) {
    if (Date.now() > end) throw new Error('it never happened')
    await new Promise((resolve) => setImmediate(resolve))
  }
}

t.test('a thread answers as the thread of everybody would', async (t) => {
  const pce = await startPce(t)
  const [inThread, here] = await Promise.all(
    [REAL, undefined].map((worker) =>
      insecureApp(tools, { pce: pce.config, heavy: { ...HEAVY, queue: 20, queuePerCaller: 20 } }, { worker }),
    ),
  )
  for (const { app } of [inThread!, here!]) t.teardown(() => app.close())
  const heavy = tools.filter(({ isHeavy }) => isHeavy === true)
  t.ok(heavy.length > 10)
  const compare = async (name: string, args: object, isError = false) => {
    const [one, other] = await Promise.all([inThread!, here!].map((app) => answerOf(app, name, args)))
    t.same([one!.result.isError, other!.result.isError], [isError || undefined, isError || undefined], name)
    t.same(comparable(one!), comparable(other!), name)
  }
  const managed = await answerOf(here!, 'get-workloads', { managed: true, max_results: 1, detail_level: 'full' })
  const [{ href, enforcement_mode: mode }] = textOf(managed).workloads
  await Promise.all([
    ...heavy.map(({ name, example, effect }) =>
      compare(name, effect === 'read' ? example : { ...example, dry_run: true }),
    ),
    compare('create-ringfence', { app_name: 'no-such-app', env_name: 'prod' }, true),
    compare('update-workload', { href, enforcement_mode: mode === 'full' ? 'selective' : 'full', dry_run: true }),
  ])
  const sent = pce.simulator.requests
  const ids = new Set(sent.map(({ headers }) => headers['x-request-id']))
  t.ok(ids.size >= 2 * heavy.length && !ids.has(undefined), 'each request carries the id of its call')
})

type Answer = Parameters<typeof textOf>[0] & { result: { isError?: boolean } }

/** An answer that takes its time is a stream. */
async function answerOf({ post }: Awaited<ReturnType<typeof insecureApp>>, name: string, args: object) {
  const { body } = await post(request('tools/call', { name, arguments: args }))
  return (body.startsWith('{') ? JSON.parse(body) : parseEvents(body).events.at(-1)!.data) as Answer
}

/** Without what differs from call to call: the request id, the seal of a cursor, and the time that passes meanwhile. */
const comparable = (answer: Answer) =>
  JSON.parse(
    answer.result.content[0]!.text.replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'then').replace(
      /"request_id":"[^"]+"/,
      '"request_id":""',
    ),
  )

t.test('a call that breaks its thread fails alone', async (t) => {
  const { call, log } = await start(t)
  const failing = async (name: string) => textOf(await call(name))
  const [outgrown, died, thrown, echoed] = await Promise.all([
    failing('outgrows'),
    failing('dies'),
    failing('throws'),
    call('echo', { text: 'still here' }),
  ])
  partial(t, outgrown, { error: 'analysis_failed', reason: 'out_of_memory', message: /more than the 64 MiB/ })
  partial(t, died, { error: 'analysis_failed', reason: 'thread_ended', message: /Nothing was changed/ })
  partial(t, thrown, { error: 'internal' })
  t.notMatch(thrown.message, /of the inside/)
  const logged = log.find((line: Line) => line.msg === 'tool failed') as { err: { stack: string } }
  t.match(logged.err.stack, /TypeError: of the inside\n.*heavy-tools/, 'the log has it, with its stack')
  t.equal(textOf(echoed).text, 'still here')
  partial(t, textOf(await call('reports')), { message: /^\S+ insecure svc-mcp$/ })
})

t.test('what had been written when the thread died is told', async (t) => {
  const { call, simulator } = await start(t)
  const body = textOf(await call('writes-and-dies'))
  partial(t, body, { error: 'outcome_unknown', writes_total: 2 })
  const path = `/orgs/${simulator.orgId}/labels`
  t.same(
    body.writes.map((one: Line) => ({ ...one, path: String(one.path).replace(/^\/?/, '/') })),
    Array.from({ length: 2 }, () => ({ method: 'POST', path, outcome: 'done' })),
  )
})

t.test('reports and log lines arrive in order, before the answer', async (t) => {
  const { post, log } = await start(t)
  const answer = await post(request('tools/call', { name: 'reports', _meta: { progressToken: 7 } }))
  const { events } = parseEvents(answer.body)
  const steps = events.flatMap(({ data }) => (data.method === 'notifications/progress' ? [data.params!.progress] : []))
  t.same(
    steps,
    steps.toSorted((a, b) => Number(a) - Number(b)),
  )
  t.ok(steps.length > 0)
  t.equal(events.at(-1)!.data.id, 1)
  partial(
    t,
    log.find((line) => line.msg === 'all steps done'),
    { step: 50, tool: 'reports', request_id: String },
  )
})

t.test('a tool that is heavy with some arguments runs in a thread with those alone', async (t) => {
  const { call } = await start(t)
  t.equal(textOf(await call('sometimes', { deep: true })).message, 'in a thread')
  for (const args of [{}, { deep: false }]) t.equal(textOf(await call('sometimes', args)).message, 'here')
})

t.test('a caller who leaves ends a thread that listens, and one that does not', async (t) => {
  const { url, audit, call } = await start(t, { max: 1, perCaller: 1, queue: 0, queuePerCaller: 0 })
  for (const name of ['waits', 'spins']) {
    const { said, leave } = callAndLeave(url, name)
    await said
    partial(t, textOf(await call('reports')), { error: 'busy', retry_after_seconds: Number }, 'its place is taken')
    leave()
    await until(() => audit.some((entry) => entry.phase === 'outcome' && entry.tool === name))
    partial(
      t,
      audit.find((entry) => entry.phase === 'outcome' && entry.tool === name),
      { reason: 'cancelled' },
    )
    t.notOk((await call('reports')).result.isError, 'and free again')
  }
})

t.test('a change that has begun is completed without its client', async (t) => {
  const { url, audit, simulator } = await start(t)
  const { said, leave } = callAndLeave(url, 'writes-and-waits')
  await said
  leave()
  await until(() => audit.some((entry) => entry.phase === 'outcome' && entry.tool === 'writes-and-waits'))
  partial(
    t,
    audit.find((entry) => entry.phase === 'outcome'),
    { outcome: 'success', client_gone: true },
  )
  const written = simulator.requests.flatMap(({ method, body }) =>
    method === 'POST' ? [(body as { value?: string }).value] : [],
  )
  t.same(written, ['third', 'fourth'])
})

t.test('calls wait for a place, within bounds', async (t) => {
  const { url, call, post, audit } = await start(t, { max: 1, perCaller: 1, queue: 1, queuePerCaller: 1 })
  const first = callAndLeave(url, 'waits')
  await first.said
  const second = post(request('tools/call', { name: 'reports', _meta: { progressToken: 2 } }))
  await until(() => audit.some((entry) => entry.tool === 'reports' && entry.phase === 'decision'))
  const refused = textOf(await call('reports'))
  partial(t, refused, { error: 'busy', retry_after_seconds: Number, hint: String })
  t.ok(refused.retry_after_seconds >= 1 && refused.retry_after_seconds <= 60)
  t.equal(textOf(await call('echo', { text: 'light' })).text, 'light', 'light calls are answered meanwhile')
  first.leave()
  const { events } = parseEvents((await second).body)
  t.notOk((events.at(-1)!.data.result as { isError?: boolean }).isError)
  const ended = audit.flatMap(({ phase, tool }) => (phase === 'outcome' && tool !== 'echo' ? [tool] : []))
  t.same(ended, ['reports', 'waits', 'reports'], 'the refused one, the first, and the one that waited')
})
