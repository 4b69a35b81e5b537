/** Tools that judge workloads, where the PCE leaves out their mode, or whether they are online. */
import t, { type Test } from 'tap'
import { partial } from '../partial.js'
import { handMade, type HandMadeEstate, type HandMadeHost } from '../tools/hand-made.js'
import { startBench, type Json } from '../tools/harness.js'

const PAY = { app_name: 'pay', env_name: 'prod' }
const host = (n: number, mode: HandMadeHost['mode'] = 'full'): HandMadeHost => ({
  ip: `10.0.0.${n}`,
  labels: 'app=pay env=prod role=web loc=eu',
  mode,
})

const ALL = ['enforcement_mode', 'online', 'visibility_level']

/** Starts a PCE that leaves fields of some workloads out of its list, by host name; its own state is whole. */
async function start(t: Test, estate: HandMadeEstate, untold: Record<string, readonly string[]>) {
  const bench = await startBench(t, { estate: handMade(estate) })
  const body = (await bench.pce.workloads.getAll()).map((workload) => ({
    ...workload,
    ...Object.fromEntries((untold[workload.hostname ?? ''] ?? []).map((field) => [field, null])),
  }))
  bench.simulator.faults.add({ kind: 'status', path: /\/orgs\/1\/workloads$/, status: 200, body, times: 99 })
  return bench
}

t.test('get-workload-enforcement-status: an unknown mode makes no application mixed', async (t) => {
  const bench = await start(
    t,
    { hosts: { 'pay-1': host(1), 'pay-2': host(2), 'pay-3': { ...host(3), online: false } } },
    { 'pay-2': ALL },
  )
  const answer = await bench.ok('get-workload-enforcement-status')
  t.same([answer.offline, answer.online_not_known, answer.mixed_count], [1, 1, 0])
  t.same(answer.managed_only, { total: 3, enforcement_modes: { full: 2, unknown: 1 } })
  t.same(
    answer.app_groups.map(({ is_mixed: isMixed, enforcement_modes: modes }: Json) => [isMixed, modes]),
    [[false, { full: 2, unknown: 1 }]],
  )
})

t.test('enforcement-readiness: an unknown mode is not one to make stricter', async (t) => {
  const flows = [{ from: 'pay-1', to: 'pay-2' }]
  const ruleSets = [{ name: 'RF-pay-prod', scope: 'app=pay env=prod', allow: [{ from: 'ams', to: 'ams' }] }]
  const bench = await start(t, { hosts: { 'pay-1': host(1), 'pay-2': host(2) }, flows, ruleSets }, { 'pay-2': ALL })
  const answer = await bench.ok('enforcement-readiness', PAY)
  t.equal(answer.readiness_level, 'ready')
  t.same(answer.recommendations, [
    'The PCE does not tell the mode of 1 workload: whether it enforces policy is not known.',
    'Whether 1 workload is online is not known: recent traffic may be missing here.',
  ])
})

t.test('compliance-check: what is not told is neither a failure nor a pass', async (t) => {
  const judge = async (hosts: HandMadeEstate['hosts'], untold: Record<string, readonly string[]>) => {
    const bench = await start(t, { hosts: hosts!, flows: [] }, untold)
    await bench.ok('create-label', { key: 'role', value: 'new' })
    const found: Record<string, Json> = {}
    for (const framework of ['general', 'nist', 'dora'])
      for (const finding of (await bench.ok('compliance-check', { framework, ...PAY })).findings)
        found[finding.id] = finding
    return found
  }
  const some = await judge({ 'pay-1': host(1), 'pay-2': host(2) }, { 'pay-2': ALL })
  partial(t, some, {
    'SEG-2': {
      status: 'INFO',
      detail: '1 workload in a mode that the PCE does not tell.',
      evidence: { counts: { enforcing: 1, reporting_only: 0, mode_not_known: 1 }, workloads: ['pay-2'] },
    },
    'AC-4': { status: 'INFO' },
    'DORA-9.3': {
      status: 'INFO',
      detail: '1 of 2 managed workloads enforce. 1 workload in a mode that the PCE does not tell.',
    },
  })
  for (const field of ['online', 'visibility_level']) {
    const { detail, evidence } = (await judge({ 'pay-1': host(1), 'pay-2': host(2) }, { 'pay-2': [field] }))['SI-4']!
    t.match(detail, /1 workload of 2 of which the PCE does not tell both\./, field)
    t.same([evidence.counts.not_known, evidence.workloads], [1, ['pay-2']])
  }
  const none = await judge({ 'pay-1': host(1) }, { 'pay-1': ALL })
  t.same(
    ['SEG-2', 'AC-4', 'DORA-9.3'].map((id) => none[id]!.status),
    ['NOT_ASSESSED', 'NOT_ASSESSED', 'NOT_ASSESSED'],
  )
  const worse = await judge({ 'pay-1': host(1, 'idle'), 'pay-2': host(2) }, { 'pay-2': ALL })
  t.same(
    ['SEG-2', 'AC-4', 'DORA-9.3'].map((id) => worse[id]!.status),
    ['FAIL', 'FAIL', 'WARNING'],
  )
})

t.test('preview-enforcement-change: from an unknown mode, traffic changes only possibly', async (t) => {
  const estate: HandMadeEstate = {
    hosts: { 'pay-1': host(1) },
    flows: [{ from: '10.9.9.9', to: 'pay-1', port: 22, connections: 4 }],
  }
  const bench = await start(t, estate, { 'pay-1': ['enforcement_mode', 'online'] })
  const looser = await bench.ok('preview-enforcement-change', { ...PAY, enforcement_mode: 'visibility_only' })
  partial(t, looser, {
    selection: { changing: 1, stricter: 0, looser: 0, modes: { unknown: 1 } },
    connections: { opened: 0, possibly_opened: 4, stays_blocked: 0 },
    not_enforced: [{ reason: 'not_known', workloads: ['pay-1'] }],
    warnings: [
      'Whether the VEN of 1 workload is online is not known.',
      'The PCE does not tell the present mode of 1 workload: whether the new one is stricter or looser there is not known.',
    ],
  })
  t.same(
    looser.workloads.map((row: unknown[]) => row.slice(2, 5)),
    [['unknown', 'not_known', 'not_known']],
  )
})

t.test('create-ringfence: nobody says that an unknown mode drops nothing', async (t) => {
  const estate: HandMadeEstate = {
    hosts: { 'pay-1': host(1, 'visibility_only') },
    flows: [{ from: '10.9.9.9', to: 'pay-1', port: 443 }],
  }
  const bench = await start(t, estate, { 'pay-1': ['enforcement_mode'] })
  const { warnings } = await bench.ok('create-ringfence', { ...PAY, dry_run: true })
  t.equal(
    warnings.find((text: string) => text.includes('mode of')),
    'The PCE does not tell the mode of 1 of 1 managed workload: whether they drop anything yet is not known.',
  )
})

t.test('explain-flow: an end may be offline if nobody says that it is online', async (t) => {
  const flow = { source: 'pay-1', destination: 'pay-2', port: 443, proto: 'tcp', lookback_days: 0 }
  const hosts = { 'pay-1': host(1), 'pay-2': host(2) }
  const one = await (await start(t, { hosts }, { 'pay-2': ['online'] })).ok('explain-flow', flow)
  t.same(one.not_judged, ['Whether "pay-2" is online is not known. The verdicts are by the rules as if it were.'])
  const none = await (await start(t, { hosts }, {})).ok('explain-flow', flow)
  t.same(none.not_judged, [])
})
