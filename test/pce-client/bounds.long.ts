/** However much a PCE sends: what does not fit is refused with its bound, before anything is made of it. */
import http from 'node:http'
import { gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { partial } from '../partial.js'
import { clientOf, listen, rejection, startServer, type Reply } from './support.js'

const MIB = 1024 * 1024
const JSON_TYPE = { 'content-type': 'application/json' }
const job = '/orgs/1/jobs/6c1f'
const file = '/orgs/1/datafiles/77'
const query = '/orgs/1/traffic_flows/async_queries/1'

/** Text as a PCE answers it, packed or not. */
const plain = (text: string): Reply => ({ headers: JSON_TYPE, body: text })
const packed = (text: string): Reply => ({
  headers: { ...JSON_TYPE, 'content-encoding': 'gzip' },
  body: gzipSync(text, { level: 1 }),
})
const bomb = (element: string, bytes = 31 * MIB) =>
  `[${`${element},`.repeat(bytes / (element.length + 1) - 1)}${element}]`

async function setup(t: Test, reply: Reply) {
  return clientOf(await startServer(t, () => reply))
}

/** The reply as the file of a job. */
async function setupJob(t: Test, reply: Reply) {
  const started = { status: 202, headers: { location: job } }
  const done = { body: { status: 'done', result: { href: file } } }
  return clientOf(await startServer(t, ({ path }) => (path === file ? reply : path === job ? done : started)))
}

/** The longest text that is parsed at once while the work goes on: a turn of the event loop is as long as that takes. */
async function longestParse(work: () => Promise<unknown>): Promise<number> {
  const { parse } = JSON
  let longest = 0
  JSON.parse = (text, reviver) => {
    longest = Math.max(longest, text.length)
    return parse(text, reviver) as unknown
  }
  try {
    await work()
  } finally {
    JSON.parse = parse
  }
  return longest
}

t.test('one answer', async (t) => {
  const bombs: [string, string, RegExp][] = [
    ['objects', bomb('{}'), /has more than 2,000,000 elements; narrow it/],
    ['lists', bomb('[]'), /has more than 2,000,000 elements/],
    ['numbers', bomb('1'), /has more than 2,000,000 elements/],
    ['members', `{${'"a":0,'.repeat(4_000_000)}"b":1}`, /has more than 2,000,000 elements/],
    ['lists inside each other', '['.repeat(200_000), /nested more than 100 levels deep/],
    ['objects inside each other', `${'{"a":'.repeat(101)}1${'}'.repeat(101)}`, /nested more than 100 levels deep/],
  ]
  for (const [what, text, message] of bombs) {
    for (const reply of [plain(text), packed(text)]) {
      const client = await setup(t, reply)
      const expected = { name: 'PceError', code: 'body_too_large', message }
      for (const call of [() => client.get('x'), () => client.labels.get(), () => client.getProductVersion()])
        partial(t, await rejection(call()), expected, what)
    }
  }
  const fits = `[${'['.repeat(99)}${']'.repeat(99)}]`
  t.equal((await (await setup(t, plain(fits))).get('x')).text, fits, 'a hundred levels')
  const quoted = JSON.stringify({ text: '[{,'.repeat(5_000_000).slice(0, 10 * MIB), '"\\[': '\\"[[' })
  for (const reply of [plain(quoted), packed(quoted)])
    t.equal((await (await setup(t, reply)).get('x')).text.length, quoted.length, 'what is quoted does not count')
  const csv = '{[,'.repeat(1000)
  const csvReply = { headers: { 'content-type': 'text/csv' }, body: `x${csv}` }
  t.equal((await (await setup(t, csvReply)).get('x')).text, `x${csv}`, 'nor what is no JSON')
})

t.test('twelve hostile answers at once', async (t) => {
  const client = await setup(t, packed(bomb('{}')))
  const before = process.memoryUsage().rss
  let highest = before
  const watch = setInterval(() => (highest = Math.max(highest, process.memoryUsage().rss)), 5)
  const longest = await longestParse(async () => {
    const errors = await Promise.all(Array.from({ length: 12 }, () => rejection(client.labels.get())))
    t.ok(errors.every(({ code }) => code === 'body_too_large'))
  })
  clearInterval(watch)
  const grown = Math.round((highest - before) / MIB)
  t.ok(grown < 300, `cost ${grown} MiB`)
  t.equal(longest, 0, 'and nothing is made of them')
})

t.test('a large list', async (t) => {
  const labels = Array.from({ length: 100_000 }, (_, n) => ({
    href: `/orgs/1/labels/${n}`,
    key: 'app',
    value: `😀 é "${n}" \\ payments and all that belongs to them`,
    created_at: '2026-01-01T00:00:00Z',
  }))
  const text = JSON.stringify(labels)
  for (const reply of [plain(text), packed(text)]) {
    const client = await setup(t, reply)
    let read: unknown
    const longest = await longestParse(async () => (read = await client.labels.get()))
    t.ok(JSON.stringify(read) === text, 'is the same list')
    t.ok(longest > 0 && longest < MIB, `and parsed in turns, at most ${longest} characters in one`)
  }
  for (const damaged of [text.slice(0, -1), `${text.slice(0, -1)},]`, `{"a":${text}}`, `${text}]`])
    await t.rejects((await setup(t, plain(damaged))).labels.get(), { code: 'invalid_response' })
})

t.test('a large object, and a list with a large row', async (t) => {
  const rules = Array.from({ length: 40_000 }, (_, n) => ({
    href: `/orgs/1/x/${n}`,
    text: `😀 "${n}" \\`,
    at: [n, null, true],
  }))
  const set = { href: '/orgs/1/sec_policy/draft/rule_sets/1', name: 'large', rules, deny_rules: [] }
  const small = { ...set, rules: [] }
  // Little text, and many elements.
  const crowd = { ...set, rules: Array.from({ length: 300_000 }, () => 0) }
  const list = [small, set, small, crowd, small]
  const cases: [string, object, (client: Awaited<ReturnType<typeof setup>>) => Promise<unknown>, typeof setup?][] = [
    ['an object', set, (client) => client.ruleSets.getByReference(set.href)],
    ['the answer of any request', set, async (client) => (await client.get('x')).json()],
    ['a list', list, (client) => client.ruleSets.get()],
    ['the result of a job', list, (client) => client.ruleSets.getAsync(), setupJob],
  ]
  for (const [what, value, call, start = setup] of cases) {
    const text = JSON.stringify(value)
    t.ok(text.length > 2 * MIB)
    let read: unknown
    const longest = await longestParse(async () => (read = await call(await start(t, plain(text)))))
    t.ok(JSON.stringify(read) === text, `${what} is the same`)
    t.ok(longest < MIB / 2, `${what} is parsed in turns, at most ${longest} characters in one`)
    for (const damaged of [text.slice(0, -1), `${text}]`, text.replace('"name":', '"name"')])
      await t.rejects(call(await start(t, plain(damaged))), { code: 'invalid_response' }, `${what}, damaged`)
  }
})

/** A PCE whose job or traffic query has a result that never ends. */
async function startEndless(t: Test, piece: () => string) {
  let sent = 0
  const server = http.createServer((request, response) => {
    const path = (request.url ?? '').replace(/^\/api\/v2/, '').replace(/\?.*/, '')
    request.resume()
    response.setHeader('content-type', 'application/json')
    if (request.method === 'DELETE') return void response.writeHead(204).end()
    if (path === job) return void response.end(JSON.stringify({ status: 'done', result: { href: file } }))
    if (path === query) return void response.end(JSON.stringify({ href: query, status: 'completed', result: file }))
    if (request.method === 'POST') return void response.writeHead(202).end(JSON.stringify({ href: query }))
    if (path !== file) return void response.writeHead(202, { location: job }).end()
    response.write('[')
    const more = () => {
      if (response.destroyed) return
      const text = piece()
      sent += text.length
      response.write(text, more)
    }
    more()
  })
  return { client: clientOf({ port: await listen(t, server) }), sent: () => sent }
}

t.test('the result of a job', async (t) => {
  const many = '{},'.repeat(20_000)
  const rows = await startEndless(t, () => many)
  const tooMany = await rejection(rows.client.labels.getAsync())
  partial(t, tooMany, { code: 'body_too_large', message: /has more than 500,000 rows/ })
  t.ok(rows.sent() < 20 * MIB, `is not listened to any longer (${rows.sent()} bytes)`)

  const inside = `{"a":[${'{},'.repeat(400_000)}1]},`
  const elements = await startEndless(t, () => inside)
  partial(t, await rejection(elements.client.labels.getAsync()), {
    code: 'body_too_large',
    message: /has more than 10,000,000 elements/,
  })
  const row = `{"a":[${'{},'.repeat(1_200_000)}1]},`
  const crowded = await startEndless(t, () => row)
  partial(t, await rejection(crowded.client.labels.getAsync()), { message: /has more than 1,000,000 elements/ })
  const deep = await startEndless(t, () => '[')
  partial(t, await rejection(deep.client.labels.getAsync()), { code: 'body_too_large', message: /100 levels/ })
  const long = await startEndless(t, () => 'x'.repeat(MIB))
  partial(t, await rejection(long.client.labels.getAsync()), {
    code: 'body_too_large',
    message: /a row that is too large/,
  })
})

t.test('the rows of a traffic query', async (t) => {
  const flows = '{"src":{},"dst":{},"service":{}},'.repeat(1000)
  for (const asked of [undefined, 10, 50_000]) {
    const { client, sent } = await startEndless(t, () => flows)
    let taken = 0
    const onFlows = (rows: unknown[]) => void (taken += rows.length)
    const call = client.streamTrafficFlows('q', { max_results: asked } as never, { onFlows })
    const most = asked ?? 200_000
    const message = new RegExp(`has more than ${most.toLocaleString('en')} rows`)
    partial(t, await rejection(call), { code: 'body_too_large', message }, `${asked} were asked for`)
    t.ok(taken <= most, 'no more are handed over')
    t.ok(sent() < most * 40 + 20 * MIB, `nor listened to (${sent()} bytes)`)
  }
})

t.test('a file that drips', async (t) => {
  const dripping = http.createServer((request, response) => {
    request.resume()
    response.setHeader('content-type', 'application/json')
    if (request.method === 'DELETE') return void response.writeHead(204).end()
    if (request.url?.endsWith(job) === true)
      return void response.end(JSON.stringify({ status: 'done', result: { href: file } }))
    if (request.url?.endsWith(file) !== true) return void response.writeHead(202, { location: job }).end()
    response.write('[')
    const timer = setInterval(() => response.write(' '), 20)
    response.once('close', () => clearInterval(timer))
  })
  const client = clientOf({ port: await listen(t, dripping) }, { totalTimeout: 0.5, retryCount: 0 })
  const error = await rejection(client.labels.getAsync())
  partial(t, error, { code: 'deadline', message: /not done within 0\.5 s/ }, 'ends with the deadline of every call')
})
