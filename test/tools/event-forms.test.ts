/** Who caused an event and what it is about, in the forms that recorded events have. */
import t from 'tap'
import type { PceEvent } from '../../schemas/pce/event.js'
import { partial } from '../partial.js'
import { handMade } from './hand-made.js'
import { NOW, startBench, type Json } from './harness.js'

const ADA = { href: '/users/9', username: 'ada@example.com' }
const AGENT = { href: '/orgs/1/agents/7', hostname: 'db1' }
const VEN = { href: '/orgs/1/vens/0d000000-0000-4000-8000-000000000007', hostname: 'db1' }
const SYSTEM = { system: {} }

/** An event that happened `minutes` ago. Its href ends with the name. */
const event = (name: string, minutes: number, rest: object) => ({
  href: `/orgs/1/events/${name}`,
  event_type: name,
  timestamp: new Date(NOW - minutes * 60_000).toISOString(),
  pce_fqdn: 'pce.example.com',
  severity: 'info',
  status: 'success',
  created_by: SYSTEM,
  action: null,
  resource_changes: [],
  notifications: [],
  ...rest,
})
const told = (info: unknown) => ({ notifications: [{ uuid: 'n', notification_type: 'x', info }] })

/** Oldest first. */
const EVENTS = [
  event('workload.update', 90, {
    created_by: { agent: AGENT, ven: VEN },
    resource_changes: [
      { uuid: 'c', resource: { workload: { href: '/orgs/1/workloads/1', hostname: 'db1' } }, changes: null },
      null,
      { uuid: 'd', resource: null, change_type: 'update' },
    ],
  }),
  event('agent.goodbye', 80, { created_by: { agent: null, ven: { href: VEN.href, hostname: null } } }),
  event('agent.missed_heartbeats', 70, told({ agent: AGENT })),
  event('user.login_failed', 60, {
    ...told({ associated_user: { supplied_username: 'eve@example.com' }, user: null }),
    status: 'failure',
    severity: null,
  }),
  event('system_task.prune', 50, { created_by: null, notifications: null, resource_changes: null }),
  event('user.pce_session_terminated', 40, told({ reason: 'timeout', user: ADA })),
  event('lost_agents', 30, told({ agents: [AGENT, { href: '/orgs/1/agents/8', hostname: 'db2' }] })),
  event('label.update', 20, {
    created_by: { user: ADA },
    resource_changes: [{ uuid: 'c', resource: { label: { href: '/orgs/1/labels/1', key: 'app', value: 'pay' } } }],
  }),
  event('user.update', 10, {
    created_by: { user: { href: '/users/8', username: 'bo@example.com' } },
    ...told({ user: ADA }),
  }),
] as unknown as PceEvent[]

t.test('get-events finds every form', async (t) => {
  const estate = { ...handMade({ hosts: { pay: { ip: '10.0.0.1', labels: 'app=pay' } } }), events: EVENTS }
  const bench = await startBench(t, { estate })
  const types = async (args: object) =>
    (await bench.ok('get-events', args)).events.map(({ event_type: type }: Json) => type)
  const [session, failed, missed] = ['user.pce_session_terminated', 'user.login_failed', 'agent.missed_heartbeats']

  await t.test('by who caused it', async (t) => {
    for (const [created_by, expected] of [
      ['ada@example.com', ['label.update', session]],
      ['/users/9', ['label.update', session]],
      ['eve@example.com', [failed]],
      ['user', ['user.update', 'label.update', session, failed]],
      ['system', ['lost_agents', session, failed, missed]],
      ['db1', ['workload.update']],
      [VEN.href, ['agent.goodbye', 'workload.update']],
      [AGENT.href, ['workload.update']],
      ['agent', ['workload.update']],
      ['ven', ['agent.goodbye', 'workload.update']],
    ] as const)
      t.same(await types({ created_by }), expected, created_by)
  })

  await t.test('by what it is about', async (t) => {
    for (const [object, expected] of [
      ['ada@example.com', ['user.update', session]],
      ['/users/9', ['user.update', session]],
      ['eve@example.com', [failed]],
      ['db1', ['lost_agents', missed, 'workload.update']],
      ['db2', ['lost_agents']],
      [VEN.href, ['agent.goodbye', 'workload.update']],
      [VEN.href.replace('vens', 'workloads'), ['agent.goodbye', 'workload.update']],
      ['app=pay', ['label.update']],
    ] as const)
      t.same(await types({ object }), expected, object)
    t.same(await types({ object: 'ada@example.com', created_by: 'bo@example.com' }), ['user.update'])
  })

  await t.test('counts by who caused it', async (t) => {
    partial(t, await bench.ok('get-events', { counts: true }), {
      counts: {
        created_by: {
          'ada@example.com': 2,
          db1: 1,
          'bo@example.com': 1,
          'eve@example.com': 1,
          system: 2,
          [VEN.href]: 1,
          '-': 1,
        },
        severity: { info: 8, '-': 1 },
      },
    })
  })

  await t.test('nobody is suggested in the place of somebody who has events', async (t) => {
    const sent = `The PCE sent 9 events (all that it has), from ${EVENTS[0]!.timestamp} to ${EVENTS.at(-1)!.timestamp}`
    const note = async (args: object) => (await bench.ok('get-events', args)).note
    t.equal(
      await note({ created_by: 'db2' }),
      `${sent}: none is by "db2". 1 event is about it (lost_agents): ask with object.`,
    )
    t.equal(
      await note({ object: 'bo@example.com' }),
      `${sent}: none is about "bo@example.com". 1 event is by it (user.update): ask with created_by.`,
    )
    t.equal(
      await note({ created_by: 'eve@example.com', object: 'db2' }),
      `${sent}: 1 by "eve@example.com", 1 about "db2". None is both.`,
    )
    t.equal(
      await note({ created_by: 'bob@example.com' }),
      `${sent}: none is by "bob@example.com". The most similar name among them is "bo@example.com".`,
    )
    const names = [VEN.href, 'ada@example.com', 'bo@example.com', 'db1', 'eve@example.com', 'system']
    t.equal(
      await note({ created_by: 'cy@example.com' }),
      `${sent}: none is by "cy@example.com". They are by ${['-', ...names].map((name) => `"${name}"`).join(', ')}.`,
      'mail addresses of one organisation are not similar by its name',
    )
    for (const name of ['zoe@example.com', 'adi@example.com'])
      t.equal(
        await note({ created_by: name, event_type: 'label.update' }),
        `The PCE sent 1 event (all that it has of type "label.update"), from ${EVENTS[7]!.timestamp} to ${EVENTS[7]!.timestamp}: none is by "${name}". They are by "ada@example.com".`,
      )
    t.equal(
      await note({ created_by: 'ada@example.com', event_type: 'label.delete', timestamp_gte: '2026-06-15T00:00:00Z' }),
      'The PCE has no event of type "label.delete" from 2026-06-15T00:00:00Z.',
    )
  })
})

t.test('a login and a change of a list through a PCE of the recorded forms', async (t) => {
  const estate = handMade({
    hosts: { pay: { ip: '10.0.0.1', labels: 'app=pay' } },
    ipLists: { Branches: ['203.0.113.0/24'] },
  })
  const { ok, pce, simulator } = await startBench(t, { estate, password: 'p' })
  const [username, listed] = ['admin@example.com', '/orgs/1/sec_policy/draft/ip_lists/2']
  const logIn = async (name: string) =>
    await fetch(`${simulator.url}/api/v2/login_users/authenticate`, {
      method: 'POST',
      headers: { authorization: `Basic ${btoa(`${name}:p`)}` },
    })
  await logIn(username)
  await logIn('mallory')
  partial(t, await ok('get-events', { object: username }), {
    total_count: 1,
    events: [{ event_type: 'user.login', created_by: SYSTEM, resource_changes: [] }],
  })
  partial(t, await ok('get-events', { created_by: 'mallory' }), {
    total_count: 1,
    events: [{ event_type: 'request.authentication_failed', status: 'failure' }],
  })

  const [{ ven, href: workload }] = (await pce.workloads.getAll()) as Json[]
  const change = { resource: { ven: { href: ven.href } }, changes: { mode: { before: 'idle', after: 'full' } } }
  const body = [
    event('ven.update', 3, { created_by: { ven: { ...ven, hostname: 'pay' } }, resource_changes: [change] }),
    event('agent.missed_heartbeats', 5, told({ ven: { href: ven.href } })),
  ]
  simulator.faults.add({ kind: 'status', path: /\/events$/, status: 200, times: 1, body })
  const fields = [{ field: 'mode', before: 'idle', after: 'full' }]
  const machine = await ok('who-changed', { href: workload })
  t.same(
    machine.changes.map(({ by, what, parts }: Json) => [by, what, parts]),
    [['pay', 'ven.update', [{ href: ven.href, type: 'ven', change: 'unknown', fields }]]],
  )
  partial(t, machine, {
    covers: 'The workload and its VEN.',
    notes: [
      '1 event only mentions it (agent.missed_heartbeats); get-events with object lists such events.',
      /The PCE keeps events for 30 days/,
    ],
  })

  const [old, next, wider] = [['203.0.113.0/24'], ['203.0.113.0/25'], ['203.0.113.0/25', '198.51.100.0/24']].map(
    (ips) => ips.map((from_ip) => ({ from_ip, exclusion: false })),
  )
  await pce.ipLists.update(listed, { ip_ranges: next!, description: 'half' })
  await pce.ipLists.update(listed, { ip_ranges: wider! })
  const { changes } = await ok('who-changed', { kind: 'ip_list', name: 'Branches' })
  t.same(
    changes.map(({ by, parts }: Json) => [by, parts[0].fields]),
    [
      [username, [{ field: 'ip_ranges', added: wider!.slice(1) }]],
      [
        username,
        [
          { field: 'ip_ranges', removed: old, added: next },
          { field: 'description', before: null, after: 'half' },
        ],
      ],
    ],
  )
})

t.test('user groups of a rule that changed are named, or are hrefs where they cannot be read', async (t) => {
  const from = 'app=pay'
  const estate = handMade({
    hosts: { pay: { ip: '10.0.0.1', labels: from } },
    ruleSets: [{ name: 'pay', scope: '', allow: [{ from, to: from }] }],
  })
  const { ok, pce, simulator } = await startBench(t, { estate })
  const GROUPS = '/orgs/1/security_principals'
  const [finance, audit] = ['S-1-5-21', 'S-1-5-22']
  await pce.securityPrincipals.bulkCreate([
    { sid: finance, name: 'Finance' },
    { sid: audit, name: 'Audit' },
  ])
  const [rule] = (await pce.ruleSets.getAll()).flatMap(({ rules }) => rules ?? [])
  await pce.rules.update(rule!.href, { consuming_security_principals: [{ href: `${GROUPS}/${finance}` }] })
  await pce.rules.update(rule!.href, { consuming_security_principals: [{ href: `${GROUPS}/${audit}` }] })
  simulator.faults.add({ kind: 'status', path: new RegExp(`/security_principals/${audit}$`), status: 403, times: 9 })
  const { changes, notes } = await ok('who-changed', { kind: 'rule_set', name: 'pay' })
  const named = { href: `${GROUPS}/${finance}`, name: 'Finance' }
  t.same(
    changes.flatMap(({ parts }: Json) => parts[0].fields),
    [
      { field: 'consuming_security_principals', removed: [named], added: [{ href: `${GROUPS}/${audit}` }] },
      { field: 'consuming_security_principals', added: [named] },
    ],
  )
  t.equal(notes[0], 'User groups that could not be read are hrefs (security_principals).')
})
