import { gzipSync } from 'node:zlib'
import t from 'tap'
import type { PceError } from '../../pce-client/index.js'
import { JsonArraySplitter } from '../../pce-client/split-json-array.js'
import type { TrafficQueryProgress } from '../../pce-client/types.js'
import type { TrafficFlow, TrafficQuery } from '../../schemas/pce/traffic.js'
import { partial } from '../partial.js'
import { clientOf, fakeTimers, startServer, type Reply, type Responder, type Seen } from './support.js'

const server = await startServer(t, (seen, index) => respond(seen, index))
let respond: Responder = () => ({})

function setup(answer: Responder | Reply, options: Parameters<typeof clientOf>[1] = {}) {
  respond = typeof answer === 'function' ? answer : () => answer
  server.seen.length = 0
  return clientOf(server, options)
}

const bodyOf = (seen: Seen | undefined) => JSON.parse(seen?.body ?? 'null') as Record<string, unknown>

// --- Traffic ---------------------------------------------------------------------------------------------------------

const QUERIES = '/orgs/1/traffic_flows/async_queries'
const QUERY = `${QUERIES}/5a0c6ad1`
const query: TrafficQuery = {
  start_date: '2026-02-22T00:00:00Z',
  end_date: '2026-03-01T00:00:00Z',
  sources: { include: [[]], exclude: [] },
  destinations: { include: [[]], exclude: [] },
  services: { include: [], exclude: [] },
  policy_decisions: [],
  max_results: 1000,
}
const { max_results: _limit, ...unlimited } = query
const wide = { ...query, max_results: 30_000 }
const flow = (index: number): TrafficFlow => ({
  src: { ip: `10.0.${index >> 8}.${index & 255}` },
  dst: { ip: '10.9.9.9', fqdn: 'naïve "quoted" \\ [{,}]' },
  service: { port: 443, proto: 6 },
  policy_decision: 'allowed',
})
const flows = (count: number) => Array.from({ length: count }, (_, index) => flow(index))
const state = (status: string, more: object = {}): Reply => ({ body: { href: QUERY, status, ...more } })
const completed = state('completed', { result: `${QUERY}/download`, matches_count: 42, flows_count: 3 })

/** A PCE with one traffic query: the states its polls see, one after the other, and what the download answers. */
function trafficPce(
  states: Reply[],
  downloads: Reply[] = [{ body: flows(3) }],
  submitted: Reply = { ...state('queued'), status: 202 },
): Responder {
  let polls = 0
  let fetches = 0
  return ({ method, path }) => {
    if (method === 'DELETE') return { status: 204 }
    if (method === 'POST') return submitted
    if (path.startsWith(`${QUERY}/download`)) return downloads[Math.min(fetches++, downloads.length - 1)] ?? {}
    return states[Math.min(polls++, states.length - 1)] ?? {}
  }
}

t.test('a traffic query', async (t) => {
  const client = setup(trafficPce([state('queued'), state('working'), completed]))
  const progress: TrafficQueryProgress[] = []
  const rows = await client.getTrafficFlowsAsync('who talks to payments', query, {
    onProgress: (step) => progress.push(step),
  })
  t.same(rows, flows(3), 'yields the rows of its result')
  t.same(server.requests(), [
    `POST ${QUERIES}`,
    ...Array<string>(3).fill(`GET ${QUERY}`),
    `GET ${QUERY}/download`,
    `GET ${QUERY}`,
  ])
  t.equal(server.seen[0]?.headers.prefer, 'respond-async')
  t.same(bodyOf(server.seen[0]), { ...query, query_name: 'who talks to payments' })
  t.same(client.waits, [1000, 1500, 2250], 'is polled after one second, then less and less often')
  t.same(
    progress.map(({ phase, status }) => `${phase} ${status ?? ''}`.trim()),
    [
      'submitted',
      'polling queued',
      'polling working',
      'polling completed',
      'downloading completed',
      'downloading completed',
      'done completed',
    ],
    'tells its progress',
  )
  partial(t, progress.at(-1), { flows: 3, matchesCount: 42, elapsedMs: 4750 })

  const slow = setup(trafficPce([...Array<Reply>(9).fill(state('working')), completed]))
  await slow.getTrafficFlowsAsync('q', query)
  t.equal(Math.max(...slow.waits), 10_000, 'is polled at least every 10 s')

  const forms: [string, Responder][] = [
    ['status done', trafficPce([state('done', { result: `${QUERY}/download` })])],
    ['a result object', trafficPce([state('completed', { result: { href: `${QUERY}/download` } })])],
    [
      'a full address',
      trafficPce([state('completed', { result: `http://127.0.0.1:${server.port}/api/v2${QUERY}/download` })]),
    ],
    ['an empty 202 with Location', trafficPce([completed], undefined, { status: 202, headers: { location: QUERY } })],
    [
      'a gzipped result',
      trafficPce([completed], [{ headers: { 'content-encoding': 'gzip' }, body: gzipSync(JSON.stringify(flows(3))) }]),
    ],
    [
      'a result that comes late',
      trafficPce([state('completed', { result: null }), state('completed', { result: '' }), completed]),
    ],
    ['another 429 on submission', withFirst({ status: 429 }, trafficPce([completed]))],
    ['a download that fails first', trafficPce([completed], [{ status: 503 }, { breaks: true }, { body: flows(3) }])],
  ]
  for (const [name, pce] of forms)
    t.equal((await setup(pce).getTrafficFlowsAsync('q', query)).length, 3, `copes with ${name}`)

  const bare = setup(trafficPce([completed]))
  await bare.getTrafficFlowsAsync('q', unlimited)
  t.equal(bodyOf(server.seen[0]).max_results, 200_000, 'asks for all rows when it is not told how many')
})

t.test('a traffic query that has more rows than were asked for need not be downloaded', async (t) => {
  const full = { ...query, max_results: 3 }
  const read = async (client: ReturnType<typeof setup>, asked: TrafficQuery, skipFull: boolean) => {
    const rows: TrafficFlow[] = []
    const outcome = await client.streamTrafficFlows('q', asked, {
      onFlows: (some) => void rows.push(...some),
      skipFull,
    })
    return [outcome.skipped, outcome.flows, outcome.matchesCount, rows.length]
  }
  t.same(await read(setup(trafficPce([completed])), full, true), [true, 0, 42, 0])
  t.same(server.requests(), [`POST ${QUERIES}`, `GET ${QUERY}`], 'nothing more is asked')
  t.same(await read(setup(trafficPce([completed])), full, false), [undefined, 3, 42, 3], 'unless it is wanted')
  t.same(await read(setup(trafficPce([completed])), query, true), [undefined, 3, 42, 3], 'or there is room for more')
  const silent = state('completed', { result: `${QUERY}/download` })
  t.same(await read(setup(trafficPce([silent])), full, true), [undefined, 3, null, 3], 'or the PCE does not say')
})

t.test('counts of a traffic query that are texts are read, and odd ones left out', async (t) => {
  const outcome = async (counts: object) => {
    const client = setup(trafficPce([state('completed', { result: `${QUERY}/download`, ...counts })]))
    const { matchesCount, query: said } = await client.streamTrafficFlows('q', wide, { onFlows: () => undefined })
    return [matchesCount, said.flows_count]
  }
  t.same(await outcome({ matches_count: '42', flows_count: '3' }), [42, 3])
  t.same(await outcome({ matches_count: 'many', flows_count: null }), [null, undefined])
})

t.test('a streamed traffic query', async (t) => {
  const many = flows(20_000)
  const odd = [null, 5, 'x', { src: {}, dst: {} }, { src: null, dst: {}, service: {} }]
  const client = setup(
    trafficPce(
      [completed, { body: { href: QUERY, status: 'completed', matches_count: 99 } }],
      [{ body: [...many, ...odd] }],
    ),
  )
  const batches: number[] = []
  let busy = false
  const outcome = await client.streamTrafficFlows('q', wide, {
    onFlows: async (rows) => {
      t.notOk(busy, 'hands over one batch at a time')
      busy = true
      await new Promise((resolve) => setImmediate(resolve))
      busy = false
      batches.push(rows.length)
    },
  })
  partial(t, outcome, { flows: 20_000, unparseable: 5, matchesCount: 99, query: { href: QUERY } })
  t.ok(batches.length > 3, 'arrives in batches')
  t.equal(
    batches.reduce((sum, size) => sum + size),
    20_000,
  )

  const text = JSON.stringify(many)
  const broken = setup(
    trafficPce(
      [completed],
      [
        { body: text.slice(0, text.length / 2), breaks: true },
        { body: text, headers: { 'content-type': 'application/json' } },
      ],
    ),
  )
  const rows = await broken.getTrafficFlowsAsync('q', wide)
  t.ok(JSON.stringify(rows) === text, 'a download that breaks off goes on without losing or repeating a row')

  const full = setup(trafficPce([completed], [{ body: many }]))
  const failing = full.streamTrafficFlows('q', wide, {
    onFlows: () => {
      throw new RangeError('no room')
    },
  })
  await t.rejects(failing, RangeError, 'what the taker throws is thrown')
  t.same(server.requests().at(-1), `DELETE ${QUERY}`)
  const unread = setup(trafficPce([completed, { status: 404 }]))
  partial(
    t,
    await unread.streamTrafficFlows('q', wide, { onFlows: () => undefined }),
    { matchesCount: 42, flows: 3 },
    'the rows count even if the query is gone',
  )
})

t.test('a traffic query that fails', async (t) => {
  const failures: [string, Responder, object][] = [
    [
      'failed',
      trafficPce([state('failed', { result: { message: 'Too many rows' } })]),
      { name: 'PceApiError', code: 'traffic_query_failed', message: /Too many rows/ },
    ],
    [
      'cancelled',
      trafficPce([state('cancelled')]),
      { name: 'PceApiError', code: 'traffic_query_failed', message: /it was cancelled at the PCE/ },
    ],
    [
      'cancelled by somebody else, and never said to be done with',
      trafficPce([state('cancel_requested')]),
      { code: 'traffic_query_failed', message: /its cancellation was requested at the PCE/ },
    ],
    ['canceled', trafficPce([state('canceled')]), { code: 'traffic_query_failed' }],
    [
      'completed without a result',
      trafficPce([state('completed')]),
      { code: 'traffic_query_failed', message: /without a result/ },
    ],
    [
      'a result elsewhere',
      trafficPce([state('completed', { result: 'https://evil.example/x' })]),
      { code: 'invalid_response' },
    ],
    ...['null', '7', '[]', '{}', '', '{"status":7}'].map((body): [string, Responder, object] => {
      return [`a poll of ${body}`, trafficPce([{ body }]), { name: 'PceError', code: 'invalid_response' }]
    }),
    ['a lost query', trafficPce([{ status: 404 }]), { name: 'PceApiError', status: 404 }],
    [
      'truncated rows',
      trafficPce([completed], [{ body: '[{"src":{}},' }]),
      { code: 'invalid_response', message: /ends too early/ },
    ],
    [
      'no rows but a page',
      trafficPce([completed], [{ headers: { 'content-type': 'text/html' }, body: '<html>' }]),
      { code: 'invalid_response' },
    ],
    [
      'an object for rows',
      trafficPce([completed], [{ body: { flows: [] } }]),
      { code: 'invalid_response', message: /not an array/ },
    ],
    [
      'a refused download',
      trafficPce([completed], [{ status: 410, body: [{ token: 'gone', message: 'Expired' }] }]),
      { status: 410, errors: [{ token: 'gone' }] },
    ],
    [
      'an endless refusal',
      trafficPce([completed], [{ status: 403, body: 'x'.repeat(3_000_000) }]),
      { status: 403, errors: [] },
    ],
  ]
  for (const [name, pce, expected] of failures) {
    const error = await setup(pce)
      .getTrafficFlowsAsync('q', query)
      .catch((thrown: unknown) => thrown)
    partial(t, error, expected, name)
    t.equal(server.requests().at(-1), `DELETE ${QUERY}`, 'is deleted at the PCE')
  }
  const waited = setup(trafficPce([state('completed')]))
  await t.rejects(waited.getTrafficFlowsAsync('q', query))
  const grace = waited.waits.slice(1).reduce((sum, wait) => sum + wait, 0)
  t.ok(grace > 30_000 && grace <= 45_000, `a missing result is waited for, 30 s at least (${grace} ms)`)

  for (const status of [502, 500]) {
    await t.rejects(setup({ status }).getTrafficFlowsAsync('q', query), { code: 'outcome_unknown', status })
    t.equal(server.seen.length, 1, `the submission is never repeated after ${status}`)
  }
  await t.rejects(setup({ status: 202 }).getTrafficFlowsAsync('q', query), { code: 'invalid_response' })
  const undeletable = trafficPce([state('failed')])
  const stubborn = setup((seen, index) =>
    seen.method === 'DELETE' ? { status: 429, headers: { 'retry-after': '60' } } : undeletable(seen, index),
  )
  await t.rejects(
    stubborn.getTrafficFlowsAsync('q', query),
    { code: 'traffic_query_failed' },
    'a deletion that fails does not hide why',
  )
  t.same(stubborn.waits, [1000], 'and is not waited for')
})

t.test('abandoning a traffic query', async (t) => {
  const endless = trafficPce([state('working')])
  const late = setup(endless)
  const error = await late.getTrafficFlowsAsync('q', query).catch((thrown: unknown) => thrown as PceError)
  partial(t, error, { code: 'traffic_query_timeout', message: /600 s/ }, 'after 10 minutes')
  t.equal(
    late.waits.reduce((sum, wait) => sum + wait),
    600_000,
  )
  t.equal(server.requests().at(-1), `DELETE ${QUERY}`, 'deletes it at the PCE')
  await t.rejects(setup(endless).getTrafficFlowsAsync('q', query, { deadlineSeconds: 3 }), {
    code: 'traffic_query_timeout',
  })

  const hanging = setup((seen, index) => (seen.method === 'GET' ? { hangs: true } : endless(seen, index)))
  await t.rejects(
    hanging.getTrafficFlowsAsync('q', query, { deadlineSeconds: 1.2 }),
    { code: 'traffic_query_timeout' },
    'also while a poll hangs',
  )
  t.equal(server.requests().at(-1), `DELETE ${QUERY}`)

  await t.rejects(
    setup(endless).getTrafficFlowsAsync('q', query, { totalTimeoutMs: 3000 }),
    { code: 'deadline', message: /3 s/ },
    'the time that the options give to the call bounds it too',
  )
  t.equal(server.requests().at(-1), `DELETE ${QUERY}`)
  for (const options of [{ deadlineSeconds: NaN }, { deadlineSeconds: 0 }, { totalTimeoutMs: -1 }]) {
    await t.rejects(setup(endless).getTrafficFlowsAsync('q', query, options), { name: 'PceIntegerError' })
    t.same(server.seen, [], 'a time that is none is refused before any request')
  }

  const warnings: string[] = []
  const note = (warning: Error) => void warnings.push(warning.name)
  process.on('warning', note)
  t.teardown(() => process.off('warning', note))
  const { signal } = new AbortController()
  const client = setup(trafficPce([completed]))
  await Promise.all(Array.from({ length: 12 }, () => client.getTrafficFlowsAsync('q', query, { signal })))
  await new Promise((resolve) => setImmediate(resolve))
  t.same(warnings, [], 'one signal may end any number of queries')

  const why = new Error('the user left')
  for (const moment of ['waiting', 'polling', 'downloading', 'delivering']) {
    const controller = new AbortController()
    const stop = () => controller.abort(why)
    const clock = fakeTimers()
    // More rows than one batch, so that some are still to come when the first ones are delivered.
    const pce = trafficPce([completed], [{ body: flows(moment === 'delivering' ? 30_000 : 1) }])
    const client = setup(
      (seen, index) => {
        if (moment === 'polling' && seen.path === QUERY && seen.method === 'GET')
          return (queueMicrotask(stop), { hangs: true })
        if (moment === 'downloading' && seen.path.endsWith('download')) return (queueMicrotask(stop), { hangs: true })
        return pce(seen, index)
      },
      {
        timers: {
          ...clock.timers,
          sleep: (ms, signal) => (moment === 'waiting' && stop(), clock.timers.sleep(ms, signal)),
        },
      },
    )
    const call = client.streamTrafficFlows('q', wide, {
      signal: controller.signal,
      onFlows: () => void (moment === 'delivering' && stop()),
    })
    await t.rejects(call, { name: 'PceError', code: 'aborted', cause: why }, `while ${moment}`)
    t.equal(server.requests().at(-1), `DELETE ${QUERY}`, 'deletes it at the PCE too')
  }
  await t.rejects(setup(endless).getTrafficFlowsAsync('q', query, { signal: AbortSignal.abort(why) }), {
    code: 'aborted',
  })
  t.same(server.seen, [], 'before it began sends nothing')
})

t.test('splitting a JSON array', async (t) => {
  const split = (text: string | Buffer, size: number) => {
    const splitter = new JsonArraySplitter()
    const bytes = Buffer.from(text)
    const all: unknown[] = []
    for (let at = 0; at < bytes.length; at += size) all.push(...splitter.push(bytes.subarray(at, at + size)).flat())
    splitter.end()
    return all
  }
  const values = [{}, { a: [1, [2, { b: ']' }]] }, 'é "q" \\" \\\\ \u2028 😀 [{,}]', 0, null, [[]], { '\\': '"' }]
  for (const text of [JSON.stringify(values), JSON.stringify(values, null, 2), `\n\t ${JSON.stringify(values)} \r\n`]) {
    for (const size of [1, 2, 3, 7, 1000]) t.same(split(text, size), values, `in pieces of ${size} bytes`)
  }
  t.same(split(' [ ] ', 1), [])
  const big = Array.from({ length: 3000 }, (_, index) => ({ index, text: 'x'.repeat(500), more: ['"', '\\'] }))
  t.ok(JSON.stringify(split(JSON.stringify(big), 16_384)) === JSON.stringify(big), 'across its batches')

  // From batch to batch it leaps from one seam between rows to the next; rows that hold such a seam themselves, change their shape or
  // are damaged must not mislead it.
  const plain = (index: number) => ({ src: { ip: `10.0.0.${index}` }, labels: ['a', 'b'], index })
  const shapes: Record<string, (index: number) => unknown> = {
    plain,
    'with rows inside': (index) => ({ src: index, labels: [{ src: 1 }, { src: 2 }], text: 'x},{"src":"y"]' }),
    'of lists': () => [{ src: 1 }, { src: 2 }],
    'that change': (index) => (index < 9000 ? plain(index) : index % 3 === 0 ? index : { index, src: [{ src: 1 }] }),
  }
  for (const [shape, rowOf] of Object.entries(shapes)) {
    // Each text has at least two batches, which end at 256 KiB or at 20,000 elements.
    const count = shape === 'of lists' ? 26_000 : 13_000
    const rows = Array.from({ length: count }, (_, index) => rowOf(index))
    const wanted = JSON.stringify(rows)
    for (const indent of [undefined, 1]) {
      const text = JSON.stringify(rows, null, indent)
      const isSame = (given: string, size: number) => JSON.stringify(split(given, size)) === wanted
      for (const size of [10_000, 65_536, 300_000, text.length])
        t.ok(isSame(`${text} \n`, size), `rows ${shape}, in pieces of ${size} bytes`)
      const damaged = {
        'cut off': text.slice(0, Math.floor(text.length / 2)),
        'that ends in the middle': `${JSON.stringify(rows.slice(0, count / 2), null, indent)},${JSON.stringify(rows.slice(count / 2), null, indent).slice(1)}`,
        'with something after it': `${text} x`,
        'with a comma at its end': `${text.slice(0, -1)},]`,
      }
      for (const [how, given] of Object.entries(damaged))
        t.throws(() => split(given, 65_536), { name: 'PceError', code: 'invalid_response' }, `rows ${shape}, ${how}`)
    }
  }

  // Some of these commas stand where a batch has just ended.
  const row = JSON.stringify({ text: 'x'.repeat(8000) })
  const passing = Array.from({ length: 70 }, (_, count) => count + 1).filter((count) => {
    try {
      return split(`[${`${row},`.repeat(count)}]`, 65_536).length > 0
    } catch {
      return false
    }
  })
  t.same(passing, [], 'no number of rows may end with a comma')

  const malformed = [
    '',
    '  ',
    '{}',
    `[${'0,'.repeat(20_000)}]`,
    'null',
    '[',
    '[1',
    '[1,',
    '[1,]',
    '[,1]',
    '[1,,2]',
    '[1 2]',
    '[{]}',
    '[1]x',
    '[1][2]',
    '["a]',
    '[{"a":tru}]',
    '<html>',
  ]
  for (const text of malformed)
    t.throws(() => split(text, 3), { name: 'PceError', code: 'invalid_response' }, `refuses ${text.slice(0, 20)}`)
  const endless = new JsonArraySplitter()
  const piece = Buffer.alloc(1024 * 1024, 'x')
  endless.push(Buffer.from('["'))
  t.throws(
    () => {
      for (let index = 0; index < 64; index += 1) endless.push(piece)
    },
    { message: /too large/ },
    'does not hold an endless element',
  )
})

// --- Policy, status, defaults ----------------------------------------------------------------------------------------

const draft = (path: string) => `/orgs/1/sec_policy/draft/${path}`

t.test('provisioning', async (t) => {
  const version = {
    href: '/orgs/1/sec_policy/81',
    version: 81,
    workloads_affected: 14,
    commit_message: 'text',
    object_counts: { services: 1 },
  }
  const client = setup({ status: 201, body: version })
  const hrefs = [
    draft('rule_sets/30'),
    draft('rule_sets/30/sec_rules/71'),
    draft('rule_sets/31/deny_rules/2'),
    '/orgs/1/sec_policy/active/ip_lists/12',
    draft('label_groups/0f0a6c7e-0000-4000-8000-000000000001'),
    draft('firewall_settings'),
    draft('rule_sets/30'),
  ]
  t.same(await client.provisionPolicyChanges('text', hrefs), version)
  partial(t, server.seen, [{ method: 'POST', path: '/orgs/1/sec_policy' }])
  t.same(bodyOf(server.seen[0]), {
    update_description: 'text',
    change_subset: {
      rule_sets: [{ href: draft('rule_sets/30') }, { href: draft('rule_sets/31') }],
      ip_lists: [{ href: draft('ip_lists/12') }],
      label_groups: [{ href: draft('label_groups/0f0a6c7e-0000-4000-8000-000000000001') }],
      firewall_settings: [{ href: draft('firewall_settings') }],
    },
  })
  server.seen.length = 0
  const wrong = [
    '/orgs/1/labels/1',
    '/orgs/2/sec_policy/draft/rule_sets/30',
    '/orgs/1/sec_policy/81/rule_sets/30',
    draft('rule_sets'),
    draft('rules/30'),
    draft('ip_lists/12/sec_rules/1'),
    draft('rule_sets/30/sec_rules'),
    `${draft('rule_sets/30')}/`,
    draft('rule_sets/..'),
    'nonsense',
    '',
  ]
  for (const href of wrong) {
    const calls: (() => Promise<unknown>)[] = [
      () => client.provisionPolicyChanges('x', [draft('rule_sets/1'), href]),
      () => client.getPolicyDependencies([href]),
      () => client.analyzePolicyImpact([href]),
    ]
    for (const call of calls) {
      await t.rejects(call(), { name: 'PceError', code: 'invalid_href' }, `refused: ${href}`)
    }
  }
  await t.rejects(
    client.provisionPolicyChanges('x', []),
    { code: 'invalid_argument' },
    'an empty list must not mean everything',
  )
  t.same(server.seen, [], 'before any request')
  for (const body of ['{"href"', '{}', '[]', 'null', '', '{"version":7}']) {
    await t.rejects(setup({ status: 201, body }).provisionPolicyChanges('x', [draft('rule_sets/1')]), {
      code: 'outcome_unknown',
      message: /the provisioning was accepted \(status 201\).*cannot be read. Check before/,
    })
  }
  await t.rejects(setup({ status: 504 }).provisionPolicyChanges('x', [draft('rule_sets/1')]), {
    code: 'outcome_unknown',
    status: 504,
  })
  t.equal(server.seen.length, 1, 'is never repeated when it may have happened')
})

t.test('pending changes', async (t) => {
  const href = draft('ip_lists/12')
  t.strictSame(await setup({ body: {} }).getPendingPolicyChanges(), [], 'there are none where the PCE says {}')
  const odd = ['', 'null', '7', '"none"', '[]', '[null]', '[7]', '[[]]', '[{}]', '{"x":1}', '{"x":null}', '{"x":[]}']
  const buckets = [
    '7',
    '"a"',
    'true',
    '[null]',
    '[7]',
    '[[]]',
    '[{}]',
    '{}',
    '[{"href":7}]',
    `[{"href":"${href}"},null]`,
  ]
  const unnamed = [`{"ip_lists":[{"href":"${href}","name":7}]}`, `{"error":{"token":"busy"}}`, '{"errors":[]}']
  for (const body of [...odd, ...buckets.map((bucket) => `{"ip_lists":${bucket}}`), ...unnamed]) {
    const refused = { name: 'PceError', code: 'invalid_response' }
    await t.rejects(setup({ body }).getPendingPolicyChanges(), refused, `${body} does not say that there are none`)
  }
  await t.rejects(setup({ status: 204 }).getPendingPolicyChanges(), { code: 'invalid_response' })

  const change = { href, name: 'a', update_type: 'update' }
  const typed = [{ ...change, type: 'ip_lists' }]
  t.strictSame(await setup({ body: { ip_lists: [change] } }).getPendingPolicyChanges(), typed)
  t.strictSame(
    await setup({ body: { ip_lists: [change], services: [], rule_sets: null } }).getPendingPolicyChanges(),
    typed,
  )
  t.strictSame(await setup({ body: { ip_lists: change } }).getPendingPolicyChanges(), typed, 'one in place of a list')
  t.strictSame(
    await setup({ body: [change] }).getPendingPolicyChanges(),
    typed,
    'a plain list has the types in its hrefs',
  )
  const nameless = { body: { ip_lists: [{ ...change, name: null }] } }
  t.strictSame(
    await setup(nameless).getPendingPolicyChanges(),
    [{ href, update_type: 'update', type: 'ip_lists' }],
    'null is no name',
  )
  const [later] = await setup({ body: { novel_things: [change] } }).getPendingPolicyChanges()
  t.strictSame(later, { ...change, type: 'novel_things' }, 'a type of a later release is kept')
})

t.test('dependencies and impact', async (t) => {
  const answer = [
    {
      dependency: { ip_lists: { href: draft('ip_lists/12') } },
      required_by: { rule_sets: [{ href: draft('rule_sets/30') }] },
    },
  ]
  const client = setup({ body: answer })
  const subset = { rule_sets: [{ href: draft('rule_sets/30') }] }
  t.same(await client.getPolicyDependencies([draft('rule_sets/30')]), answer)
  await client.getPolicyDependencies([draft('rule_sets/30')], 'draft', { json: { operation: 'revert' } })
  respond = () => ({ body: { num_sets: 1, num_managed_workloads: 2, num_unmanaged_workloads: 0 } })
  await client.analyzePolicyImpact([draft('rule_sets/30')])
  t.same(server.requests(), [
    'POST /orgs/1/sec_policy/draft/dependencies',
    'POST /orgs/1/sec_policy/draft/dependencies',
    'POST /orgs/1/sec_policy/impact',
  ])
  t.same(server.seen.map(bodyOf), [
    { operation: 'commit', change_subset: subset },
    { operation: 'revert', change_subset: subset },
    { change_subset: subset },
  ])
  await t.rejects(setup({ status: 204 }).getPolicyDependencies([draft('rule_sets/30')]), { code: 'invalid_response' })
})

t.test('pending changes come as one list', async (t) => {
  const change = (path: string) => ({ href: draft(path), name: path, update_type: 'update' })
  let client = setup({
    body: {
      rule_sets: [change('rule_sets/30')],
      firewall_settings: change('firewall_settings'),
      novelties: [change('novelties/1')],
    },
  })
  t.same(await client.getPendingPolicyChanges(), [
    { ...change('rule_sets/30'), type: 'rule_sets' },
    { ...change('firewall_settings'), type: 'firewall_settings' },
    { ...change('novelties/1'), type: 'novelties' },
  ])
  t.same(server.requests(), ['GET /orgs/1/sec_policy/pending'])
  t.same(await setup({ body: {} }).getPendingPolicyChanges(), [])
  t.same(
    await setup({ body: [change('ip_lists/7'), change('firewall_settings')] }).getPendingPolicyChanges(),
    [
      { ...change('ip_lists/7'), type: 'ip_lists' },
      { ...change('firewall_settings'), type: 'firewall_settings' },
    ],
    'a plain list, whose hrefs tell the types',
  )
  client = setup(({ path }) => ({
    body: {
      services: Array.from({ length: path.includes('max_results') ? 700 : 500 }, (_, index) =>
        change(`services/${index}`),
      ),
    },
  }))
  t.equal((await client.getPendingPolicyChanges()).length, 700, 'a bucket that may have been cut is asked for again')
})

t.test('status and defaults', async (t) => {
  let client = setup({ body: { version: '25.2.10', build: 101 } }, { orgId: 4 })
  partial(t, await client.getProductVersion(), { version: '25.2.10' })
  t.same(server.requests(), ['GET /product_version'])

  const any = { href: '/orgs/1/sec_policy/active/ip_lists/1', name: 'Any (0.0.0.0/0 and ::/0)' }
  client = setup({
    body: [{ ...any, href: '/orgs/1/sec_policy/active/ip_lists/7', name: 'Not Any (0.0.0.0/0 and ::/0)' }, any],
  })
  partial(t, await client.getDefaultIpList(), any, 'the list of all addresses has exactly its name')
  t.match(server.requests()[0], /^GET \/orgs\/1\/sec_policy\/active\/ip_lists\?name=Any/)
  await t.rejects(setup({ body: [] }).getDefaultIpList(), { code: 'not_found' })

  const service = (id: number, name: string, proto: number) => ({
    href: `/orgs/1/sec_policy/active/services/${id}`,
    name,
    service_ports: [{ proto }],
  })
  client = setup({
    body: [service(3, 'All Services', 6), service(4, 'All Services Old', -1), service(1, 'All Services', -1)],
  })
  partial(
    t,
    await client.getDefaultService(),
    { href: '/orgs/1/sec_policy/active/services/1' },
    'the built-in service is told from namesakes',
  )
  await t.rejects(setup({ body: [service(3, 'All Services', 6)] }).getDefaultService(), { code: 'not_found' })
})

function withFirst(first: Reply, rest: Responder): Responder {
  let isFirst = true
  return (seen, index) => {
    if (!isFirst) return rest(seen, index)
    isFirst = false
    return first
  }
}
