/** `scan`: a list that passes by, by one answer or the PCE's job, each object once, however the PCE counts and cuts. */
import t from 'tap'
import type { ScanOptions } from '../../pce-client/types.js'
import { partial } from '../partial.js'
import { clientOf, rejection, startServer, type Reply, type Responder } from './support.js'

const JOB = '/orgs/1/jobs/6c1f'
const FILE = '/orgs/1/datafiles/77'
const PARAMS = { params: { managed: true, include: 'labels' } }
const hrefOf = (at: number) => `/orgs/1/workloads/${at}`
const objects = (count: number) => Array.from({ length: count }, (_, at) => ({ href: hrefOf(at) }))

const server = await startServer(t, (seen, index) => respond(seen, index))
let respond: Responder = () => ({ body: [] })

interface Collection {
  count: number
  /** Headers of its counts. */
  counts?: Record<string, string>
  /** The most that one answer has. */
  cap?: number
  /** Without it, `respond-async` is not understood. */
  hasJobs?: boolean
}

function collectionOf({ count, counts = {}, cap = Infinity, hasJobs = true }: Collection): Responder {
  return ({ method, path, headers }): Reply => {
    if (method === 'DELETE') return { status: 204 }
    if (path.startsWith(JOB)) return { body: { href: JOB, status: 'done', result: { href: FILE } } }
    if (path.startsWith(FILE)) return { body: objects(count) }
    if (hasJobs && headers.prefer === 'respond-async') return { status: 202, headers: { location: JOB } }
    const asked = Number(new URL(path, 'http://x').searchParams.get('max_results') ?? 500)
    return { headers: counts, body: objects(Math.min(count, asked, cap)) }
  }
}

/** What a scan hands over, what it says of it, and what the PCE was asked. */
async function scan(answer: Responder, options: Partial<ScanOptions<{ href: string }>> = {}) {
  respond = answer
  server.seen.length = 0
  const client = clientOf(server)
  const found: string[] = []
  const outcome = await client.workloads.scan('draft', null, {
    onBegin: () => void (found.length = 0),
    onItems: (items) => items.forEach(({ href }) => found.push(href)),
    ...options,
  })
  const asked = server.seen
    .filter(({ path }) => path.startsWith('/orgs/1/workloads'))
    .map(({ path, headers }) => headers.prefer ?? new URL(path, 'http://x').searchParams.get('max_results'))
  t.equal(outcome.items, found.length)
  t.same(
    found,
    found.map((_, at) => hrefOf(at)),
    'each once, in order',
  )
  return { count: found.length, outcome, asked }
}

t.test('a list that is short comes in one answer', async (t) => {
  const counts = { 'x-total-count': '30' }
  t.same(await scan(collectionOf({ count: 30, counts })), {
    count: 30,
    outcome: { items: 30, isWhole: true, totalCount: 30, matchCount: 30 },
    asked: ['10000'],
  })
  const filtered = { 'x-total-count': '90000', 'x-matched-count': '30' }
  t.same(await scan(collectionOf({ count: 30, counts: filtered }), PARAMS), {
    count: 30,
    outcome: { items: 30, isWhole: true, totalCount: 90_000, matchCount: 30 },
    asked: ['10000'],
  })
  const unfiltered = { 'x-total-count': '90000' }
  t.same(
    await scan(collectionOf({ count: 0, counts: unfiltered }), PARAMS),
    { count: 0, outcome: { items: 0, isWhole: true, totalCount: 90_000, matchCount: null }, asked: ['10000'] },
    'nothing that matches is no contradiction to the count of everything',
  )
})

t.test('a part of a list is as much as was wanted, and says how many match where the PCE does', async (t) => {
  const part = { ...PARAMS, most: 11 }
  const counts = { 'x-total-count': '90000', 'x-matched-count': '400' }
  t.same(await scan(collectionOf({ count: 400, counts }), part), {
    count: 11,
    outcome: { items: 11, isWhole: false, totalCount: 90_000, matchCount: 400 },
    asked: ['11'],
  })
  const { outcome } = await scan(collectionOf({ count: 400, counts: { 'x-total-count': '90000' } }), part)
  t.same(outcome, { items: 11, isWhole: false, totalCount: 90_000, matchCount: null })
})

t.test('a long list comes through the job', async (t) => {
  const job = ['10000', 'respond-async']
  for (const [what, counts, options] of [
    ['by its total', { 'x-total-count': '10200' }, {}],
    ['by the count of what matches', { 'x-total-count': '90000', 'x-matched-count': '10200' }, PARAMS],
    ['by an answer that is full', { 'x-total-count': '90000' }, PARAMS],
    ['without any count', {}, {}],
  ] as const) {
    const { count, outcome, asked } = await scan(collectionOf({ count: 10_200, counts }), options)
    t.same([count, outcome.isWhole, asked], [10_200, true, job], what)
  }
  const cut = await scan(collectionOf({ count: 700, counts: { 'x-total-count': '700' }, cap: 500 }))
  t.same([cut.count, cut.outcome.isWhole, cut.asked], [700, true, job], 'also where the PCE cuts at its own page')
  const some = await scan(collectionOf({ count: 10_200, counts: { 'x-total-count': '10200' } }), { most: 10_100 })
  t.same([some.count, some.outcome.isWhole, some.asked], [10_100, false, job], 'or a part of it')
})

t.test('a PCE that starts no job is asked for all there are', async (t) => {
  const counts = { 'x-total-count': '10200' }
  const whole = await scan(collectionOf({ count: 10_200, counts, hasJobs: false }))
  t.same([whole.count, whole.outcome.isWhole, whole.asked], [10_200, true, ['10000', 'respond-async', '10200']])
  const stubborn = await scan(collectionOf({ count: 10_200, counts, hasJobs: false, cap: 500 }))
  t.same([stubborn.count, stubborn.outcome.isWhole], [500, false], 'what it withholds is not taken for nothing')
})

t.test('a download that breaks off is begun again, and what came before is void', async (t) => {
  const whole = collectionOf({ count: 30, counts: { 'x-total-count': '30' } })
  let breaks = 1
  const { count } = await scan((seen, index) => ({ ...whole(seen, index), breaks: breaks-- > 0 }))
  t.equal(count, 30)
})

t.test('what is no list, and what is thrown meanwhile, ends it', async (t) => {
  for (const body of ['{}', '7', '[7]', '[{}', 'null', ''])
    partial(t, await rejection(scan(() => ({ headers: { 'content-type': 'application/json' }, body }))), {
      code: 'invalid_response',
    })
  const onItems = () => Promise.reject(new Error('no room'))
  const error = await rejection(scan(collectionOf({ count: 3 }), { onItems }))
  t.equal(error.message, 'no room')
})

t.test('a list that is held is taken within the bounds of what is collected', async (t) => {
  const rows = `[${'{},'.repeat(3_000_000)}{}]`
  respond = () => ({ headers: { 'content-type': 'application/json' }, body: rows })
  const client = clientOf(server)
  const scanned = client.workloads.scan('draft', null, { isHeld: true, onItems: () => {} })
  partial(t, await rejection(scanned), { code: 'body_too_large', message: /has more than 500,000 rows/ })
})

t.test('lists that arrive at once share the turns of the event loop', async (t) => {
  respond = collectionOf({ count: 5000 })
  const client = clientOf(server)
  const handed = new Map<number, number>()
  let turn = 0
  let isOver = false
  const count = () => {
    turn += 1
    if (!isOver) setImmediate(count)
  }
  count()
  const onItems = () => {
    handed.set(turn, (handed.get(turn) ?? 0) + 1)
    const until = performance.now() + 10
    while (performance.now() < until);
  }
  await Promise.all(
    Array.from({ length: 8 }, () => client.workloads.scan('draft', null, { onItems, onBegin: () => {} })),
  )
  isOver = true
  const total = [...handed.values()].reduce((sum, each) => sum + each)
  t.ok(total >= 40, `${total} long steps`)
  t.ok(Math.max(...handed.values()) <= 2, `at most ${Math.max(...handed.values())} in one turn`)
})
