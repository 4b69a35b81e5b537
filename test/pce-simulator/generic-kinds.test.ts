/** The kinds that the simulator only keeps: one behaviour, of which each kind has the part that its table says. */
import t from 'tap'
import { partial } from '../partial.js'
import { startPce } from './start-pce.js'

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const PATH = '/settings/traffic_collector'

t.test('an object is made, listed, changed field by field and deleted, each with an event', async (t) => {
  const { org } = await startPce(t)
  const made = await org('POST', PATH, { transmission: 'unicast', action: 'drop' })
  t.equal(made.status, 201)
  const { href } = made.body as { href: string }
  t.ok(UUID.test(href.slice(`/orgs/1${PATH}/`.length)), href)
  partial(t, made.body, { transmission: 'unicast', network: 'any', created_by: { href: '/users/1' } }, 'with defaults')
  t.same((await org('GET', PATH)).body, [made.body])
  t.equal((await org('PUT', href, { network: 'corporate' })).status, 204)
  partial(t, (await org('GET', href)).body, { network: 'corporate', action: 'drop' }, 'what is not sent stays')
  t.equal((await org('DELETE', href)).status, 204)
  for (const verb of ['GET', 'PUT', 'DELETE']) {
    t.equal((await org(verb, href, verb === 'PUT' ? {} : undefined)).status, 404, verb)
  }
  t.equal((await org('POST', PATH, [])).status, 406, 'a body is an object')
  const types = ((await org('GET', '/events')).body as { event_type: string }[]).map(({ event_type }) => event_type)
  for (const verb of ['create', 'update', 'delete']) t.ok(types.includes(`traffic_collector_setting.${verb}`), verb)
})

t.test('a list is filtered by part of the name, cut at max_results, and says its total', async (t) => {
  const { org } = await startPce(t)
  for (const name of ['Offices', 'Data centre', 'Home offices']) await org('POST', '/access_restrictions', { name })
  const names = async (query: string) => {
    const { body, headers } = await org('GET', `/access_restrictions?${query}`)
    return [(body as { name: string }[]).map(({ name }) => name), headers.get('x-total-count')]
  }
  t.same(await names('name=office'), [['Offices', 'Home offices'], '2'])
  t.same(await names('max_results=1'), [['Offices'], '3'])
  t.same(await names('max_results=0'), [[], '3'])
})

t.test('a verb that the kind does not have is 405', async (t) => {
  const { call } = await startPce(t)
  for (const [verb, path] of [
    ['POST', '/orgs/1/report_templates'],
    ['DELETE', '/orgs/1/report_templates/rule_hit_count_report'],
    ['POST', '/authentication_settings/saml_configs'],
    ['PUT', '/orgs/1/app_group_summary'],
    ['DELETE', '/authentication_settings/password_policy'],
    ['POST', '/orgs/1/optional_features'],
  ] as const) {
    t.equal((await call(verb, path, verb === 'DELETE' ? undefined : {})).status, 405, `${verb} ${path}`)
  }
})

t.test('a secret is only ever written', async (t) => {
  const { call, simulator } = await startPce(t)
  const path = '/authentication_settings/ldap_configs'
  const made = await call('POST', path, { address: 'a', bind_password: 'hush-hush' })
  const device = { config: { host: '192.0.2.30', credential: 'hush-hush' } }
  const balancer = await call('POST', '/orgs/1/slbs', { name: 'lb', devices: [device] })
  t.same(balancer.body.devices, [{ config: { host: '192.0.2.30' } }])
  await call('PUT', made.body.href, { bind_password: 'hush-hush' })
  const seen = [made.text, (await call('GET', path)).text, (await call('GET', '/orgs/1/events')).text]
  t.notMatch(JSON.stringify([...seen, simulator.requests]), 'hush-hush')
})

t.test('some ids are chosen by the caller', async (t) => {
  const { org } = await startPce(t)
  const flaw = { reference_id: 'CVE 1', name: 'One', score: 75 }
  const made = await org('POST', '/vulnerabilities', [flaw])
  partial(t, made.body, [{ href: '/orgs/1/vulnerabilities/CVE%201', score: 75, cve_ids: null }], 'an array each way')
  t.equal((await org('POST', '/vulnerabilities', flaw)).status, 406, 'not one object')
  const report = { name: 'Scan', report_type: 'nessus' }
  t.equal((await org('PUT', '/vulnerability_reports/mine', report)).status, 201, 'a PUT makes it')
  t.equal((await org('PUT', '/vulnerability_reports/mine', { name: 'Rescan' })).status, 204, 'or changes it')
  partial(t, (await org('GET', '/vulnerability_reports/mine')).body, { name: 'Rescan', report_type: 'nessus' })

  const principals = [1, 2].map((number) => ({ sid: `S-1-${number}`, name: `Group ${number}` }))
  const bulk = await org('PUT', '/security_principals/bulk_create', principals)
  t.same(
    bulk.body,
    [1, 2].map((number) => ({ href: `/orgs/1/security_principals/S-1-${number}`, status: 'created' })),
  )
  t.equal((await org('POST', '/security_principals', { name: 'No SID' })).status, 406)
})

t.test('objects below another need it', async (t) => {
  const { org } = await startPce(t, { estate: undefined, seed: 5, workloads: 20, flows: 10 })
  const [one, two] = (await org('GET', '/network_devices')).body as { href: string }[]
  const path = `${two!.href}/network_endpoints`
  const made = (await org('POST', path, { config: { name: 'eth1/9' } })).body as { href: string }
  const hrefs = async (path: string) => ((await org('GET', path)).body as { href: string }[]).map(({ href }) => href)
  t.ok((await hrefs(path)).includes(made.href))
  t.notOk((await hrefs(`${one!.href}/network_endpoints`)).includes(made.href))
  t.equal((await org('GET', '/network_devices/none/network_endpoints')).status, 404)
  t.equal((await org('POST', '/network_devices/none/network_endpoints', {})).status, 404)
})

t.test('single objects are read and changed field by field', async (t) => {
  const { org } = await startPce(t)
  const before = (await org('GET', '/settings/events')).body as object
  partial(t, before, { href: '/orgs/1/settings/events', format: 'JSON' })
  t.equal((await org('PUT', '/settings/events', { audit_event_retention_seconds: 86_400 })).status, 204)
  t.same((await org('GET', '/settings/events')).body, { ...before, audit_event_retention_seconds: 86_400 })
  const [event] = (await org('GET', '/events')).body
  partial(t, event, { event_type: 'event_settings.update', resource_changes: [{ change_type: 'update' }] })
})

t.test('optional features: a list that is changed by a list', async (t) => {
  const { org } = await startPce(t)
  const before = (await org('GET', '/optional_features')).body as { name: string; enabled: boolean }[]
  t.equal((await org('PUT', '/optional_features', [{ name: 'ui_analytics', enabled: true }])).status, 204)
  t.same(
    (await org('GET', '/optional_features')).body,
    before.map((one) => (one.name === 'ui_analytics' ? { ...one, enabled: true } : one)),
  )
  t.equal((await org('PUT', '/optional_features', {})).status, 406)
})
