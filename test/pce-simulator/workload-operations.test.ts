import t from 'tap'
import { SMALL, smallEstate } from '../../pce-simulator/small-estate.js'
import { partial } from '../partial.js'
import { startPce } from './start-pce.js'

/** Parsed JSON, as it came. */
type Found = ReturnType<JSON['parse']>
type Org = Awaited<ReturnType<typeof startPce>>['org']

const { paymentsDb, orderingWeb, scanner } = SMALL
const token = (answer: { body: { token: string }[] }) => answer.body?.[0]?.token
const encoded = (value: unknown) => encodeURIComponent(JSON.stringify(value))
const values = async (org: Org, href: string) =>
  ((await org('GET', href)).body.labels as { value: string }[]).map(({ value }) => value).sort()

t.test(
  'interfaces of an unmanaged workload are edited one by one; those of a managed one belong to its VEN',
  async (t) => {
    const { org } = await startPce(t)
    const path = `${scanner}/interfaces`
    partial(t, (await org('GET', path)).body, [
      { name: 'eth0', address: '10.3.0.1', friendly_name: null, network: null },
    ])
    const odd = 'Ethernet 2/α'
    const made = await org('POST', path, { name: odd, link_state: 'up', address: '10.3.0.2', cidr_block: 24 })
    t.equal(made.status, 201)
    partial(t, made.body, {
      name: odd,
      link_state: 'up',
      address: '10.3.0.2',
      cidr_block: 24,
      default_gateway_address: null,
    })
    await org('POST', path, { name: odd, link_state: 'up', address: 'fd00::2' })
    t.equal((await org('GET', scanner)).body.interfaces.length, 3, 'the workload has them')
    t.equal((await org('GET', `${path}?name=ether`)).body.length, 2)
    const one = `${path}/${encodeURIComponent(odd)}`
    partial(t, (await org('GET', one)).body, { name: odd, address: '10.3.0.2' })
    partial(t, (await org('GET', '/events')).body[0], { event_type: 'workload_interface.create', status: 'success' })
    t.equal((await org('DELETE', one)).status, 204)
    t.same((await org('GET', path)).body.length, 1, 'under both its addresses')
    t.equal((await org('GET', one)).status, 404)
    t.equal((await org('DELETE', one)).status, 404)

    for (const [body, expected] of [
      [{ name: 'eth1' }, 'input_validation_error'],
      [{ name: 'eth1', link_state: 'up', network: { href: '/x' } }, 'input_validation_error'],
      [{ name: 'eth1', link_state: 'up', address: '10.3.0' }, 'invalid_ip_address'],
      [{ name: 'eth0', link_state: 'up', address: '10.3.0.1' }, 'input_validation_error'],
    ] as const) {
      const answer = await org('POST', path, body)
      t.same([answer.status, token(answer)], [406, expected], JSON.stringify(body))
    }
    const reported = (await org('GET', `${paymentsDb}/interfaces`)).body
    t.equal(reported.length, 1)
    partial(t, reported, [{ name: 'eth0', link_state: null }], 'a VEN reports no link state')
    t.equal((await org('POST', `${paymentsDb}/interfaces`, { name: 'eth1', link_state: 'up' })).status, 406)
    t.equal((await org('DELETE', `${paymentsDb}/interfaces/eth0`)).status, 406)
    t.equal((await org('GET', '/workloads/none/interfaces')).status, 404)
  },
)

t.test('workloads are unpaired under the older name of the field, with their VENs', async (t) => {
  const { org } = await startPce(t)
  const both = [{ href: paymentsDb }, { href: scanner }]
  for (const body of [
    { workloads: [{ href: paymentsDb }], firewall_restore: 'default' },
    { workloads: [] },
    { workloads: both, ip_table_restore: 'never' },
  ]) {
    t.equal(token(await org('PUT', '/workloads/unpair', body)), 'input_validation_error', JSON.stringify(body))
  }
  t.equal(token(await org('PUT', '/workloads/unpair', { workloads: [{ href: '/orgs/1/vens/1' }] })), 'invalid_uri')
  const partly = await org('PUT', '/workloads/unpair', { workloads: both, ip_table_restore: 'saved' })
  t.equal(partly.status, 200)
  partial(t, partly.body, { errors: [{ token: 'not_found_error', hrefs: [scanner] }] }, 'the scanner has no VEN')
  const whole = await org('PUT', '/workloads/unpair', { workloads: [{ href: orderingWeb }] })
  t.same([whole.status, whole.text], [204, ''])
  t.same((await org('GET', '/vens')).body, [])
  t.same(
    ((await org('GET', '/workloads')).body as { href: string }[]).map(({ href }) => href),
    [scanner],
  )
})

t.test('a CSV import changes existing workloads: labels added, removed and created; one result per row', async (t) => {
  const { org } = await startPce(t)
  const csv = (text: string, query = '') =>
    org('PUT', `/workloads/bulk_import${query}`, text, { 'content-type': 'text/csv' })
  const table = [
    'href,hostname,label:app,label: env,description',
    `${paymentsDb},payments-db-1.example.com,ordering,,"said ""so"", twice"`,
    ',ordering-web-1.example.com,GONE,dev,',
    '/orgs/1/workloads/none,,ordering,,',
    `${scanner},,scanners,,`,
    '',
  ].join('\r\n')

  const tried = await csv(table, '?delete_token=GONE&dry_run=true&create_labels=true')
  t.equal(tried.status, 200)
  t.same(await values(org, paymentsDb), ['db', 'payments', 'prod'], 'a dry run changes nothing')
  t.same((await org('GET', '/labels?value=scanners')).body, [], 'and makes nothing')

  const { body: results } = await csv(table, '?delete_token=GONE')
  partial(t, results, [
    { href: paymentsDb, status: 'updated' },
    { href: orderingWeb, status: 'updated' },
    { href: '/orgs/1/workloads/none', status: 'validation_failure', token: 'not_found_error', message: /./ },
    { href: scanner, status: 'validation_failure', message: /scanners/ },
  ])
  t.same(
    (tried.body as Found[]).map(({ status }) => status),
    ['updated', 'updated', 'validation_failure', 'updated'],
    'but says what would become of each row',
  )
  t.same(await values(org, paymentsDb), ['db', 'ordering', 'prod'])
  t.equal((await org('GET', paymentsDb)).body.description, 'said "so", twice')
  t.same(await values(org, orderingWeb), ['dev', 'web'], 'found by its hostname')
  partial(t, (await csv(table, '?delete_token=GONE&create_labels=true')).body[3], {
    href: scanner,
    status: 'updated',
  })
  t.same(await values(org, scanner), ['scanners'])
  const [event] = (await org('GET', '/events')).body
  partial(t, event, { event_type: 'workloads.bulk_import', resource_changes: { length: 4 } })

  t.equal((await csv('a,b\n1,2')).status, 406, 'rows that name no workload')
  t.equal((await csv(`href\n"${paymentsDb}`)).status, 406, 'a quote without an end')
  t.equal((await csv('href\n/x', '?dry_run=yes')).status, 406)
  partial(t, (await csv(`href,managed\n${paymentsDb},false`)).body, [
    { message: /additional properties \["managed"\]/ },
  ])
})

t.test('workloads can also be imported as JSON', async (t) => {
  const { org } = await startPce(t)
  const rows = [
    { href: paymentsDb, description: 'd', labels: [{ key: 'env', value: 'dev' }] },
    { hostname: 'new-1.example.com', name: 'new-1', labels: [{ href: SMALL.dev }] },
    { name: 'bad', managed: true },
  ]
  const { body: dry } = await org('PUT', '/workloads/bulk_import?dry_run=true', rows)
  partial(t, dry, [{ status: 'updated' }, { status: 'created' }, { status: 'validation_failure' }])
  t.equal((await org('GET', '/workloads')).body.length, 3)
  const { body: results } = await org('PUT', '/workloads/bulk_import', rows)
  partial(t, results, [
    { href: paymentsDb, status: 'updated' },
    { status: 'created' },
    { token: 'input_validation_error' },
  ])
  partial(t, (await org('GET', results[1].href)).body, { name: 'new-1', managed: false, labels: [{ value: 'dev' }] })
  t.same(await values(org, paymentsDb), ['db', 'dev', 'payments'])
  t.equal((await org('PUT', '/workloads/bulk_import', { rows })).status, 406)
})

t.test('the remaining filters of workloads', async (t) => {
  const estate = smallEstate()
  const [db, web] = estate.workloads as [Found, Found, Found]
  const cluster = '/orgs/1/container_clusters/00000000-0000-4000-8000-0000000000c1'
  const agent = (log_traffic: boolean, health: string[], fqdn: string | null) => ({
    active_pce_fqdn: fqdn,
    config: { mode: 'illuminated', log_traffic, security_policy_update_mode: log_traffic ? 'adaptive' : 'static' },
    status: { agent_health: health.map((severity) => ({ type: 'x', severity })), security_policy_sync_state: 'staged' },
  })
  Object.assign(db, {
    agent: agent(true, ['error'], 'pce.example.com'),
    container_cluster: { href: cluster },
    risk_summary: { ransomware: { workload_exposure_severity: 'critical' } },
    vulnerabilities_summary: { vulnerability_exposure_score: 70 },
  })
  Object.assign(web, { agent: agent(false, [], null), vulnerabilities_summary: { vulnerability_exposure_score: 5 } })
  const { org } = await startPce(t, { estate })
  const finds = async (query: string, ...expected: string[]) => {
    const found = (await org('GET', `/workloads?${query}`)).body as Found[]
    t.same(
      found.map(({ href }) => href),
      expected,
      query,
    )
  }
  await finds(`container_clusters=${encoded([cluster])}`, paymentsDb)
  await finds('agent.active_pce_fqdn=pce.example.com', paymentsDb)
  await finds('log_traffic=true', paymentsDb)
  await finds('log_traffic=false', orderingWeb, scanner)
  await finds('security_policy_update_mode=static', orderingWeb)
  await finds('security_policy_sync_state=staged', paymentsDb, orderingWeb)
  await finds('policy_health=error', paymentsDb)
  await finds('policy_health=active', orderingWeb)
  await finds('policy_health=warning')
  await finds('risk_summary.ransomware.workload_exposure_severity=critical', paymentsDb)
  await finds('vulnerability_summary.vulnerability_exposure_score[gte]=50', paymentsDb)
  await finds('vulnerability_summary.vulnerability_exposure_score[lte]=50', orderingWeb)
  await org('PUT', orderingWeb, { agent: { status: { status: 'suspended' } } })
  await finds('policy_health=suspended', orderingWeb)
  await org('PUT', orderingWeb, { agent: { config: { mode: 'enforced', log_traffic: true } } })
  await finds('log_traffic=true&enforcement_mode=full', orderingWeb)
  await org('DELETE', scanner)
  await finds('managed=false')
  await finds('managed=false&include_deleted=true', scanner)
  await finds('managed=false&include_deleted=false')
  t.equal((await org('GET', '/workloads?vulnerability_summary.vulnerability_exposure_score[gte]=x')).status, 406)
})
