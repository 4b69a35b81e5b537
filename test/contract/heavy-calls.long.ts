/** Heavy tools in worker threads (D61): whatever becomes of a call, nobody suffers but the call itself. */
import { request as httpRequest } from 'node:http'
import { pathToFileURL } from 'node:url'
import t, { type Test } from 'tap'
import type { PceSimulatorOptions } from '../../pce-simulator/options.js'
import type { HeavyConfig } from '../../schemas/config.js'
import { partial } from '../partial.js'
import { compiled } from '../suite-folder.js'
import { until } from '../until.js'
import { PUBLIC_URL, startService } from './authenticated-service.js'
import { heavyTools, startPce } from './heavy-tools.js'
import { insecureApp, parseEvents, request, testTools, textOf, type Line } from './insecure-app.js'

const HEAVY = { max: 2, perCaller: 2, queue: 6, queuePerCaller: 6, memoryMb: 64 }
/** The number of flows of which one call receives more than it may while others hold the places for large reading. */
const LARGE = 15_000
const OWN = pathToFileURL(compiled('test/contract/heavy-worker.ts'))

/** The server with the tools of heavy-tools.ts and some light ones, and a simulated PCE. */
async function start(t: Test, heavy: Partial<HeavyConfig> = {}, estate: PceSimulatorOptions = {}, worker = OWN) {
  const pce = await startPce(t, estate)
  const light = testTools()
  const config = { heavy: { ...HEAVY, ...heavy }, pce: pce.config }
  const served = await insecureApp([...heavyTools, ...light.tools], config, { worker })
  t.teardown(() => served.app.close())
  const url = await served.app.listen({ port: 0, host: '127.0.0.1' })
  return { ...served, url, simulator: pce.simulator }
}

/**
 * A call over a connection of its own. `said` resolves once the call has reported what it does, `answer` with all that it sent, `leave`
 * breaks the connection.
 */
function callAndLeave(url: string, name: string, more: Record<string, string> = {}) {
  let leave = () => {}
  let whole = (_text: string) => {}
  const answer = new Promise<string>((resolve) => (whole = resolve))
  const said = new Promise<void>((resolve) => {
    const client = httpRequest(`${url}/mcp`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...more },
    })
    leave = () => client.destroy()
    client.on('error', () => {})
    client.on('response', (response) => {
      // The first report of progress comes from the transport and has no words.
      response.on('data', (piece: Buffer) => piece.includes('"message":') && resolve())
      const pieces: Buffer[] = []
      response.on('data', (piece: Buffer) => pieces.push(piece))
      response.on('end', () => whole(Buffer.concat(pieces).toString()))
    })
    client.end(JSON.stringify(request('tools/call', { name, _meta: { progressToken: 1 } })))
  })
  return { said, answer, leave: () => leave() }
}

t.test('a call that breaks its thread fails alone', async (t) => {
  const { call, log } = await start(t)
  const failing = async (name: string) => textOf(await call(name))
  // No more than there are places, so that nobody waits; the later ones show that a thread that has ended gives its place back.
  const [outgrown, stuffed, echoed] = await Promise.all([
    failing('outgrows'),
    failing('reads-too-much'),
    call('echo', { text: 'still here' }),
  ])
  const [died, asked] = await Promise.all([failing('dies'), failing('asks-and-dies')])
  const thrown = await failing('throws')
  partial(t, outgrown, { error: 'analysis_failed', reason: 'out_of_memory', message: /more than the 64 MiB/ })
  partial(t, stuffed, { error: 'analysis_failed', reason: 'out_of_memory', message: outgrown.message })
  partial(t, died, { error: 'analysis_failed', reason: 'thread_ended', message: /Nothing was changed/ })
  partial(t, asked, { error: 'analysis_failed', reason: 'thread_ended' }, 'a query at the PCE is no change')
  partial(t, thrown, { error: 'internal' })
  t.notMatch(thrown.message, /of the inside/)
  const logged = log.find((line: Line) => line.msg === 'tool failed') as { err: { stack: string } }
  t.match(logged.err.stack, /TypeError: of the inside\n.*heavy-tools/, 'the log has it, with its stack')
  t.equal(textOf(echoed).text, 'still here')
  partial(t, await failing('reports'), { message: /^\S+ insecure svc-mcp$/ })
})

t.test('a thread that cannot load its module refuses what waits for it and gives the place back', async (t) => {
  const folder = t.testdir({ 'throws.mjs': "throw new Error('half a copy')" })
  for (const [file, why] of Object.entries({ 'throws.mjs': /half a copy/, 'missing.mjs': /Cannot find module/ })) {
    const worker = pathToFileURL(`${folder}/${file}`)
    // One place: a second call is answered only once the first has given it back.
    const { call, log } = await start(t, { max: 1, perCaller: 1 }, {}, worker)
    for (const answer of await Promise.all([call('reports'), call('reports')]))
      partial(t, textOf(answer), { error: 'analysis_failed', reason: 'thread_not_started' }, file)
    t.equal(textOf(await call('echo', { text: 'light' })).text, 'light')
    const said = log.find(
      (line: Line) => line.msg === 'a worker thread cannot start; build or install this server again',
    )
    partial(t, said, { module: worker.href, err: { message: why } })
  }
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

t.test('a thread that dies in its turn at an object gives it back', async (t) => {
  const { call } = await start(t, { max: 3, perCaller: 3 })
  const [died, first, second] = await Promise.all([
    call('dies-in-its-turn'),
    call('takes-its-turn'),
    call('takes-its-turn'),
  ])
  partial(t, textOf(died), { error: 'analysis_failed', reason: 'thread_ended' })
  t.same([textOf(first).message, textOf(second).message], ['had it', 'had it'])
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

t.test('a thread that computes without an end is ended, and its place is free again', async (t) => {
  const { call } = await start(t, { max: 1, perCaller: 1, silentMs: 200 })
  const [spun, waited] = await Promise.all([call('spins'), call('reports')])
  partial(t, textOf(spun), { error: 'analysis_failed', reason: 'thread_silent', message: /too long without a pause/ })
  t.notOk(waited.result.isError)
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

t.test('a server that stops tells its threads, which clean up at the PCE', async (t) => {
  const { app, call, simulator } = await start(t, {}, { pollsUntilDone: 1000 })
  const isSeen = (verb: string) => () =>
    simulator.requests.some(({ method, path }) => method === verb && path.includes('/async_queries'))
  const answering = call('asks')
  // Once it polls it knows the query. The PCE sees the query before the answer that names it has arrived.
  await until(isSeen('GET'))
  app.dispatcher.abortAll()
  partial(t, textOf(await answering), { error: 'cancelled' })
  t.ok(isSeen('DELETE')(), 'its query is deleted')
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
  t.equal(textOf(await call('echo', { text: 'light' })).text, 'light', 'other calls still work in the meantime')
  first.leave()
  const { events } = parseEvents((await second).body)
  t.notOk((events.at(-1)!.data.result as { isError?: boolean }).isError)
  const ended = audit.flatMap(({ phase, tool }) => (phase === 'outcome' && tool !== 'echo' ? [tool] : []))
  t.same(ended, ['reports', 'waits', 'reports'], 'the refused one, the first, and the one that waited')
})

t.test('what a call reads waits while others hold as much as they may', async (t) => {
  // One of the two may have received more than some ten thousand flows.
  const { url, call, audit, simulator } = await start(t, {}, { flows: LARGE })
  const alone = textOf(await call('counts-flows')).message as string
  const downloads = () => simulator.requests.filter(({ path }) => path.endsWith('/download')).length
  const deleted = () => simulator.requests.filter(({ method }) => method === 'DELETE').length
  const ended = () => audit.flatMap(({ phase, tool, reason }) => (phase === 'outcome' ? [[tool, reason]] : []))

  const holder = callAndLeave(url, 'reads-and-waits')
  await holder.said
  t.same(textOf(await call('counts-in-its-turn')).message, alone, 'nobody waits for a call that waits')

  const tired = callAndLeave(url, 'counts-flows')
  await Promise.race([tired.said, tired.answer])
  tired.leave()
  await until(() => ended().length === 3)
  t.same(ended().at(-1), ['counts-flows', 'cancelled'])
  t.equal(deleted(), 1, 'its query is deleted')

  const before = downloads()
  const patient = callAndLeave(url, 'counts-flows')
  await Promise.race([patient.said, patient.answer])
  t.equal(downloads() - before, 1)
  holder.leave()
  const { events } = parseEvents(await patient.answer)
  t.ok(
    events.some(({ data }) => data.params?.message === 'Waiting until others have read their data, 0 ahead.'),
    'it says what it waits for',
  )
  t.equal(textOf(events.at(-1)!.data as never).message, alone, 'each row once')
  t.equal(downloads() - before, 2, 'the download began again')
})

t.test('a call whose confirm token is redeemed is never busy, and goes before the others', async (t) => {
  const heavy = { ...HEAVY, max: 1, perCaller: 1, queue: 2, queuePerCaller: 1 }
  const estate = { pollsUntilDone: 2, retryAfter: 0 }
  const service = await startService(t, { mode: 'shared', tools: heavyTools, worker: OWN, estate, config: { heavy } })
  const { audit, call, confirm, pce, tokenOf } = service
  const [admin, other] = await Promise.all([tokenOf('admin'), tokenOf('other')])
  const decided = (name: string) => audit.some(({ tool, phase }) => tool === name && phase === 'decision')
  const asked = await call(admin, 'confirmed')
  const minted = JSON.parse((await confirm(admin, asked.confirm.body)).payload) as { confirm_token: string }

  const run = call(admin, 'confirmed', {}, { confirm_token: minted.confirm_token })
  await until(() =>
    pce.simulator.requests.some(({ method, path }) => method === 'POST' && path.includes('/async_queries')),
  )
  // It holds the only place to find out what it would do; the next has it before the call itself.
  const ahead = call(other, 'asks')
  await until(() => decided('asks'))
  const behind = call(admin, 'reports')
  await until(() => decided('reports'))
  t.same(await run, { message: 'ran' })
  await Promise.all([ahead, behind])
  const ended = audit.flatMap(({ phase, tool }) => (phase === 'outcome' ? [tool] : []))
  t.same(ended, ['asks', 'confirmed', 'reports'])
})

t.test('a call that nobody could be shown, because others held the places, is shown once one is free', async (t) => {
  const heavy = { ...HEAVY, max: 1, perCaller: 1, queue: 0, queuePerCaller: 1 }
  const service = await startService(t, { mode: 'shared', tools: heavyTools, worker: OWN, config: { heavy } })
  const { app, audit, call, tokenOf } = service
  const [admin, other] = await Promise.all([tokenOf('admin'), tokenOf('other')])
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  const holding = callAndLeave(url, 'waits', { authorization: `Bearer ${other}`, host: new URL(PUBLIC_URL).host })
  await holding.said
  const refused = await call(admin, 'confirmed')
  t.same(Object.keys(refused), ['error', 'message', 'hint', 'request_id', 'retry_after_seconds'])
  t.equal(refused.error, 'busy')
  holding.leave()
  await until(() => audit.some(({ tool, phase }) => tool === 'waits' && phase === 'outcome'))
  partial(t, await call(admin, 'confirmed'), { error: 'confirm_required', reason: 'missing', summary: 'Answers.' })
})
