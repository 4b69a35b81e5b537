/**
 * The whole way of a change of mode on the simulator: predict, set it with the tool, and the same traffic again. What was said to be
 * cut or opened is compared with what the PCE decides then, connection by connection, and nothing else may have changed.
 */
import fc from 'fast-check'
import t, { type Test } from 'tap'
import type { EnforcementMode } from '../../schemas/pce/workload.js'
import type { TrafficFlow } from '../../schemas/pce/traffic.js'
import { handMade, type HandMadeEstate, type HandMadeFlow } from './hand-made.js'
import { startBench, type Bench, type Json } from './harness.js'
import { onceEach } from './once-each.js'
import { randomCase } from './random-estate.js'

const MODES = ['idle', 'visibility_only', 'selective', 'full'] as const
const PAY = { app_name: 'pay', env_name: 'prod' }

async function everyFlow({ pce }: Bench): Promise<TrafficFlow[]> {
  return pce.getTrafficFlowsAsync('replay', {
    start_date: '2026-05-16T00:00:00Z',
    end_date: '2026-06-15T23:59:59Z',
    sources: { include: [[]], exclude: [] },
    destinations: { include: [[]], exclude: [] },
    services: { include: [], exclude: [] },
    policy_decisions: [],
  })
}

const idOf = ({ src, dst, service, flow_direction: direction }: TrafficFlow) =>
  JSON.stringify([direction, src.ip, src.fqdn, dst.ip, dst.fqdn, service])

const labelsOf = (end: TrafficFlow['src']) =>
  Object.fromEntries((end.workload?.labels ?? []).map(({ key, value }) => [key, value])) as Record<string, string>

/** As the answer calls an end; without the IP lists of an address. */
function nameOf(end: TrafficFlow['src']): string {
  const { app, env } = labelsOf(end)
  return app !== undefined && env !== undefined ? `${app} (${env})` : (end.workload?.name ?? end.fqdn ?? end.ip)
}

const PROTOCOLS: Record<number, string> = { 1: 'icmp', 6: 'tcp', 17: 'udp' }
const portOf = ({ service: { port, proto } }: TrafficFlow) => {
  const name = PROTOCOLS[proto ?? -1] ?? String(proto)
  return (port ?? 0) === 0 ? name : `${port}/${name}`
}

type Counts = Record<'cut' | 'opened' | 'stays_allowed' | 'stays_blocked', number>

/** What became of the traffic of the chosen, by direction, peer and port, as the PCE decides now. */
function compareDecisions(before: TrafficFlow[], after: TrafficFlow[], isOwn: (end: TrafficFlow['src']) => boolean) {
  const now = new Map(after.map((flow) => [idOf(flow), flow]))
  const found = new Map<string, Counts>()
  for (const flow of onceEach(before)) {
    const [from, to] = [isOwn(flow.src), isOwn(flow.dst)]
    const then = now.get(idOf(flow))
    if (then === undefined) throw new Error(`${idOf(flow)} was not seen again`)
    const [was, is] = [flow.policy_decision === 'blocked', then.policy_decision === 'blocked']
    const fate = was ? (is ? 'stays_blocked' : 'opened') : is ? 'cut' : 'stays_allowed'
    if (!from && !to) {
      if (was !== is) throw new Error(`${idOf(flow)} is none of theirs, and was ${fate}`)
      continue
    }
    const direction = from && to ? 'intra' : from ? 'outbound' : 'inbound'
    const id = `${direction} ${nameOf(direction === 'outbound' ? flow.dst : flow.src)} ${portOf(flow)}`
    const counts = found.get(id) ?? { cut: 0, opened: 0, stays_allowed: 0, stays_blocked: 0 }
    found.set(id, counts)
    counts[fate] += flow.num_connections ?? 0
  }
  return found
}

/** What is wrong with an answer: everything certain has to happen, and nothing that it does not name as possible. */
function contradictions(said: Json, found: ReadonlyMap<string, Counts>): string[] {
  const wrong: string[] = []
  const rows = new Map<string, Record<string, number>>()
  for (const [effect, direction, peer, port, connections] of said.traffic_changes) {
    const id = `${direction} ${String(peer).replace(/^([\d.]+|[\da-f:]+:[\da-f:]*) \(.*$/, '$1')} ${port}`
    const row = rows.get(id) ?? {}
    rows.set(id, row)
    row[effect] = (row[effect] ?? 0) + connections
  }
  for (const id of rows.keys()) if (!found.has(id)) wrong.push(`${id}: nothing of the kind was seen`)
  for (const [id, is] of found) {
    const { cut = 0, possibly_cut: maybeCut = 0, opened = 0, possibly_opened: maybeOpened = 0 } = rows.get(id) ?? {}
    if (is.cut < cut || is.cut > cut + maybeCut)
      wrong.push(`${id}: ${cut} and perhaps ${maybeCut} were to be cut, and ${is.cut} are`)
    if (is.opened < opened || is.opened > opened + maybeOpened)
      wrong.push(`${id}: ${opened} and perhaps ${maybeOpened} were to be opened, and ${is.opened} are`)
  }
  const total = [...found.values()].reduce(
    (sum, { cut, opened, stays_allowed: kept, stays_blocked: stays }) => sum + cut + opened + kept + stays,
    0,
  )
  const told = Object.values(said.connections as Record<string, number>).reduce((sum, count) => sum + count, 0)
  if (told !== total) wrong.push(`${told} connections are told of, and ${total} were seen`)
  return wrong
}

interface Loop {
  estate: HandMadeEstate
  to: EnforcementMode
  /** Names instead of the application. */
  named?: string[]
}

async function closeTheLoop(t: Test, { estate, to, named }: Loop) {
  const bench = await startBench(t, { estate: handMade(estate), budget: 800_000 })
  try {
    const choice = named === undefined ? PAY : { workloads: named }
    const isOwn = (end: TrafficFlow['src']) =>
      named === undefined
        ? labelsOf(end)['app'] === 'pay' && labelsOf(end)['env'] === 'prod'
        : named.includes(end.workload?.name ?? '')
    const before = await everyFlow(bench)
    const said = await bench.ok('preview-enforcement-change', {
      ...choice,
      enforcement_mode: to,
      detail_level: 'full',
    })
    const done = await bench.ok('set-enforcement-mode', { ...choice, enforcement_mode: to })
    const found = compareDecisions(before, await everyFlow(bench), isOwn)
    const wrong = contradictions(said, found)
    const { selection, outcomes } = done
    if (outcomes.changed !== said.selection.changing) wrong.push(`${outcomes.changed} workloads were changed`)
    if (outcomes.changed + outcomes.already_there + outcomes.unmanaged !== selection.workloads)
      wrong.push(`some workloads are missing: ${JSON.stringify(outcomes)}`)
    return { wrong, connections: said.connections as Record<string, number> }
  } finally {
    bench.pce.close()
    await bench.simulator.close()
  }
}

/** The traffic of a ringfence is what comes in; here the other way counts as much. */
const turned = ({ from, to, direction: _side, ...flow }: HandMadeFlow): HandMadeFlow => ({
  ...flow,
  from: to,
  to: from,
})

const randomLoop: fc.Arbitrary<Loop> = fc
  .record({
    one: randomCase,
    to: fc.constantFrom(...MODES),
    turns: fc.array(fc.boolean(), { minLength: 24, maxLength: 24 }),
    pick: fc.option(fc.subarray(['pay-1', 'pay-2', 'crm-1', 'bare-1', 'half-1'], { minLength: 1 }), {
      nil: null,
      freq: 3,
    }),
  })
  .map(({ one: { estate }, to, turns, pick }) => {
    const flows = (estate.flows ?? []).map((flow, at) =>
      turns[at] === true && !/:/.test(flow.from) ? turned(flow) : flow,
    )
    const named = pick?.filter((name) => estate.hosts?.[name]?.managed !== false)
    return {
      // As the same flow may have been turned into one that is there, connections are told apart by their sums.
      estate: { ...estate, flows: [...new Map(flows.map((flow) => [JSON.stringify(flow), flow])).values()] },
      to,
      ...(named !== undefined && named.length > 0 && { named }),
    }
  })

const RANDOM = { numRuns: 120, seed: 20261124 }

t.test('on random estates, into every mode', async (t) => {
  const sums: Record<string, number> = {}
  const details = await fc.check(
    fc.asyncProperty(randomLoop, async (loop) => {
      const { wrong, connections } = await closeTheLoop(t, loop)
      for (const [effect, count] of Object.entries(connections)) sums[effect] = (sums[effect] ?? 0) + count
      if (wrong.length > 0) throw new Error(wrong.join('\n'))
    }),
    RANDOM,
  )
  t.notOk(
    details.failed,
    `${String(details.errorInstance)} ${fc.defaultReportMessage(details) ?? `held for ${details.numRuns} estates`}`,
  )
  t.comment(JSON.stringify(sums))
  // What is only possibly opened takes two rules that hardly ever meet here.
  for (const effect of ['cut', 'opened', 'possibly_cut', 'stays_allowed', 'stays_blocked'])
    t.ok(sums[effect]! > 0, `${effect} was said: ${JSON.stringify(sums)}`)
  t.ok(sums['cut']! + sums['opened']! > 3 * (sums['possibly_cut']! + sums['possibly_opened']!), 'most is certain')
})

t.test('with labels and ports alone nothing is left open', async (t) => {
  const service = (port: number) => ({ port, proto: 6 })
  for (const from of MODES)
    for (const to of MODES) {
      const estate: HandMadeEstate = {
        hosts: {
          'pay-1': { ip: '10.0.0.1', labels: 'app=pay env=prod role=web', mode: from },
          'pay-2': { ip: '10.0.0.2', labels: 'app=pay env=prod role=db', mode: from },
          'crm-1': { ip: '10.0.1.1', labels: 'app=crm env=prod', mode: 'full' },
          'bad-1': { ip: '10.0.1.2', labels: 'app=bad env=prod', mode: 'visibility_only' },
        },
        flows: [443, 22, 8080].flatMap((port) =>
          ['pay-1', 'pay-2', 'crm-1', 'bad-1', '8.8.8.8'].flatMap((source) =>
            ['pay-1', 'pay-2', 'crm-1', 'bad-1', '8.8.4.4'].flatMap((destination) =>
              source === destination || (!source.startsWith('pay') && !destination.startsWith('pay'))
                ? []
                : [{ from: source, to: destination, port, connections: port }],
            ),
          ),
        ),
        ruleSets: [
          {
            name: 'pay',
            scope: 'app=pay env=prod',
            allow: [
              { from: 'role=web', to: 'role=db' },
              { from: 'app=crm', to: 'role=web', extra: true, services: [service(443)] },
            ],
            deny: [{ from: 'ams', to: 'ams', extra: true, services: [service(22)] }],
            override: [{ from: 'app=bad', to: 'ams', extra: true, services: [service(8080)] }],
          },
          {
            name: 'out',
            scope: '',
            allow: [{ from: 'app=pay', to: 'app=crm', services: [service(443), service(22)] }],
          },
        ],
      }
      const { wrong, connections } = await closeTheLoop(t, { estate, to })
      t.same(wrong, [], `${from} to ${to}`)
      t.equal(
        connections['possibly_cut']! + connections['possibly_opened']!,
        0,
        `${from} to ${to}: ${JSON.stringify(connections)}`,
      )
    }
})
