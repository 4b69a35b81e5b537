import http from 'node:http'
import net from 'node:net'
import { inspect } from 'node:util'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { createPceClient, PceApiError, PceError, PceIntegerError } from '../../pce-client/index.js'
import type { PceClientOptions, RetryEvent } from '../../pce-client/types.js'
import { partial } from '../partial.js'
import { until } from '../until.js'
import {
  clientOf,
  fakeTimers,
  listen,
  rejection,
  remoteOf,
  SECRET,
  startServer,
  USER,
  type Reply,
  type Seen,
} from './support.js'

const MIB = 1024 * 1024
const basic = (secret = SECRET) => `Basic ${Buffer.from(`${USER}:${secret}`).toString('base64')}`

t.test('the constructor', async (t) => {
  const make = (options: Partial<PceClientOptions>) => () => createPceClient({ url: 'pce.example.com', ...options })

  // Beyond 2^31 ms a timer of Node fires at once; strings are digits only where the specification has strings.
  const never = [-1, NaN, Infinity, -Infinity, 1e300, true, {}, '', ' 5', 'five', '5s', '0x5', '1e3', '5.0']
  const integers: [keyof PceClientOptions, unknown[], unknown[]][] = [
    ['port', [0, 65_536, 443.5, '0', '65536', '443.5', 'https', '44 3'], [1, 65_535, '1', '65535']],
    ['orgId', [0, 1.5, '0', '-1', 'one', 2 ** 53], [1, '1', 2 ** 31]],
    ['retryCount', [0.5, '5', 2 ** 53], [0, 1, 100]],
    ['requestTimeout', [0, 1.5, '30', 2_147_484, 2 ** 53], [1, 2_147_483]],
    ['maxRequestsPerMinute', [0, 1.5, '400', 2 ** 53], [1, 400, 1e9]],
    ['totalTimeout', [0, '120', 2_147_484], [0.1, 1, 2_147_483]],
    ['idleTimeout', [0, '60', 2_147_484], [0.1, 1, 2_147_483]],
  ]
  for (const [name, bad, good] of integers) {
    for (const value of [...bad, ...never]) {
      const error = catchError(make({ [name]: value }))
      t.ok(error instanceof PceIntegerError, `refuses ${inspect(value)} as ${name}`)
      partial(t, error, { name: 'PceIntegerError', code: 'invalid_integer', message: new RegExp(`^${name} must be `) })
    }
    for (const value of good) t.doesNotThrow(make({ [name]: value }), `takes ${inspect(value)} as ${name}`)
  }
  for (const bad of [0, 1.5, '30', 2_147_484, null, ...never]) {
    const set = () => make({})().setTimeout(bad as number)
    t.ok(catchError(set) instanceof PceIntegerError, `setTimeout refuses ${inspect(bad)}`)
  }
  t.ok(new PceIntegerError('x') instanceof PceError, 'the integer exception is a PceError')
  t.throws(make({ version: '../v2' }), PceError)
  for (const bad of ['', 'https://', 'https:///path', 'a b.example'])
    t.throws(make({ url: bad }), PceError, `refuses "${bad}"`)
  // From JavaScript nothing else keeps these out, and as text they would be host names.
  for (const bad of [undefined, null, 443]) {
    t.throws(make({ url: bad as unknown as string }), { code: 'invalid_argument' }, `refuses the address ${bad}`)
  }
  const withPassword = make({ url: `https://admin:${SECRET}@pce.example.com` })
  t.throws(withPassword, { name: 'PceError', code: 'invalid_argument' })
  t.notMatch(String(catchError(withPassword)), SECRET, 'and does not repeat a password that stood in the address')

  t.equal(make({})().baseUrl, 'https://pce.example.com:443/api/v2', 'has the defaults of the specification')
  t.equal(make({})().orgId, '1')
  t.equal(make({})().includeOrg, true)
  const origins: [string, string][] = [
    ['http://pce.example.com', 'http://pce.example.com:8443'],
    ['https://pce.example.com:9999/login?x=1#y', 'https://pce.example.com:8443'],
    ['HTTP://PCE.example.com/', 'http://pce.example.com:8443'],
    ['ftp://pce.example.com', 'https://pce.example.com:8443'],
    ['pce.example.com:9999', 'https://pce.example.com:8443'],
    ['[::1]:9', 'https://[::1]:8443'],
    ['::1', 'https://[::1]:8443'],
  ]
  for (const [url, origin] of origins) t.equal(make({ url, port: '8443' })().origin, origin, `reads ${url}`)
})

t.test('an endpoint', async (t) => {
  const server = await startServer(t, () => ({ body: [] }))
  const client = clientOf(server, { orgId: 7 })

  for (const climbing of [
    '../../x',
    'labels/../../2',
    'labels/%2e%2E/x',
    'labels/x%2f..%2F..%2fusers',
    'labels/..%5c..%5cusers',
    'a\\..\\b',
    'labels/.\t./x',
    'roles/\ud800',
    'https://evil.example/x',
  ]) {
    await t.rejects(
      client.get(climbing),
      { code: 'invalid_href' },
      `that leaves the API is refused: ${JSON.stringify(climbing)}`,
    )
  }
  t.same(server.seen, [], 'before any request')

  await client.get('labels')
  await client.get('//labels//1')
  await client.get('/orgs/7/labels')
  await client.get('orgs/3/labels')
  await client.get('users', { includeOrg: false })
  client.includeOrg = false
  await client.get('/product_version')
  await client.get('labels', { includeOrg: true })
  t.same(
    server.requests(),
    [
      'GET /orgs/7/labels',
      'GET /orgs/7/labels/1',
      'GET /orgs/7/labels',
      'GET /orgs/3/labels',
      'GET /users',
      'GET /product_version',
      'GET /orgs/7/labels',
    ],
    'gets its organisation once, unless include_org says no',
  )

  server.seen.length = 0
  await client.get('x?a=//b', {
    params: {
      'timestamp[gte]': '2026-03-01T00:00:00+01:00',
      labels: [['/orgs/1/labels/1']],
      managed: true,
      gone: undefined,
    },
  })
  t.equal(
    server.seen[0]?.path,
    '/x?a=//b&timestamp%5Bgte%5D=2026-03-01T00%3A00%3A00%2B01%3A00&labels=%5B%5B%22%2Forgs%2F1%2Flabels%2F1%22%5D%5D&managed=true',
    'carries parameters encoded, lists as JSON, undefined ones not at all',
  )

  server.seen.length = 0
  for (const id of ['S-1-5-21', 'a b', 'a%20b', '100%', 'a#b', 'rôle', 'a%2Fb', 'a;b,c:d@e', 'x?y=#z'])
    await client.get(`roles/${id}`)
  t.same(
    server.requests().map((line) => line.replace('GET /roles/', '')),
    ['S-1-5-21', 'a%20b', 'a%20b', '100%25', 'a%23b', 'r%C3%B4le', 'a%2Fb', 'a;b,c:d@e', 'x?y=%23z'],
    'has its ids encoded, once',
  )
})

t.test('a request', async (t) => {
  const server = await startServer(t, ({ path }) => (path === '/empty' ? { status: 204 } : { body: { a: 1 } }))
  const client = clientOf(server, { requestId: () => 'from-the-client' })
  client.includeOrg = false

  const response = await client.get('x')
  t.equal(response.status, 200)
  t.same(response.json(), { a: 1 })
  t.equal(response.text, '{"a":1}')
  t.equal(response.headers['content-type'], 'application/json')
  await client.post('x', { json: { name: 'é' }, requestId: 'from-the-call', headers: { 'X-Extra': 'y' } })
  t.equal((await client.put('empty')).json(), undefined, 'has no JSON where the PCE sent no body')
  const [get, post, put] = server.seen as [Seen, Seen, Seen]
  partial(t, get.headers, { accept: 'application/json', authorization: basic(), 'x-request-id': 'from-the-client' })
  t.notOk(get.headers['content-type'])
  partial(t, post.headers, { 'content-type': 'application/json', 'x-request-id': 'from-the-call', 'x-extra': 'y' })
  t.equal(post.body, '{"name":"é"}')
  t.equal(put.body, '{}', 'always has a body with POST and PUT')

  client.setCredentials(USER, 'ä:ö')
  await client.get('x')
  t.equal(server.seen.at(-1)?.headers.authorization, basic('ä:ö'), 'takes new credentials at once')
  const anonymous = createPceClient({ url: 'http://127.0.0.1', port: server.port })
  await anonymous.get('x')
  t.notOk(server.seen.at(-1)?.headers.authorization, 'goes without Authorization where no credentials are set')
})

t.test('no secret of the client is ever shown', async (t) => {
  const PROXY_SECRET = 'n0t-for-the-log'
  const server = await startServer(t, ({ path }): Reply => {
    if (path.includes('refused')) return { status: 401, body: 'go away' }
    if (path.includes('broken')) return { breaks: true }
    if (path.includes('busy')) return { status: 503, headers: { 'retry-after': '1' } }
    if (path.includes('moved')) return { status: 302, headers: { location: '/x' } }
    if (path.includes('jobs')) return { body: { status: 'failed', result: { message: 'no' } } }
    if (path.includes('labels')) return { status: 202, headers: { location: '/orgs/1/jobs/1' } }
    return { body: '{"cut' }
  })
  const shown: string[] = []
  const show = (thing: unknown) => {
    shown.push(inspect(thing, { depth: 12, showHidden: true, getters: true }), JSON.stringify(thing) ?? '')
    if (thing instanceof Error) shown.push(String(thing.stack), String(thing.cause))
  }
  const client = clientOf(server, { retryCount: 1, onRetry: show })
  client.setProxies(`http://user:${PROXY_SECRET}@127.0.0.1:1`, null)
  client.setProxies(null, null)
  show(client)
  show(client.labels)
  show(await client.get('x'))
  const abort = AbortSignal.abort(new Error('left'))
  const calls: Record<string, () => Promise<unknown>> = {
    refused: () => client.get('refused'),
    'broken write': () => client.post('broken'),
    broken: () => client.get('broken'),
    busy: () => client.get('busy'),
    moved: () => client.get('moved'),
    job: () => client.labels.getAsync(),
    stream: () => client.streamTrafficFlows('x', {} as never, { onFlows: () => undefined }),
    cancelled: () => client.get('x', { signal: abort }),
    connect: () => client.mustConnect(),
    cut: async () => (await client.get('x')).json(),
    'bad header': () => client.get('x', { headers: { 'x-bad': 'line\nfeed' } }),
  }
  for (const call of Object.values(calls)) show(await rejection(call()))
  t.ok(
    shown.some((text) => text.includes('"waitMs":')),
    'the retries were looked at too',
  )

  const proxied = clientOf(server, { onRetry: show })
  proxied.setProxies(`http://user:${PROXY_SECRET}@127.0.0.1:1`, `http://user:${PROXY_SECRET}@127.0.0.1:1`)
  show(await rejection(proxied.get('x')))
  show(proxied)
  show(catchError(() => client.setProxies(`socks://user:${PROXY_SECRET}@x`)))
  const secrets = [SECRET, basic().slice(6), PROXY_SECRET, Buffer.from(`user:${PROXY_SECRET}`).toString('base64')]
  for (const secret of secrets)
    t.notOk(
      shown.some((text) => text.includes(secret)),
      `${shown.length} texts hold no secret`,
    )
})

t.test('an error answer', async (t) => {
  const replies: Record<string, Reply> = {
    listed: {
      status: 406,
      headers: { 'x-request-id': 'pce-1' },
      body: [
        { token: 'name_must_be_unique', message: 'Name must be unique' },
        { token: 'other', message: 'm'.repeat(5000) },
      ],
    },
    old: { status: 403, body: [{ error: 'Forbidden here' }] },
    object: { status: 405, body: { token: 'method_not_allowed_error', message: 'Not allowed' } },
    page: { status: 404, headers: { 'content-type': 'text/html' }, body: '<html><h1>Not here</h1></html>' },
    empty: { status: 401 },
    packed: {
      status: 406,
      headers: { 'content-encoding': 'gzip', 'content-type': 'application/json' },
      body: gzipSync('[{"token":"t","message":"m"}]'),
    },
    damaged: { status: 406, headers: { 'content-encoding': 'gzip' }, body: gzipSync('[]').subarray(0, 12) },
  }
  const server = await startServer(t, ({ path }) => replies[path.slice(path.lastIndexOf('/') + 1)] ?? {})
  const client = clientOf(server)
  const failure = async (name: string) => (await rejection(client.put(name))) as PceApiError

  const error = await failure('listed')
  t.ok(error instanceof PceApiError && error instanceof PceError)
  partial(t, error, {
    name: 'PceApiError',
    code: 'api_error',
    status: 406,
    method: 'PUT',
    path: '/orgs/1/listed',
    requestId: 'pce-1',
  })
  t.same(error.errors[0], { token: 'name_must_be_unique', message: 'Name must be unique' })
  t.equal(error.errors[1]?.message.length, 1000, 'has the messages of the PCE clipped')
  t.match(error.message, /406 Not Acceptable: "name_must_be_unique: Name must be unique/)
  t.ok(error.message.length < 2200)
  t.same((await failure('old')).errors, [{ token: '', message: 'Forbidden here' }])
  t.same((await failure('object')).errors, [{ token: 'method_not_allowed_error', message: 'Not allowed' }])
  partial(t, await failure('page'), { errors: [], message: /404 Not Found$/ }, 'shows no HTML')
  partial(t, await failure('empty'), { errors: [], message: /401 Unauthorized$/, retryAfter: null })
  t.same((await failure('packed')).errors, [{ token: 't', message: 'm' }])
  partial(t, await failure('damaged'), { status: 406, errors: [] })
  t.same(client.waits, [], 'that says no is not repeated')
})

/** What the server does, how often it is asked, and the code of the error, or null when the call succeeds. */
interface RetryCase {
  method: 'GET' | 'PUT' | 'POST' | 'DELETE'
  path?: string
  replies: Reply[]
  requests: number
  code: string | null
}

const ok: Reply = { body: {} }
const reset: Reply = { breaks: true }
const status = (code: number): Reply => ({ status: code, body: [{ token: 'some_error', message: 'No' }] })
const cases: RetryCase[] = [
  ...[429, 500, 502, 503, 504].flatMap((code): RetryCase[] => [
    { method: 'GET', replies: [status(code), ok], requests: 2, code: null },
    { method: 'PUT', replies: [status(code), ok], requests: 2, code: null },
    { method: 'DELETE', replies: [status(code), ok], requests: 2, code: null },
    { method: 'PUT', path: 'workloads/bulk_update', replies: [status(code), ok], requests: 2, code: null },
    { method: 'PUT', path: 'workloads/bulk_delete', replies: [status(code), ok], requests: 2, code: null },
  ]),
  ...[400, 401, 403, 404, 405, 406, 410, 501].map((code): RetryCase => ({
    method: 'GET',
    replies: [status(code)],
    requests: 1,
    code: 'api_error',
  })),
  { method: 'GET', replies: [reset, ok], requests: 2, code: null },
  { method: 'GET', replies: [{ body: [1], breaks: true }, ok], requests: 2, code: null },
  { method: 'PUT', replies: [reset, ok], requests: 2, code: null },
  { method: 'DELETE', replies: [reset, ok], requests: 2, code: null },
  { method: 'DELETE', replies: [reset, status(404)], requests: 2, code: null },
  { method: 'DELETE', replies: [status(503), status(404)], requests: 2, code: null },
  {
    method: 'DELETE',
    replies: [reset, { status: 406, body: [{ token: 'label_already_deleted', message: 'x' }] }],
    requests: 2,
    code: null,
  },
  { method: 'DELETE', replies: [status(404)], requests: 1, code: 'api_error' },
  { method: 'DELETE', replies: [status(503), status(406)], requests: 2, code: 'api_error' },
  { method: 'PUT', replies: [reset], requests: 6, code: 'outcome_unknown' },
  // An attempt whose answer was lost may have been carried out, whatever the next one is told; a gateway that got no usable
  // answer has lost it too, unlike a PCE that says by itself that it cannot.
  ...[reset, { status: 204, body: {}, breaks: true }, status(502), status(504)].flatMap((lost): RetryCase[] => [
    ...[400, 401, 403, 404, 406].map((code): RetryCase => ({
      method: 'PUT',
      replies: [lost, status(code)],
      requests: 2,
      code: 'outcome_unknown',
    })),
    { method: 'PUT', replies: [lost, status(503)], requests: 6, code: 'outcome_unknown' },
    { method: 'PUT', replies: [status(503), lost, status(429), status(406)], requests: 4, code: 'outcome_unknown' },
    {
      method: 'PUT',
      path: 'workloads/bulk_update',
      replies: [lost, status(503)],
      requests: 6,
      code: 'outcome_unknown',
    },
    { method: 'DELETE', replies: [lost, status(406)], requests: 2, code: 'outcome_unknown' },
    { method: 'DELETE', replies: [lost, status(404)], requests: 2, code: null },
    { method: 'PUT', replies: [lost, status(503), ok], requests: 3, code: null },
    { method: 'GET', replies: [lost, status(503)], requests: 6, code: 'api_error' },
    { method: 'GET', replies: [lost, status(404)], requests: 2, code: 'api_error' },
    { method: 'POST', path: 'sec_policy/impact', replies: [lost, status(406)], requests: 2, code: 'api_error' },
  ]),
  ...[502, 504].flatMap((code): RetryCase[] => [
    { method: 'PUT', replies: [status(code)], requests: 6, code: 'outcome_unknown' },
    {
      method: 'PUT',
      replies: [...Array<Reply>(5).fill(status(503)), status(code)],
      requests: 6,
      code: 'outcome_unknown',
    },
  ]),
  ...[429, 503].flatMap((code): RetryCase[] => [
    { method: 'PUT', replies: [status(code)], requests: 6, code: 'api_error' },
    { method: 'DELETE', replies: [status(code)], requests: 6, code: 'api_error' },
  ]),
  ...[429, 500, 503].map((code): RetryCase => {
    return { method: 'PUT', replies: [status(code), status(406)], requests: 2, code: 'api_error' }
  }),
  // A PCE may fail after it has done what it was asked; who came later finds nothing to delete.
  ...(['PUT', 'DELETE'] as const).flatMap((method): RetryCase[] => [
    { method, replies: [status(500)], requests: 6, code: 'outcome_unknown' },
    { method, replies: [status(500), status(503)], requests: 6, code: 'outcome_unknown' },
    { method, replies: [status(500), status(429)], requests: 6, code: 'outcome_unknown' },
  ]),
  { method: 'DELETE', replies: [status(429), status(404)], requests: 2, code: 'api_error' },
  { method: 'DELETE', replies: [status(500), status(404)], requests: 2, code: null },
  { method: 'GET', replies: [status(500)], requests: 6, code: 'api_error' },
  { method: 'GET', replies: [reset], requests: 6, code: 'unreachable' },
  { method: 'GET', replies: [status(503)], requests: 6, code: 'api_error' },
  { method: 'GET', replies: [status(429)], requests: 6, code: 'api_error' },
  ...['labels', 'sec_policy', 'traffic_flows/async_queries'].flatMap((path): RetryCase[] => [
    { method: 'POST', path, replies: [status(429), ok], requests: 2, code: null },
    { method: 'POST', path, replies: [status(429)], requests: 6, code: 'api_error' },
    { method: 'POST', path, replies: [status(500)], requests: 1, code: 'outcome_unknown' },
    { method: 'POST', path, replies: [status(502)], requests: 1, code: 'outcome_unknown' },
    { method: 'POST', path, replies: [reset], requests: 1, code: 'outcome_unknown' },
    { method: 'POST', path, replies: [{ status: 201, body: {}, breaks: true }], requests: 1, code: 'outcome_unknown' },
    { method: 'POST', path, replies: [status(406)], requests: 1, code: 'api_error' },
  ]),
  ...['workloads/bulk_create', 'vens/remote_action', 'sec_policy/delete', 'label_mapping_rules/delete'].flatMap(
    (path): RetryCase[] => [
      { method: 'PUT', path, replies: [status(429), ok], requests: 2, code: null },
      { method: 'PUT', path, replies: [reset], requests: 1, code: 'outcome_unknown' },
      { method: 'PUT', path, replies: [status(503)], requests: 1, code: 'outcome_unknown' },
    ],
  ),
  { method: 'DELETE', path: 'sec_policy/pending', replies: [reset], requests: 1, code: 'outcome_unknown' },
  ...['sec_policy/impact', 'sec_policy/draft/dependencies', 'sec_policy/draft/rule_search'].flatMap(
    (path): RetryCase[] => [
      { method: 'POST', path, replies: [reset, ok], requests: 2, code: null },
      { method: 'POST', path, replies: [reset], requests: 6, code: 'unreachable' },
    ],
  ),
]

t.test('retries a call exactly where that is safe', async (t) => {
  let current: RetryCase
  let first = 0
  const server = await startServer(
    t,
    (_seen, index) => current.replies[Math.min(index - first, current.replies.length - 1)] ?? {},
  )
  for (current of cases) {
    const { method, path = 'things/1', replies, requests, code } = current
    const story = replies.map((reply) => (reply.breaks === true ? 'lost' : String(reply.status ?? 200))).join(' then ')
    first = server.seen.length
    const client = clientOf(server)
    const verb = method.toLowerCase() as 'get'
    const outcome = await client[verb](path).then(
      () => null,
      (error: PceError) => error.code,
    )
    t.equal(outcome, code, `${method} ${path}: ${story} ends as ${code ?? 'a success'}`)
    t.equal(server.seen.length - first, requests, `${method} ${path}: ${story} takes ${requests} request(s)`)
    client.close()
  }
})

t.test('an unknown outcome keeps what the PCE said', async (t) => {
  const server = await startServer(t, () => status(500))
  const error = await rejection(clientOf(server).post('labels'))
  partial(t, error, { name: 'PceApiError', code: 'outcome_unknown', status: 500, errors: [{ token: 'some_error' }] })
  t.match(error.message, /may have been carried out.*some_error/)

  const forgetful = await startServer(t, (_seen, index) => (index === 0 ? reset : status(406)))
  const refusal = await rejection(clientOf(forgetful).put('things/1'))
  partial(t, refusal, { name: 'PceApiError', code: 'outcome_unknown', status: 406, errors: [{ token: 'some_error' }] })
  t.match(
    refusal.message,
    /may have been carried out: an answer was lost before the PCE answered 406 .*some_error.*Check/,
  )
})

t.test('the waits between attempts', async (t) => {
  let headers: Record<string, string> = {}
  const server = await startServer(t, () => ({ status: 503, headers }))
  const waitsFor = async (options: Partial<PceClientOptions> = {}) => {
    const clock = fakeTimers(0.5)
    await rejection(clientOf(server, { timers: clock.timers, ...options }).get('x'))
    return clock.waits
  }
  t.same(await waitsFor(), [1000, 2000, 4000, 8000, 16_000], 'double from one second')
  for (const [random, factor] of [
    [0, 0.9],
    [0.999999, 1.1],
  ] as const) {
    const clock = fakeTimers(random)
    await waitsFor({ timers: clock.timers })
    t.same(
      clock.waits,
      [1000, 2000, 4000, 8000, 16_000].map((wait) => Math.round(wait * factor)),
      'spread 10 % either way',
    )
  }
  t.same(await waitsFor({ retryCount: 0 }), [], 'do not exist without retries')
  t.same(await waitsFor({ retryCount: 2 }), [1000, 2000], 'are as many as retries are allowed')
  t.same(await waitsFor({ totalTimeout: 10 }), [1000, 2000, 4000], 'never reach past the deadline of the call')

  const start = fakeTimers().timers.now()
  const retryAfter: [string, number[]][] = [
    ['2', [2000, 2000, 2000, 2000, 2000]],
    ['0', [0, 0, 0, 0, 0]],
    ['60', [60_000, 60_000]],
    ['99999', [60_000, 60_000]],
    [new Date(start + 3_600_000).toUTCString(), [60_000, 60_000]],
    [new Date(start + 7000).toUTCString(), [7000, 0, 0, 0, 0]],
    [new Date(start - 5000).toUTCString(), [0, 0, 0, 0, 0]],
    ['-1', [1000, 2000, 4000, 8000, 16_000]],
    ['1.5', [1000, 2000, 4000, 8000, 16_000]],
    ['soon', [1000, 2000, 4000, 8000, 16_000]],
  ]
  for (const [value, expected] of retryAfter) {
    headers = { 'retry-after': value }
    t.same(await waitsFor(), expected, `follow Retry-After: ${value}`)
  }
  partial(t, await rejection(clientOf(server, { retryCount: 0 }).get('x')), { retryAfter: null })
  const asked: [string, number][] = [
    ['7', 7],
    ['99999', 99_999],
    [new Date(start + 3_600_000).toUTCString(), 3600],
    [new Date(start - 5000).toUTCString(), 0],
  ]
  for (const [value, seconds] of asked) {
    headers = { 'retry-after': value }
    const error = await rejection(clientOf(server, { retryCount: 0, timers: fakeTimers().timers }).get('x'))
    partial(t, error, { retryAfter: seconds }, `are told to the caller as the PCE asked for them: ${value}`)
  }
})

t.test('reports every retry before its wait, without headers', async (t) => {
  const server = await startServer(t, (_seen, index) => [status(503), reset][index] ?? ok)
  const told: RetryEvent[] = []
  const clock = fakeTimers()
  const client = clientOf(server, {
    timers: clock.timers,
    onRetry: (event) => told.push({ ...event, waitMs: event.waitMs }),
  })
  await client.get('labels?value=x')
  t.same(told, [
    { method: 'GET', path: '/orgs/1/labels', attempt: 1, waitMs: 1000, status: 503 },
    { method: 'GET', path: '/orgs/1/labels', attempt: 2, waitMs: 2000, code: 'ECONNRESET' },
  ])
  const deaf = await startServer(t, (_seen, index) => (index === 0 ? status(503) : ok))
  const throwing = clientOf(deaf, {
    onRetry: () => {
      throw new Error('the log is full')
    },
  })
  t.equal((await throwing.get('x')).status, 200, 'a log that fails does not fail the call')
})

t.test('a PCE that cannot be connected to', async (t) => {
  const closed = net.createServer()
  const port = await new Promise<number>((resolve) =>
    closed.listen(0, '127.0.0.1', () => resolve((closed.address() as net.AddressInfo).port)),
  )
  await new Promise((resolve) => closed.close(resolve))
  const client = clientOf({ port })
  partial(t, await rejection(client.get('x')), {
    name: 'PceError',
    code: 'unreachable',
    reason: 'ECONNREFUSED',
    message: /connection refused/,
  })
  partial(t, await rejection(client.post('x')), { code: 'unreachable' }, 'has not carried out anything either')
  t.same(client.waits, [], 'is not tried again: it was no connection that got lost')
  partial(
    t,
    await rejection(client.mustConnect()),
    { name: 'PceApiError', status: 0, code: 'unreachable' },
    'makes mustConnect raise the API exception',
  )
  t.equal(await client.checkConnection(), false)

  const notHttp = net.createServer((socket) => void socket.end('SSH-2.0-OpenSSH_9.6\r\n'))
  const otherPort = await new Promise<number>((resolve) =>
    notHttp.listen(0, '127.0.0.1', () => resolve((notHttp.address() as net.AddressInfo).port)),
  )
  t.teardown(() => notHttp.close())
  partial(t, await rejection(clientOf({ port: otherPort }).get('x')), {
    code: 'invalid_response',
    message: /does not speak proper HTTP/,
  })
})

t.test('time-outs', async (t) => {
  const server = await startServer(t, ({ path }, index) => {
    if (path.endsWith('/once')) return index === 0 ? { hangs: true } : ok
    if (path.endsWith('/late')) return index === 2 ? { hangs: true } : status(406)
    return { hangs: true }
  })
  const client = clientOf(server, { requestTimeout: 1 })
  t.equal((await client.get('once')).status, 200, 'of one attempt are repeated for a GET')
  t.same(client.waits, [1000])
  partial(t, await rejection(client.put('late')), { code: 'outcome_unknown', status: 406 }, 'leave a PUT open, too')
  partial(t, await rejection(client.put('late')), { code: 'api_error', status: 406 }, 'and no other call')
  const impatient = clientOf(server, { requestTimeout: 1, retryCount: 0 })
  const [read, write] = await Promise.all([rejection(impatient.get('x')), rejection(impatient.post('x'))])
  partial(t, read, { code: 'unreachable', reason: 'ETIMEDOUT', message: /no answer within 1 s/ })
  partial(t, write, { code: 'outcome_unknown' }, 'leave open what became of a POST')
  const total = clientOf(server, { totalTimeout: 0.2 })
  const [late, lateWrite] = await Promise.all([rejection(total.get('x')), rejection(total.put('x'))])
  partial(t, late, { code: 'deadline', message: /0.2 s/ })
  partial(t, lateWrite, { code: 'outcome_unknown' })

  const stalling = http.createServer((_request, response) => void response.write('['))
  const stalled = clientOf({ port: await listen(t, stalling) }, { idleTimeout: 0.1, retryCount: 0 })
  partial(
    t,
    await rejection(stalled.get('x')),
    { code: 'unreachable', message: /stalled for 0.1 s/ },
    'notice a body that stops',
  )
})

t.test('cancelling', async (t) => {
  const server = await startServer(t, ({ path }) => (path.endsWith('/busy') ? status(429) : { hangs: true }))
  const client = clientOf(server)
  const why = new Error('the user left')
  await t.rejects(client.get('x', { signal: AbortSignal.abort(why) }), { code: 'aborted', cause: why })
  t.same(server.seen, [], 'before the request sends nothing')

  await t.rejects(
    client.get('x', { signal: AbortSignal.abort('left') }),
    { code: 'aborted', cause: 'left' },
    'whatever the reason is',
  )
  t.same(server.seen, [])

  const controller = new AbortController()
  const pending = client.get('x', { signal: controller.signal })
  await until(() => server.seen.length === 1)
  controller.abort(why)
  await t.rejects(pending, { code: 'aborted', cause: why }, 'ends a request at once')

  const write = new AbortController()
  const pendingWrite = client.post('x', { signal: write.signal })
  await until(() => server.seen.length === 2)
  write.abort()
  await t.rejects(pendingWrite, { code: 'outcome_unknown' }, 'a write that is under way leaves its outcome open')

  const waiting = new AbortController()
  const sleepy = clientOf(server, {
    timers: {
      ...fakeTimers().timers,
      sleep: (_ms, signal) =>
        new Promise((_resolve, reject) => {
          signal?.addEventListener('abort', () => reject(signal.reason as Error))
          waiting.abort(why)
        }),
    },
  })
  await t.rejects(
    sleepy.post('busy', { signal: waiting.signal }),
    { code: 'aborted', cause: why },
    'ends a wait, after which nothing was done',
  )
})

t.test('the deadline of a call', async (t) => {
  const server = await startServer(t, ({ path }) =>
    path.endsWith('/hangs') ? { hangs: true } : { ...status(503), headers: { 'retry-after': '0' } },
  )
  const { timers } = fakeTimers()
  const told: (AbortSignal | undefined)[] = []
  const sleep = (_ms: number, signal?: AbortSignal) => {
    told.push(signal)
    return untilAborted(signal)
  }
  const asleep = { ...timers, sleep }
  const client = clientOf(server, { timers: asleep, totalTimeout: 0.2 })
  partial(t, await rejection(client.get('x')), { code: 'deadline', message: /not done within 0.2 s/ }, 'ends a wait')
  t.equal(told[0]?.aborted, true, 'and its timer with it')
  partial(
    t,
    await rejection(client.put('x')),
    { code: 'outcome_unknown' },
    'a write that may have happened before it stays open',
  )
  const own = { totalTimeoutMs: 100 }
  partial(t, await rejection(client.get('x', own)), { message: /within 0.1 s/ }, 'may be set for one call')
  partial(t, await rejection(client.get('hangs', own)), { code: 'deadline' }, 'and ends a request')
  server.seen.length = 0
  for (const bad of [0, -1, NaN, Infinity, 2 ** 31, '5']) {
    partial(
      t,
      await rejection(client.get('x', { totalTimeoutMs: bad as number })),
      { name: 'PceIntegerError' },
      `${bad} is none`,
    )
  }
  t.same(server.seen, [])
})

t.test('bodies', async (t) => {
  const chunked = http.createServer((request, response) => {
    const size = Number(/\d+/.exec(request.url?.split('/').at(-1) ?? '')?.[0])
    response.setHeader('content-type', 'application/json')
    if (request.url?.includes('announced')) response.setHeader('content-length', size * MIB)
    if (!request.url?.includes('packed')) {
      let left = size
      const more = () => {
        if (left-- <= 0) response.end()
        else response.write(Buffer.alloc(MIB, ' '), more)
      }
      return more()
    }
    response.setHeader('content-encoding', 'gzip')
    response.end(gzipSync(Buffer.alloc(size * MIB, ' ')))
  })
  const client = clientOf({ port: await listen(t, chunked) })
  for (const bomb of ['chunked-33', 'announced-200', 'packed-33']) {
    partial(t, await rejection(client.get(bomb)), { code: 'body_too_large' }, `are refused above 32 MiB: ${bomb}`)
  }
  t.equal((await client.get('packed-30')).text.length, 30 * MIB, 'are unpacked below it')
  partial(
    t,
    await rejection(client.post('announced-200')),
    { code: 'outcome_unknown' },
    'of a write that do not fit leave its outcome open',
  )

  const boastful = http.createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': 33 * MIB }).write('[')
  })
  const told = clientOf({ port: await listen(t, boastful) }, { idleTimeout: 5, retryCount: 0 })
  partial(t, await rejection(told.get('x')), { code: 'body_too_large' }, 'are refused by what they announce')

  const replies: Record<string, Reply> = {
    html: { headers: { 'content-type': 'text/html; charset=utf-8' }, body: '<html>Log in</html>' },
    cut: { headers: { 'content-type': 'application/json' }, body: '[{"a":' },
    damaged: { body: gzipSync('[]').subarray(0, 12) },
    unannounced: { headers: { 'content-type': 'application/gzip' }, body: gzipSync('[1]') },
    announced: { headers: { 'content-encoding': 'gzip' }, body: Buffer.from('[1]') },
    foreign: { headers: { 'content-encoding': 'br' }, body: Buffer.from('nope') },
  }
  const server = await startServer(t, ({ path }) => replies[path.slice(path.lastIndexOf('/') + 1)] ?? {})
  const other = clientOf(server)
  for (const name of ['html', 'damaged', 'foreign']) {
    partial(
      t,
      await rejection(other.get(name)),
      { code: 'invalid_response' },
      `that are no API answer are refused: ${name}`,
    )
  }
  t.same((await other.get('unannounced')).json(), [1], 'are unpacked whatever is announced')
  t.same((await other.get('announced')).json(), [1])
  const cut = await other.get('cut')
  t.throws(() => cut.json(), { name: 'PceError', code: 'invalid_response' }, 'that are no JSON say so when read')
})

t.test('the other end of a port gets a body as it is', async (t) => {
  const bodies: Record<string, string> = {
    // No piece whose size is a power of two ends between two of these characters.
    large: `["${'\u{20ac}'.repeat(MIB)}"]`,
    small: '["\u{20ac}"]',
    empty: '',
    long: ' '.repeat(33 * MIB),
    many: `[${'{},'.repeat(2_000_000)}{}]`,
  }
  const failing = new Set(['broken', 'busy', 'down'])
  const server = http.createServer(({ url = '' }, response) => {
    const [name, form] = url.split('/').slice(-2) as [string, string]
    response.setHeader('content-type', 'application/json')
    if (form === 'refused') response.statusCode = 406
    if (failing.delete(form)) {
      if (form === 'broken') return response.write(bodies[name]!.slice(0, MIB), () => response.destroy())
      return response.writeHead(form === 'busy' ? 429 : 503).end()
    }
    if (form === 'cut') return response.end(gzipSync(bodies[name]!).subarray(0, -12))
    response.end(form === 'packed' ? gzipSync(bodies[name]!) : bodies[name])
  })
  const remote = remoteOf(t, clientOf({ port: await listen(t, server) }))
  const forms = ['large/packed', 'large/plain', 'small/packed', 'small/plain', 'empty/plain']
  // These fail once.
  forms.push('large/broken', 'small/busy', 'small/down')
  for (const form of forms) {
    const { status, text } = await remote.get(form)
    t.equal(status, 200, form)
    t.ok(text === bodies[form.split('/')[0]!], form)
  }
  partial(t, await rejection(remote.get('large/refused')), { code: 'api_error', status: 406 })
  for (const name of ['large', 'small'])
    partial(t, await rejection(remote.get(`${name}/cut`)), { code: 'invalid_response' }, `half of ${name}`)
  for (const form of ['packed', 'plain']) {
    const [long, many] = await Promise.all(['long', 'many'].map((name) => rejection(remote.get(`${name}/${form}`))))
    partial(t, long, { code: 'body_too_large', message: /is larger than 32 MiB/ }, form)
    partial(t, many, { code: 'body_too_large', message: /has more than 2,000,000 elements/ }, form)
  }
})

t.test('a redirect is never followed', async (t) => {
  const elsewhere = await startServer(t, () => ok)
  const query = '/orgs/1/traffic_flows/async_queries/1'
  let redirect: Reply = {}
  const server = await startServer(t, ({ method, path }) => {
    if (path.endsWith('/async_queries')) return { status: 202, body: { href: query } }
    if (path === query && method === 'GET')
      return { body: { href: query, status: 'completed', result: `${query}/download` } }
    return method === 'DELETE' || path.endsWith('/target') ? ok : redirect
  })
  const client = clientOf(server)
  const refused = { code: 'invalid_response', message: /redirect \(30\d\), which is not followed/ }
  for (const code of [301, 302, 303, 307, 308]) {
    for (const location of [
      `http://127.0.0.1:${elsewhere.port}/api/v2/target`,
      `http://127.0.0.1:${server.port}/api/v2/target`,
      '/api/v2/target',
    ]) {
      redirect = { status: code, headers: { location } }
      partial(t, await rejection(client.get('x')), refused, `${code} to ${location}`)
      partial(t, await rejection(client.put('x')), { code: 'outcome_unknown', message: /redirect/ }, 'of a write')
      const streamed = client.streamTrafficFlows('x', {} as never, { onFlows: () => void t.fail('no rows') })
      partial(t, await rejection(streamed), refused, 'of a download')
    }
  }
  t.same(elsewhere.seen, [], 'to another server')
  t.notOk(
    server.requests().some((line) => line.includes('/target')),
    'or to the same one',
  )
})

t.test('a download is not limited as bodies in memory are', async (t) => {
  const query = '/orgs/1/traffic_flows/async_queries/1'
  const row = JSON.stringify({ src: {}, dst: {}, service: {}, note: 'x'.repeat(MIB) })
  const body = `[${Array.from({ length: 33 }, () => row).join(',')}]`
  for (const packed of [false, true]) {
    const large = http.createServer((request, response) => {
      response.setHeader('content-type', 'application/json')
      request.resume()
      if (request.url?.endsWith('/async_queries'))
        return void response.writeHead(202).end(JSON.stringify({ href: query }))
      if (!request.url?.endsWith('/download'))
        return void response.end(JSON.stringify({ href: query, status: 'completed', result: `${query}/download` }))
      if (packed) response.setHeader('content-encoding', 'gzip').end(gzipSync(body, { level: 1 }))
      else response.end(body)
    })
    const client = clientOf({ port: await listen(t, large) })
    const { flows } = await client.streamTrafficFlows('x', {} as never, { onFlows: () => undefined })
    t.equal(flows, 33, `33 MiB of rows${packed ? ', packed' : ''}`)
    partial(t, await rejection(client.get(`${query}/download`)), { code: 'body_too_large' }, 'that get would refuse')
  }
})

t.test('maxBytes bounds every way to read', async (t) => {
  const [job, file] = ['/orgs/1/jobs/1', '/orgs/1/datafiles/1']
  const query = '/orgs/1/traffic_flows/async_queries/5a0c6ad1-0000-4000-8000-000000000001'
  const end = { ip: '1.2.3.4' }
  const rows = [{ href: '/orgs/1/labels/1', src: end, dst: end, service: {}, text: 'x'.repeat(2 * MIB) }]
  const packed = gzipSync(JSON.stringify(rows))
  const server = await startServer(t, ({ method, path, headers }): Reply => {
    if (method === 'DELETE') return { status: 204 }
    if (method === 'POST') return { status: 202, body: { href: query } }
    if (path === job) return { body: { href: job, status: 'done', result: { href: file } } }
    if (path === query) return { body: { href: query, status: 'completed', result: `${query}/download` } }
    if (headers.prefer === 'respond-async') return { status: 202, headers: { location: job } }
    return path.includes('labels')
      ? { headers: { 'x-total-count': '1' }, body: rows }
      : { headers: { 'content-encoding': 'gzip', 'content-type': 'application/json' }, body: packed }
  })
  const { labels, ...client } = clientOf(server)
  const ignore = () => {}
  const READINGS: Record<string, (maxBytes: number) => Promise<unknown>> = {
    get: (maxBytes) => client.get('labels', { maxBytes }),
    getCollection: (maxBytes) => client.getCollection('labels', { maxBytes }),
    getPage: (maxBytes) => labels.getPage('draft', null, { maxBytes }),
    getAll: (maxBytes) => labels.getAll('draft', null, { maxBytes }),
    getAsync: (maxBytes) => labels.getAsync('draft', null, { maxBytes }),
    scan: (maxBytes) => labels.scan('draft', null, { maxBytes, onItems: ignore }),
    streamTrafficFlows: (maxBytes) => client.streamTrafficFlows('x', {} as never, { maxBytes, onFlows: ignore }),
    download: (maxBytes) => client.downloadAsyncQuery(query, { maxBytes }),
    'download to a sink': (maxBytes) =>
      client.downloadAsyncQuery(query, { maxBytes, sink: { begin: ignore, take: ignore } }),
  }
  for (const [name, read] of Object.entries(READINGS)) {
    await t.resolves(read(3 * MIB), name)
    partial(t, await rejection(read(MIB)), { code: 'body_too_large', message: /is larger than 1 MiB/ }, name)
  }
})

t.test('a small packed answer is measured unpacked', async (t) => {
  const body = gzipSync(JSON.stringify(['x'.repeat(100 * 1024)]))
  const server = await startServer(t, () => ({
    headers: { 'content-encoding': 'gzip', 'content-type': 'application/json' },
    body,
  }))
  const error = await rejection(clientOf(server).get('labels', { maxBytes: 64 * 1024 }))
  partial(t, error, { code: 'body_too_large', message: /is larger than 64 KiB/ })
})

t.test('connections are reused, shared and bounded', async (t) => {
  let open = 0
  let most = 0
  let inFlight = 0
  const slow = http.createServer((_request, response) => {
    most = Math.max(most, ++inFlight)
    setTimeout(() => {
      inFlight -= 1
      response.setHeader('content-type', 'application/json').end('[]')
    }, 5)
  })
  slow.on('connection', () => (open += 1))
  const client = clientOf({ port: await listen(t, slow) })
  for (let index = 0; index < 3; index += 1) await client.get('x')
  t.equal(open, 1, 'one connection serves calls in turn')
  await Promise.all(Array.from({ length: 60 }, () => client.get('x')))
  t.ok(most > 4 && most <= 16, `60 calls at once use at most 16 connections (${most})`)
})

t.test('waiting for a connection does not count as PCE silence', async (t) => {
  const held: http.ServerResponse[] = []
  const posts: string[] = []
  const busy = http.createServer((request, response) => {
    response.setHeader('content-type', 'application/json')
    if (request.method === 'GET') return void (held.push(response), response.write('['))
    posts.push(request.url ?? '')
    response.writeHead(201).end('{}')
  })
  const client = clientOf({ port: await listen(t, busy) }, { requestTimeout: 1, retryCount: 0 })
  const downloads = Array.from({ length: 16 }, () => client.downloadAsyncQuery('5a0c6ad1'))
  await until(() => held.length === 16)
  const startedAt = Date.now()
  setTimeout(() => held.forEach((response) => response.end(']')), 1200)
  t.equal((await client.post('x')).status, 201, 'its time begins with the connection')
  t.ok(Date.now() - startedAt > 1100, 'which came late')
  t.equal(posts.length, 1)
  await Promise.all(downloads)
})

t.test('caller mistakes fail before any request', async (t) => {
  const server = await startServer(t, () => ok)
  const client = clientOf(server)
  const endless: { self?: unknown } = {}
  endless.self = endless
  for (const json of [{ count: 1n }, endless]) {
    await t.rejects(client.post('x', { json }), { code: 'invalid_argument', message: /JSON/ })
  }
  const own = new Error('no id')
  const anonymous = clientOf(server, {
    requestId: () => {
      throw own
    },
  })
  await t.rejects(anonymous.get('x'), own, 'a failing callback keeps its own error')
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
  const before = timers()
  await t.rejects(client.get('x', { signal: new AbortController() as never }), { name: 'TypeError' })
  t.equal(timers(), before, 'no timer keeps the process alive')
  t.same(server.seen, [])
})

t.test('one signal serves any number of calls', async (t) => {
  const warnings: string[] = []
  const note = (warning: Error) => void warnings.push(warning.name)
  process.on('warning', note)
  t.teardown(() => process.off('warning', note))
  const server = await startServer(t, () => ok)
  const client = clientOf(server)
  const { signal } = new AbortController()
  await Promise.all(Array.from({ length: 30 }, () => client.get('x', { signal })))
  await new Promise((resolve) => setImmediate(resolve))
  t.same(warnings, [])
})

t.test('mustConnect and checkConnection', async (t) => {
  let replies: Record<string, Reply>
  const server = await startServer(t, ({ path }) => replies[path] ?? { status: 404 })
  const client = clientOf(server, { orgId: 3, retryCount: 0 })
  client.includeOrg = false
  const settings = '/orgs/3/settings/workloads'

  replies = { '/health': { body: [] }, [settings]: { body: {} } }
  await client.mustConnect()
  t.same(server.requests(), ['GET /health', `GET ${settings}`], 'ask the PCE, then the organisation')
  replies = { [settings]: { body: {} } }
  t.equal(await client.checkConnection(), true, 'a missing /health decides nothing')
  replies = { '/health': { status: 401 } }
  await t.rejects(client.mustConnect(), { name: 'PceApiError', status: 401 })
  replies = { '/health': { body: [] }, [settings]: { status: 403 } }
  await t.rejects(
    client.mustConnect(),
    { name: 'PceApiError', status: 403, path: settings },
    'bad credentials raise the API exception',
  )
  t.equal(await client.checkConnection(), false)
  replies = { '/health': { body: [] }, [settings]: { headers: { 'content-type': 'text/html' }, body: 'Log in' } }
  await t.rejects(client.mustConnect(), PceApiError, 'so does a login page')
  await t.rejects(
    client.checkConnection({ signal: AbortSignal.abort() }),
    { code: 'aborted' },
    'a cancelled check has no result',
  )
})

function untilAborted(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_resolve, reject) => signal?.addEventListener('abort', () => reject(signal.reason as Error)))
}

function catchError(action: () => unknown): unknown {
  try {
    return action()
  } catch (error) {
    return error
  }
}
