import t from 'tap'
import type { PceError } from '../../pce-client/index.js'
import { KINDS, type Kind, type KindAttribute } from '../../pce-client/kinds.js'
import type { ObjectApi } from '../../pce-client/types.js'
import { partial } from '../partial.js'
import { clientOf, rejection, startServer, type Reply, type Responder } from './support.js'

/** The object kinds as the PCE documents them: attribute, path, single?, collection verbs, item verbs, parent, bulk, id, create body. */
const FACTS = `
access_restrictions | /orgs/{org}/access_restrictions | - | GET POST | GET PUT DELETE | - | - | int | -
app_group_summary | /orgs/{org}/app_group_summary | single | GET | - | - | - | - | -
auth_security_principals | /orgs/{org}/auth_security_principals | - | GET POST | GET PUT DELETE | - | - | uuid | -
authentication_settings | /authentication_settings | single | GET PUT | - | - | - | - | -
container_clusters | /orgs/{org}/container_clusters | - | GET POST | GET PUT DELETE | - | - | uuid | -
container_workload_profiles | /orgs/{org}/container_clusters/{id}/container_workload_profiles | - | GET POST | GET PUT DELETE | container_clusters | - | uuid | -
core_service_types | /orgs/{org}/core_service_types | - | GET | GET PUT | - | - | uuid | -
deny_rules | /orgs/{org}/sec_policy/{pversion}/rule_sets/{id}/deny_rules | - | GET POST | GET PUT DELETE | rule_sets | - | int | -
detected_core_services | /orgs/{org}/detected_core_services | - | GET | GET PUT | - | - | uuid | -
discovered_virtual_servers | /orgs/{org}/discovered_virtual_servers | - | GET | GET | - | - | uuid | -
enforcement_boundaries | /orgs/{org}/sec_policy/{pversion}/enforcement_boundaries | - | GET POST | GET PUT DELETE | - | - | int | -
event_settings | /orgs/{org}/settings/events | single | GET PUT | - | - | - | - | -
events | /orgs/{org}/events | - | GET | GET | - | - | uuid | -
firewall_settings | /orgs/{org}/sec_policy/{pversion}/firewall_settings | single | GET PUT | - | - | - | - | -
ip_lists | /orgs/{org}/sec_policy/{pversion}/ip_lists | - | GET POST | GET PUT DELETE | - | - | int | -
jobs | /orgs/{org}/jobs | - | GET | GET DELETE | - | - | uuid | -
kubernetes_workloads | /orgs/{org}/kubernetes_workloads | - | GET | GET | - | - | uuid | -
label_dimensions | /orgs/{org}/label_dimensions | - | GET POST | GET PUT DELETE | - | - | uuid | -
label_groups | /orgs/{org}/sec_policy/{pversion}/label_groups | - | GET POST | GET PUT DELETE | - | - | uuid | -
label_mapping_rules | /orgs/{org}/label_mapping_rules | - | GET POST | GET PUT DELETE | - | - | uuid | -
labels | /orgs/{org}/labels | - | GET POST | GET PUT DELETE | - | - | int | -
ldap_configs | /authentication_settings/ldap_configs | - | GET POST | GET PUT DELETE | - | - | uuid | -
network_devices | /orgs/{org}/network_devices | - | GET | GET PUT DELETE | - | - | uuid | -
network_endpoints | /orgs/{org}/network_devices/{id}/network_endpoints | - | GET POST | GET PUT DELETE | network_devices | - | uuid | -
network_enforcement_nodes | /orgs/{org}/network_enforcement_nodes | - | GET | GET PUT | - | - | uuid | -
optional_features | /orgs/{org}/optional_features | - | GET PUT | - | - | - | - | -
org_settings | /orgs/{org}/settings | single | GET PUT | - | - | - | - | -
pairing_profiles | /orgs/{org}/pairing_profiles | - | GET POST | GET PUT DELETE | - | - | int | -
password_policy | /authentication_settings/password_policy | single | GET PUT | - | - | - | - | -
permissions | /orgs/{org}/permissions | - | GET POST | GET PUT DELETE | - | - | uuid | -
report_schedules | /orgs/{org}/report_schedules | - | GET POST | GET PUT DELETE | - | - | uuid | -
report_settings | /orgs/{org}/settings/reports | single | GET PUT | - | - | - | - | -
report_templates | /orgs/{org}/report_templates | - | GET | GET PUT | - | - | string | -
reports | /orgs/{org}/reports | - | GET POST | GET PUT | - | - | uuid | -
roles | /orgs/{org}/roles | - | GET | GET | - | - | name | -
rule_sets | /orgs/{org}/sec_policy/{pversion}/rule_sets | - | GET POST | GET PUT DELETE | - | - | int | -
rules | /orgs/{org}/sec_policy/{pversion}/rule_sets/{id}/sec_rules | - | GET POST | GET PUT DELETE | rule_sets | - | int | -
saml_configs | /authentication_settings/saml_configs | - | GET | GET PUT | - | - | uuid | -
security_principals | /orgs/{org}/security_principals | - | GET POST | GET PUT DELETE | - | create | sid | -
service_accounts | /orgs/{org}/service_accounts | - | GET POST | GET PUT DELETE | - | - | uuid | -
service_bindings | /orgs/{org}/service_bindings | - | GET POST | GET DELETE | - | - | uuid | array
services | /orgs/{org}/sec_policy/{pversion}/services | - | GET POST | GET PUT DELETE | - | - | int | -
slbs | /orgs/{org}/slbs | - | GET POST | GET PUT DELETE | - | - | uuid | -
support_bundle_requests | /orgs/{org}/support_bundle_requests | - | GET POST | GET DELETE | - | - | uuid | -
syslog_destinations | /orgs/{org}/settings/syslog/destinations | - | GET POST | GET PUT DELETE | - | - | uuid | -
system_events | /system_events | - | GET | GET | - | - | uuid | -
traffic_collector_settings | /orgs/{org}/settings/traffic_collector | - | GET POST | GET PUT DELETE | - | - | uuid | -
trusted_proxy_ips | /orgs/{org}/settings/trusted_proxy_ips | single | GET PUT | - | - | - | - | -
users | /users | - | GET POST | GET PUT | - | - | int | -
vens | /orgs/{org}/vens | - | GET | GET PUT | - | - | uuid | -
virtual_servers | /orgs/{org}/sec_policy/{pversion}/virtual_servers | - | GET POST | GET PUT DELETE | - | - | uuid | -
virtual_services | /orgs/{org}/sec_policy/{pversion}/virtual_services | - | GET POST | GET PUT DELETE | - | create update | uuid | -
vulnerabilities | /orgs/{org}/vulnerabilities | - | GET POST | GET PUT DELETE | - | - | chosen | array
vulnerability_reports | /orgs/{org}/vulnerability_reports | - | GET | GET PUT DELETE | - | - | chosen | -
workload_settings | /orgs/{org}/settings/workloads | single | GET PUT | - | - | - | - | -
workloads | /orgs/{org}/workloads | - | GET POST | GET PUT DELETE | - | create update delete | uuid | -
`

const facts = FACTS.trim()
  .split('\n')
  .map((line) => {
    const [name = '', path = '', single, collection, item, parent, bulk, id, create] = line
      .split('|')
      .map((cell) => cell.trim())
      .map((cell) => (cell === '-' ? '' : cell))
    return {
      name,
      path,
      single,
      collection: verbs(collection),
      item: verbs(item),
      parent,
      bulk: verbs(bulk),
      id,
      create,
    }
  })

const server = await startServer(t, (seen, index) => respond(seen, index))
let respond: Responder = () => ({ body: [] })

/** A fresh client of a server that has forgotten what it was asked. */
function setup(answer: Responder | Reply = { body: [] }) {
  respond = typeof answer === 'function' ? answer : () => answer
  server.seen.length = 0
  return clientOf(server)
}

const apiOf = (client: object, attribute: string) => (client as Record<string, ObjectApi>)[attribute]!

t.test('the table of kinds', async (t) => {
  t.equal(facts.length, 56)
  t.same(
    Object.keys(KINDS).sort(),
    facts.map(({ name }) => camelCase(name)).sort(),
    'has the attributes of the specification',
  )
  const found = facts.map(({ name }) => {
    const kind: Kind = KINDS[camelCase(name) as KindAttribute]
    return {
      name: kind.specName,
      path: kind.path,
      underOrg: kind.underOrg,
      versioned: kind.versioned,
      collection: kind.collectionVerbs,
      item: kind.itemVerbs,
      single: kind.single ?? false,
      arrayCreate: kind.arrayCreate ?? false,
      parent: kind.parent ?? '',
      bulk: kind.bulk ?? [],
      id: kind.id ?? '',
    }
  })
  const wanted = facts.map(({ name, path, collection, item, single, create, parent, bulk, id }) => ({
    name,
    path: path.replace('{org}', '{org_id}').replace('{id}', '{parent}'),
    underOrg: path.startsWith('/orgs/'),
    versioned: path.includes('{pversion}'),
    collection,
    item,
    single: single !== '',
    arrayCreate: create !== '',
    parent: camelCase(parent ?? ''),
    bulk,
    id,
  }))
  t.same(found, wanted)
})

t.test('reaches every kind at its own path and refuses unsupported verbs', async (t) => {
  const found: string[] = []
  const wanted: string[] = []
  for (const fact of facts) {
    const client = setup({ body: { href: '/made' } })
    const api = apiOf(client, camelCase(fact.name))
    const at = (version: string) => fact.path.replace('{org}', '1').replace('{pversion}', version).replace('{id}', '9')
    const parent = fact.parent === '' ? null : at('draft').slice(0, at('draft').lastIndexOf('/'))
    const href = fact.item.length > 0 ? `${at('active')}/5` : at('active')
    const canUpdate = (fact.item.length > 0 ? fact.item : fact.collection).includes('PUT')
    const calls: [string, boolean, () => Promise<unknown>, string][] = [
      ['create', fact.collection.includes('POST'), () => api.create({ name: 'x' }, parent), `POST ${at('draft')}`],
      ['getByReference', fact.item.length > 0 || fact.single !== '', () => api.getByReference(href), `GET ${href}`],
      ['update', canUpdate, () => api.update(href, {}), `PUT ${href.replace('/active/', '/draft/')}`],
      ['delete', fact.item.includes('DELETE'), () => api.delete(href), `DELETE ${href.replace('/active/', '/draft/')}`],
      ['bulkCreate', fact.bulk.includes('create'), () => api.bulkCreate([]), ''],
      ['bulkUpdate', fact.bulk.includes('update'), () => api.bulkUpdate([]), ''],
      ['bulkDelete', fact.bulk.includes('delete'), () => api.bulkDelete([]), ''],
    ]
    for (const [verb, isOffered, call, request] of calls) {
      server.seen.length = 0
      const error = await call().then(
        () => null,
        (thrown: PceError) => thrown,
      )
      found.push(`${fact.name} ${verb}: ${toldBy(error)}, ${server.requests().join() || 'no request'}`)
      wanted.push(`${fact.name} ${verb}: ${isOffered ? `done, ${request || 'no request'}` : 'unsupported, no request'}`)
    }
    respond = () => ({ body: fact.single === '' ? [] : {} })
    server.seen.length = 0
    await api.get('active', parent)
    found.push(`${fact.name}: ${server.requests().join()}`)
    wanted.push(`${fact.name}: GET ${at('active')}`)
    if (fact.parent !== '') {
      await t.rejects(
        api.get('draft'),
        { code: 'invalid_argument', message: new RegExp(fact.parent ?? '') },
        'only with a parent',
      )
      await t.rejects(api.create({}, '/orgs/1/labels/1'), { code: 'invalid_href' }, 'of the right kind')
    }
  }
  t.same(found, wanted)

  /** An error in one word if it is the refusal that says what the PCE offers, otherwise as it is. */
  function toldBy(error: PceError | null): string {
    if (error === null) return 'done'
    const isRefusal = error.name === 'PceError' && error.code === 'unsupported'
    return isRefusal && /the PCE offers .*(GET|bulk)/.test(error.message) ? 'unsupported' : String(error)
  }
})

/** Kinds whose objects have no name by which the PCE or this client could find them (P9, P12). */
const NAMELESS = new Set(
  `app_group_summary authentication_settings deny_rules detected_core_services event_settings events firewall_settings jobs
  label_dimensions label_mapping_rules labels network_endpoints org_settings password_policy permissions report_settings
  reports roles rules saml_configs service_bindings syslog_destinations system_events traffic_collector_settings
  trusted_proxy_ips users workload_settings`.split(/\s+/),
)

t.test('an unsupported verb fails before any request and names the supported ones', async (t) => {
  const client = setup({ body: [] })
  const verbsOf = (fact: (typeof facts)[number]) => [...fact.collection, ...fact.item]
  const refused: Record<string, number> = {}
  const unclear: string[] = []
  for (const fact of facts) {
    const api = apiOf(client, camelCase(fact.name))
    const at = fact.path.replace('{org}', '1').replace('{pversion}', 'draft').replace('{id}', '9')
    const needsParent = fact.parent !== ''
    const parent = needsParent ? at.slice(0, at.lastIndexOf('/')) : null
    const stranger = needsParent ? '/orgs/1/labels/1' : '/orgs/1/sec_policy/draft/rule_sets/1'
    const href = fact.item.length > 0 ? `${at}/5` : at
    const isSingle = fact.single !== ''
    const canUpdate = (fact.item.length > 0 ? fact.item : fact.collection).includes('PUT')
    const attempts: [string, boolean, () => Promise<unknown>][] = [
      ['getByReference', fact.item.includes('GET') || isSingle, () => api.getByReference(href)],
      ['getByName', !NAMELESS.has(fact.name) && !needsParent, () => api.getByName('x')],
      ['get', !needsParent, () => api.get('draft')],
      ['getAll', !needsParent, () => api.getAll('draft')],
      ['getAsync', !needsParent, () => api.getAsync('draft')],
      ['get of a stranger', false, () => api.get('draft', stranger)],
      ['getAll of a stranger', false, () => api.getAll('draft', stranger)],
      ['getAsync of a stranger', false, () => api.getAsync('draft', stranger)],
      ['get of a version that is none', false, () => api.get('dr/aft' as never, parent)],
      ['create', fact.collection.includes('POST') && !needsParent, () => api.create({})],
      ['create under a stranger', false, () => api.create({}, stranger)],
      ['update', canUpdate, () => api.update(href, {})],
      ['update of a stranger', false, () => api.update('/orgs/1/secrets/1', {})],
      ['delete', fact.item.includes('DELETE'), () => api.delete(href)],
      ['bulkCreate', fact.bulk.includes('create'), () => api.bulkCreate([{}])],
      ['bulkUpdate', fact.bulk.includes('update'), () => api.bulkUpdate([{ href }])],
      ['bulkDelete', fact.bulk.includes('delete'), () => api.bulkDelete([href])],
    ]
    for (const [verb, isSupported, call] of attempts) {
      if (isSupported) continue
      refused[verb] = (refused[verb] ?? 0) + 1
      const error = await call().then(
        () => null,
        (thrown: PceError) => thrown,
      )
      const offered =
        error?.code !== 'unsupported' || verb === 'getByName'
          ? []
          : [...verbsOf(fact), ...fact.bulk.map((name) => `bulk_${name}`)]
      const isClear = [subjectOf(verb, fact), ...offered].every((word) => error?.message.includes(word))
      if (error?.name !== 'PceError' || !isClear) unclear.push(`${fact.name} ${verb}: ${String(error)}`)
    }
  }
  t.same(unclear, [], 'each names its subject, and a verb that is not offered the verbs that are')
  t.same(server.requests(), [], 'not one request')
  t.comment(
    Object.entries(refused)
      .map(([verb, count]) => `${verb} ${count}`)
      .join(', '),
  )
  partial(t, refused, { bulkCreate: 53, bulkUpdate: 54, bulkDelete: 55, get: 4, create: 28, delete: 23 })
  partial(t, await client.labels.bulkCreate([{}]).catch((error: unknown) => error), {
    code: 'unsupported',
    message:
      'labels cannot be created in bulk; the PCE offers GET, POST on the collection; GET, PUT, DELETE on an object',
  })
})

t.test('a policy version', async (t) => {
  const client = setup({ body: [] })
  for (const bad of [-1, 1.5, NaN, Infinity, 1e21]) {
    await t.rejects(
      client.ipLists.get(bad),
      { name: 'PceIntegerError', code: 'invalid_integer' },
      `${bad} is no integer`,
    )
  }
  for (const bad of ['', 'Draft', '../draft', 'latest', null, {}] as never[]) {
    await t.rejects(client.ipLists.getAll(bad), { name: 'PceError', code: 'invalid_argument' })
    await t.rejects(client.ipLists.getByName('x', bad), { name: 'PceError', code: 'invalid_argument' })
  }
  t.same(server.requests(), [], 'is checked before any request')
  for (const good of ['draft', 'active', 0, 81] as const) await client.ipLists.get(good)
  t.same(
    server.requests().map((line) => line.split('/')[4]),
    ['draft', 'active', '0', '81'],
  )
})

t.test('a reference', async (t) => {
  const client = setup((seen) => ({ body: { href: seen.path } }))
  const href = '/orgs/1/sec_policy/active/ip_lists/12'
  for (const reference of [href, { href }, { href, name: 'Branches', created_at: 'x' }]) {
    t.same(await client.ipLists.getByReference(reference), { href })
  }
  server.seen.length = 0
  const foreign = [
    '/orgs/2/sec_policy/draft/ip_lists/12',
    '/orgs/1/sec_policy/draft/services/12',
    '/orgs/1/sec_policy/draft/ip_lists',
    '/orgs/1/sec_policy/draft/ip_lists/12/x',
    '/orgs/1/sec_policy/draft/ip_lists/12?x=1',
    '/orgs/11/sec_policy/draft/ip_lists/12',
    'x/orgs/1/sec_policy/draft/ip_lists/12',
    '/orgs/1/sec_policy/other/ip_lists/12',
    '/orgs/1/sec_policy/draft/ip_lists/..',
    '/orgs/1/sec_policy/draft/ip_lists/%2e%2e',
    '12',
    '',
  ]
  for (const wrong of foreign) {
    await t.rejects(client.ipLists.getByReference(wrong), { code: 'invalid_href' }, `refused: ${wrong}`)
    await t.rejects(client.ipLists.delete(wrong), { code: 'invalid_href' })
  }
  for (const wrong of [{}, null, 5] as never[])
    await t.rejects(client.ipLists.update(wrong, {}), { code: 'invalid_href' })
  await t.rejects(
    client.ipLists.update('/orgs/1/sec_policy/81/ip_lists/12', {}),
    { code: 'invalid_href' },
    'history is not written',
  )
  t.same(server.seen, [], 'before any request')
  await client.firewallSettings.update('/orgs/1/sec_policy/draft/firewall_settings/1', { x: 1 })
  await client.eventSettings.update({ audit_event_retention_seconds: 1 }, { y: 1 })
  await client.firewallSettings.update({}, { x: 1 })
  await client.firewallSettings.getByReference({})
  t.same(
    server.requests(),
    [
      'PUT /orgs/1/sec_policy/draft/firewall_settings/1',
      'PUT /orgs/1/settings/events',
      'PUT /orgs/1/sec_policy/draft/firewall_settings',
      'GET /orgs/1/sec_policy/draft/firewall_settings',
    ],
    'a single object needs no href',
  )
  for (const wrong of [null, 5, '']) {
    await t.rejects(client.eventSettings.update(wrong as never, {}), { code: 'invalid_href' })
  }
})

t.test('getByName', async (t) => {
  const named = (...names: string[]) =>
    names.map((name, index) => ({ href: `/orgs/1/sec_policy/draft/services/${index + 1}`, name }))
  let client = setup({ body: named('S-HTTPS', 'S-HTTP', 's-http', 'S-HTTP ') })
  partial(
    t,
    await client.services.getByName('S-HTTP'),
    { href: '/orgs/1/sec_policy/draft/services/2' },
    'is exact, though the PCE searches substrings',
  )
  t.same(server.requests(), ['GET /orgs/1/sec_policy/draft/services?name=S-HTTP'])
  t.equal(await client.services.getByName('S-HT', 'active'), null, 'answers null when there is none')
  t.equal(server.seen.at(-1)?.path, '/orgs/1/sec_policy/active/services?name=S-HT')

  client = setup({ body: named('Web', 'Webber', 'Web') })
  await t.rejects(client.services.getByName('Web'), {
    code: 'ambiguous_name',
    hrefs: ['/orgs/1/sec_policy/draft/services/1', '/orgs/1/sec_policy/draft/services/3'],
  })
  await t.rejects(client.labels.getByName('Web'), { code: 'unsupported', message: /key, value/ }, 'labels have no name')
  await t.rejects(client.rules.getByName('Web'), { code: 'unsupported' })
  const nameless = setup({ body: [{ href: '/orgs/1/workloads/a' }] })
  await t.rejects(nameless.workloads.getByName(undefined as never), { code: 'invalid_argument' })
  t.same(server.seen, [], 'no name is not the name of what has none')
  await t.rejects(client.containerWorkloadProfiles.getByName('Web'), { code: 'unsupported' })

  const many = named(...Array.from({ length: 700 }, (_, index) => (index === 650 ? 'Web' : `Web ${index}`)))
  client = setup(({ path }) => {
    const wanted = Number(/max_results=(\d+)/.exec(path)?.[1] ?? 500)
    return { body: many.slice(0, wanted), headers: { 'x-total-count': '700' } }
  })
  partial(t, await client.services.getByName('Web'), { name: 'Web' }, 'looks behind the first page')
  client = setup({ body: [{ href: '/orgs/1/network_devices/a', config: { name: 'leaf-1' } }] })
  partial(t, await client.networkDevices.getByName('leaf-1'), { href: '/orgs/1/network_devices/a' })
  client = setup({ body: [{ href: '/orgs/1/vulnerabilities/CVE-1', name: 'CVE-1' }] })
  t.ok(await client.vulnerabilities.getByName('CVE-1'))
  t.equal(server.seen[0]?.path, '/orgs/1/vulnerabilities', 'a name the PCE cannot search by is compared here')
})

t.test('get', async (t) => {
  let client = setup({ body: [{ href: '/orgs/1/labels/1' }], headers: { 'x-total-count': '550' } })
  t.same(await client.labels.get(), [{ href: '/orgs/1/labels/1' }])
  t.same(await client.labels.getPage('draft', null, { params: { key: 'app' } }), {
    items: [{ href: '/orgs/1/labels/1' }],
    totalCount: 550,
  })
  for (const odd of ['', 'abc', '-1', '1.5']) {
    client = setup({ body: [], headers: { 'x-total-count': odd } })
    t.equal((await client.labels.getPage()).totalCount, null, `a total of "${odd}" is none`)
  }
  for (const nothing of [
    { body: 'null' },
    { body: '' },
    { status: 204 },
    { body: { not: 'a list' } },
    { body: [[]] },
  ]) {
    const refused = { name: 'PceError', code: 'invalid_response' }
    await t.rejects(setup(nothing).labels.get(), refused, `${JSON.stringify(nothing)} is not an empty list`)
    await t.rejects(setup(nothing).labels.getAll(), refused)
    await t.rejects(setup(nothing).labels.getAsync(), refused)
  }
  t.same(await setup({ body: { ike: 1 } }).firewallSettings.get(81), [{ ike: 1 }], 'a single object is a list of one')
  t.equal(server.seen[0]?.path, '/orgs/1/sec_policy/81/firewall_settings')
  const rules = '/orgs/1/sec_policy/active/rule_sets/30/sec_rules'
  await setup().rules.get('active', '/orgs/1/sec_policy/draft/rule_sets/30')
  t.same(server.requests(), [`GET ${rules}`], 'a parent is looked at in the version asked for')
})

t.test('one object is not a list, nothing or an error in its place', async (t) => {
  const refused = { name: 'PceError', code: 'invalid_response' }
  for (const body of ['', 'null', '[]', '[{"href":"/orgs/1/labels/1"}]', '7', '{"error":"busy"}', '{"errors":[]}']) {
    await t.rejects(setup({ body }).labels.getByReference('/orgs/1/labels/1'), refused, `a label: ${body}`)
    await t.rejects(setup({ body }).firewallSettings.getByReference({}), refused, `settings: ${body}`)
    await t.rejects(setup({ body }).firewallSettings.get(), refused)
    await t.rejects(setup({ body }).getRiskSummary(), refused, `a report: ${body}`)
  }
  await t.rejects(setup({ body: {} }).labels.getByReference('/orgs/1/labels/1'), refused, 'a label without its href')
  t.same(await setup({ body: { ike: 1 } }).firewallSettings.getByReference({}), { ike: 1 }, 'settings need none')
})

t.test('create', async (t) => {
  let client = setup({ status: 201, body: { href: '/orgs/1/labels/9', key: 'app', value: 'ERP' } })
  partial(t, await client.labels.create({ key: 'app', value: 'ERP' }), { href: '/orgs/1/labels/9' })
  partial(t, server.seen, [{ method: 'POST', path: '/orgs/1/labels', body: '{"key":"app","value":"ERP"}' }])
  client = setup({ status: 201, body: '{"href":' })
  await t.rejects(
    client.labels.create({}),
    { code: 'outcome_unknown' },
    'an answer cut short does not mean that nothing was created',
  )
  client = setup({ status: 201, body: [{ href: '/orgs/1/service_bindings/1', status: 'created' }] })
  partial(t, await client.serviceBindings.create({ workload: { href: 'x' } }), { href: '/orgs/1/service_bindings/1' })
  t.equal(server.seen[0]?.body, '[{"workload":{"href":"x"}}]', 'service bindings are created as arrays')
  const two = [{ href: '/orgs/1/service_bindings/1' }, { href: '/orgs/1/service_bindings/2' }]
  client = setup({ status: 201, body: two })
  t.same(await client.serviceBindings.create([{}, {}]), two, 'and several of them at once')
  client = setup({ status: 201, body: { href: '/orgs/1/sec_policy/draft/rule_sets/3/deny_rules/4' } })
  await client.denyRules.create({}, { href: '/orgs/1/sec_policy/active/rule_sets/3' })
  t.equal(
    server.seen[0]?.path,
    '/orgs/1/sec_policy/draft/rule_sets/3/deny_rules',
    'rules are created in the draft of their rule set',
  )
})

t.test('a creation whose answer does not name the new object', async (t) => {
  const unknown = {
    code: 'outcome_unknown',
    message: /accepted the object \(status 201\).*cannot be read.*Check before/,
  }
  const unusable = ['', 'null', '{}', '[]', '7', '"text"', '{"href":null}', '{"href":7}', '[{}]', '[null]', '{"cut']
  let tried = 0
  const otherwise: string[] = []
  for (const { name, create, parent, path } of facts.filter(({ collection }) => collection.includes('POST'))) {
    const at = path.replace('{org}', '1').replace('{pversion}', 'draft').replace('{id}', '9')
    const under = parent === '' ? null : at.slice(0, at.lastIndexOf('/'))
    for (const body of create === '' ? [...unusable, '[{"href":"/made"}]'] : unusable) {
      const api = apiOf(setup({ status: 201, body }), camelCase(name))
      const error = await rejection(api.create({}, under))
      const isUnknown = error.code === unknown.code && unknown.message.test(error.message)
      tried++
      if (!isUnknown || server.seen.length !== 1)
        otherwise.push(`${name}: ${body}: ${String(error)} after ${server.seen.length} requests`)
    }
  }
  t.same({ tried, otherwise }, { tried: 382, otherwise: [] }, 'each is told, and none is sent again')
  for (const body of [...unusable, '{"href":"/made"}', '[{"href":"/made"},{}]']) {
    await t.rejects(setup({ status: 201, body }).vulnerabilities.create([{}, {}]), unknown, `a list: ${body}`)
  }
})

t.test('bulk operations', async (t) => {
  const href = (index: number) => `/orgs/1/workloads/w${index}`
  const echo: Responder = ({ path, body }) => ({
    body: path.endsWith('delete')
      ? []
      : (JSON.parse(body) as { href?: string }[]).map((_, index) => ({
          href: href(index),
          status: path.endsWith('create') ? 'created' : 'updated',
        })),
  })
  let client = setup(echo)
  const created = await client.workloads.bulkCreate(Array.from({ length: 2500 }, (_, index) => ({ name: `w${index}` })))
  t.equal(created.length, 2500)
  t.same(created[0], { href: href(0), errors: [] })
  t.same(
    server.seen.map(({ body }) => (JSON.parse(body) as unknown[]).length),
    [1000, 1000, 500],
    'go in chunks of at most 1000',
  )
  t.equal(server.requests()[0], 'PUT /orgs/1/workloads/bulk_create')
  t.same(
    await client.workloads.bulkDelete([
      href(1),
      { href: '/orgs/1/workloads?external_data_set=x&external_data_reference=y' },
    ]),
    [],
  )
  server.seen.length = 0
  t.same(await client.workloads.bulkCreate([]), [])
  await client.virtualServices.bulkUpdate([{ href: '/orgs/1/sec_policy/active/virtual_services/a', name: 'x' }])
  await client.securityPrincipals.bulkCreate([{ sid: 'S-1', name: 'x' }])
  partial(t, server.seen, [
    {
      path: '/orgs/1/sec_policy/draft/virtual_services/bulk_update',
      body: '[{"href":"/orgs/1/sec_policy/draft/virtual_services/a","name":"x"}]',
    },
    { path: '/orgs/1/security_principals/bulk_create' },
  ])
  await t.rejects(client.workloads.bulkUpdate([{ name: 'no href' }]), { code: 'invalid_href' })
  await t.rejects(client.workloads.bulkDelete(['/orgs/1/labels/1']), { code: 'invalid_href' })
  t.equal(server.seen.length, 2)

  client = setup({
    body: [
      { href: href(1), status: 'updated' },
      { href: href(2), status: 'failed', token: 'not_found_error', message: 'Not found' },
      { href: href(3), status: 'validation_failure' },
      { href: href(4), errors: [{ token: 'method_not_allowed_error', message: 'Not allowed' }] },
    ],
  })
  t.same(
    await client.workloads.bulkUpdate([{ href: href(1) }]),
    [
      { href: href(1), errors: [] },
      { href: href(2), errors: [{ token: 'not_found_error', message: 'Not found' }] },
      { href: href(3), errors: [{ token: 'bulk_change_error', message: '' }] },
      { href: href(4), errors: [{ token: 'method_not_allowed_error', message: 'Not allowed' }] },
    ],
    'report every item in one form',
  )

  for (const body of ['', 'null', [], [{ href: href(1), status: 'updated' }]]) {
    const both = [{ href: href(1) }, { href: href(2) }]
    const unknown = { name: 'PceError', code: 'outcome_unknown' }
    await t.rejects(setup({ body }).workloads.bulkCreate([{}, {}]), unknown, `${JSON.stringify(body)} tells too little`)
    await t.rejects(setup({ body }).workloads.bulkUpdate(both), unknown)
  }
  const short: Responder = (seen, index) => (index === 1 ? { body: [] } : echo(seen, index))
  const some = await rejection(setup(short).workloads.bulkCreate(Array.from({ length: 1500 }, () => ({}))))
  t.equal(some.completed?.length, 1000, 'and what came before it is kept')
  for (const reply of [
    { body: '' },
    { status: 204 },
    { body: { errors: [] } },
    { body: [{ href: href(1), errors: [] }] },
  ])
    t.same(
      await setup(reply).workloads.bulkDelete([href(1)]),
      [],
      `${JSON.stringify(reply)} is a deletion without failures`,
    )

  const lost = [{ href: href(1), errors: [{ token: 'not_found_error', message: 'Not found' }] }]
  client = setup({ body: lost })
  t.equal((await client.workloads.bulkDelete([href(1)])).length, 1, 'deleting what does not exist is a failure')
  client = setup((_seen, index) => (index === 0 ? { breaks: true } : { body: lost }))
  t.same(await client.workloads.bulkDelete([href(1)]), [], 'unless an attempt whose answer was lost has done it')

  client = setup((seen, index) => (index === 1 ? { status: 503 } : echo(seen, index)))
  const error = (await client.workloads
    .bulkCreate(Array.from({ length: 1500 }, () => ({})))
    .catch((thrown: unknown) => thrown)) as PceError
  partial(t, error, { code: 'outcome_unknown' })
  t.equal(error.completed?.length, 1000, 'a failure between chunks tells what is done')
  await t.rejects(setup({ body: '{"cut' }).workloads.bulkCreate([{}]), { code: 'outcome_unknown' })
})

/** What an error of an attempt must speak of. */
function subjectOf(attempt: string, { name, parent }: { name: string; parent?: string }): string {
  if (attempt.includes('version')) return 'version'
  return attempt.endsWith('stranger') && !attempt.startsWith('update') ? parent || name : name
}

function verbs(cell: string | undefined): string[] {
  return cell === undefined || cell === '' ? [] : cell.split(' ')
}

function camelCase(name: string): string {
  return name.replace(/_([a-z])/g, (_match, letter: string) => letter.toUpperCase())
}
