import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { createGunzip } from 'node:zlib'
import t from 'tap'
import { createPceSimulator } from '../../pce-simulator/index.js'
import { createCaller } from './call-pce.js'
import { SMALL_QUERY } from '../../pce-simulator/small-estate.js'
import { partial } from '../partial.js'

const WORKLOADS = 50_000
const FLOWS = 200_000
/** Of a row; the real ones are some 900 bytes long. */
const LONGEST_ROW = 4096

/** Of this process, in bytes. */
const resident = () => process.memoryUsage.rss()

t.test('50,000 workloads and 200,000 flows: pages, totals, filters, and a download that streams', async (t) => {
  const pce = await createPceSimulator({
    workloads: WORKLOADS,
    flows: FLOWS,
    pollsUntilDone: 1,
    now: () => Date.UTC(2026, 3, 1),
  })
  await pce.listen()
  t.teardown(() => pce.close())
  const call = createCaller(pce)
  const page = await call('GET', '/orgs/1/workloads')
  t.same([page.body.length, page.headers.get('x-total-count')], [500, String(WORKLOADS)])
  const none = await call('GET', '/orgs/1/workloads?max_results=0')
  t.same([none.text, none.headers.get('x-total-count')], ['[]', String(WORKLOADS)])
  const [{ hostname, labels }] = page.body as [{ hostname: string; labels: { href: string }[] }]
  const named = await call('GET', `/orgs/1/workloads?hostname=${hostname}`)
  t.ok(named.body.length > 0 && Number(named.headers.get('x-total-count')) < 100, 'a filter narrows')
  const borne = encodeURIComponent(JSON.stringify([labels.map(({ href }) => href)]))
  const alike = await call('GET', `/orgs/1/workloads?labels=${borne}`)
  t.ok(Number(alike.headers.get('x-total-count')) < WORKLOADS / 2)
  t.ok(alike.body.some((one: { hostname: string }) => one.hostname === hostname))

  const changed = page.body[0].href as string
  t.equal((await call('PUT', changed, { description: 'changed' })).status, 204)
  const after = (await call('GET', '/orgs/1/workloads')).body as { href: string; description: string }[]
  partial(t, after[0], { href: changed, description: 'changed' }, 'a page shows what was just written')
  const made = (await call('POST', '/orgs/1/workloads', { name: 'last' })).body.href
  t.equal((await call('GET', '/orgs/1/workloads?max_results=0')).headers.get('x-total-count'), String(WORKLOADS + 1))
  t.equal((await call('DELETE', made)).status, 204)
  t.equal((await call('GET', '/orgs/1/workloads?max_results=0')).headers.get('x-total-count'), String(WORKLOADS))
  t.equal((await call('GET', '/orgs/1/workloads?name=last')).body.length, 0)

  const query = { ...SMALL_QUERY, start_date: '2026-01-01T00:00:00Z', end_date: '2026-04-01T00:00:00Z' }
  const { href } = (await call('POST', '/orgs/1/traffic_flows/async_queries', { ...query, max_results: FLOWS })).body
  const { flows_count: count } = (await call('GET', href)).body
  t.ok(count > 100_000, `${count} rows`)
  const authorization = `Basic ${Buffer.from(`${pce.credentials.key}:${pce.credentials.secret}`).toString('base64')}`
  const before = resident()
  let most = before
  let text = 0
  let largest = 0
  const sent = get(`${pce.url}/api/v2${href}/download`, { headers: { authorization, accept: 'application/json' } })
  const [answer] = (await once(sent, 'response')) as [IncomingMessage]
  // The download is a gzip file, an eighth as long as its text. A simulator that gathered the text before it packed it
  // would hold all of the text, so the bound on memory is the length of the text, not that of the file.
  const unpacked = answer.pipe(createGunzip())
  let packed = 0
  answer.on('data', ({ length }: Buffer) => {
    packed += length
    largest = Math.max(largest, length)
  })
  unpacked.on('data', ({ length }: Buffer) => {
    text += length
    most = Math.max(most, resident())
  })
  await once(unpacked, 'end')
  t.ok(text > count * 100 && text < count * LONGEST_ROW, `${text} bytes of text`)
  t.ok(largest < packed / 100, 'in pieces')
  t.ok(most - before < text, `held ${most - before} bytes more for ${text} of text, ${packed} packed`)
})
