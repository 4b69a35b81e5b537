/** What a dry run says of a change of enforcement: from, to, and whom of those seen it would cut; and what it does not know. */
import t, { type Test } from 'tap'
import { partial } from '../partial.js'
import { handMade, type HandMadeEstate } from './hand-made.js'
import { startBench } from './harness.js'
import { reportModes, startTwisted } from './twisted.js'

const UPDATE = 'update-workload'

/** The database is reached by its application (a rule), by a stranger (none), and by one whom a deny rule names. */
const ESTATE: HandMadeEstate = {
  hosts: {
    'db-1': { ip: '10.0.0.1', labels: 'app=pay env=prod role=db' },
    'web-1': { ip: '10.0.0.2', labels: 'app=pay env=prod role=web' },
    'crm-1': { ip: '10.0.0.3', labels: 'app=crm env=prod' },
    'bad-1': { ip: '10.0.0.4', labels: 'app=bad env=prod' },
    'log-1': { ip: '10.0.0.5', labels: 'app=log env=prod' },
    'bare-1': { ip: '10.0.0.9', managed: false },
    'idle-1': { ip: '10.0.0.7', labels: 'app=idle env=prod', mode: 'idle' },
    'full-1': { ip: '10.0.0.8', labels: 'app=full env=prod', mode: 'full' },
    'full-2': { ip: '10.0.0.10', labels: 'app=fuller env=prod', mode: 'full' },
  },
  flows: [
    { from: 'web-1', to: 'db-1', port: 5432, connections: 100 },
    { from: 'crm-1', to: 'db-1', port: 5432, connections: 30 },
    { from: 'crm-1', to: 'db-1', port: 22, connections: 4 },
    { from: 'bad-1', to: 'db-1', port: 5432, connections: 7 },
    { from: '10.9.9.9', to: 'db-1', port: 443, connections: 50 },
    { from: 'db-1', to: 'log-1', port: 514, proto: 17, connections: 20 },
    { from: 'crm-1', to: 'full-1', port: 443, connections: 9 },
    { from: 'full-2', to: 'full-1', port: 443, connections: 5 },
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
const hrefOf = (name: string) =>
  `/orgs/1/workloads/00000000-0000-4000-8000-${String(Object.keys(ESTATE.hosts!).indexOf(name) + 1).padStart(12, '0')}`
const WINDOW = { start: '2026-05-16T00:00:00Z', end: '2026-06-15T23:59:59Z' }

const start = (t: Test) => startBench(t, { estate: handMade(ESTATE) })

t.test('full enforcement of a workload', async (t) => {
  const bench = await start(t)
  const answer = await bench.ok(UPDATE, { name: 'db-1', enforcement_mode: 'full', dry_run: true })
  t.same(bench.writes(), [])
  t.same(answer.requests, [{ method: 'PUT', path: hrefOf('db-1'), body: { enforcement_mode: 'full' } }])
  t.same(answer.effect, {
    from: 'visibility_only',
    to: 'full',
    takes_effect: 'at once, without provisioning',
    traffic: {
      window: WINDOW,
      flows_truncated: false,
      rows: 6,
      connections: { cut: 111, possibly_cut: 0, kept: 100, blocked: 0 },
      would_be_cut: [
        {
          direction: 'inbound',
          peer: '10.9.9.9 (Any (0.0.0.0/0 and ::/0))',
          effect: 'cut',
          connections: 50,
          ports: ['443/tcp'],
        },
        { direction: 'inbound', peer: 'crm (prod)', effect: 'cut', connections: 34, ports: ['5432/tcp', '22/tcp'] },
        { direction: 'outbound', peer: 'log (prod)', effect: 'cut', connections: 20, ports: ['514/udp'] },
        { direction: 'inbound', peer: 'bad (prod)', effect: 'cut', connections: 7, ports: ['5432/tcp'] },
      ],
      would_be_cut_total: 4,
    },
    note: 'Judged by the policy in force and the traffic of the last 30 days; traffic that was not seen then, and drafts that are not provisioned, are not judged.',
  })
  t.same(answer.warnings, [
    'Mode full takes effect at once: of the traffic that was seen, 111 connections would be cut and 0 possibly, with 4 peers.',
  ])
  t.equal(bench.simulator.state.find(hrefOf('db-1'))!.enforcement_mode, 'visibility_only')
})

t.test('selective enforcement cuts what a deny rule names', async (t) => {
  const bench = await start(t)
  const { effect } = await bench.ok(UPDATE, { name: 'db-1', enforcement_mode: 'selective', dry_run: true })
  t.same(effect.traffic.connections, { cut: 7, possibly_cut: 0, kept: 204, blocked: 0 })
  t.same(effect.traffic.would_be_cut, [
    { direction: 'inbound', peer: 'bad (prod)', effect: 'cut', connections: 7, ports: ['5432/tcp'] },
  ])
})

t.test('from selective to full, what passed only because no deny rule matched would be cut', async (t) => {
  const bench = await start(t)
  await bench.pce.workloads.update(hrefOf('db-1'), { enforcement_mode: 'selective' })
  const { effect } = await bench.ok(UPDATE, { name: 'db-1', enforcement_mode: 'full', dry_run: true })
  partial(t, effect, { from: 'selective', to: 'full' })
  t.same(effect.traffic.connections, { cut: 104, possibly_cut: 0, kept: 100, blocked: 7 })
})

t.test('a mode that enforces nothing cuts nothing, and lets pass what no other end blocks', async (t) => {
  const bench = await start(t)
  for (const to of ['visibility_only', 'idle'] as const) {
    const { effect, warnings } = await bench.ok(UPDATE, { name: 'full-1', enforcement_mode: to, dry_run: true })
    partial(t, effect, { from: 'full', to, traffic: { connections: { cut: 0, blocked: 14 }, would_be_cut: [] } })
    t.same(warnings, [
      `${to} enforces nothing: whatever policy blocks here alone would pass, such as 9 connections blocked now.`,
    ])
  }
})

t.test('says what it does not know', async (t) => {
  const bench = await start(t)
  const ask = (args: object) => bench.ok(UPDATE, { enforcement_mode: 'full', dry_run: true, ...args })

  await t.test('no traffic', async (t) => {
    const { effect, warnings } = await ask({ name: 'idle-1' })
    partial(t, effect, { from: 'idle', to: 'full', traffic: { rows: 0, would_be_cut: [] } })
    t.match(effect.note, /No traffic was seen, which says nothing about what would be cut\.$/)
    t.same(warnings, ['Mode full takes effect at once, and no traffic was seen to judge it by.'])
  })

  await t.test('traffic that cannot be read', async (t) => {
    bench.simulator.faults.add({
      kind: 'status',
      path: /\/traffic_flows\/async_queries$/,
      status: 403,
      times: 1,
      body: [],
    })
    const { effect, warnings, requests } = await ask({ name: 'db-1' })
    partial(t, effect, {
      from: 'visibility_only',
      to: 'full',
      note: /^The traffic could not be read, so what would be cut is not known: /,
    })
    t.equal(effect.traffic, null)
    t.equal(warnings.length, 1)
    t.equal(requests.length, 1, 'the plan is there anyway')
  })

  await t.test('a policy that cannot be read', async (t) => {
    bench.simulator.faults.add({
      kind: 'status',
      path: /\/sec_policy\/active\/rule_sets$/,
      status: 403,
      times: 9,
      body: [],
    })
    const { effect } = await ask({ name: 'db-1' })
    bench.simulator.faults.clear()
    t.match(effect.note, /possibly_cut is undecided because of .*a policy that could not be read/)
    t.equal(effect.traffic.connections.kept, 0, 'whatever the PCE recorded')
  })

  await t.test('no effect where there is none', async (t) => {
    t.notOk(
      'effect' in (await ask({ name: 'db-1', enforcement_mode: 'visibility_only', description: 'x' })),
      'as it is',
    )
    t.notOk('effect' in (await ask({ name: 'bare-1' })), 'without a VEN')
    t.notOk('effect' in (await bench.ok(UPDATE, { name: 'db-1', description: 'x', dry_run: true })))
    t.notOk(
      'effect' in (await bench.ok(UPDATE, { name: 'db-1', enforcement_mode: 'full' })),
      'a real call does not wait',
    )
  })
})

t.test('of the pods of a namespace', async (t) => {
  const PROFILE = 'update-container-workload-profile'
  const bench = await startTwisted(t, { estate: handMade(ESTATE) })
  const cluster = await bench.pce.containerClusters.create({ name: 'c1' })
  const labels = await Promise.all(
    ['app=pay', 'env=prod', 'role=db'].map(async (text) => {
      const [key, value] = text.split('=')
      return (await bench.pce.labels.get('draft', null, { params: { key: key!, value: value! } }))[0]!.href
    }),
  )
  const make = (more: object) =>
    bench.pce.containerWorkloadProfiles.create(
      { name: 'n', managed: true, enforcement_mode: 'visibility_only', ...more },
      cluster.href,
    )
  const { href } = await make({ assign_labels: labels.map((one) => ({ href: one })) })
  bench.writes()
  const shown = await bench.ok(PROFILE, { profile_href: href, enforcement_mode: 'full', dry_run: true })
  partial(t, shown.effect, {
    from: 'visibility_only',
    to: 'full',
    traffic: { connections: { cut: 111, kept: 100 }, would_be_cut_total: 4 },
    note: /^The traffic read is that of everything with "app=pay" and "env=prod" and "role=db", as the profile labels its pods\. /,
  })
  t.match(shown.warnings[0], /^Mode full takes effect at once: .* 111 connections would be cut/)
  t.same(bench.writes(), [])
  bench.twist(reportModes(() => 'full'))
  const old = await bench.ok(PROFILE, { profile_href: href, enforcement_mode: 'full', dry_run: true })
  t.same(old.effect, shown.effect, 'the modes that rows report decide nothing')

  const bare = await make({ name: 'm' })
  const { effect } = await bench.ok(PROFILE, { profile_href: bare.href, enforcement_mode: 'full', dry_run: true })
  t.same(effect, {
    from: 'visibility_only',
    to: 'full',
    takes_effect: 'at once, without provisioning',
    traffic: null,
    note: 'The profile assigns no labels, so the traffic of its pods cannot be told from other traffic, and what would be cut is not known.',
  })

  const unmanaged = await make({ name: 'u', managed: false, enforcement_mode: 'full' })
  const taken = await bench.ok(PROFILE, { profile_href: unmanaged.href, managed: true, dry_run: true })
  partial(t, taken.effect, { from: null, to: 'full' }, 'pods that are managed from now on are enforced from now on')
  t.notOk(
    'effect' in (await bench.ok(PROFILE, { profile_href: unmanaged.href, enforcement_mode: 'idle', dry_run: true })),
    'pods that nobody manages have no mode',
  )
})
