import t from 'tap'
import { SMALL, SMALL_QUERY } from '../../pce-simulator/small-estate.js'
import { partial } from '../partial.js'
import { startPce } from './start-pce.js'
import {
  BOUNDARY,
  DISCOVERED,
  IP_TABLES_RULE,
  RULE,
  VIRTUAL_SERVER,
  active,
  estateWithServers,
  token,
} from './policy-estate.js'

const DRAFT = '/sec_policy/draft'
const json = (value: unknown) => encodeURIComponent(JSON.stringify(value))
const hrefs = (answer: { body: { href: string }[] }) => answer.body.map(({ href }) => href)

t.test('enforcement boundaries: their sides, their filters, and what they block', async (t) => {
  const { org } = await startPce(t)
  const path = `${DRAFT}/enforcement_boundaries`
  for (const [change, expected] of [
    [{ name: undefined }, 'input_validation_error'],
    [{ providers: [] }, 'input_validation_error'],
    [{ providers: [{ actors: 'ams', label: { href: SMALL.db } }] }, 'input_validation_error'],
    [{ consumers: [{ virtual_service: { href: 'x' } }] }, 'input_validation_error'],
    [{ consumers: [{ label: { href: SMALL.db }, exclusion: true }] }, 'input_validation_error'],
    [{ network_type: 'brn' }, 'input_validation_error'],
    [{ consumers: [{ ip_list: { href: `${SMALL.anyIpList}9` } }] }, 'invalid_uri'],
    [{ ingress_services: [] }, 'ingress_services_cannot_be_empty'],
    [{ ingress_services: [{ href: SMALL.browser }] }, 'ingress_service_cannot_be_windows_egress_service'],
  ] as const) {
    const answer = await org('POST', path, { ...BOUNDARY, ...change })
    t.same([answer.status, token(answer)], [406, expected], JSON.stringify(change))
  }
  const { body: boundary } = await org('POST', path, BOUNDARY)
  partial(t, boundary, { ...BOUNDARY, enabled: true, network_type: 'brn', update_type: 'create' })
  t.equal(token(await org('POST', path, BOUNDARY)), 'name_must_be_unique')
  const other = (await org('POST', path, { ...BOUNDARY, name: 'Other', ingress_services: [{ href: SMALL.postgres }] }))
    .body.href
  for (const [query, expected] of [
    ['name=databases', [boundary.href]],
    [`service=${SMALL.postgres}`, [other]],
    [`service=${active(SMALL.postgres)}`, [other]],
    ['service_ports.port=5432', [boundary.href]],
    ['service_ports.proto=6', [boundary.href]],
    ['service_ports.port=5433', []],
    [`labels=${json([[SMALL.ordering]])}`, [boundary.href, other]],
    [`labels=${json([[SMALL.dev]])}`, []],
    ['network_type=non_brn', []],
  ] as const) {
    t.same(hrefs(await org('GET', `${path}?${query}`)), expected, query)
  }
  t.equal((await org('GET', `${path}?service_ports.port=many`)).status, 406)
  t.equal(token(await org('DELETE', SMALL.postgres)), 'service_referenced')
  t.equal((await org('GET', `${SMALL.ordering}?usage=true`)).body.usage.enforcement_boundary, true)
  await org('DELETE', other)

  const both = [SMALL.paymentsDb, SMALL.orderingWeb].map((href) => ({ href, enforcement_mode: 'selective' }))
  await org('PUT', '/workloads/bulk_update', both)
  const decide = async () => {
    const { href } = (await org('POST', '/traffic_flows/async_queries', SMALL_QUERY)).body
    for (let poll = 0; poll < 3; poll += 1) await org('GET', href)
    await org('PUT', `${href}/update_rules`, {})
    for (let poll = 0; poll < 3; poll += 1) await org('GET', href)
    const [flow] = (await org('GET', `${href}/download`)).body
    return [flow.policy_decision, flow.boundary_decision, flow.draft_policy_decision, flow.enforcement_boundaries]
  }
  const [blocking] = [[{ href: boundary.href }]]
  t.same(await decide(), ['potentially_blocked', null, 'blocked_by_boundary', blocking], 'only a draft')
  await org('POST', '/sec_policy', {})
  t.same(await decide(), ['blocked', 'blocked', 'blocked_by_boundary', blocking])
  await org('POST', `${SMALL.paymentsRules}/sec_rules`, RULE)
  t.same(await decide(), ['blocked', 'blocked', 'allowed_across_boundary', blocking])
  await org('PUT', boundary.href, { enabled: false })
  await org('POST', '/sec_policy', {})
  t.same(await decide(), ['allowed', null, 'allowed', []], 'disabled')
})

t.test('virtual services: one kind of service each, bulk calls, bindings', async (t) => {
  const { org } = await startPce(t)
  const path = `${DRAFT}/virtual_services`
  const ports = { service_ports: [{ port: 5432, proto: 6 }] }
  for (const [body, expected] of [
    [{ name: 'x' }, 'input_validation_error'],
    [{ name: 'x', ...ports, service: { href: SMALL.postgres } }, 'input_validation_error'],
    [{ name: 'x', service_ports: [{ port: 80, proto: 1 }] }, 'input_validation_error'],
    [{ name: 'x', service_ports: [{ port: 80, to_port: 70, proto: 6 }] }, 'input_validation_error'],
    [{ name: 'x', service: { href: active(SMALL.postgres) } }, 'invalid_uri'],
    [{ name: 'x', ...ports, labels: [{ href: SMALL.prod }, { href: SMALL.dev }] }, 'input_validation_error'],
    [{ name: 'x', ...ports, labels: [{ href: '/orgs/1/labels/99' }] }, 'invalid_uri'],
    [{ name: 'x', ...ports, ip_overrides: ['10.0.0'] }, 'invalid_ip_address'],
    [{ name: 'x', ...ports, service_addresses: [{ ip: 'x' }] }, 'invalid_ip_address'],
    [{ name: 'x', ...ports, service_addresses: [{ ip: '10.0.0.1', fqdn: 'a.b' }] }, 'input_validation_error'],
  ] as const) {
    const answer = await org('POST', path, body)
    t.same([answer.status, token(answer)], [406, expected], JSON.stringify(body))
  }
  const addresses = [{ ip: '10.9.0.1', port: 443 }, { fqdn: 'api.example.com' }]
  const { body: made } = await org('POST', path, {
    name: 'db',
    service: { href: SMALL.postgres },
    labels: [{ href: SMALL.prod }],
    service_addresses: addresses,
  })
  partial(t, made, {
    service: { href: SMALL.postgres, name: 'PostgreSQL' },
    labels: [{ href: SMALL.prod, key: 'env', value: 'prod' }],
    service_addresses: addresses,
    apply_to: 'host_only',
    update_type: 'create',
  })
  t.notOk('service_ports' in made)
  t.equal(token(await org('POST', path, { name: 'db', ...ports })), 'name_must_be_unique')
  for (const query of [`service=${SMALL.postgres}`, 'service_address.ip=10.9', 'service_address.fqdn=api', 'name=D']) {
    t.same(hrefs(await org('GET', `${path}?${query}`)), [made.href], query)
  }
  t.same(hrefs(await org('GET', `${path}?service_ports.port=5432`)), [], 'a service object has its own ports')

  const bulk = await org('PUT', `${path}/bulk_create`, [
    { name: 'two', ...ports },
    { name: 'db', ...ports },
  ])
  partial(t, bulk.body, [{ status: 'created' }, { token: 'name_must_be_unique', message: /unique/ }])
  const [two] = hrefs(bulk)
  t.same(hrefs(await org('GET', `${path}?service_ports.port=5432&service_ports.proto=6`)), [two])
  const updates = [
    { href: two, service: { href: SMALL.postgres } },
    { href: `${path}/none`, name: 'x' },
  ]
  partial(t, (await org('PUT', `${path}/bulk_update`, updates)).body, [
    { href: two, status: 'updated' },
    { href: `${path}/none`, token: 'not_found_error' },
  ])
  t.notOk('service_ports' in (await org('GET', two!)).body, 'the other form is gone')
  t.same(hrefs(await org('GET', `${path}?service_ports.port=5432`)), [])
  await org('PUT', two!, ports)
  partial(t, (await org('GET', two!)).body, ports)
  t.notOk('service' in (await org('GET', two!)).body, 'and back')
  await org('PUT', two!, { service: { href: SMALL.postgres } })
  t.equal(
    (await org('PUT', two!, { href: two, description: 'x' })).status,
    406,
    'only items of a bulk call have an href',
  )
  const many = Array.from({ length: 1001 }, (_, index) => ({ name: `m${index}`, ...ports }))
  t.equal((await org('PUT', `${path}/bulk_create`, many)).status, 406)
  t.equal((await org('PUT', `${active(path)}/bulk_create`, [])).status, 405)
  t.equal(token(await org('DELETE', SMALL.prod)), 'label_still_has_associated_rule_set')
  partial(t, (await org('GET', `${SMALL.prod}?usage=true`)).body.usage, { virtual_service: true })

  const binding = { virtual_service: { href: active(made.href) }, workload: { href: SMALL.paymentsDb } }
  const bind = (...bodies: object[]) => org('POST', '/service_bindings', bodies)
  t.equal(token(await bind(binding)), 'invalid_uri', 'never provisioned')
  await org('POST', '/sec_policy', {})
  t.equal(token(await bind({ ...binding, virtual_service: { href: made.href } })), 'invalid_uri', 'a draft href')
  t.equal((await org('POST', '/service_bindings', binding)).status, 406, 'no array')
  t.equal((await bind({ virtual_service: binding.virtual_service })).status, 406, 'nobody to bind')
  t.equal((await bind()).status, 406, 'no item')
  t.equal((await bind(binding, { ...binding, workload: { href: '/orgs/1/workloads/none' } })).status, 406)
  t.same((await org('GET', '/service_bindings')).body, [], 'all or nothing')
  const overrides = [{ port: 5432, proto: 6, new_port: 6432 }]
  const key = { external_data_set: 'cmdb', external_data_reference: '1' }
  t.equal((await bind({ ...binding, ...key }, { ...binding, ...key })).status, 406, 'one pair twice')
  const bound = await bind(
    { ...binding, ...key, port_overrides: overrides },
    { virtual_service: { href: active(two!) }, workload: { href: SMALL.scanner } },
  )
  partial(
    t,
    [bound.status, bound.body],
    [201, [{ status: 'created', href: /service_bindings/ }, { status: 'created' }]],
  )
  const [first, second] = hrefs(bound)
  partial(t, (await org('GET', first!)).body, {
    bound_service: { href: active(made.href), name: 'db' },
    workload: { href: SMALL.paymentsDb, name: 'payments-db-1', hostname: 'payments-db-1.example.com' },
    port_overrides: overrides,
  })
  for (const [query, expected] of [
    [`workload=${SMALL.scanner}`, [second]],
    [`virtual_service=${active(made.href)}`, [first]],
    ['external_data_set=cmdb&external_data_reference=1', [first]],
  ] as const) {
    t.same(hrefs(await org('GET', `/service_bindings?${query}`)), expected, query)
  }
  t.equal((await bind({ ...binding, ...key })).status, 406, 'the pair is taken')
  t.equal((await org('PUT', first!, {})).status, 405)
  t.equal((await org('DELETE', second!)).status, 204)
  await org('DELETE', made.href)
  t.equal((await org('GET', first!)).status, 200, 'still in force')
  await org('POST', '/sec_policy', {})
  t.equal((await org('GET', first!)).status, 404, 'ended with its virtual service')
})

t.test('a binding ends with its workload', async (t) => {
  const { org } = await startPce(t)
  const service = { name: 'db', service_ports: [{ port: 5432, proto: 6 }] }
  const { href } = (await org('POST', `${DRAFT}/virtual_services`, service)).body
  await org('POST', '/sec_policy', {})
  const bind = async (...workloads: string[]) => {
    const bodies = workloads.map((workload) => ({
      virtual_service: { href: active(href) },
      workload: { href: workload },
    }))
    return hrefs(await org('POST', '/service_bindings', bodies))
  }
  const left = async () => hrefs(await org('GET', '/service_bindings'))
  const unmanaged = hrefs(await org('PUT', '/workloads/bulk_create', [{ name: 'a' }]))
  const [web, database, scanner, other] = await bind(SMALL.orderingWeb, SMALL.paymentsDb, SMALL.scanner, unmanaged[0]!)
  await org('DELETE', SMALL.scanner)
  t.same(await left(), [web, database, other], 'deleted')
  t.equal((await org('GET', scanner!)).status, 404)
  await org('PUT', '/workloads/bulk_delete', [{ href: SMALL.orderingWeb }, { href: unmanaged[0] }])
  t.same(await left(), [web, database], 'deleted in bulk; a managed one that stays keeps its own')
  await org('PUT', '/workloads/unpair', { workloads: [{ href: SMALL.paymentsDb }] })
  t.same(await left(), [web], 'unpaired')
})

t.test('virtual servers belong to one discovered virtual server each', async (t) => {
  const { org } = await startPce(t, { estate: estateWithServers() })
  const path = `${DRAFT}/virtual_servers`
  for (const [change, expected] of [
    [{ discovered_virtual_server: { href: '/orgs/1/discovered_virtual_servers/9' } }, 'invalid_uri'],
    [{ discovered_virtual_server: undefined }, 'input_validation_error'],
    [{ mode: 'on' }, 'input_validation_error'],
    [{ providers: [{ label: { href: SMALL.db }, workload: { href: SMALL.scanner } }] }, 'input_validation_error'],
    [{ providers: [{ workload: { href: '/orgs/1/workloads/none' } }] }, 'invalid_uri'],
    [{ labels: [{ href: SMALL.prod }, { href: SMALL.dev }] }, 'input_validation_error'],
  ] as const) {
    const answer = await org('POST', path, { ...VIRTUAL_SERVER, ...change })
    t.same([answer.status, token(answer)], [406, expected], JSON.stringify(change))
  }
  const { body: made } = await org('POST', path, VIRTUAL_SERVER)
  partial(t, made, {
    discovered_virtual_server: { href: DISCOVERED[0], vip_port: { vip: '192.0.2.1', protocol: 6, port: '443' } },
    labels: [{ href: SMALL.prod, key: 'env' }],
    description: null,
  })
  t.equal((await org('POST', path, { ...VIRTUAL_SERVER, name: 'x' })).status, 406, 'taken')
  const second = { ...VIRTUAL_SERVER, name: 'x', discovered_virtual_server: { href: DISCOVERED[1] } }
  const other = (await org('POST', path, second)).body.href
  for (const [query, expected] of [
    [`discovered_virtual_server=${DISCOVERED[0]}`, [made.href]],
    [`discovered_virtual_server=${DISCOVERED[1]}`, [other]],
    ['mode=unmanaged', []],
  ] as const) {
    t.same(hrefs(await org('GET', `${path}?${query}`)), expected, query)
  }
  await org('POST', `${SMALL.paymentsRules}/sec_rules`, {
    ...RULE,
    providers: [{ virtual_server: { href: made.href } }],
  })
  t.equal((await org('DELETE', made.href)).status, 406, 'a rule uses it')
  const impact = (await org('POST', '/sec_policy/impact', [{ href: SMALL.paymentsRules }])).body
  partial(t, impact, { num_sets: 1, num_virtual_servers: 1, num_container_workloads: 0 })
})

t.test('a rule set holds iptables rules, replaced as a whole', async (t) => {
  const { org } = await startPce(t)
  const { body: made } = await org('POST', `${DRAFT}/rule_sets`, {
    name: 'tables',
    scopes: [[]],
    rules: [RULE],
    ip_tables_rules: [IP_TABLES_RULE, { ...IP_TABLES_RULE, ip_version: '6' }],
  })
  const [one, two] = made.ip_tables_rules
  partial(t, one, {
    ...IP_TABLES_RULE,
    href: `${made.href}/ip_tables_rules/1`,
    update_type: 'create',
    description: null,
  })
  await org('POST', '/sec_policy', {})
  t.equal((await org('GET', active(made.href))).body.ip_tables_rules[0].href, active(one.href))
  const replaced = [{ href: one.href, description: 'x' }, IP_TABLES_RULE]
  t.equal((await org('PUT', made.href, { ip_tables_rules: replaced })).status, 204)
  const types = async () =>
    (await org('GET', made.href)).body.ip_tables_rules.map((rule: Record<string, unknown>) => rule.update_type)
  t.same(await types(), ['update', 'create', 'delete'])
  await org('POST', '/sec_policy', {})
  t.same(await types(), [null, null])
  for (const bad of [
    { actors: [{ actors: 'container_host' }] },
    { actors: [{ label: { href: SMALL.db }, workload: { href: SMALL.scanner } }] },
    { statements: [] },
    { ip_version: '5' },
  ]) {
    t.equal((await org('PUT', made.href, { ip_tables_rules: [{ ...IP_TABLES_RULE, ...bad }] })).status, 406)
  }
  t.equal((await org('PUT', made.href, { ip_tables_rules: [{ href: two.href }] })).status, 406, 'gone')
  t.equal((await org('POST', `${made.href}/ip_tables_rules`, IP_TABLES_RULE)).status, 404, 'no path of their own')
})

t.test(
  'rules: virtual services need no services, at most 100 are stateless, dimensions and principals exist',
  async (t) => {
    const { org } = await startPce(t)
    const path = `${SMALL.paymentsRules}/sec_rules`
    const service = (await org('POST', `${DRAFT}/virtual_services`, { name: 'v', service: { href: SMALL.postgres } }))
      .body.href
    const post = async (change: object) => (await org('POST', path, { ...RULE, ...change })).status
    const providers = [{ virtual_service: { href: service } }]
    const asServices = { providers: ['virtual_services'], consumers: ['workloads'] }
    t.equal(await post({ providers, ingress_services: [] }), 201)
    t.equal(await post({ providers: [...providers, ...RULE.providers], ingress_services: [] }), 406)
    t.equal(await post({ resolve_labels_as: asServices, ingress_services: [] }), 201, 'labels that stand for such')
    t.equal(await post({ providers: [{ virtual_service: { href: active(service) } }] }), 406, 'it is not in force')
    t.equal(await post({ consumers: [{ label_dimension: 'app' }] }), 201)
    t.equal(await post({ consumers: [{ label_dimension: 'colour' }] }), 406)
    t.equal(await post({ consumers: [{ actors: 'container_host' }] }), 201)
    t.equal(await post({ consumers: [{ ip_list: { href: SMALL.anyIpList }, exclusion: true }] }), 406)
    t.equal(await post({ consuming_security_principals: [{ href: '/orgs/1/security_principals/S-1' }] }), 406)
    const key = { external_data_set: 'x', external_data_reference: '1' }
    t.equal(await post(key), 201)
    t.equal(await post(key), 406, 'the pair is taken')
    t.equal((await org('DELETE', service)).status, 406, 'a rule uses it')
    const rules = Array.from({ length: 99 }, () => ({ ...RULE, stateless: true }))
    await org('POST', `${DRAFT}/rule_sets`, { name: 's', scopes: [[]], rules })
    t.equal(await post({ stateless: true, machine_auth: true }), 406)
    t.equal(await post({ stateless: true }), 201, 'the hundredth')
    t.equal(await post({ stateless: true }), 406, 'one too many')
    t.equal(await post({ stateless: false }), 201)

    const needs = (type: string, href: string) =>
      org('POST', `${DRAFT}/dependencies`, { operation: 'commit', change_subset: { [type]: [{ href }] } })
    partial(t, (await needs('rule_sets', SMALL.paymentsRules)).body, [
      { dependency: { virtual_services: { href: service } } },
    ])
    const own = (await org('POST', `${DRAFT}/services`, { name: 's', service_ports: [{ proto: 6 }] })).body.href
    await org('PUT', service, { service: { href: own } })
    partial(t, (await needs('virtual_services', service)).body, [{ dependency: { services: { href: own } } }])
    const chain = (await needs('rule_sets', SMALL.paymentsRules)).body
    partial(
      t,
      chain,
      [{ dependency: { virtual_services: {} } }, { dependency: { services: { href: own } } }],
      'through others',
    )
    const list = (await org('POST', `${DRAFT}/ip_lists`, { name: 'l' })).body.href
    const group = (await org('POST', `${DRAFT}/label_groups`, { name: 'g', key: 'env' })).body.href
    const boundary = {
      ...BOUNDARY,
      providers: [{ label_group: { href: group } }],
      consumers: [{ ip_list: { href: list } }],
      ingress_services: [{ href: own }],
    }
    const href = (await org('POST', `${DRAFT}/enforcement_boundaries`, boundary)).body.href
    t.same(
      (await needs('enforcement_boundaries', href)).body.map(({ dependency }: { dependency: object }) =>
        Object.keys(dependency),
      ),
      [['label_groups'], ['services'], ['ip_lists']],
    )
    t.equal((await org('POST', '/sec_policy', { change_subset: { enforcement_boundaries: [{ href }] } })).status, 406)
    for (const [used, expected] of [
      [list, 'ip_list_referenced'],
      [group, 'label_group_referenced'],
      [own, 'service_referenced'],
    ] as const) {
      t.equal(token(await org('DELETE', used)), expected)
    }
  },
)

t.test('services and label groups cannot change their kind', async (t) => {
  const { org } = await startPce(t)
  const two = { service_ports: [{ port: 1, proto: 6 }], windows_services: [{ service_name: 's' }] }
  const { body: service } = await org('POST', `${DRAFT}/services`, { name: 'x', ...two })
  partial(t, service, { service_ports: [{ port: 1 }], windows_services: null, windows_egress_services: null })
  t.equal((await org('PUT', service.href, { windows_services: [{ service_name: 's' }] })).status, 406)
  t.equal((await org('POST', `${DRAFT}/services`, { name: 'x' })).status, 406, 'none at all')
  const ransomware = { category: 'admin', severity: 'high', os_platforms: ['windows'] }
  const risky = (await org('PUT', service.href, { risk_details: { ransomware } })).status
  t.equal(risky, 204)
  t.same(hrefs(await org('GET', `${DRAFT}/services?is_ransomware=true`)), [service.href])
  t.notOk(hrefs(await org('GET', `${DRAFT}/services?is_ransomware=false`)).includes(service.href))
  const group = async (name: string, more: object = {}) =>
    (await org('POST', `${DRAFT}/label_groups`, { name, key: 'env', ...more })).body.href as string
  const outer = await group('outer')
  const inner = await group('inner', { sub_groups: [{ href: outer }] })
  const app = (await org('POST', `${DRAFT}/label_groups`, { name: 'app', key: 'app' })).body.href
  const put = async (body: object) => (await org('PUT', outer, body)).status
  t.equal(await put({ key: 'app' }), 406)
  t.equal(await put({ sub_groups: [{ href: inner }] }), 406, 'a circle')
  t.equal(await put({ sub_groups: [{ href: outer }] }), 406)
  t.equal(await put({ sub_groups: [{ href: app }] }), 406, 'another key')
  t.equal(await put({ labels: [{ href: SMALL.payments }] }), 406)
  t.equal(await put({ labels: [{ href: SMALL.dev }] }), 204)
  partial(t, (await org('GET', `${inner}/all_labels`)).body, [{ href: SMALL.dev, value: 'dev' }])
  partial(t, (await org('GET', `${outer}/member_of`)).body, [{ href: inner, name: 'inner' }])
  await org('PUT', `${DRAFT}/firewall_settings`, { static_policy_scopes: [[{ label_group: { href: outer } }]] })
  partial(t, (await org('GET', `${outer}?usage=true`)).body.usage, {
    label_group: true,
    ruleset: false,
    static_policy_scopes: true,
    ip_forwarding_enabled_scopes: false,
  })
  t.equal(token(await org('DELETE', outer)), 'label_group_referenced')
})
