/** What another mode would cut or open of the traffic that was seen: the whole right answer, in every mode, and what is not known. */
import t, { type Test } from 'tap'
import { partial } from '../partial.js'
import { handMade, type HandMadeEstate } from './hand-made.js'
import { startBench, type Bench, type Json } from './harness.js'

const TOOL = 'preview-enforcement-change'
const PAY = { app_name: 'pay', env_name: 'prod' }

/** An application in three modes, with one appliance; web may reach db, and nobody of bad may reach anything of it. */
const ESTATE: HandMadeEstate = {
  hosts: {
    'db-1': { ip: '10.0.0.1', labels: 'app=pay env=prod role=db' },
    'web-1': { ip: '10.0.0.2', labels: 'app=pay env=prod role=web', mode: 'full' },
    'app-1': { ip: '10.0.0.3', labels: 'app=pay env=prod role=app', mode: 'selective', online: false },
    'box-1': { ip: '10.0.0.4', labels: 'app=pay env=prod', managed: false },
    'crm-1': { ip: '10.0.1.1', labels: 'app=crm env=prod' },
    'bad-1': { ip: '10.0.1.2', labels: 'app=bad env=prod' },
    'log-1': { ip: '10.0.1.3', labels: 'app=log env=prod' },
    'hard-1': { ip: '10.0.1.4', labels: 'app=hard env=prod', mode: 'full' },
  },
  labels: ['app=ghost'],
  flows: [
    { from: 'web-1', to: 'db-1', port: 5432, connections: 100 },
    { from: 'app-1', to: 'db-1', port: 9000, connections: 3 },
    { from: 'crm-1', to: 'db-1', port: 5432, connections: 30 },
    { from: 'crm-1', to: 'web-1', port: 443, connections: 40 },
    { from: 'crm-1', to: 'app-1', port: 22, connections: 4 },
    { from: 'crm-1', to: 'box-1', port: 22, connections: 5 },
    { from: 'bad-1', to: 'app-1', port: 22, connections: 6 },
    { from: 'bad-1', to: 'web-1', port: 22, connections: 8 },
    { from: 'bad-1', to: 'db-1', port: 22, connections: 7 },
    { from: '10.9.9.9', to: 'db-1', port: 443, connections: 50 },
    { from: 'db-1', to: 'log-1', port: 514, proto: 17, connections: 20 },
    // Its other end blocks it whatever the application does.
    { from: 'web-1', to: 'hard-1', port: 80, connections: 9 },
  ],
  ruleSets: [
    {
      name: 'pay',
      scope: 'app=pay env=prod',
      allow: [{ from: 'role=web', to: 'role=db' }],
      deny: [{ from: 'app=bad', to: 'ams', extra: true }],
    },
  ],
}

const start = (t: Test, estate = ESTATE) => startBench(t, { estate: handMade(estate) })
const ask = (bench: Bench, enforcement_mode: string, more: object = PAY) =>
  bench.ok(TOOL, { enforcement_mode, ...more })
/** The rows of a table as objects. */
const table = (columns: string[], rows: unknown[][]): Json[] =>
  rows.map((row) => Object.fromEntries(columns.map((column, at) => [column, row[at]])))
/** `effect direction peer port connections workloads`. */
const changes = (answer: Json) =>
  table(answer.traffic_change_columns, answer.traffic_changes).map(
    ({ effect, direction, peer, port, connections, workloads }) =>
      `${effect} ${direction} ${peer} ${port} ${connections}: ${workloads}`,
  )
const workloads = (answer: Json) =>
  table(answer.workload_columns, answer.workloads).map(({ href: _href, ...row }) => Object.values(row).join(' '))
const ANY = '10.9.9.9 (Any (0.0.0.0/0 and ::/0))'

t.test('full: what no rule allows is cut, at every workload that is not in full yet', async (t) => {
  const bench = await start(t)
  const answer = await ask(bench, 'full')
  t.same(bench.writes(), [])
  t.equal(
    answer.message,
    '2 of 4 workloads of "pay (prod)" would go to full: 1 from selective, 1 from visibility_only. 1 is in full already. 1 has no VEN and no mode to change. ' +
      'Of the traffic seen in the last 30 days, 114 connections would be cut and 0 possibly, with 5 peers.',
  )
  t.same(answer.selection, {
    workloads: 4,
    changing: 2,
    stricter: 2,
    looser: 0,
    already_there: 1,
    unmanaged: 1,
    modes: { full: 1, selective: 1, visibility_only: 1 },
  })
  t.same(answer.connections, {
    cut: 114,
    opened: 0,
    possibly_cut: 0,
    possibly_opened: 0,
    // What rules allow, and what an appliance receives.
    stays_allowed: 105,
    stays_blocked: 63,
  })
  t.same(changes(answer), [
    `cut inbound ${ANY} 443/tcp 50: db-1`,
    'cut inbound crm (prod) 5432/tcp 30: db-1',
    'cut outbound log (prod) 514/udp 20: db-1',
    'cut inbound bad (prod) 22/tcp 7: db-1',
    'cut inbound crm (prod) 22/tcp 4: app-1',
    'cut intra pay (prod) 9000/tcp 3: app-1, db-1',
  ])
  t.same(workloads(answer), [
    'db-1 visibility_only stricter  110 0 0 0',
    'app-1 selective stricter offline 7 0 0 0',
    'box-1  none unmanaged    ',
    'web-1 full already     ',
  ])
  t.same(
    answer.not_enforced.map(({ reason, workloads: names }: Json) => [reason, names]),
    [
      ['unmanaged', ['box-1']],
      ['offline', ['app-1']],
    ],
  )
  t.same(answer.notes, [
    'full blocks whatever no rule allows, in and out.',
    'A mode takes effect at once, without provisioning.',
    'Judged by the policy in force and the traffic of the last 30 days: what was not seen then, and drafts that are not provisioned, are not judged.',
  ])
  partial(t, answer, { flows_truncated: false, analysed: { rows: 12 }, traffic_changes_total: 6, workloads_total: 4 })
})

t.test('selective: stricter for one, looser for another', async (t) => {
  const answer = await ask(await start(t), 'selective')
  partial(t, answer.selection, { changing: 2, stricter: 1, looser: 1, already_there: 1 })
  t.same(answer.connections, {
    cut: 7,
    opened: 40,
    possibly_cut: 0,
    possibly_opened: 0,
    stays_allowed: 212,
    stays_blocked: 23,
  })
  t.same(changes(answer), ['cut inbound bad (prod) 22/tcp 7: db-1', 'opened inbound crm (prod) 443/tcp 40: web-1'])
  t.match(
    answer.message,
    /7 connections would be cut and 0 possibly, with 1 peer; 40 connections blocked now would pass/,
  )
  t.match(answer.notes[0], /^selective blocks only what a deny rule names/)
})

t.test('a mode that enforces nothing opens what the workloads block, and not what others do', async (t) => {
  const bench = await start(t)
  for (const mode of ['visibility_only', 'idle']) {
    const answer = await ask(bench, mode)
    t.same(changes(answer), [
      'opened inbound crm (prod) 443/tcp 40: web-1',
      'opened inbound bad (prod) 22/tcp 14: app-1, web-1',
    ])
    partial(t, answer.connections, { cut: 0, possibly_cut: 0, opened: 54, stays_blocked: 9 })
    partial(t, answer.selection, { stricter: 0, looser: 2, changing: mode === 'idle' ? 3 : 2 })
    t.match(answer.notes[0], new RegExp(`^${mode} enforces nothing`))
  }
})

t.test('named workloads change alone', async (t) => {
  const bench = await start(t)
  const one = await ask(bench, 'full', { workloads: ['db-1', 'db-1'] })
  t.same(changes(one).length, 5)
  partial(t, one.connections, { cut: 110, stays_allowed: 100 })
  t.match(one.message, /^The workload "db-1" would go to full: 1 from/)
  // A mode between two of them makes no difference to the rest.
  const two = await ask(bench, 'visibility_only', { workloads: ['web-1', 'crm-1'] })
  t.match(two.message, /^1 of 2 named workloads would go to visibility_only: /)
  t.same(changes(two), ['opened intra crm (prod) 443/tcp 40: web-1', 'opened inbound bad (prod) 22/tcp 8: web-1'])
  const none = await ask(bench, 'full', { workloads: ['hard-1'] })
  t.match(none.message, /^The workload "hard-1" does not change its mode\. 1 is in full already\./)
})

t.test('says what it does not know', async (t) => {
  const bench = await start(t)
  await t.test('traffic that cannot be read', async (t) => {
    const faults = bench.simulator.faults
    faults.add({ kind: 'status', path: /\/traffic_flows\/async_queries$/, status: 403, times: 1, body: [] })
    const answer = await ask(bench, 'full')
    t.match(answer.message, /The traffic could not be read, so what would be cut is not known/)
    t.notOk('connections' in answer)
    t.match(answer.warnings[0], /could not be read/)
    t.equal(answer.workloads_total, 4, 'the workloads are shown anyway')
  })

  await t.test('a policy that cannot be read', async (t) => {
    const path = /\/sec_policy\/active\/rule_sets$/
    bench.simulator.faults.add({ kind: 'status', path, status: 403, times: 9, body: [] })
    const answer = await ask(bench, 'visibility_only')
    bench.simulator.faults.clear()
    t.same(changes(answer), [
      'possibly_opened intra pay (prod) 5432/tcp 100: web-1',
      'possibly_opened inbound crm (prod) 443/tcp 40: web-1',
      'possibly_opened inbound bad (prod) 22/tcp 14: app-1, web-1',
      'possibly_opened outbound hard (prod) 80/tcp 9: web-1',
      'possibly_opened inbound crm (prod) 22/tcp 4: app-1',
      'possibly_opened intra pay (prod) 9000/tcp 3: app-1',
    ])
    t.match(answer.notes.join(' '), /only possible is undecided because of .*a policy that could not be read/)
  })

  await t.test('no traffic', async (t) => {
    const quiet = await start(t, { ...ESTATE, flows: [] })
    const answer = await ask(quiet, 'full')
    t.match(answer.message, /No traffic was seen in the last 30 days to judge it by\.$/)
  })
})

t.test('who is meant', async (t) => {
  const bench = await start(t)
  const mode = { enforcement_mode: 'full' }
  const unclear = await bench.fails(TOOL, mode, 'missing_identifier')
  t.match(unclear.message, /give app_name and env_name, or workloads/)
  await bench.fails(TOOL, { ...mode, app_name: 'pay' }, 'missing_identifier')
  await bench.fails(TOOL, { ...mode, ...PAY, workloads: ['db-1'] }, 'conflicting_identifiers')
  partial(t, await bench.fails(TOOL, { ...mode, ...PAY, app_name: 'pai' }, 'not_found'), { near_names: ['pay'] })
  partial(t, await bench.fails(TOOL, { ...mode, workloads: ['db-1', 'db-'] }, 'not_found'), { near_names: ['db-1'] })
  await bench.fails(TOOL, { ...mode, app_name: 'ghost', env_name: 'prod' }, 'no_workloads')
  await bench.fails(TOOL, { ...mode, workloads: ['/orgs/2/workloads/1'] }, 'invalid_href')
})

t.test('VENs that enforce nothing, and a list that is not whole', async (t) => {
  const estate = handMade(ESTATE)
  const statuses: Record<string, string> = { 'db-1': 'suspended', 'web-1': 'stopped' }
  const workloads = estate.workloads.map((one) => {
    const status = statuses[one.name ?? '']
    return status === undefined ? one : { ...one, ven: { ...one.ven, status } }
  }) as typeof estate.workloads
  const bench = await startBench(t, { estate: { ...estate, workloads } })
  const { not_enforced: found } = await ask(bench, 'full')
  t.same(
    found.map(({ reason, workloads: names }: Json) => [reason, names]),
    [
      ['unmanaged', ['box-1']],
      ['ven_suspended', ['db-1']],
      ['ven_stopped', ['web-1']],
      ['offline', ['app-1']],
    ],
  )
  const scan = bench.pce.workloads.scan.bind(bench.pce.workloads)
  bench.pce.workloads.scan = async (...args) => ({ ...(await scan(...args)), isWhole: false, totalCount: 900 })
  for (const tool of [TOOL, 'set-enforcement-mode']) {
    const { message } = await bench.fails(tool, { ...PAY, enforcement_mode: 'full' }, 'pce_error')
    t.match(message, /^The PCE sent 4 of 900 workloads of the application\. Nothing was changed\./)
  }
  t.same(bench.writes(), [])
})

t.test('of traffic to a virtual service nobody knows which of the workloads has it', async (t) => {
  const bench = await start(t)
  const stream = bench.pce.streamTrafficFlows.bind(bench.pce)
  bench.pce.streamTrafficFlows = (name, query, options) =>
    stream(name, query, {
      ...options,
      onFlows: (flows) =>
        options.onFlows(
          flows.map(({ dst, ...flow }) => {
            const { workload, ip } = dst
            if (workload?.hostname !== 'db-1') return { ...flow, dst }
            const href = '/orgs/1/sec_policy/active/virtual_services/1'
            return { ...flow, dst: { ip, virtual_service: { href, name: 'front', labels: workload.labels } } }
          }),
        ),
    })
  t.same(changes(await ask(bench, 'full')), [
    'cut outbound log (prod) 514/udp 20: db-1',
    'cut inbound crm (prod) 22/tcp 4: app-1',
    'possibly_cut intra pay (prod) 5432/tcp 100: pay (prod)',
    'possibly_cut inbound 10.9.9.9 (Any (0.0.0.0/0 and ::/0)) 443/tcp 50: pay (prod)',
    'possibly_cut inbound crm (prod) 5432/tcp 30: pay (prod)',
    'possibly_cut inbound bad (prod) 22/tcp 7: pay (prod)',
    'possibly_cut intra pay (prod) 9000/tcp 3: app-1, pay (prod)',
  ])
})
