import t from 'tap'
import { partial } from '../partial.js'
import type { PceAnswer } from './call-pce.js'
import { START_OF_TEST, startPce } from './start-pce.js'

const token = (answer: PceAnswer) => answer.body?.[0]?.token

const LOGGERS = {
  audit_event_logger: { configuration_event_included: true, system_event_included: true, min_severity: 'warning' },
  traffic_event_logger: {
    traffic_flow_allowed_event_included: false,
    traffic_flow_potentially_blocked_event_included: true,
    traffic_flow_blocked_event_included: true,
  },
  node_status_logger: { node_status_included: true },
}

t.test('singleton settings: read, changed field by field, kept within limits', async (t) => {
  const { org } = await startPce(t)
  for (const [path, event, change, wrong] of [
    [
      '/settings',
      'org_settings',
      { max_api_key_expiration_in_seconds: -1, rule_based_label_maker_schedule: { frequency: 'daily' } },
      [
        { max_api_key_expiration_in_seconds: -2 },
        { max_explorer_query_timespan_days: 7 },
        { rule_based_label_maker_schedule: { frequency: 'hourly' } },
        { num_assets_requiring_ransomware_protection: 0 },
      ],
    ],
    [
      '/settings/events',
      'event_settings',
      { audit_event_retention_seconds: 86_400 },
      [{ audit_event_retention_seconds: 86_399 }, { audit_event_retention_seconds: 17_280_001 }, { format: 'XML' }],
    ],
    [
      '/settings/reports',
      'report_settings',
      { max_queued_reports: 3 },
      [{ max_queued_reports: 0 }, { max_queued_reports: 26 }, { report_retention_days: 8 }],
    ],
    [
      '/settings/trusted_proxy_ips',
      'trusted_proxy_ips',
      { trusted_proxy_ips: [{ pce_fqdn: null, ip: '192.0.2.1' }] },
      [{}, { trusted_proxy_ips: [{ ip: '192.0.2.1' }] }, { max_trusted_proxy_ips_per_region: 9 }],
    ],
  ] as const) {
    const before = (await org('GET', path)).body
    t.equal(before.href, `/orgs/1${path}`)
    for (const body of wrong)
      t.equal(token(await org('PUT', path, body)), 'input_validation_error', JSON.stringify(body))
    t.same((await org('GET', path)).body, before, 'as it was')
    t.equal((await org('PUT', path, change)).status, 204)
    t.same((await org('GET', path)).body, { ...before, ...change }, 'what is not sent stays')
    for (const verb of ['POST', 'DELETE'])
      t.equal((await org(verb, path, verb === 'POST' ? {} : undefined)).status, 405)
    const [first] = (await org('GET', '/events')).body
    partial(t, first, { event_type: `${event}.update`, resource_changes: [{ change_type: 'update' }] })
  }
})

t.test('trusted proxies: a list replaced as a whole, limited per region', async (t) => {
  const { org } = await startPce(t)
  const put = (trusted_proxy_ips: object[]) => org('PUT', '/settings/trusted_proxy_ips', { trusted_proxy_ips })
  const proxies = (count: number, pce_fqdn: string | null) =>
    Array.from({ length: count }, (_, index) => ({ pce_fqdn, ip: `192.0.2.${index}` }))
  const { max_trusted_proxy_ips_per_region: most } = (await org('GET', '/settings/trusted_proxy_ips')).body
  t.equal((await put([...proxies(most, null), ...proxies(most, 'pce.example.com')])).status, 204)
  t.equal(token(await put(proxies(most + 1, null))), 'input_validation_error')
  t.equal(token(await put([{ pce_fqdn: null, ip: 'proxy.example.com' }])), 'invalid_ip_address')
  t.equal((await org('GET', '/settings/trusted_proxy_ips')).body.trusted_proxy_ips.length, 2 * most)
  t.equal((await put([])).status, 204)
  t.same((await org('GET', '/settings/trusted_proxy_ips')).body.trusted_proxy_ips, [])
})

t.test('optional features: a list, changed by a list', async (t) => {
  const { org } = await startPce(t)
  const read = async () =>
    Object.fromEntries(
      (await org('GET', '/optional_features')).body.map((one: { name: string; enabled: boolean }) => [
        one.name,
        one.enabled,
      ]),
    )
  const before = await read()
  t.equal(before.ui_analytics, false)
  const changes = [
    { name: 'ui_analytics', enabled: true },
    { name: 'editable_dns_client_rule', enabled: false, key: 'x' },
  ]
  t.equal((await org('PUT', '/optional_features', changes)).status, 204)
  t.same(await read(), { ...before, ui_analytics: true, editable_dns_client_rule: false })
  for (const wrong of [
    { name: 'ui_analytics', enabled: true },
    [{ name: 'teleportation', enabled: true }],
    [{ name: 'ui_analytics' }],
    [{ name: 'ui_analytics', enabled: false, key: 'x' }],
  ]) {
    t.equal(token(await org('PUT', '/optional_features', wrong)), 'input_validation_error', JSON.stringify(wrong))
  }
  t.equal((await read()).ui_analytics, true)
  t.equal((await org('POST', '/optional_features', [])).status, 405)
  t.equal((await org('GET', '/optional_features/ui_analytics')).status, 404)
})

t.test('syslog destinations', async (t) => {
  const { org } = await startPce(t)
  const path = '/settings/syslog/destinations'
  partial(t, (await org('GET', path)).body, [{ type: 'local_syslog', pce_scope: ['pce.example.com'] }], 'the PCE’s own')
  const remote_syslog = {
    address: 'syslog.example.com',
    port: 6514,
    protocol: 6,
    tls_enabled: true,
    tls_verify_cert: true,
  }
  const body = { pce_scope: ['pce.example.com'], type: 'remote_syslog', description: 'x', ...LOGGERS, remote_syslog }
  for (const wrong of [
    { ...body, type: 'pigeon' },
    { ...body, remote_syslog: undefined },
    { ...body, remote_syslog: { ...remote_syslog, protocol: 1 } },
    { ...body, remote_syslog: { ...remote_syslog, port: undefined } },
    { ...body, node_status_logger: undefined },
    { ...body, caps: [] },
  ]) {
    t.equal(token(await org('POST', path, wrong)), 'input_validation_error', JSON.stringify(wrong))
  }
  const { href } = (await org('POST', path, body)).body
  t.equal((await org('PUT', href, { remote_syslog: { protocol: 17, tls_enabled: false }, href })).status, 204)
  partial(t, (await org('GET', href)).body, {
    href,
    remote_syslog: { ...remote_syslog, protocol: 17, tls_enabled: false },
    ...LOGGERS,
  })
  t.equal((await org('PUT', href, { remote_syslog: { protocol: 7 } })).status, 406)

  const local = (await org('POST', path, { ...body, type: 'local_syslog', remote_syslog: undefined })).body
  t.equal((await org('PUT', local.href, { type: 'remote_syslog' })).status, 406, 'without a server')
  t.equal((await org('PUT', local.href, { type: 'remote_syslog', remote_syslog: { port: 1 } })).status, 406)
  t.equal((await org('DELETE', href)).status, 204)
  t.equal((await org('GET', href)).status, 404)
  const events = (await org('GET', '/events')).body.map(({ event_type }: { event_type: string }) => event_type)
  t.equal(events[0], 'syslog_destination.delete')
  t.ok(events.includes('syslog_destination.create') && events.includes('syslog_destination.update'))
})

t.test('traffic collector settings', async (t) => {
  const { org } = await startPce(t)
  const path = '/settings/traffic_collector'
  const target = { dst_port: 53, src_port: 1, proto: 17, dst_ip: '192.0.2.0/24' }
  for (const wrong of [
    { transmission: 'broadcast' },
    { transmission: 'broadcast', action: 'keep' },
    { transmission: 'anycast', action: 'drop' },
    { transmission: 'broadcast', action: 'drop', target: { dst_port: 53 } },
  ]) {
    t.equal(token(await org('POST', path, wrong)), 'input_validation_error', JSON.stringify(wrong))
  }
  const unknown = { transmission: 'unicast', action: 'drop', target: { proto: 6, src_ip: 'host' } }
  t.equal(token(await org('POST', path, unknown)), 'invalid_ip_address')
  const { href } = (await org('POST', path, { transmission: 'unicast', action: 'aggregate', target })).body
  t.equal((await org('PUT', href, { action: 'drop' })).status, 406, 'the action stays')
  t.equal((await org('PUT', href, { network: 'corporate', target: { src_port: null, proto: 6 } })).status, 204)
  partial(t, (await org('GET', href)).body, { action: 'aggregate', network: 'corporate', transmission: 'unicast' })
  t.same(
    (await org('GET', href)).body.target,
    { dst_port: 53, proto: 6, dst_ip: '192.0.2.0/24' },
    'null takes a port out',
  )
  t.equal(token(await org('PUT', href, { target: { dst_ip: '1.2.3' } })), 'invalid_ip_address')
  const { href: bare } = (await org('POST', path, { transmission: 'broadcast', action: 'drop' })).body
  t.equal((await org('PUT', bare, { target: { dst_port: 1 } })).status, 406, 'a target has a protocol')
  t.equal((await org('GET', path)).body.length, 2)
  t.equal((await org('DELETE', href)).status, 204)
  t.equal((await org('DELETE', href)).status, 404)
  t.equal(
    (await org('GET', '/events?event_type=traffic_collector_setting.delete')).body.length,
    2,
    'one of them refused',
  )
})

t.test('a support bundle is requested, built and fetched', async (t) => {
  const { simulator, org } = await startPce(t, { pollsUntilDone: 3 })
  const path = '/support_bundle_requests'
  t.equal((await org('POST', path, { include_logs: 'all' })).status, 406)
  t.equal((await org('POST', path, { starting_at: 'yesterday' })).status, 406)
  const made = await org('POST', path, { starting_at: '2026-02-01T00:00:00Z' })
  t.equal(made.status, 201)
  const now = new Date(START_OF_TEST).toISOString()
  const fresh = { include_logs: true, ending_at: null, requested_at: now, completed_at: null, download_url: null }
  partial(t, made.body, { ...fresh, status: 'pending', created_by: { href: '/users/1' } })
  const { href } = made.body
  t.same((await org('GET', path)).body, [made.body], 'a list moves nothing on')
  t.equal((await org('GET', `${href}/download`)).status, 404, 'not yet')
  const states = [(await org('GET', href)).body.status, (await org('GET', href)).body.status]
  t.same(states, ['pending', 'in_progress'])
  const done = (await org('GET', href)).body
  partial(t, done, { status: 'completed', completed_at: now, download_url: { href: `${href}/download` } })
  const file = await org('GET', done.download_url.href)
  t.same([file.status, file.headers.get('content-type')], [200, 'application/gzip'])
  t.equal((await org('PUT', href, {})).status, 405)
  t.equal((await org('DELETE', href)).status, 204)
  t.equal((await org('GET', href)).status, 404)
  t.equal((await org('GET', done.download_url.href)).status, 404)

  simulator.faults.add({ kind: 'job-failed', path: `/orgs/1${path}`, method: 'POST', times: 1 })
  const failing = (await org('POST', path, {})).body.href
  for (let polls = 0; polls < 3; polls++) await org('GET', failing)
  partial(t, (await org('GET', failing)).body, { status: 'failed', download_url: null })
  t.notMatch(JSON.stringify((await org('GET', '/events')).body), 'progress')
})

t.test('PCE-wide events have no organisation', async (t) => {
  const { call } = await startPce(t)
  const events = (await call('GET', '/system_events')).body as { href: string; timestamp: string; created_by: object }[]
  t.ok(events.length > 2)
  partial(t, events[0], {
    href: /^\/system_events\/[0-9a-f-]{36}$/,
    pce_fqdn: 'pce.example.com',
    created_by: { system: {} },
  })
  const times = events.map(({ timestamp }) => timestamp)
  t.same(times, times.toSorted().toReversed(), 'newest first')
  t.same((await call('GET', events[1]!.href)).body, events[1])
  const count = async (query: string) => (await call('GET', `/system_events?${query}`)).body.length
  t.equal(await count('status=failure'), 1)
  t.equal(await count('severity=err'), 1)
  t.equal(await count('event_type=system_task.prune_old_log_events'), 1)
  t.equal(await count(`timestamp[gte]=${times[1]!}`), 2)
  t.equal(await count('max_results=2'), 2)
  t.equal((await call('GET', '/system_events?timestamp[lte]=2026-03-01T00:00:00')).status, 406, 'a time has a zone')
  t.equal((await call('GET', '/system_events/none')).status, 404)
  t.equal((await call('PUT', events[0]!.href, {})).status, 405)
  t.equal((await call('DELETE', events[0]!.href)).status, 405)
})
