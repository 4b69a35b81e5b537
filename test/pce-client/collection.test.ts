import t from 'tap'
import { PceApiError } from '../../pce-client/index.js'
import type { CollectionProgress } from '../../pce-client/types.js'
import { partial } from '../partial.js'
import { clientOf, rejection, startServer, type Reply, type Responder } from './support.js'

const job = '/orgs/1/jobs/6c1f'
const file = '/orgs/1/datafiles/77'
const fortyMegabytes = `[${Array.from({ length: 40 }, (_, index) => JSON.stringify({ href: `/orgs/1/labels/${index}`, note: 'x'.repeat(1024 * 1024) })).join(',')}]`

const server = await startServer(t, (seen, index) => respond(seen, index))
let respond: Responder = () => ({ body: [] })

/** A fresh client of a server that has forgotten what it was asked. */
function setup(answer: Responder | Reply = { body: [] }) {
  respond = typeof answer === 'function' ? answer : () => answer
  server.seen.length = 0
  return clientOf(server)
}

/** A collection that answers with a job, which goes through the states given and leaves one label. */
function jobOf(first: Reply, ...states: Reply[]): Responder {
  let polls = 0
  return ({ method, path }) => {
    if (method === 'DELETE') return { status: 204 }
    if (path.startsWith(job)) return states[Math.min(polls++, states.length - 1)]!
    return path === file ? { body: [{ href: '/orgs/1/labels/1' }] } : first
  }
}

const started = (location: string, retryAfter: string | null = '5'): Reply => ({
  status: 202,
  headers: { location, ...(retryAfter === null ? {} : { 'retry-after': retryAfter }) },
})

const state = (status: string, result: unknown = {}, headers: Record<string, string> = {}): Reply => ({
  body: { href: job, status, result },
  headers,
})

const done = state('done', { href: file })

t.test('getAll', async (t) => {
  const labels = (count: number) => Array.from({ length: count }, (_, index) => ({ href: `/orgs/1/labels/${index}` }))
  const count = async (answer: Responder | Reply) => (await setup(answer).labels.getAll()).length
  const asked = () => server.seen.map(({ path, headers }) => headers.prefer ?? /max_results=(\d+)/.exec(path)?.[1])

  t.equal(await count(collectionOf(labels(1234))), 1234)
  t.same(asked(), ['0', '1234'], 'makes two requests, the second with the total of the first')
  t.equal(await count({ body: labels(7) }), 7)
  t.same(asked(), ['0'], 'is done when the endpoint ignores max_results')
  t.equal(await count(collectionOf([])), 0)

  for (const total of [undefined, 'abc', '0']) {
    t.equal(
      await count(collectionOf(labels(700), { total: () => total })),
      700,
      `loses nothing when the total is ${total}`,
    )
  }
  let calls = 0
  const growing: Responder = (seen, index) => collectionOf(labels(calls++ === 0 ? 600 : 603))(seen, index)
  t.equal(await count(growing), 603, 'sees objects that were added in between')
  t.equal(await count(collectionOf(labels(700), { cap: 500 })), 700, 'asks for the job where the PCE cuts at its page')
  t.same(asked(), ['0', '700', 'respond-async'])
  t.equal(
    await count(collectionOf(labels(12_000), { total: () => undefined, cap: 10_000 })),
    12_000,
    'and where a full page hides the rest',
  )

  const filtered = setup(collectionOf(labels(12), { total: () => '700' }))
  t.equal((await filtered.labels.getAll('draft', null, { params: { key: 'app', max_results: 3 } })).length, 12)
  t.same(
    server.requests(),
    ['GET /orgs/1/labels?key=app&max_results=0', 'GET /orgs/1/labels?key=app&max_results=700'],
    'an unfiltered total is no reason for more',
  )

  const wrong: [string, number, (number | string | undefined)[], string[]][] = [
    ['too small at first', 700, [3, 700], ['0', '3', '700']],
    ['too small, then missing', 700, [3, undefined], ['0', '3', 'respond-async']],
    ['too large', 700, [900], ['0', '900', 'respond-async']],
    ['too large at first', 700, [900, 700], ['0', '900']],
    ['shrinking', 700, [703, 700], ['0', '703']],
    ['growing all the time', 2000, [600, 601, 602, 603], ['0', '600', '601', '602', 'respond-async']],
    ['no number at first', 700, ['many', 700], ['0', '10000']],
    ['no number at last', 700, [700, 'many'], ['0', '700', 'respond-async']],
    ['negative', 700, [-1], ['0', '10000']],
    ['beyond all reason', 700, ['99999999999999999999'], ['0', '10000']],
  ]
  for (const [what, reality, totals, expected] of wrong) {
    let turn = 0
    const total = () => {
      const value = totals[Math.min(turn++, totals.length - 1)]
      return value === undefined ? undefined : String(value)
    }
    const all = await setup(collectionOf(labels(reality), { total })).labels.getAll()
    t.equal(new Set(all.map(({ href }) => href)).size, reality, `loses nothing when the total is ${what}`)
    t.same(asked(), expected)
  }
  // A PCE that gives less the more it is asked for, and starts no job.
  const shrinking: Responder = ({ path }) => ({
    body: labels(path.endsWith('max_results=0') ? 500 : 100),
    headers: { 'x-total-count': '600' },
  })
  t.equal(await count(shrinking), 500, 'the longest answer is kept')
  const noJobs = collectionOf(labels(700), { total: () => '900' })
  const plain: Responder = (seen, index) =>
    seen.headers.prefer === undefined ? noJobs(seen, index) : { body: labels(500) }
  t.equal(await count(plain), 700, 'a plain page in place of the job takes nothing away')
  t.equal(await count({ body: labels(500) }), 500)
  t.same(asked(), ['0', '10000', 'respond-async'], 'a full page without a total may hide the rest')
  t.equal(await count({ body: labels(500), headers: { 'x-total-count': '500' } }), 500)
  t.same(asked(), ['0'], 'with its total it does not')
  const deaf: Responder = ({ path, headers }) => {
    if (headers.prefer === 'respond-async' || !path.includes('max_results=0')) return { body: labels(620) }
    return { body: [], headers: { 'x-total-count': '600' } }
  }
  t.equal(await count(deaf), 620)
  t.same(asked(), ['0', '600'], 'more than was asked for is everything')

  const large: Responder = ({ path, headers }): Reply => {
    if (path.includes('max_results=0')) return { body: [], headers: { 'x-total-count': '40' } }
    if (path === file) return { body: fortyMegabytes }
    if (path === job) return { body: { href: job, status: 'done', result: { href: file } } }
    return headers.prefer === undefined ? { body: fortyMegabytes } : { status: 202, headers: { location: job } }
  }
  const phases: string[] = []
  const all = await setup(large).labels.getAll('draft', null, { onProgress: ({ phase }) => phases.push(phase) })
  t.equal(all.length, 40, 'more than fits into one answer comes through the job')
  t.same(phases, ['submitted', 'polling', 'downloading', 'done'], 'which tells how it gets on')

  const events = setup(collectionOf(labels(15_000), { cap: 10_000 }))
  t.equal((await events.events.getAll()).length, 15_000)
  t.same(asked(), ['0', 'respond-async'], 'kinds with a hard limit go to the job at once')
})

t.test('an asynchronous job', async (t) => {
  let client = setup(jobOf(started(job), state('pending'), state('running'), done))
  t.same(await client.labels.getAsync('draft', null, { params: { key: 'app' } }), [{ href: '/orgs/1/labels/1' }])
  t.same(server.requests(), ['GET /orgs/1/labels?key=app', `GET ${job}`, `GET ${job}`, `GET ${job}`, `GET ${file}`])
  t.equal(server.seen[0]?.headers.prefer, 'respond-async')
  t.ok(server.seen.slice(1).every(({ headers }) => headers.prefer === undefined))
  t.same(client.waits, [5000, 7500, 11_250], 'is asked about as it says, then half as seldom each time')
  t.equal((await setup(jobOf(started(job), done)).getCollection('labels')).text, '[{"href":"/orgs/1/labels/1"}]')
  t.equal((await setup({ body: [{}, {}] }).labels.getAsync()).length, 2, 'may be spared by a direct answer')
  t.equal((await setup({ body: [1, 2] }).getCollection('labels')).text, '[1,2]')
  t.equal((await setup(jobOf(started(job), state('completed', file))).labels.getAsync()).length, 1, 'result as a path')
  t.equal((await setup(jobOf(started(job), state('done', file))).labels.getAsync()).length, 1)
  client = setup(jobOf(started(job), { ...done, status: 202 }))
  t.equal((await client.labels.getAsync()).length, 1, 'whatever status its answer has')
  await setup(jobOf(started(job), done)).getCollection('labels', { headers: { 'x-trace': '7' }, requestId: 'r-1' })
  for (const { headers } of server.seen) partial(t, headers, { 'x-trace': '7', 'x-request-id': 'r-1' })
})

t.test('the pace of a job', async (t) => {
  const start = Date.UTC(2026, 2, 1)
  const date = (ms: number) => new Date(start + ms).toUTCString()
  const paces: [string | null, string | undefined, number[]][] = [
    ['0', '3', [500, 3000, 4500]],
    ['2', undefined, [2000, 3000, 4500]],
    [null, undefined, [1000, 1500, 2250]],
    ['soon', 'later', [1000, 1500, 2250]],
    ['-5', undefined, [1000, 1500, 2250]],
    ['86400', undefined, [30_000, 30_000, 30_000]],
    [date(7000), undefined, [7000, 10_500, 15_750]],
    ['0', '0', [500, 500, 750]],
    [date(-7000), undefined, [500, 750, 1125]],
    [date(86_400_000), undefined, [30_000, 30_000, 30_000]],
  ]
  for (const [first, second, waits] of paces) {
    const running = state('running', {}, second === undefined ? {} : { 'retry-after': second })
    const client = setup(jobOf(started(job, first), running, state('running'), done))
    await client.getCollection('labels')
    t.same(client.waits, waits, `follows Retry-After: ${first}, then ${second}`)
  }
})

t.test('where a job and its result are', async (t) => {
  const origin = `http://127.0.0.1:${server.port}`
  for (const root of ['', '/api/v2', origin, `${origin}/api/v2`]) {
    const client = setup(jobOf(started(`${root}${job}`), state('done', { href: `${root}${file}` })))
    t.equal((await client.labels.getAsync()).length, 1, `is understood as ${root || 'a bare path'}`)
    t.same(server.requests().slice(1), [`GET ${job}`, `GET ${file}`])
  }
  for (const evil of [
    `https://evil.example${job}`,
    `//evil.example${job}`,
    `http://127.0.0.1:${server.port + 1}${job}`,
    `https://127.0.0.1:${server.port}${job}`,
    `http://localhost:${server.port}${job}`,
    `http://user:x@127.0.0.1:${server.port + 1}${job}`,
    'file:///etc/passwd',
    'http://[',
  ]) {
    const refused = { name: 'PceError', code: 'invalid_response', message: /another server/ }
    partial(
      t,
      await rejection(setup(jobOf(started(evil), done)).getCollection('labels')),
      refused,
      `${evil} is not followed`,
    )
    t.equal(server.seen.length, 1)
    const elsewhere = setup(jobOf(started(job), state('done', { href: evil })))
    partial(t, await rejection(elsewhere.labels.getAsync()), refused, 'nor is such a result')
    t.same(server.requests(), ['GET /orgs/1/labels', `GET ${job}`, `DELETE ${job}`])
  }
  partial(t, await rejection(setup({ status: 202 }).getCollection('labels')), {
    code: 'invalid_response',
    message: /where/,
  })
})

t.test('a job that fails', async (t) => {
  const both = (answer: Responder) => [
    () => rejection(setup(answer).getCollection('labels')),
    () => rejection(setup(answer).labels.getAsync()),
  ]
  const cases: [string, Reply[], object][] = [
    ['fails', [state('failed', { message: 'Out of disk' })], { message: /Out of disk/, status: 200 }],
    ['fails without a word', [state('failed', null)], { message: /gave no reason/ }],
    ['ends without a result', [state('done')], { message: /without a result/ }],
    ['has an empty result', [state('done', { href: '' })], { message: /without a result/ }],
    ['is gone', [state('running'), { status: 404 }], { status: 404, message: /no longer exists.*expired/ }],
    ['is gone for good', [{ status: 410 }], { status: 410, message: /no longer exists.*expired/ }],
  ]
  for (const [what, states, expected] of cases) {
    for (const call of both(jobOf(started(job), ...states))) {
      partial(t, await call(), { name: 'PceApiError', code: 'job_failed', ...expected }, what)
      const isDeleted = server.seen.some(({ method }) => method === 'DELETE')
      t.equal(isDeleted, what.includes('result'), 'one that the PCE has lost is not deleted')
    }
  }
  for (const gone of [404, 410]) {
    const answer: Responder = (seen, index) =>
      seen.path === file ? { status: gone } : jobOf(started(job), done)(seen, index)
    for (const call of both(answer)) {
      const expected = { code: 'job_failed', status: gone, path: file, message: /no longer exists.*expired/ }
      partial(t, await call(), expected, 'a result that has expired')
    }
  }
  partial(t, await rejection(setup(jobOf(started(job), { status: 403 })).labels.getAsync()), {
    code: 'api_error',
    status: 403,
  })
  partial(t, await rejection(setup({ status: 406 }).labels.getAsync()), { code: 'api_error', status: 406 })
  t.ok((await rejection(setup({ status: 406 }).getCollection('labels'))) instanceof PceApiError)
  partial(t, await rejection(setup(jobOf(started(job), { body: '<html>' })).labels.getAsync()), {
    code: 'invalid_response',
  })
  const cut: Responder = (seen, index) =>
    seen.path === file ? { body: '[{"href":' } : jobOf(started(job), done)(seen, index)
  partial(t, await rejection(setup(cut).labels.getAsync()), { code: 'invalid_response' }, 'a result that is cut short')
})

t.test('a job that does not end', async (t) => {
  const stuck = setup(jobOf(started(job), state('running')))
  partial(t, await rejection(stuck.labels.getAsync()), { code: 'job_failed', message: /not done after 10 minutes/ })
  const waited = stuck.waits.reduce((sum, wait) => sum + wait)
  t.ok(waited > 560_000 && waited <= 600_000, `is given up after 10 minutes (${waited})`)
  t.equal(server.requests().at(-1), `DELETE ${job}`, 'and deleted')
  const patient = setup(jobOf(started(job), state('running')))
  const late = await rejection(patient.getCollection('labels', { totalTimeoutMs: 1_200_000 }))
  partial(t, late, { code: 'deadline', message: /not done within 1200 s/ })
  t.ok(patient.waits.reduce((sum, wait) => sum + wait) > 1_160_000, 'or when the call says so')
  const hurried = setup(jobOf(started(job), state('running')))
  partial(t, await rejection(hurried.labels.getAsync('draft', null, { totalTimeoutMs: 12_000 })), { code: 'deadline' })
  t.same(hurried.waits, [5000])
  const odd = setup(jobOf(started(job), { body: 'null' }, { status: 204 }, { body: [] }, done))
  t.equal((await odd.labels.getAsync()).length, 1, 'an answer without a status is no end')
})

t.test('cancelling a job', async (t) => {
  const why = new Error('the user left')
  for (const [at, requests] of [
    ['polling', 2],
    ['downloading', 2],
    ['submitted', 1],
  ] as const) {
    const controller = new AbortController()
    const client = setup(jobOf(started(job), state('running'), done))
    respond = ((answer) => (seen, index) =>
      seen.path === job && at === 'downloading'
        ? seen.method === 'GET'
          ? done
          : { status: 204 }
        : answer(seen, index))(respond)
    const onProgress = ({ phase }: CollectionProgress) => phase === at && controller.abort(why)
    const call = client.labels.getAsync('draft', null, { signal: controller.signal, onProgress })
    partial(t, await rejection(call), { code: 'aborted', cause: why }, `while it is ${at}`)
    t.equal(server.requests().at(-1), `DELETE ${job}`, 'deletes it at the PCE')
    t.equal(server.seen.length, requests + 1, 'and asks for nothing else')
  }

  const controller = new AbortController()
  const answer = jobOf(started(job), state('running'))
  const hanging = setup((seen, index) => {
    if (index === 2) controller.abort()
    if (seen.method === 'DELETE') return { status: 500 }
    return index === 2 ? { hangs: true } : answer(seen, index)
  })
  partial(t, await rejection(hanging.getCollection('labels', { signal: controller.signal })), { code: 'aborted' })
  t.same(server.requests().slice(2), [`GET ${job}`, `DELETE ${job}`], 'once, and whether it succeeds or not')

  const elsewhere = '/orgs/1/labels/5'
  const misled = new AbortController()
  const label = setup((seen) => (seen.path === elsewhere ? state('running') : started(elsewhere)))
  const onProgress = ({ phase }: CollectionProgress) => phase === 'polling' && misled.abort()
  const call = label.getCollection('labels', { signal: misled.signal, onProgress })
  partial(t, await rejection(call), { code: 'aborted' })
  t.notOk(
    server.seen.some(({ method }) => method === 'DELETE'),
    'only a job is ever deleted, wherever Location points',
  )
})

t.test('the progress of a job', async (t) => {
  const told: CollectionProgress[] = []
  const onProgress = (progress: CollectionProgress) => void told.push(progress)
  await setup(jobOf(started(job), state('pending'), state('running'), done)).labels.getAsync('draft', null, {
    onProgress,
  })
  const expected = [
    { phase: 'submitted', status: undefined, elapsedMs: 0 },
    { phase: 'polling', status: 'pending', elapsedMs: 5000 },
    { phase: 'polling', status: 'running', elapsedMs: 12_500 },
    { phase: 'polling', status: 'done', elapsedMs: 23_750 },
    { phase: 'downloading', status: undefined, elapsedMs: 23_750 },
    { phase: 'done', status: undefined, elapsedMs: 23_750 },
  ]
  t.same(told, expected)
  told.length = 0
  await setup(jobOf(started(job), state('pending'), state('running'), done)).getCollection('labels', { onProgress })
  t.same(told, expected)
  told.length = 0
  await setup({ body: [] }).labels.getAsync('draft', null, { onProgress })
  t.same(told, [], 'is not told where there is none')
})

t.test('a large result', async (t) => {
  const answer: Responder = (seen, index) =>
    seen.path === file ? { body: fortyMegabytes } : jobOf(started(job), done)(seen, index)
  t.equal((await setup(answer).labels.getAsync()).length, 40, 'is parsed as it arrives')
  partial(
    t,
    await rejection(setup(answer).getCollection('labels')),
    { code: 'body_too_large' },
    'is no HTTP response in memory',
  )
  let tries = 0
  const broken: Responder = (seen, index) => {
    if (seen.path !== file) return jobOf(started(job), done)(seen, index)
    return tries++ === 0
      ? { body: '[{"href":"/orgs/1/labels/0"},', breaks: true }
      : { body: [{ href: '/orgs/1/labels/1' }] }
  }
  t.same(await setup(broken).labels.getAsync(), [{ href: '/orgs/1/labels/1' }], 'starts again when it breaks off')
})

/** A collection endpoint: pages of 500 unless asked for more, X-Total-Count, and the asynchronous job answered at once. */
function collectionOf(
  all: object[],
  { total = () => String(all.length), cap = Infinity }: { total?: () => string | undefined; cap?: number } = {},
): Responder {
  return ({ path, headers }) => {
    if (headers.prefer === 'respond-async') return { body: all }
    const wanted = /max_results=(\d+)/.exec(path)?.[1] ?? '500'
    const count = total()
    const headersOfPage: Record<string, string> = count === undefined ? {} : { 'x-total-count': count }
    return { body: all.slice(0, Math.min(Number(wanted), cap)), headers: headersOfPage }
  }
}

t.test('a job whose file holds something other than objects', async (t) => {
  for (const body of [[null], [[]], [{ href: '/orgs/1/labels/1' }, 7]]) {
    const odd: Responder = (seen, index) =>
      seen.path === file ? { body } : jobOf(started(job), state('done', { href: file }))(seen, index)
    const answer = await rejection(setup(odd).labels.getAsync())
    t.equal(answer.code, 'invalid_response', JSON.stringify(body))
  }
})
