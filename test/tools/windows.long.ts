/** The window of every tool that reads traffic: days or dates, however long, over a PCE that refuses more than 97 days. */
import t from 'tap'
import { namesTaking } from '../surface/contract.js'
import { handMade, type HandMadeFlow } from './hand-made.js'
import { startBench, type Json } from './harness.js'

const SHOP = { app_name: 'shop', env_name: 'prod' }
/** The arguments that a tool needs beside its window. */
const CALLS: Record<string, object> = {
  'create-ringfence': { ...SHOP, dry_run: true },
  'detect-lateral-movement-paths': SHOP,
  'enforcement-readiness': SHOP,
  'exposure-report': { services: [{ port: 443, proto: 'tcp' }] },
  'explain-flow': { source: 'app=cart', destination: 'app=shop', port: 443, proto: 'tcp' },
  'get-policy-coverage-report': SHOP,
  'plan-port-closure': { services: [{ port: 443, proto: 'tcp' }], dry_run: true },
  'preview-enforcement-change': { ...SHOP, enforcement_mode: 'full' },
  'ringfence-batch': { apps: [SHOP], dry_run: true },
  'set-enforcement-mode': { ...SHOP, enforcement_mode: 'full', dry_run: true },
  'set-ven-status': { workloads: ['s1'], status: 'suspended', dry_run: true },
  'unpair-vens': { workloads: ['s1'], firewall_restore: 'saved', dry_run: true },
}
/** They judge what they are about to do, which goes back from now: the first two begin with a dry run of what they write. */
const BACK_FROM_NOW = ['create-ringfence', 'ringfence-batch', 'set-ven-status', 'unpair-vens']

const DAYS = [1, 60, 97, 98, 150, 250, 364, 365]
const flowOn = (daysAgo: number, at: number): HandMadeFlow => ({ from: 'c1', to: 's1', daysAgo, connections: 10 ** at })

const start = (t: Parameters<typeof startBench>[0]) => {
  const estate = handMade({
    hosts: {
      s1: { ip: '10.0.0.1', labels: 'app=shop env=prod' },
      c1: { ip: '10.0.0.2', labels: 'app=cart env=prod' },
      x1: { ip: '10.0.0.3' },
    },
    flows: DAYS.map(flowOn),
  })
  // Traffic to what listens is read only where something does.
  const port = {
    address: '0.0.0.0',
    port: 443,
    protocol: 6,
    process_name: '/usr/sbin/nginx',
    user: 'root',
    package: null,
  }
  for (const one of estate.workloads.filter(({ name }) => name === 's1'))
    Object.assign(one, { services: { created_at: '2026-06-15T06:00:00.000Z', open_service_ports: [port] } })
  // Traffic of VENs that fell silent is read only where there are such.
  for (const one of estate.workloads.filter(({ name }) => name === 'c1'))
    Object.assign(one, { agent: { config: {}, status: { last_heartbeat_on: '2026-05-01T00:00:00.000Z' } } })
  return startBench(t, { estate })
}

const windowOf = (answer: Json): Json =>
  answer.window ?? answer.observed?.window ?? answer.traffic?.window ?? answer.now?.window

t.test('every tool that reads traffic takes any window and says which it was', async (t) => {
  const bench = await start(t)
  // Traffic of workloads that are one machine is read only where there are such.
  await bench.pce.workloads.create({ name: 'x1', hostname: 'x1', interfaces: [{ name: 'eth0', address: '10.0.0.4' }] })
  const names = namesTaking('lookback_days')
  t.same(
    namesTaking('start_date').filter((name) => !names.includes(name)),
    ['get-events', 'who-changed'].filter((name) => namesTaking('start_date').includes(name)),
    'a tool that takes dates takes days',
  )
  for (const name of names) {
    for (const days of [97, 365]) {
      const answer = await bench.ok(name, { ...CALLS[name], lookback_days: days })
      const start = new Date(Date.UTC(2026, 5, 15 - days)).toISOString().slice(0, 10)
      t.same(windowOf(answer), { start: `${start}T00:00:00Z`, end: '2026-06-15T23:59:59Z' }, `${name}, ${days} days`)
    }
    if (BACK_FROM_NOW.includes(name)) continue
    const dates = { start_date: '2025-06-01', end_date: '2026-06-01' }
    const answer = await bench.ok(name, { ...CALLS[name], ...dates })
    t.same(windowOf(answer), { start: '2025-06-01T00:00:00Z', end: '2026-06-01T23:59:59Z' }, `${name}, dates`)
  }
})

t.test('a window that is longer than a PCE takes has every connection once', async (t) => {
  const bench = await start(t)
  for (const complete of [false, true])
    for (const [days, connections] of [
      [97, 111],
      [98, 1111],
      [365, 11_111_111],
    ] as const) {
      const answer = await bench.ok('get-traffic-flows', { lookback_days: days, group_by: ['port'], complete })
      const column = answer.columns.indexOf('num_connections')
      t.same(
        answer.data.map((row: Json) => row[column]),
        [connections],
        `${days} days, complete ${complete}`,
      )
      t.equal(answer.rows_analysed, 1, 'seen in several queries, it is one row')
      if (!complete) t.equal(answer.parts, Math.ceil((days + 1) / 97), 'and the queries are counted')
      const longest = bench.simulator.requests
        .filter(({ method, path }) => method === 'POST' && path.endsWith('/async_queries'))
        .map(({ body }) => body as Json)
        .map(({ start_date: from, end_date: to }) => (Date.parse(to) - Date.parse(from)) / 86_400_000)
      t.ok(Math.max(...longest) <= 97, 'no query is too long')
    }
})

t.test('a PCE that takes only shorter windows', async (t) => {
  const bench = await start(t)
  await bench.pce.orgSettings.update('/orgs/1/settings', { max_explorer_query_timespan_days: 30 })
  const answer = await bench.ok('get-traffic-flows', { lookback_days: 60, group_by: ['port'] })
  t.same([answer.parts, answer.data[0][answer.columns.indexOf('num_connections')]], [3, 11])
})

t.test('a start too long ago is refused before the PCE is asked', async (t) => {
  const bench = await start(t)
  const error = await bench.fails('get-traffic-flows', { start_date: '1980-01-01' }, 'invalid_window')
  t.equal(error.argument, 'start_date')
  t.equal(bench.simulator.requests.filter(({ path }) => path.includes('traffic_flows')).length, 0)
})
