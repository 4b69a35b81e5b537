import t from 'tap'
import type { PceClientOptions } from '../../pce-client/types.js'
import { partial } from '../partial.js'
import { until } from '../until.js'
import { clientOf, fakeTimers, rejection, startServer, type Reply } from './support.js'

const MINUTE = 60_000
const ok: Reply = { body: {} }

/** A clock that stands still until it is told to move, with waits that end when it has moved far enough. */
function manualTimers() {
  let now = Date.UTC(2026, 2, 1)
  const sleepers = new Set<{ until: number; wake: () => void }>()
  const sleep = (ms: number, signal?: AbortSignal) =>
    new Promise<void>((resolve, reject) => {
      const sleeper = { until: now + ms, wake: resolve }
      sleepers.add(sleeper)
      signal?.addEventListener('abort', () => {
        sleepers.delete(sleeper)
        reject(signal.reason as Error)
      })
    })
  /** Without waking anyone: timers may be late. */
  const drift = (ms: number) => (now += ms)
  const advance = (ms: number) => {
    now += ms
    for (const sleeper of [...sleepers]) {
      if (sleeper.until > now) continue
      sleepers.delete(sleeper)
      sleeper.wake()
    }
  }
  return { timers: { now: () => now, random: () => 0.5, sleep }, sleepers, advance, drift }
}

async function setup(options: Partial<PceClientOptions>, respond: (index: number) => Reply = () => ok) {
  const clock = manualTimers()
  const server = await startServer(t, (_seen, index) => respond(index))
  const client = clientOf(server, { timers: clock.timers, ...options })
  const paths = () => server.seen.map(({ path }) => path.replace('/orgs/1/', ''))
  /** Lets everything happen that can happen without the clock. */
  const settle = async (requests: number) => {
    await until(() => server.seen.length >= requests)
    for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve))
  }
  return { ...clock, server, client, paths, settle }
}

t.test('no limit unless one is set', async (t) => {
  const { client, server, sleepers } = await setup({})
  await Promise.all(Array.from({ length: 40 }, () => client.get('x')))
  t.equal(server.seen.length, 40)
  t.equal(sleepers.size, 0)
})

t.test('the rest of a burst waits in order', async (t) => {
  const { client, paths, settle, advance } = await setup({ maxRequestsPerMinute: 3, totalTimeout: 600 })
  const calls = Array.from({ length: 8 }, (_, index) => client.get(String(index)))
  await settle(3)
  t.same(paths().sort(), ['0', '1', '2'])
  advance(MINUTE - 1)
  await settle(3)
  t.equal(paths().length, 3, 'not before a minute has passed')
  advance(1)
  await settle(6)
  t.same(paths().slice(3).sort(), ['3', '4', '5'])
  advance(MINUTE)
  await Promise.all(calls)
  t.same(paths().slice(6).sort(), ['6', '7'])
})

t.test('no request overtakes waiting ones', async (t) => {
  const { client, paths, settle, advance, drift } = await setup({ maxRequestsPerMinute: 2, totalTimeout: 600 })
  await Promise.all([client.get('a'), client.get('a')])
  const waiting = client.get('b')
  await settle(2)
  drift(MINUTE)
  const late = client.get('c')
  await settle(2)
  t.equal(paths().length, 2, 'though there is room already')
  advance(0)
  await Promise.all([waiting, late])
  t.equal(paths().length, 4)
})

t.test("counts any rolling minute, not the clock's", async (t) => {
  const { client, paths, settle, advance } = await setup({ maxRequestsPerMinute: 3, totalTimeout: 600 })
  await client.get('a')
  advance(50_000)
  await client.get('b')
  await client.get('c')
  const waiting = [client.get('d'), client.get('e')]
  advance(9999)
  await settle(3)
  t.same(paths(), ['a', 'b', 'c'])
  advance(1)
  await settle(4)
  t.same(paths(), ['a', 'b', 'c', 'd'], 'one place is free when the first request is a minute old')
  advance(49_999)
  await settle(4)
  t.equal(paths().length, 4)
  advance(1)
  await Promise.all(waiting)
  t.same(paths(), ['a', 'b', 'c', 'd', 'e'])
})

t.test('counts every attempt, including downloads', async (t) => {
  const { timers, waits } = fakeTimers()
  const server = await startServer(t, (_seen, index) =>
    index < 2 ? { status: 503, headers: { 'retry-after': '1' } } : ok,
  )
  const client = clientOf(server, { timers, maxRequestsPerMinute: 2, totalTimeout: 600 })
  await client.get('x')
  t.same(waits, [1000, 1000, MINUTE - 2000], 'two retries, and the second one waits for its turn')

  const query = '/orgs/1/traffic_flows/async_queries/1'
  const traffic = await startServer(t, ({ path }) =>
    path.endsWith('/download')
      ? { body: '[]' }
      : { body: { href: query, status: 'completed', result: `${query}/download` } },
  )
  const clock = fakeTimers()
  const paced = clientOf(traffic, { timers: clock.timers, maxRequestsPerMinute: 2, totalTimeout: 600 })
  await paced.streamTrafficFlows('x', {} as never, { onFlows: () => undefined })
  t.equal(traffic.seen.length, 4, 'a query: submit, poll, download, read again')
  t.same(clock.waits, [1000, MINUTE - 1000, 1000], 'the third waits for the first, the fourth for the second')
})

t.test('a cancelled call ends at once and gives its slot to the next', async (t) => {
  const { client, paths, settle, advance, sleepers } = await setup({ maxRequestsPerMinute: 1, totalTimeout: 600 })
  await client.get('a')
  const why = new Error('the user left')
  const [first, second] = [new AbortController(), new AbortController()]
  const cancelled = rejection(client.get('b', { signal: first.signal }))
  const next = client.get('c')
  const last = rejection(client.post('d', { signal: second.signal }))
  await settle(1)
  t.equal(sleepers.size, 1)
  first.abort(why)
  partial(t, await cancelled, { code: 'aborted', cause: why })
  advance(MINUTE)
  await next
  t.same(paths(), ['a', 'c'], 'the second in the row goes when the first would have')
  second.abort(why)
  partial(t, await last, { code: 'aborted' }, 'a write that waited has done nothing')
  await settle(2)
  t.equal(sleepers.size, 0, 'and nothing waits for nobody')
  const again = client.get('e')
  advance(MINUTE)
  await again
  t.same(paths(), ['a', 'c', 'e'], 'the next call starts the queue again')
})

t.test('fails at once if its turn would come too late', async (t) => {
  const { client, paths, settle, advance } = await setup({ maxRequestsPerMinute: 2, totalTimeout: 120 })
  const calls = Array.from({ length: 6 }, (_, index) => client.get(String(index)))
  await settle(2)
  const error = await rejection(client.get('7'))
  partial(t, error, { code: 'deadline', message: /maxRequestsPerMinute \(2\) comes in 180 s/ })
  partial(t, await rejection(client.post('8')), { code: 'deadline' }, 'of a write too: nothing was sent')
  partial(t, await rejection(client.get('9', { totalTimeoutMs: 59_999 })), { code: 'deadline' })
  for (const sent of [4, 6]) {
    advance(MINUTE)
    await settle(sent)
  }
  await Promise.all(calls)
  t.same(paths().sort(), ['0', '1', '2', '3', '4', '5'], 'the others keep their turns')
})

t.test('the turn of a call is that of its place in the row', async (t) => {
  const { client, settle, advance } = await setup({ maxRequestsPerMinute: 2, totalTimeout: 600 })
  await client.get('a')
  advance(30_000)
  await client.get('b')
  const next = client.get('c')
  partial(
    t,
    await rejection(client.get('d', { totalTimeoutMs: 59_999 })),
    { message: /comes in 60 s/ },
    'a minute after b, not after a',
  )
  advance(30_000)
  await settle(3)
  await next
})

t.test('a retry that cannot run in time reports the last known failure', async (t) => {
  const clock = fakeTimers()
  const server = await startServer(t, () => ({ status: 503, headers: { 'retry-after': '1' } }))
  const client = clientOf(server, { timers: clock.timers, maxRequestsPerMinute: 1, totalTimeout: 30 })
  partial(t, await rejection(client.put('x')), { code: 'outcome_unknown', message: /its turn/ })
  clock.advance(MINUTE)
  partial(t, await rejection(client.get('x')), { code: 'deadline' })
  t.equal(server.seen.length, 2)
})

t.test('a clock that is set back delays no one', async (t) => {
  const { client, paths, advance } = await setup({ maxRequestsPerMinute: 1, totalTimeout: 600 })
  await client.get('a')
  advance(-24 * 60 * MINUTE)
  await client.get('b')
  t.same(paths(), ['a', 'b'])
})

t.test('leaves no unhandled rejection', async (t) => {
  const unhandled: unknown[] = []
  const note = (error: unknown) => void unhandled.push(error)
  process.on('unhandledRejection', note)
  t.teardown(() => process.off('unhandledRejection', note))
  const { client, settle } = await setup({ maxRequestsPerMinute: 1, totalTimeout: 600, retryCount: 2 })
  await client.get('a')
  const controllers = Array.from({ length: 5 }, () => new AbortController())
  const calls = controllers.map(({ signal }) => rejection(client.get('b', { signal })))
  const alreadyOver = rejection(client.get('c', { signal: AbortSignal.abort() }))
  await settle(1)
  for (const controller of controllers) controller.abort()
  for (const error of await Promise.all([...calls, alreadyOver])) partial(t, error, { code: 'aborted' })
  await settle(1)
  t.same(unhandled, [])
})
