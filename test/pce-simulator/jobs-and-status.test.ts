import t from 'tap'
import { generateEstate } from '../../pce-simulator/estate/generate.js'
import type { Conversation } from '../../pce-simulator/model.js'
import type { PceSimulatorOptions } from '../../pce-simulator/options.js'
import { SMALL, smallEstate } from '../../pce-simulator/small-estate.js'
import { partial } from '../partial.js'
import { START_OF_TEST, startPce } from './start-pce.js'

type Org = Awaited<ReturnType<typeof startPce>>['org']
type Answer = Awaited<ReturnType<Org>>
type Row = Record<string, never>

const refusal = ({ status, body }: Answer) => `${status} ${body?.[0]?.token}`
const MALFORMED = '406 input_validation_error'
const DANGLING = '406 invalid_uri'

/** Reads an href until its status is the wanted one, and answers every status on the way. */
async function follow(org: Org, href: string, polls: number): Promise<string[]> {
  const statuses: string[] = []
  for (let count = 0; count < polls; count += 1) statuses.push((await org('GET', href)).body.status)
  return statuses
}

const newestEvent = async (org: Org) => (await org('GET', '/events?max_results=1')).body[0]

/** A generated organisation in which policy is enforced somewhere. */
const generated = (options: PceSimulatorOptions = {}) => ({
  estate: generateEstate({ seed: 3, workloads: 150, flows: 4000, orgId: 1 }),
  ...options,
})

t.test('report templates: built in, enabled and disabled, never created', async (t) => {
  const { org } = await startPce(t)
  const { body: templates } = await org('GET', '/report_templates')
  t.ok(templates.length >= 4)
  for (const { href, report_parameters, enabled } of templates) {
    t.match(href, /^\/orgs\/1\/report_templates\/[a-z_]+$/)
    t.same([typeof report_parameters, enabled], ['object', true])
  }
  const { href } = templates[0]
  t.equal((await org('POST', '/report_templates', {})).status, 405)
  t.equal((await org('DELETE', href)).status, 405)
  t.equal(refusal(await org('PUT', href, { enabled: 'no' })), MALFORMED)
  t.equal(refusal(await org('PUT', href, { name: 'x' })), MALFORMED)
  t.equal((await org('PUT', href, { enabled: false })).status, 204)
  t.equal((await newestEvent(org)).event_type, 'report_template.update')
  t.equal((await org('GET', href)).body.enabled, false)
  const ask = { report_template: { href }, report_parameters: {} }
  t.equal(refusal(await org('POST', '/reports', ask)), MALFORMED, 'no report of a template that is off')
})

t.test('report schedules', async (t) => {
  const { org } = await startPce(t)
  const report_template = { href: '/orgs/1/report_templates/executive_summary_report' }
  const whole = {
    report_template,
    name: 'Weekly',
    report_generation_frequency: 'weekly',
    report_parameters: { report_time_range: { last_num_days: 7 } },
  }
  for (const [change, expected] of [
    [{ name: undefined }, MALFORMED],
    [{ report_generation_frequency: 'hourly' }, MALFORMED],
    [{ report_format: 'pdf' }, MALFORMED],
    [{ scheduled_at: '2026-03-05' }, MALFORMED],
    [{ report_parameters: { report_time_range: { last_num_days: 0 } } }, MALFORMED],
    [{ report_template: { href: '/orgs/1/report_templates/none' } }, DANGLING],
  ] as const) {
    t.equal(refusal(await org('POST', '/report_schedules', { ...whole, ...change })), expected, JSON.stringify(change))
  }
  const created = await org('POST', '/report_schedules', whole)
  t.equal(created.status, 201)
  partial(t, created.body, { ...whole, report_template: { ...report_template, name: 'Executive Summary' } })
  const { href } = created.body
  const change = { name: 'Monthly', report_generation_frequency: 'monthly', report_format: 'json' }
  t.equal((await org('PUT', href, change)).status, 204)
  const read = (await org('GET', href)).body
  partial(t, read, { name: 'Monthly', report_generation_frequency: 'monthly', created_by: { href: '/users/1' } })
  t.notOk('report_format' in read, 'what is written only is not read')
  t.equal((await org('DELETE', href)).status, 204)
  t.equal((await org('GET', href)).status, 404)
})

t.test('a report is requested, polled and fetched', async (t) => {
  const { simulator, org } = await startPce(t)
  const ask = (type: string, report_parameters: unknown = {}, more: object = {}) =>
    org('POST', '/reports', {
      report_template: { href: `/orgs/1/report_templates/${type}` },
      report_parameters,
      ...more,
    })
  const days = { report_time_range: { last_num_days: 7 } }

  for (const [parameters, expected] of [
    [{ report_time_range: { start_date: '2026-02-01', end_date: '2026-02-08' } }, MALFORMED],
    [{ report_time_range: {} }, MALFORMED],
    [{ ...days, colour: 'red' }, MALFORMED],
    [{ ...days, app_groups: [[{ label: { href: '/orgs/1/labels/99' } }]] }, DANGLING],
    [{ ...days, rule_sets: [{ href: '/orgs/1/sec_policy/active/rule_sets/99' }] }, DANGLING],
    [{ ...days, filters: { query_name: 'x' } }, MALFORMED],
  ] as const) {
    t.equal(refusal(await ask('executive_summary_report', parameters)), expected, JSON.stringify(parameters))
  }
  t.equal(refusal(await ask('no_such_report', days)), DANGLING)
  t.equal(refusal(await ask('executive_summary_report', days, { name: 'x' })), MALFORMED)

  const made = await ask('executive_summary_report', days, { description: 'For the board' })
  t.equal(made.status, 201)
  partial(t, made.body, { status: 'queued', progress_percentage: 0, generated_at: null, description: 'For the board' })
  t.equal((await newestEvent(org)).event_type, 'report.create')
  const { href } = made.body
  t.equal((await org('GET', `${href}/download`)).status, 404, 'not ready')
  t.same(await follow(org, href, 4), ['queued', 'running', 'done', 'done'])
  partial(t, (await org('GET', href)).body, { progress_percentage: 100, generated_at: '2026-03-01T12:00:00.000Z' })
  const pdf = await org('GET', `${href}/download`)
  t.equal(pdf.headers.get('content-type'), 'application/pdf')
  t.match(pdf.text, /^%PDF-1\.4\n/)
  const offset = Number(/startxref\n(\d+)/.exec(pdf.text)![1])
  t.equal(pdf.text.slice(offset, offset + 4), 'xref', 'readers find the table of objects')
  t.match(pdf.text, /Workloads: 3, of them managed: 2/)
  t.match(pdf.text, /potentially_blocked: 1/)
  t.equal((await org('DELETE', href)).status, 405)

  const file = async (type: string, parameters: unknown) => {
    const report = (await ask(type, parameters)).body.href
    await follow(org, report, 3)
    return org('GET', `${report}/download`)
  }
  const window = { report_time_range: { start_date: '2026-02-20T00:00:00Z', end_date: '2026-02-27T00:00:00Z' } }
  const traffic = await file('traffic_export_report', window)
  t.equal(traffic.headers.get('content-type'), 'text/csv')
  const [head, ...rows] = traffic.text.trim().split('\r\n')
  t.match(head, /^Source IP,/)
  t.same(rows.length, 1)
  t.match(rows[0], /^10\.2\.0\.1,ordering-web-1\.example\.com,web;ordering;prod,10\.1\.0\.1,.*,5432,6,.*,70,/)

  const hits = async () => (await file('rule_hit_count_report', { ...window, rule_sets: [] })).text.trim().split('\r\n')
  t.same((await hits()).slice(1), [`Payments prod,${SMALL.paymentsRule},allow,0`], 'nothing the rule allows was seen')
  const draft = '/sec_policy/draft/rule_sets/1'
  await org('PUT', `${draft}/sec_rules/1`, { unscoped_consumers: true })
  await org('POST', '/sec_policy', { update_description: 'open' })
  t.match((await hits())[1], /,allow,70$/)

  const { ransomware, app_groups } = (await file('ransomware_protection_report', {})).body
  t.same(ransomware, (await org('GET', '/reports/risk_summary')).body.ransomware)
  t.equal(app_groups.length, 2)
  t.match(
    (await file('app_group_summary_report', { ...days, app_groups: [[{ label: { href: SMALL.payments } }]] })).text,
    /payments \| prod/,
  )

  const cancelled = (await ask('executive_summary_report', days)).body.href
  t.equal(refusal(await org('PUT', cancelled, { status: 'done' })), MALFORMED)
  t.equal((await org('PUT', cancelled, { status: 'cancel_requested' })).status, 204)
  t.same(await follow(org, cancelled, 2), ['cancelled', 'cancelled'])
  t.equal((await org('GET', `${cancelled}/download`)).status, 404)
  t.equal((await org('PUT', href, { status: 'cancel_requested' })).status, 204)
  t.equal((await org('GET', href)).body.status, 'done', 'what has ended stays as it ended')

  await org('PUT', '/settings/reports', { max_queued_reports: 1 })
  const only = (await ask('executive_summary_report', days)).body.href
  t.equal((await ask('executive_summary_report', days)).status, 406, 'the queue is full')
  await follow(org, only, 3)

  const fated = async (kind: 'job-failed' | 'job-stuck' | 'job-expired') => {
    simulator.faults.add({ kind, path: '/orgs/1/reports', method: 'POST', times: 1 })
    const report = (await ask('executive_summary_report', days)).body.href
    return [(await follow(org, report, 5)).at(-1), (await org('GET', `${report}/download`)).status]
  }
  t.same(await fated('job-failed'), ['failed', 404])
  t.same(await fated('job-expired'), ['done', 404])
  t.same(await fated('job-stuck'), ['running', 404])
})

t.test('risk follows from the policy in force', async (t) => {
  const { org } = await startPce(t)
  const ransomware = async () => (await org('GET', '/reports/risk_summary')).body.ransomware
  const before = await ransomware()
  partial(t, before, {
    num_total_workloads: 2,
    num_protected_workloads: 0,
    num_unenforced_workloads: 2,
    ransomware_protection_coverage_percent: 0,
    risky_ports_by_category: { admin: { num_protected_ports: 0 } },
  })
  t.equal(
    Object.values<number>(before.workloads_by_exposure).reduce((sum, count) => sum + count),
    2,
  )
  t.equal(before.workloads_by_exposure.fully_protected, 0)
  const { admin, legacy } = before.risky_ports_by_category
  t.ok(legacy.num_unprotected_ports > admin.num_unprotected_ports, 'of what Linux listens on, more is legacy')

  await org('PUT', SMALL.paymentsDb, { enforcement_mode: 'full' })
  const after = await ransomware()
  partial(t, after, {
    num_protected_workloads: 1,
    num_unenforced_workloads: 1,
    ransomware_protection_coverage_percent: 50,
  })
  t.equal(after.workloads_by_exposure.fully_protected, 1)
  t.equal(
    after.risky_ports_by_severity.medium.num_protected_ports,
    after.risky_ports_by_severity.medium.num_unprotected_ports,
  )

  const groups = (await org('GET', '/app_groups/risk_summary')).body
  const risks = Object.fromEntries(
    groups.map(({ labels, risk_summary }: { labels: { href: string }[]; risk_summary: Row }) => [
      labels[0]!.href,
      risk_summary.ransomware,
    ]),
  )
  partial(t, risks[SMALL.payments], {
    workload_exposure_severity: 'fully_protected',
    ransomware_protection_percent: 100,
  })
  partial(t, risks[SMALL.ordering], { ransomware_protection_percent: 0 })

  const declared = { category: 'legacy', severity: 'critical', os_platforms: ['linux'] }
  await org('POST', '/sec_policy/draft/services', {
    name: 'Old protocol',
    service_ports: [{ port: 7777, proto: 6 }],
    risk_details: { ransomware: declared },
  })
  t.same((await ransomware()).risky_ports_by_severity, after.risky_ports_by_severity, 'a draft puts nobody at risk')
  await org('POST', '/sec_policy', { update_description: 'risky' })
  const severities = (await ransomware()).risky_ports_by_severity
  t.same(severities.critical, { num_protected_ports: 1, num_unprotected_ports: 1 })
  const [top] = (await ransomware()).top_risky_services
  partial(t, top, { name: 'Old protocol', ransomware_protection_percent: 50 })

  const details = await org('GET', `${groups[0].app_group.href}/risk_details`)
  partial(t, details.body.risk_details.ransomware, { num_workloads: 1 })
  t.ok(details.body.risk_details.ransomware.services.some(({ port }: { port: number }) => port === 7777))
  t.equal((await org('GET', '/app_groups/3x6/risk_details')).status, 404)
  t.equal((await org('GET', '/app_groups/3x6')).status, 404)
})

t.test('summaries of a generated organisation', async (t) => {
  const { org } = await startPce(t, generated())
  const { ransomware } = (await org('GET', '/reports/risk_summary')).body
  const managed = (await org('GET', '/workloads?managed=true&max_results=0')).headers.get('x-total-count')
  t.equal(ransomware.num_total_workloads, Number(managed))
  t.equal(
    Object.values<number>(ransomware.workloads_by_exposure).reduce((sum, count) => sum + count),
    Number(managed),
  )
  const { ransomware_protection_coverage_percent: percent } = ransomware
  t.ok(percent > 0 && percent < 100, `${percent} %`)
  const sums = ['risky_ports_by_severity', 'risky_ports_by_category'].map((part) =>
    Object.values<Record<string, number>>(ransomware[part]).reduce(
      (sum, { num_protected_ports, num_unprotected_ports }) => sum + num_protected_ports! + num_unprotected_ports!,
      0,
    ),
  )
  t.equal(sums[0], sums[1], 'every port is in one severity and in one category')
  t.ok(ransomware.top_risky_services.some(({ name }: { name: string }) => name === 'SSH'))

  const summary = (await org('GET', '/app_group_summary')).body
  const groups = (await org('GET', '/app_groups/risk_summary')).body
  t.equal(summary.nodes.length, groups.length)
  const payments = summary.nodes.find(({ label_ids }: { label_ids: number[] }) => {
    const values = label_ids.map((id) => summary.labels[id].label.value)
    return values.includes('payments') && values.includes('prod')
  })
  const labels = JSON.stringify([payments.label_ids.map((id: number) => `/orgs/1/labels/${id}`)])
  const inside = (await org('GET', `/workloads?labels=${encodeURIComponent(labels)}`)).body
  t.equal(payments.num_workloads, inside.length)
  const modes = summary.mode_key.map(
    (mode: string) => inside.filter((workload: Row) => workload.enforcement_mode === mode).length,
  )
  t.same(payments.mode, modes)
  t.equal((await org('GET', `${payments.href}/risk_details`)).status, 200)
})

t.test('vulnerabilities and their reports, under caller-chosen ids', async (t) => {
  const { org } = await startPce(t)
  const flaw = (reference_id: string, more: object = {}) => ({
    reference_id,
    name: `Flaw ${reference_id}`,
    score: 78,
    ...more,
  })
  const post = (...items: object[]) => org('POST', '/vulnerabilities', items)
  t.equal(refusal(await org('POST', '/vulnerabilities', flaw('a'))), MALFORMED, 'not an array')
  t.equal(refusal(await post(flaw('a', { score: 101 }))), MALFORMED)
  t.equal(refusal(await post(flaw('a', { cve: [] }))), MALFORMED)
  t.equal(refusal(await post(...Array.from({ length: 1001 }, (_, index) => flaw(`q${index}`)))), MALFORMED)
  t.equal(refusal(await post(flaw('a'), flaw('a'))), MALFORMED)
  t.equal(refusal(await post(flaw('a'), { name: 'b' })), MALFORMED)
  t.same((await org('GET', '/vulnerabilities')).body, [], 'all or nothing')

  const made = await post(flaw('a'), flaw('CVE 2026/1', { cve_ids: ['CVE-2026-0001'], description: 'Remote' }))
  t.equal(made.status, 201)
  partial(t, made.body, [
    { href: '/orgs/1/vulnerabilities/a', score: 78, cve_ids: null },
    { href: '/orgs/1/vulnerabilities/CVE%202026%2F1', description: 'Remote' },
  ])
  t.equal((await newestEvent(org)).resource_changes.length, 2)
  t.equal(refusal(await post(flaw('b'), flaw('a'))), MALFORMED, 'an id that is taken')
  t.equal((await org('GET', '/vulnerabilities/b')).status, 404)

  const { href } = made.body[1]
  t.equal((await org('GET', href)).body.name, 'Flaw CVE 2026/1')
  t.equal((await org('PUT', href, { name: 'Renamed', score: 10 })).status, 204)
  partial(
    t,
    (await org('GET', href)).body,
    { name: 'Renamed', score: 10, cve_ids: null, description: null },
    'replaced',
  )
  t.equal(refusal(await org('PUT', href, { score: 10 })), MALFORMED, 'a replacement is whole')
  const fresh = await org('PUT', '/orgs/1/vulnerabilities/new', { name: 'New', score: 1 })
  partial(
    t,
    [fresh.status, fresh.body],
    [201, { href: '/orgs/1/vulnerabilities/new', created_by: { href: '/users/1' } }],
  )
  t.equal((await org('GET', '/vulnerabilities?max_results=0')).headers.get('x-total-count'), '3')

  const path = '/orgs/1/vulnerability_reports/scan-1'
  const detected = { ip_address: '10.1.0.1', workload: { href: SMALL.paymentsDb }, vulnerability: { href } }
  const report = {
    name: 'Scan',
    report_type: 'nessus',
    scanned_ips: ['10.1.0.1'],
    detected_vulnerabilities: [detected],
  }
  t.equal((await org('POST', '/vulnerability_reports', report)).status, 405)
  for (const [change, expected] of [
    [{ scanned_ips: ['10.1.0'] }, '406 invalid_ip_address'],
    [{ detected_vulnerabilities: [{ ...detected, ip_address: 'x' }] }, '406 invalid_ip_address'],
    [{ detected_vulnerabilities: [{ ...detected, workload: { href: '/orgs/1/workloads/x' } }] }, DANGLING],
    [{ detected_vulnerabilities: [{ ...detected, vulnerability: { href: '/orgs/1/vulnerabilities/x' } }] }, DANGLING],
    [{ exported_at: '2026-03-01' }, MALFORMED],
    [{ report_type: undefined }, MALFORMED],
  ] as const) {
    t.equal(refusal(await org('PUT', path, { ...report, ...change })), expected, JSON.stringify(change))
  }
  t.equal((await org('GET', path)).status, 404)
  t.equal((await org('PUT', path, report)).status, 201)
  t.equal((await newestEvent(org)).event_type, 'vulnerability_report.update')
  const shown = (await org('GET', path)).body
  partial(t, shown, { num_vulnerabilities: 1, authoritative: false, scanned_ips: ['10.1.0.1'], created_at: String })
  t.notOk('detected_vulnerabilities' in shown)
  const mended = [{ ...detected, state: 'fixed' }]
  t.equal((await org('PUT', path, { ...report, detected_vulnerabilities: mended })).status, 204)
  t.equal((await org('GET', path)).body.num_vulnerabilities, 0)
  t.equal((await org('DELETE', path)).status, 204)
  t.equal((await org('DELETE', href)).status, 204)
  t.equal((await org('GET', href)).status, 404)
})

t.test('core services: recognised by their ports, judged by people', async (t) => {
  const { org } = await startPce(t, generated())
  const types = (await org('GET', '/core_service_types')).body
  const named = (name: string) => types.find((type: { name: string }) => type.name === name)
  const dns = named('DNS')
  partial(t, dns, { required_ports: [{ port: 53 }], labels: [], priority: 1 })
  t.equal((await org('POST', '/core_service_types', {})).status, 405)
  t.equal((await org('DELETE', dns.href)).status, 405)
  t.equal(refusal(await org('PUT', dns.href, { name: 'x' })), MALFORMED)
  t.equal(refusal(await org('PUT', dns.href, { required_ports: [{ port: 9, to_port: 8 }] })), MALFORMED)
  t.equal(refusal(await org('PUT', dns.href, { labels: [{ href: '/orgs/1/labels/9999' }] })), DANGLING)
  const role = (await org('GET', '/labels?key=role&value=dns')).body[0]
  const change = { labels: [{ href: role.href, key: 'role', value: 'dns' }], priority: 3, provider: true }
  t.equal((await org('PUT', dns.href, change)).status, 204)
  const { href, key, value } = role
  partial(t, (await org('GET', dns.href)).body, { labels: [{ href, key, value }], priority: 3 })

  const detected = (await org('GET', '/detected_core_services')).body
  interface Detected {
    core_service_type: { href: string }
    workload: { hostname: string }
  }
  const hostsOf = (type: string) =>
    (detected as Detected[])
      .filter(({ core_service_type }) => core_service_type.href === named(type).href)
      .map(({ workload }) => workload.hostname)
  t.ok(hostsOf('DNS').length > 0)
  for (const host of hostsOf('DNS')) t.match(host, /^dns-prod-/)
  for (const host of hostsOf('Active Directory')) t.match(host, /^active-directory-prod-/)
  t.ok(hostsOf('NTP').length > 0)

  const [one] = detected
  partial(t, one, { action: 'recommended', method_name: String, ip_address: /^10\./, workload: { managed: true } })
  t.ok(one.confidence >= 50 && one.confidence <= 100)
  t.equal(refusal(await org('PUT', one.href, { action: 'maybe' })), MALFORMED)
  t.equal(refusal(await org('PUT', one.href, { workload: { href: '/orgs/1/workloads/x' } })), DANGLING)
  t.equal((await org('PUT', one.href, { action: 'accept', feedback: 'Yes', labels_applied: true })).status, 204)
  partial(t, (await org('GET', one.href)).body, { action: 'accept', feedback: 'Yes', labels_applied: true })
  t.same(
    (await org('GET', '/detected_core_services?action=accept')).body.map((found: Row) => found.href),
    [one.href],
  )
  const ofType = await org('GET', `/detected_core_services?core_service_type=${encodeURIComponent(named('NTP').href)}`)
  t.equal(ofType.body.length, hostsOf('NTP').length)
  t.equal((await org('DELETE', one.href)).status, 405)

  const summary = (await org('GET', '/detected_core_services_summary')).body
  const counted = summary.find((line: Row) => line.href === one.core_service_type.href)
  t.same(
    [counted.accepted, counted.recommended, counted.rejected],
    [1, hostsOf(one.core_service_type.name).length - 1, 0],
  )
  const { org: small } = await startPce(t)
  t.same((await small('GET', '/detected_core_services')).body, [], 'one conversation makes no core service')
})

t.test('a host is a core service only when enough of the others reach all of its ports', async (t) => {
  const talks = (clients: number, ...ports: number[]): Conversation[] => {
    const [pattern] = smallEstate().conversations
    return ports.flatMap((port) =>
      Array.from({ length: clients }, (_, index) => ({
        ...pattern!,
        src: { ip: `10.9.0.${index + 1}` },
        service: { port, proto: 6 },
      })),
    )
  }
  for (const [conversations, expected] of [
    [talks(5, 88, 389), 0],
    [talks(5, 88, 389, 445), 1],
    [talks(4, 88, 389, 445), 0],
    [[...talks(5, 88, 445), ...talks(4, 389)], 0],
    [talks(5, 88, 389, 3269), 1],
  ] as const) {
    const { org } = await startPce(t, { estate: { ...smallEstate(), conversations: [...conversations] } })
    t.equal((await org('GET', '/detected_core_services')).body.length, expected)
  }
})

/** A workload that listens on 443 with nginx and on 5432. */
function listeningEstate() {
  const estate = smallEstate()
  const [db, ...others] = estate.workloads
  const open_service_ports = [
    { protocol: 6, address: '0.0.0.0', port: 443, process_name: '/usr/sbin/nginx', user: 'root' },
    { protocol: 6, address: '0.0.0.0', port: 5432, process_name: '/usr/lib/postgresql/postgres', user: 'postgres' },
  ]
  return { ...estate, workloads: [{ ...db!, services: { open_service_ports } }, ...others] }
}

const leaf = (property: string, operator: string, ...values: unknown[]) => ({ property, operator, values })
const node = (logical_operator: string, ...child_expressions: unknown[]) => ({ logical_operator, child_expressions })

t.test('label mapping expressions, over every property with every operator', async (t) => {
  const { org } = await startPce(t, { estate: listeningEstate(), pollsUntilDone: 1 })
  const dev = { label: { href: SMALL.dev } }
  const names = [SMALL.paymentsDb, SMALL.orderingWeb, SMALL.scanner]
  /** Which of the three workloads, by number, an expression matches. */
  const matches = async (expression: unknown) => {
    const rule = await org('POST', '/label_mapping_rules', { expression, label_assignments: [dev], overwrite: true })
    if (rule.status !== 201) return refusal(rule)
    const run = (await org('POST', '/label_mapping_rules/run', { rules: [{ href: rule.body.href }] })).body.href
    await org('GET', run)
    const { results } = (await org('GET', `${run}/download`)).body
    return results.map(({ href }: { href: string }) => names.indexOf(href)).join('')
  }
  const cases: [unknown, string][] = [
    [leaf('hostname', 'starts_with', 'PAY', 'scan'), '02'],
    [leaf('hostname', 'ends_with', '.example.com'), '012'],
    [leaf('hostname', 'ends_with', '.example'), ''],
    [leaf('hostname', 'contains', 'ring-w'), '1'],
    [leaf('hostname', 'equals', 'scanner-1.example.com'), '2'],
    [leaf('hostname', 'is_in', 'scanner-1.example.com', 'payments-db-1.example.com'), '02'],
    [leaf('hostname', 'equals', 'scanner-1'), ''],
    [leaf('hostname', 'regex', '^[a-m]|db-\\d'), '0'],
    [leaf('ip_address', 'equals', '10.1.0.1'), '0'],
    [leaf('ip_address', 'is_in', '10.0.0.0/14'), '012'],
    [leaf('ip_address', 'is_in', '10.1.0.1-10.2.0.0', '10.3.0.1'), '02'],
    [leaf('ip_address', 'starts_with', '10.2.'), '1'],
    [leaf('os', 'contains', 'Ubuntu'), '012'],
    [leaf('os', 'starts_with', 'win'), ''],
    [leaf('process', 'ends_with', 'nginx'), '0'],
    [leaf('process', 'regex', 'postgres$'), '0'],
    [leaf('port', 'is_in', { port: 400, to_port: 500, proto: 6 }), '0'],
    [leaf('port', 'equals', { port: 443, proto: 17 }), ''],
    [leaf('port', 'equals', '5432'), '0'],
    [leaf('port', 'is_in', '5000-6000'), '0'],
    [leaf('port', 'starts_with', '44'), '0'],
    [node('and', leaf('os', 'contains', 'ubuntu'), leaf('hostname', 'contains', 'web')), '1'],
    [node('or', leaf('port', 'equals', '443'), leaf('hostname', 'contains', 'web')), '01'],
    [node('not', leaf('hostname', 'contains', 'web')), '02'],
    [
      node('and', node('not', node('or', leaf('port', 'equals', '443'))), leaf('ip_address', 'starts_with', '10.3')),
      '2',
    ],
    [node('and'), '012'],
    [node('or'), ''],
    [leaf('colour', 'equals', 'red'), MALFORMED],
    [leaf('hostname', 'sounds_like', 'x'), MALFORMED],
    [node('and', leaf('hostname', 'sounds_like', 'x')), MALFORMED],
    [node('xor'), MALFORMED],
    [{ ...leaf('os', 'equals', 'x'), negate: true }, MALFORMED],
    [leaf('hostname', 'regex', '('), MALFORMED],
    [leaf('hostname', 'equals', { port: 1 }), MALFORMED],
    [leaf('ip_address', 'is_in', 'ten'), MALFORMED],
    [leaf('port', 'equals', 'https'), MALFORMED],
  ]
  for (const [expression, expected] of cases) t.equal(await matches(expression), expected, JSON.stringify(expression))
})

t.test('label mapping rules: their order, several at once', async (t) => {
  const { org } = await startPce(t)
  const everything = node('and')
  const rule = (more: object = {}) => ({
    expression: everything,
    label_assignments: [{ label: { href: SMALL.dev } }],
    ...more,
  })
  for (const [body, expected] of [
    [{ expression: everything }, MALFORMED],
    [rule({ enabled: true }), MALFORMED],
    [rule({ name: 'x' }), MALFORMED],
    [rule({ label_assignments: [{ label: { href: '/orgs/1/labels/99' } }] }), DANGLING],
    [rule({ label_assignments: [{ label: { key: 'planet', value: 'mars' } }] }), MALFORMED],
    [rule({ label_assignments: [{ label: { href: SMALL.dev } }, { label: { href: SMALL.prod } }] }), MALFORMED],
  ] as const) {
    t.equal(refusal(await org('POST', '/label_mapping_rules', body)), expected, JSON.stringify(body))
  }
  const hrefs: string[] = []
  for (let count = 0; count < 4; count += 1) {
    const created = await org('POST', '/label_mapping_rules', rule())
    partial(t, created.body, { enabled: true, overwrite: false, expression: everything })
    hrefs.push(created.body.href)
  }
  const [first, second, third, fourth] = hrefs as [string, string, string, string]
  const order = async () => (await org('GET', '/label_mapping_rules')).body.map(({ href }: { href: string }) => href)
  t.same(await order(), hrefs)
  t.equal(refusal(await org('PUT', `${third}/reorder`, { position: -1 })), MALFORMED)
  t.equal((await org('PUT', '/label_mapping_rules/none/reorder', { position: 0 })).status, 404)
  t.equal((await org('PUT', `${third}/reorder`, { position: 0 })).status, 204)
  t.equal((await newestEvent(org)).event_type, 'label_mapping_rule.reorder')
  t.same(await order(), [third, first, second, fourth])
  await org('PUT', `${third}/reorder`, { position: 2 })
  t.same(await order(), [first, second, third, fourth])
  await org('PUT', `${first}/reorder`, { position: 99 })
  t.same(await order(), [second, third, fourth, first])

  t.equal((await org('PUT', second, { enabled: false, overwrite: true })).status, 204)
  partial(t, (await org('GET', second)).body, { enabled: false, overwrite: true })
  t.same(await order(), [second, third, fourth, first], 'a change moves nothing')

  const update = (...items: object[]) => org('PUT', '/label_mapping_rules/update', items)
  t.equal(refusal(await update({ href: third, enabled: false }, { href: `${third}x`, enabled: false })), DANGLING)
  t.equal(refusal(await update({ href: third, enabled: false }, { enabled: false })), MALFORMED)
  t.equal((await org('GET', third)).body.enabled, true, 'all or nothing')
  t.equal((await update({ href: third, enabled: false }, { href: fourth, enabled: false })).status, 204)
  t.same([(await org('GET', third)).body.enabled, (await org('GET', fourth)).body.enabled], [false, false])

  const remove = (rules: unknown) => org('PUT', '/label_mapping_rules/delete', { rules })
  t.equal(refusal(await remove([])), MALFORMED)
  t.equal(refusal(await remove(Array.from({ length: 1001 }, () => ({ href: third })))), MALFORMED)
  t.equal(refusal(await remove([{ href: third }, { href: `${third}x` }])), DANGLING)
  t.equal((await remove([{ href: third }, { href: second }])).status, 204)
  t.same(await order(), [fourth, first])
  t.equal((await org('DELETE', first)).status, 204)
  t.same(await order(), [fourth])
})

t.test('label mapping runs find labels, and assign them when told to', async (t) => {
  const { simulator, org } = await startPce(t)
  const create = async (expression: unknown, labels: object[], more: object = {}) => {
    const body = { expression, label_assignments: labels.map((label) => ({ label })), ...more }
    return (await org('POST', '/label_mapping_rules', body)).body.href as string
  }
  const run = (body: object = {}) => org('POST', '/label_mapping_rules/run', body)
  const labelsOf = async (workload: string) =>
    (await org('GET', workload)).body.labels.map(({ value }: { value: string }) => value).sort()

  await create(leaf('hostname', 'starts_with', 'payments'), [{ href: SMALL.dev }])
  const scans = await create(leaf('hostname', 'starts_with', 'scanner'), [
    { key: 'role', value: 'scanner' },
    { href: SMALL.dev },
  ])
  const later = await create(node('and'), [{ href: SMALL.prod }])
  const forced = await create(leaf('hostname', 'contains', 'web'), [{ href: SMALL.payments }], { overwrite: true })

  t.equal(refusal(await run({ workloads: [{ href: '/orgs/1/workloads/x' }] })), DANGLING)
  t.equal(refusal(await run({ rules: [{ href: '/orgs/1/label_mapping_rules/x' }] })), DANGLING)
  t.equal(refusal(await run({ everything: true })), MALFORMED)
  const started = await run()
  t.equal(started.status, 202)
  partial(t, started.body, { status: 'queued', progress_percent: 0, label_mapping_params: {} })
  const { href } = started.body
  t.equal(started.headers.get('location'), href)
  t.equal((await org('GET', `${href}/download`)).status, 404)
  t.equal((await org('PUT', `${href}/assign_labels`, {})).status, 406, 'not completed')
  t.same(await follow(org, href, 3), ['queued', 'running', 'completed'])
  partial(t, (await org('GET', href)).body, { progress_percent: 100, result: `${href}/download` })

  const { results } = (await org('GET', `${href}/download`)).body
  t.same(
    results.map(({ hostname, labels_to_assign }: { hostname: string; labels_to_assign: Record<string, unknown>[] }) => [
      hostname,
      ...labels_to_assign,
    ]),
    [
      [
        'ordering-web-1.example.com',
        { href: SMALL.payments, key: 'app', value: 'payments', label_mapping_rule: { href: forced } },
      ],
      [
        'scanner-1.example.com',
        { key: 'role', value: 'scanner', label_mapping_rule: { href: scans } },
        { href: SMALL.dev, key: 'env', value: 'dev', label_mapping_rule: { href: scans } },
      ],
    ],
    'the first rule of a key wins, and only an overwriting one replaces',
  )
  partial(t, results[0].existing_labels, [{ value: 'web' }, { value: 'ordering' }, { value: 'prod' }])
  t.same(await labelsOf(SMALL.scanner), [], 'found is not assigned')
  t.same((await org('GET', '/labels?value=scanner')).body, [])
  t.equal((await org('PUT', `${href}/assign_labels`, {})).status, 204)
  t.same(await labelsOf(SMALL.scanner), ['dev', 'scanner'])
  t.same(await labelsOf(SMALL.orderingWeb), ['payments', 'prod', 'web'])
  t.equal((await org('GET', '/labels?value=scanner')).body.length, 1, 'the label was made')
  const event = await newestEvent(org)
  t.same([event.event_type, event.resource_changes.length], ['label_mapping_rules.assign_labels', 3])

  await org('PUT', scans, { enabled: false })
  await org('PUT', SMALL.scanner, { labels: [] })
  const narrow = {
    workloads: [{ href: SMALL.scanner }],
    rules: [{ href: later }, { href: scans }],
    assign_labels: true,
  }
  const again = (await run(narrow)).body
  t.same(again.label_mapping_params, narrow)
  await follow(org, again.href, 3)
  t.same(await labelsOf(SMALL.scanner), ['prod'], 'a disabled rule maps nothing')

  for (const [kind, expected] of [
    ['job-failed', ['failed', 404]],
    ['job-stuck', ['running', 404]],
    ['job-expired', ['completed', 404]],
  ] as const) {
    simulator.faults.add({ kind, path: '/orgs/1/label_mapping_rules/run', method: 'POST', times: 1 })
    const fated = (await run()).body.href
    const last = (await follow(org, fated, 5)).at(-1)
    t.same([last, (await org('GET', `${fated}/download`)).status], expected)
  }
  t.equal((await org('GET', '/label_mapping_rules/run/none')).status, 404)
  t.equal((await org('GET', '/label_mapping_rules/run')).status, 405)
})

t.test('jobs: filtered, deleted, failing, endless, expired', async (t) => {
  const { simulator, org } = await startPce(t)
  const start = async () =>
    (await org('GET', '/labels', undefined, { prefer: 'respond-async' })).headers.get('location')!
  const fine = await start()
  const statuses = await follow(org, fine, 3)
  t.same(statuses, ['pending', 'running', 'done'])
  const { result } = (await org('GET', fine)).body
  t.equal((await org('GET', result.href)).body.length, 6)

  const labels = '/orgs/1/labels'
  simulator.faults.add({ kind: 'job-failed', path: labels, times: 1, body: 'Out of disk' })
  const failing = await start()
  t.equal((await follow(org, failing, 4)).at(-1), 'failed')
  partial(t, (await org('GET', failing)).body, { result: { message: 'Out of disk' }, terminated_at: String })

  simulator.faults.add({ kind: 'job-stuck', path: labels, times: 1 })
  const stuck = await start()
  t.equal((await follow(org, stuck, 20)).at(-1), 'running')
  t.notOk('terminated_at' in (await org('GET', stuck)).body)

  simulator.faults.add({ kind: 'job-expired', path: labels, times: 1 })
  const expired = await start()
  await follow(org, expired, 3)
  t.equal((await org('GET', (await org('GET', expired)).body.result.href)).status, 404)

  const list = async (query: string) => (await org('GET', `/jobs?${query}`)).body.length
  t.equal(await list(''), 4)
  t.equal(await list('job_type=:illumio/async_requests'), 4)
  t.equal(await list('job_type=other'), 0)
  t.equal(await list('max_results=2'), 2)
  t.equal((await org('DELETE', fine)).status, 204)
  t.equal((await newestEvent(org)).event_type, 'job.delete')
  t.equal((await org('GET', result.href)).status, 404, 'its file goes with it')
  t.equal(START_OF_TEST, Date.parse((await org('GET', failing)).body.requested_at))
})

t.test('status of the PCE itself', async (t) => {
  const alone = await startPce(t)
  const status = async (call: typeof alone.call, path: string) => {
    const { status, text } = await call('GET', path)
    return [status, text]
  }
  t.same(await status(alone.call, '/node_available'), [200, ''])
  t.same(await status(alone.call, '/supercluster/leader'), [200, ''])
  t.same(await status(alone.call, '/noop'), [204, ''])
  t.equal((await alone.call('GET', '/product_version')).body.version, '25.2.10')
  partial(t, (await alone.call('GET', '/health')).body, [{ status: 'normal', type: 'standalone' }])

  const member = await startPce(t, { supercluster: 'member', nodeAvailable: false })
  t.equal((await status(member.call, '/supercluster/leader'))[0], 404)
  t.equal((await fetch(`${member.simulator.url}/api/v2/node_available`)).status, 404)
  partial(t, (await member.call('GET', '/health')).body, [{ status: 'critical', type: 'member' }])
  const leader = await startPce(t, { supercluster: 'leader' })
  t.equal((await status(leader.call, '/supercluster/leader'))[0], 200)
  partial(t, (await leader.call('GET', '/health')).body, [{ type: 'leader' }])
})
