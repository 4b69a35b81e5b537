/** What clients of others rely on: a public SDK's integration tests and the exports of workloader. */
import { get, type IncomingMessage } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { gunzipSync } from 'node:zlib'
import t from 'tap'
import { SMALL, SMALL_QUERY } from '../../pce-simulator/small-estate.js'
import { partial } from '../partial.js'
import { startPce } from './start-pce.js'

t.test('a rule set without a scope is taken, and covers nothing', async (t) => {
  const { org } = await startPce(t)
  const path = '/sec_policy/draft/rule_sets'
  const { status, body } = await org('POST', path, { name: 'later', scopes: [] })
  t.same([status, body.scopes], [201, []])
  const rule = {
    providers: [{ actors: 'ams' }],
    consumers: [{ actors: 'ams' }],
    ingress_services: [{ href: SMALL.allServices }],
    resolve_labels_as: { providers: ['workloads'], consumers: ['workloads'] },
    enabled: true,
  }
  t.equal((await org('POST', `${body.href}/sec_rules`, rule)).status, 201)
  t.equal((await org('POST', '/sec_policy', { update_description: 'no scope' })).status, 201)
  const decisions = async () => {
    const { body: query } = await org('POST', '/traffic_flows/async_queries', SMALL_QUERY)
    for (let poll = 0; poll < 3; poll++) await org('GET', query.href)
    const rows = (await org('GET', `${query.href}/download`)).body as { policy_decision: string }[]
    return rows.map(({ policy_decision }) => policy_decision)
  }
  t.same(await decisions(), ['potentially_blocked'])
  t.equal((await org('PUT', body.href, { scopes: [[]] })).status, 204)
  await org('POST', '/sec_policy', { update_description: 'every scope' })
  t.same(await decisions(), ['allowed'])
  t.equal((await org('PUT', body.href, { scopes: [] })).status, 204, 'and it can be taken away again')
  t.same((await org('GET', body.href)).body.scopes, [])
})

t.test('a label that only restricts a container profile can be deleted, one that is assigned cannot', async (t) => {
  const { org } = await startPce(t)
  const label = async (value: string) => (await org('POST', '/labels', { key: 'env', value })).body.href as string
  const [choice, other, fixed] = [await label('choice'), await label('other'), await label('fixed')]
  const { body: cluster } = await org('POST', '/container_clusters', { name: 'k8s' })
  const profiles = `${cluster.href}/container_workload_profiles`
  const restriction = [{ key: 'env', restriction: [{ href: choice }, { href: other }] }]
  await org('POST', profiles, { name: 'restricted', labels: restriction })
  await org('POST', profiles, { name: 'assigned', labels: [{ key: 'env', assignment: { href: fixed } }] })

  t.equal((await org('GET', `${choice}?usage=true`)).body.usage.container_workload_profile, true)
  t.equal((await org('DELETE', choice)).status, 204)
  t.equal((await org('GET', choice)).body.deleted, true)
  const refused = await org('DELETE', fixed)
  t.same([refused.status, refused.body[0].token], [406, 'input_validation_error'])
  t.equal((await org('GET', fixed)).body.deleted, false)
})

t.test('a traffic download is CSV unless JSON is accepted', async (t) => {
  const { simulator, org } = await startPce(t)
  const { body: query } = await org('POST', '/traffic_flows/async_queries', SMALL_QUERY)
  for (let poll = 0; poll < 3; poll++) await org('GET', query.href)
  const { key, secret } = simulator.credentials
  const authorization = `Basic ${btoa(`${key}:${secret}`)}`
  /** Downloads with these headers and no others, as the standard library of Go would send them. */
  const download = async (headers: Record<string, string>, href: string = query.href) => {
    const answer = await new Promise<IncomingMessage>((resolve, reject) =>
      get(`${simulator.url}/api/v2${href}/download`, { headers: { authorization, ...headers } }, resolve).on(
        'error',
        reject,
      ),
    )
    const { 'content-type': type, 'content-encoding': encoding } = answer.headers
    t.equal(encoding, undefined, 'packed without a word about it')
    return { status: answer.statusCode, type, body: gunzipSync(await buffer(answer)).toString() }
  }
  const csv = await download({})
  t.same([csv.status, csv.type], [200, 'text/csv'])
  const lines = csv.body.split('\n')
  t.equal(lines.length, 3, 'a header, one row, and the end of the last line')
  const [names, values] = lines.map((line) => line.split(','))
  const row = Object.fromEntries(names!.map((name, at) => [name, values![at]]))
  t.same(row, {
    'Source IP': '10.2.0.1',
    'Source IP List': '',
    'Source Name': 'ordering-web-1',
    'Source Hostname': 'ordering-web-1.example.com',
    'Source FQDN': '',
    'Source Managed': 'true',
    'Source Enforcement': 'visibility_only',
    'Source Role': 'web',
    'Source App': 'ordering',
    'Source Env': 'prod',
    'Source Loc': '',
    'Destination IP': '10.1.0.1',
    'Destination IP List': '',
    'Destination Name': 'payments-db-1',
    'Destination Hostname': 'payments-db-1.example.com',
    'Destination FQDN': '',
    'Destination Managed': 'true',
    'Destination Enforcement': 'visibility_only',
    'Destination Role': 'db',
    'Destination App': 'payments',
    'Destination Env': 'prod',
    'Destination Loc': '',
    Transmission: 'unicast',
    Port: '5432',
    Protocol: 'TCP',
    'Process Name': '/usr/lib/postgresql/bin/postgres',
    'Windows Service Name': '',
    'User Name': 'postgres',
    'Num Flows': '70',
    'Connection State': 'closed',
    'Flow Direction': 'inbound',
    'Reported Policy Decision': 'Potentially Blocked',
    'Reported Enforcement Boundary': '',
    'Reported by': 'Destination',
    'Draft Policy Decision': '',
    'Bytes In': row['Bytes In'],
    'Bytes Out': row['Bytes Out'],
    'First Detected': row['First Detected'],
    'Last Detected': row['Last Detected'],
  })
  partial(t, row, { 'First Detected': /^2026-02-2\dT/, 'Bytes In': /^\d+$/ })
  t.equal((await download({ accept: 'text/csv' })).type, 'text/csv')
  for (const accept of ['application/json', '*/*', 'text/html, application/json;q=0.9']) {
    const json = await download({ accept })
    t.equal(json.type, 'application/json', accept)
    partial(t, JSON.parse(json.body), [{ num_connections: 70 }])
  }
  await org('PUT', SMALL.orderingWeb, { name: 'web "1", blue' })
  const { body: later } = await org('POST', '/traffic_flows/async_queries', SMALL_QUERY)
  for (let poll = 0; poll < 3; poll++) await org('GET', later.href)
  const quoted = await download({}, later.href)
  t.equal(quoted.body.split('\n')[1]!.split(',ordering-web-1.example.com,')[0], '10.2.0.1,,"web ""1"", blue"')
})

t.test('the profile of the lab packs a traffic download only for a client that accepts gzip', async (t) => {
  const { simulator, org } = await startPce(t, { reality: 'lab' })
  const { body: query } = await org('POST', '/traffic_flows/async_queries', SMALL_QUERY)
  for (let poll = 0; poll < 3; poll++) await org('GET', query.href)
  const { key, secret } = simulator.credentials
  for (const [accepted, encoding] of [
    ['gzip', 'gzip'],
    ['identity', null],
  ] as const) {
    const headers = { authorization: `Basic ${btoa(`${key}:${secret}`)}`, 'accept-encoding': accepted }
    const answer = await fetch(`${simulator.url}/api/v2${query.href}/download`, { headers })
    t.equal(answer.headers.get('content-encoding'), encoding, accepted)
    partial(t, await answer.json(), [{ num_connections: 70 }])
  }
})
