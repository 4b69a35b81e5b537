/** complete: true over more than 600,000 flows: every figure as worked out by hand, in hardly more memory than one part takes. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t from 'tap'
import { createPceSimulator } from '../../pce-simulator/index.js'
import type { Conversation } from '../../pce-simulator/model.js'
import { compiled } from '../suite-folder.js'
import { partial } from '../partial.js'
import { handMade } from './hand-made.js'
import { NOW, type Json } from './harness.js'

const MIB = 1024 * 1024
const DAY_MS = 86_400_000

const HOSTS = 2000
const APPS = 100
const DAYS = 30
/** Flows that are seen on one day alone, for each day, and flows that are seen on every day. */
const OF_A_DAY = 21_000
const DAILY = 5000
/** One flow in twenty is to the last of them, which an override deny denies. */
const PORTS = [443, 22, 80, 8080, 8443, 5432, 3306, 1433, 1521, 6379, 9092, 389, 636, 88, 445, 3389, 53, 25, 110, 23]
const DENIED = 23

const appOf = (host: number) => host % APPS
const hostName = (host: number) => `host-${host}`

/**
 * The ends and the port of a flow by its number, of which no two have all three alike: a source goes to another destination each
 * time, never to itself.
 */
const shapeOf = (flow: number) => {
  const source = flow % HOSTS
  const turn = Math.floor(flow / HOSTS)
  return {
    source,
    destination: (source + 1 + turn) % HOSTS,
    port: PORTS[turn % PORTS.length]!,
    connections: 1 + (flow % 5),
  }
}
const FLOWS = DAYS * OF_A_DAY + DAILY

t.test('over 600,000 flows', async (t) => {
  const { conversations: _none, ...estate } = handMade({
    hosts: Object.fromEntries(
      Array.from({ length: HOSTS }, (_, at) => [
        hostName(at),
        { ip: `10.${1 + (at >> 8)}.${at & 255}.1`, labels: `app=app-${appOf(at)} env=prod` },
      ]),
    ),
    ruleSets: [
      {
        name: 'everything',
        scope: '',
        allow: [{ from: 'ams', to: 'ams' }],
        override: [{ from: 'ams', to: 'ams', services: [{ port: DENIED, proto: 6 }] }],
      },
    ],
  })
  const ends = estate.workloads.map(({ href, interfaces }) => ({ workload: href, ip: interfaces![0]!.address! }))
  const services = new Map(PORTS.map((port) => [port, { port, proto: 6, process_name: `/opt/bin/serve-${port}` }]))
  const today = Math.floor(NOW / DAY_MS)
  const start = today - DAYS
  const conversation = (flow: number, firstDay: number, lastDay: number | null): Conversation => {
    const { source, destination, port, connections } = shapeOf(flow)
    return {
      src: ends[source]!,
      dst: ends[destination]!,
      service: services.get(port)!,
      flowDirection: 'inbound',
      firstDay,
      lastDay,
      everyDays: 1,
      secondOfDay: flow % 86_400,
      connectionsPerDay: connections,
      bytesIn: 100,
      bytesOut: 1000,
      state: 'closed',
    }
  }
  const conversations = {
    *[Symbol.iterator]() {
      for (let flow = 0; flow < DAYS * OF_A_DAY; flow++) {
        const day = start + Math.floor(flow / OF_A_DAY)
        yield conversation(flow, day, day)
      }
      for (let flow = DAYS * OF_A_DAY; flow < FLOWS; flow++) yield conversation(flow, start, null)
    },
  }
  const pce = await createPceSimulator({
    estate: { ...estate, conversations },
    flows: 0,
    pollsUntilDone: 1,
    now: () => NOW,
  })
  const url = await pce.listen()
  t.teardown(() => pce.close())

  const window = { start: new Date(start * DAY_MS).toISOString(), end: new Date(today * DAY_MS - 1000).toISOString() }
  const args = { start_date: window.start, end_date: window.end, detail_level: 'full' }
  const call = async (more: object) => {
    const task = {
      url,
      orgId: pce.orgId,
      credentials: pce.credentials,
      name: 'get-traffic-flows-summary',
      args: { ...args, ...more },
    }
    const { stdout } = await promisify(execFile)(
      process.execPath,
      [compiled('test/tools/read-traffic-child.ts'), JSON.stringify(task)],
      { maxBuffer: 16 * MIB },
    )
    const { answer, seconds, idle, peak } = JSON.parse(stdout) as {
      answer: Json
      seconds: number
      idle: number
      peak: number
    }
    return { answer, seconds, memory: peak - idle }
  }

  const cut = await call({})
  partial(t, cut.answer.totals, { rows: 200_000, truncated: true, coverage_note: /complete: true/ })
  const whole = await call({ complete: true })
  const { answer } = whole

  const occurrences = (flow: number) => (flow < DAYS * OF_A_DAY ? 1 : DAYS)
  let [connections, seen] = [0, 0]
  const apps = new Map<string, number>()
  const blocked = { rows: 0, connections: 0 }
  for (let flow = 0; flow < FLOWS; flow++) {
    const { source, destination, port, connections: each } = shapeOf(flow)
    const sum = each * occurrences(flow)
    connections += sum
    seen += occurrences(flow)
    if (port === DENIED) {
      blocked.rows += 1
      blocked.connections += sum
    }
    const [from, to] = [appOf(source), appOf(destination)]
    if (from === to) continue
    const pair = `app-${from} (prod) app-${to} (prod) ${port === DENIED ? 'potentially_blocked' : 'allowed'}`
    apps.set(pair, (apps.get(pair) ?? 0) + sum)
  }
  partial(t, answer.totals, {
    rows: FLOWS,
    pce_flows: FLOWS,
    connections,
    bytes_in: 100 * seen,
    bytes_out: 1000 * seen,
    distinct_processes: PORTS.length,
    unparseable: 0,
    truncated: false,
  })
  t.notOk('coverage_note' in answer.totals, 'nothing is missing')
  t.same([answer.section_totals.app_to_app, answer.section_totals.blocked], [apps.size, blocked.rows])
  const shown = answer.app_to_app.map((row: Json) => [`${row.from} ${row.to} ${row.policy}`, row.connections])
  const busiest = [...apps].sort((a, b) => b[1] - a[1]).map(([, sum]) => sum)
  t.ok(shown.length > 0)
  t.same(
    shown.map(([pair]: [string]) => [pair, apps.get(pair)]),
    shown,
    'each sum',
  )
  t.same(
    shown.map(([, sum]: [string, number]) => sum),
    busiest.slice(0, shown.length),
    'the busiest first',
  )
  t.ok(answer.totals.parts > 5 && answer.totals.parts <= 64, `${answer.totals.parts} parts`)
  t.ok(
    whole.memory - cut.memory <= 100 * MIB,
    `${Math.round((whole.memory - cut.memory) / MIB)} MiB more than for one part`,
  )
})
