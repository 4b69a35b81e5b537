import { once } from 'node:events'
import { request, type ClientRequest, type IncomingMessage } from 'node:http'
import t from 'tap'
import { createCaller } from './call-pce.js'
import { DOCUMENTED_LIMITS } from '../../pce-simulator/http/limit-rate.js'
import { partial } from '../partial.js'
import { startPce } from './start-pce.js'

type Simulator = Awaited<ReturnType<typeof startPce>>['simulator']

/** A request whose body never ends until it is told to: it holds its place in the meantime. */
async function hold({ url, credentials }: Simulator, method: string, path: string, body: string) {
  const authorization = `Basic ${Buffer.from(`${credentials.key}:${credentials.secret}`).toString('base64')}`
  const headers = { authorization, 'content-type': 'application/json', 'content-length': String(body.length) }
  const held = request(`${url}/api/v2/orgs/1${path}`, { method, headers })
  held.flushHeaders()
  await once(held, 'socket')
  held.write(body.slice(0, 1))
  return held
}

async function finish(held: ClientRequest, body: string): Promise<number> {
  const answered = once(held, 'response') as Promise<[IncomingMessage]>
  held.end(body.slice(1))
  const [response] = await answered
  await once(response.resume(), 'end')
  return response.statusCode!
}

t.test('off by default: 600 requests in a minute', async (t) => {
  const { org } = await startPce(t)
  const statuses = new Set<number>()
  for (let count = 0; count < 600; count += 1) statuses.add((await org('GET', '/labels?max_results=0')).status)
  t.same([...statuses], [200])
})

t.test('a rolling minute of each credential', async (t) => {
  let now = 0
  const { simulator, call, org } = await startPce(t, { now: () => now, rateLimit: { requestsPerMinute: 3 } })
  const { auth_username: key, secret } = (await call('POST', '/users/1/api_keys', { name: 'another' })).body
  for (now of [10_000, 20_000]) t.equal((await org('GET', '/labels?max_results=0')).status, 200)
  const refused = await org('POST', '/labels', { key: 'app', value: 'never' })
  t.same([refused.status, refused.headers.get('retry-after')], [429, '40'])
  partial(t, refused.body, [{ token: 'too_many_requests_error', message: 'Too many requests' }])
  const other = createCaller({ url: simulator.url, credentials: { key, secret } })
  t.equal((await other('GET', '/orgs/1/labels')).status, 200, 'another key has its own minute')
  now = 60_000
  t.equal((await org('GET', '/labels?value=never')).body.length, 0, 'a refused request was not processed')
  t.equal((await org('GET', '/labels')).status, 429, 'one left, one came')
  now = 70_000
  t.equal((await org('GET', '/labels')).status, 200)
})

t.test('unpairing and deleting queries have separate limits', async (t) => {
  let now = 0
  const { org } = await startPce(t, { now: () => now, rateLimit: DOCUMENTED_LIMITS })
  for (const [verb, path, body] of [
    ['PUT', '/workloads/unpair', {}],
    ['PUT', '/vens/unpair', {}],
    ['DELETE', '/traffic_flows/async_queries/none', undefined],
  ] as const) {
    const statuses = []
    for (let count = 0; count < 11; count += 1) statuses.push((await org(verb, path, body)).status)
    t.notOk(statuses.slice(0, 10).includes(429), path)
    t.equal(statuses[10], 429, path)
    t.equal((await org('GET', '/labels')).status, 200, 'nothing else is concerned')
  }
  now = 60_000
  t.not((await org('PUT', '/vens/unpair', {})).status, 429)
})

t.test('twelve rule searches and one bulk workload operation at a time', async (t) => {
  const { simulator, org } = await startPce(t, { rateLimit: DOCUMENTED_LIMITS })
  const search = '/sec_policy/draft/rule_search'
  const searches = []
  for (let count = 0; count < 12; count += 1) searches.push(await hold(simulator, 'POST', search, '{}'))
  const bulk = await hold(simulator, 'PUT', '/workloads/bulk_create', '[]')
  while (simulator.requests.length < 13) await new Promise(setImmediate)

  const refused = await org('POST', search, {})
  t.same([refused.status, refused.headers.get('retry-after')], [429, '1'])
  t.equal((await org('PUT', '/workloads/bulk_delete', [])).status, 429, 'of whichever kind')
  t.equal((await org('GET', '/workloads')).status, 200)
  for (const held of searches) t.equal(await finish(held, '{}'), 200)
  t.equal(await finish(bulk, '[]'), 200)
  t.equal((await org('POST', search, {})).status, 200, 'there is room again')
  t.equal((await org('PUT', '/workloads/bulk_delete', [])).status, 200)

  const left = await hold(simulator, 'PUT', '/workloads/bulk_create', '[]')
  const seen = simulator.requests.length
  while (!simulator.requests.some(({ status, path }) => status === null && path.endsWith('bulk_create'))) {
    await new Promise(setImmediate)
  }
  left.once('error', () => undefined).destroy()
  let status = 429
  while (status === 429 && simulator.requests.length < seen + 100) {
    status = (await org('PUT', '/workloads/bulk_update', [])).status
  }
  t.equal(status, 200, 'a client that went away holds no place')
})
