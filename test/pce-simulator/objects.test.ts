import t from 'tap'
import { SMALL } from '../../pce-simulator/small-estate.js'
import { partial } from '../partial.js'
import { START_OF_TEST, startPce } from './start-pce.js'

const token = (answer: { body: { token: string }[] }) => answer.body?.[0]?.token
const message = (answer: { body: { message: string }[] }) => answer.body[0]!.message

t.test('credentials, organisation, paths and verbs', async (t) => {
  const { simulator, call, org } = await startPce(t)
  const bare = (headers: RequestInit['headers']) => fetch(`${simulator.url}/api/v2/orgs/1/labels`, { headers })
  const wrong = `Basic ${Buffer.from(`${simulator.credentials.key}:wrong`).toString('base64')}`

  for (const headers of [{}, { authorization: wrong }, { authorization: 'Bearer x' }] as RequestInit['headers'][]) {
    const answer = await bare(headers)
    t.equal(answer.status, 401)
    t.equal(await answer.text(), '', 'a refused login has no JSON body')
    t.ok(answer.headers.get('x-request-id'))
  }
  t.equal((await fetch(`${simulator.url}/api/v2/node_available`)).status, 200, 'open to everyone')
  t.equal((await call('GET', '/orgs/2/labels')).status, 403)

  const unknown = await org('GET', '/no_such_kind')
  t.equal(unknown.status, 404)
  t.equal(token(unknown), 'not_found_error')
  t.equal(token(await org('GET', '/labels/999')), 'not_found_error')
  for (const [verb, path] of [
    ['PUT', '/labels'],
    ['PATCH', '/labels/1'],
    ['POST', '/events'],
    ['GET', '/workloads/bulk_create'],
    ['OPTIONS', '/labels'],
  ] as const) {
    const answer = await org(verb, path, verb === 'GET' ? undefined : {})
    t.equal(answer.status, 405, `${verb} ${path}`)
    t.equal(token(answer), 'method_not_allowed_error')
  }
  t.equal((await org('HEAD', '/labels')).status, 405)
  t.equal((await org('HEAD', '/no_such_kind')).status, 404)
  const spelt = await org(
    'GET',
    SMALL.prod.replace(/\d$/, (digit) => `%3${digit}`),
  )
  t.same([spelt.status, spelt.body?.href], [200, SMALL.prod], 'another spelling of the same path')
  t.equal((await org('GET', '/labels/%zz')).status, 400)
  const answer = await org('GET', '/labels')
  t.equal(answer.headers.get('content-type'), 'application/json', 'without a charset')
  t.match(answer.headers.get('etag'), /^W\//)
  t.equal((await call('GET', '/product_version')).body.product_name, 'PCE')
  t.equal((await call('GET', '/health')).body[0].status, 'normal')
  t.ok((await org('GET', '/settings/workloads')).body.workload_disconnected_timeout_seconds)
})

t.test('a payload that violates its schema is a 406 that names the violation', async (t) => {
  const { call, org } = await startPce(t)
  const cases: [string, string, unknown, RegExp][] = [
    [
      'POST',
      '/labels',
      { key: 'app' },
      /'#\/' did not contain a required property of 'value' in schema labels_post\.schema/,
    ],
    [
      'POST',
      '/labels',
      { key: 'app', value: 7 },
      /'#\/value' of type integer did not match the following type: string/,
    ],
    [
      'POST',
      '/labels',
      { key: 'app', value: 'x', y: 1, z: 2 },
      /additional properties \["y","z"\] outside of the schema/,
    ],
    ['POST', '/labels', [], /'#\/' of type array did not match the following type: object/],
    ['PUT', '/labels/1', { key: 'app' }, /additional properties \["key"\]/],
    [
      'POST',
      '/sec_policy/draft/rule_sets',
      { name: 'x', scopes: null },
      /'#\/scopes' of type null did not match.*: array/,
    ],
    [
      'POST',
      '/workloads',
      { name: 'x', enforcement_mode: 'on' },
      /value "on" did not match one of the following values: idle,/,
    ],
    ['POST', '/workloads', { name: 'x', managed: true }, /additional properties \["managed"\]/],
    ['PUT', SMALL.paymentsDb, { hostname: 'x' }, /additional properties \["hostname"\]/],
    [
      'PUT',
      '/sec_policy/delete',
      { change_subset: { labels: [] } },
      /'#\/change_subset' contains additional properties/,
    ],
  ]
  for (const [verb, path, body, expected] of cases) {
    const answer = await org(verb, path, body)
    t.equal(answer.status, 406, `${verb} ${path} ${JSON.stringify(body)}`)
    t.equal(token(answer), 'input_validation_error')
    partial(t, message(answer), expected)
    t.match(message(answer), /^Input validation failed\. Details: \{The property '#/)
  }
  t.match(message(await call('POST', '/orgs/1/labels')), /No payload provided for POST request/)
  t.equal((await org('POST', '/labels', '{"key":')).status, 400, 'broken JSON')
  t.equal((await org('PUT', SMALL.scanner, { hostname: 'scanner-2' })).status, 204, 'writable where no VEN reports it')
})

t.test('collections: totals, silent truncation, filters, labels as JSON, asynchronous jobs', async (t) => {
  const { simulator, org } = await startPce(t)
  const bulk = Array.from({ length: 597 }, (_, index) => ({ name: `host-${index}` }))
  await org('PUT', '/workloads/bulk_create', bulk)

  const page = await org('GET', '/workloads')
  t.equal(page.body.length, 500, 'the default size')
  t.equal(page.headers.get('x-total-count'), '600')
  const none = await org('GET', '/workloads?max_results=0')
  t.same([none.body.length, none.headers.get('x-total-count')], [0, '600'])
  t.equal((await org('GET', '/workloads?max_results=600')).body.length, 600)
  t.equal((await org('GET', '/workloads?max_results=many')).status, 406)

  const names = async (query: string) =>
    (await org('GET', `/workloads?${query}`)).body.map(({ name }: { name: string }) => name)
  t.same(await names('name=PAYMENTS'), ['payments-db-1'], 'a substring, whatever its case')
  t.same(await names('managed=true&hostname=example'), ['payments-db-1', 'ordering-web-1'], 'filters AND together')
  t.same(await names('ip_address=10.3.'), ['scanner-1'])
  t.same(await names(`labels=${encodeURIComponent(JSON.stringify([[SMALL.db, SMALL.prod], [SMALL.ordering]]))}`), [
    'payments-db-1',
    'ordering-web-1',
  ])
  t.same(
    await names(`labels=${encodeURIComponent(JSON.stringify([[SMALL.db, SMALL.ordering]]))}`),
    [],
    'inner lists AND',
  )
  for (const bad of [SMALL.db, JSON.stringify([SMALL.db]), '[["/orgs/1/labels/99"]]', '"x"']) {
    t.equal(token(await org('GET', `/workloads?labels=${encodeURIComponent(bad)}`)), 'invalid_uri', bad)
  }
  t.equal(token(await org('GET', '/workloads?ip_address=nowhere')), 'invalid_ip_address')
  t.equal((await org('GET', '/workloads?managed=yes')).status, 406)

  const filtered = await org('GET', '/workloads?name=scanner')
  t.same([filtered.headers.get('x-total-count'), filtered.headers.get('x-matched-count')], ['1', null])
  const odd = await (await startPce(t, { totalCount: 'all' })).org('GET', '/workloads?name=scanner')
  t.same(
    [odd.headers.get('x-total-count'), odd.headers.get('x-matched-count')],
    ['3', '1'],
    'as one release was seen to count',
  )

  const accepted = await org('GET', '/workloads', undefined, { prefer: 'respond-async' })
  t.equal(accepted.status, 202)
  t.equal(accepted.text, '')
  t.match(accepted.headers.get('retry-after'), /^\d+$/)
  const job = accepted.headers.get('location')!
  t.match(job, /^\/orgs\/1\/jobs\/[0-9a-f-]{36}$/, 'a path without /api/v2')
  await org('DELETE', SMALL.scanner)
  const seen = [(await org('GET', job)).body.status, (await org('GET', job)).body.status]
  const done = (await org('GET', job)).body
  t.same([...seen, done.status], ['pending', 'running', 'done'])
  t.equal((await org('GET', done.result.href)).body.length, 600, 'all of it, as it was when it was asked for')
  t.same([(await org('DELETE', job)).status, (await org('GET', job)).status], [204, 404])
  t.equal(simulator.requests.at(-1)!.status, 404)
})

t.test('label changes act at once and are refused if they would break something', async (t) => {
  const { org } = await startPce(t)
  const created = await org('POST', '/labels', { key: 'app', value: 'crm' })
  t.equal(created.status, 201)
  partial(t, created.body, {
    href: '/orgs/1/labels/7',
    deleted: false,
    created_by: { href: '/users/1' },
    caps: ['write'],
  })
  t.equal(token(await org('POST', '/labels', { key: 'app', value: 'crm' })), 'label_key_and_value_must_be_unique')
  t.equal((await org('POST', '/labels', { key: 'colour', value: 'red' })).status, 406, 'no such dimension')
  t.equal((await org('POST', '/labels', { key: 'app', value: 'All Applications' })).status, 406, 'reserved')

  t.equal(token(await org('DELETE', SMALL.payments)), 'label_still_has_associated_rule_set')
  t.equal(token(await org('DELETE', SMALL.web)), 'label_still_has_associated_rule_set', 'used as an actor of a rule')
  t.equal(token(await org('DELETE', SMALL.ordering)), 'label_still_has_associated_agent_info')
  await org('POST', '/sec_policy/draft/label_groups', { name: 'Test', key: 'env', labels: [{ href: SMALL.dev }] })
  t.equal(token(await org('DELETE', SMALL.dev)), 'label_referenced_by_label_group')

  t.equal((await org('PUT', created.body.href, { value: 'crm2' })).status, 204)
  t.equal((await org('DELETE', created.body.href)).status, 204)
  t.equal(token(await org('DELETE', created.body.href)), 'label_already_deleted')
  t.same((await org('GET', '/labels?value=crm')).body, [], 'soft-deleted')
  partial(t, (await org('GET', '/labels?value=crm&include_deleted=true')).body, [{ deleted: true }])
  partial(t, (await org('GET', '/labels?value=payments&usage=true')).body[0].usage, {
    ruleset: true,
    workload: true,
    rule: false,
  })
})

t.test('workloads: one label of a key, bulk calls with a result for each item, managed ones stay', async (t) => {
  const { org } = await startPce(t)
  const two = [{ href: SMALL.prod }, { href: SMALL.dev }]
  t.equal((await org('POST', '/workloads', { name: 'x', labels: two })).status, 406)
  t.equal(token(await org('POST', '/workloads', { name: 'x', labels: [{ href: '/orgs/1/labels/99' }] })), 'invalid_uri')
  const badAddress = { name: 'x', interfaces: [{ name: 'eth0', address: '10.0.0.256' }] }
  t.equal(token(await org('POST', '/workloads', badAddress)), 'invalid_ip_address')
  const keyed = { name: 'a', external_data_set: 'cmdb', external_data_reference: '1' }
  partial(t, (await org('POST', '/workloads', keyed)).body, {
    managed: false,
    online: true,
    enforcement_mode: 'visibility_only',
  })
  t.equal((await org('POST', '/workloads', { ...keyed, name: 'b' })).status, 406, 'the pair is taken')

  const results = (await org('PUT', '/workloads/bulk_create', [{ name: 'c' }, { name: 'd', labels: two }])).body
  partial(t, results, [{ status: 'created', href: /workloads/ }, { token: 'input_validation_error' }])
  const updates = [{ href: results[0].href, description: 'x' }, { href: '/orgs/1/workloads/none' }]
  partial(t, (await org('PUT', '/workloads/bulk_update', updates)).body, [
    { status: 'updated' },
    { token: 'not_found_error' },
  ])
  t.equal(
    (
      await org(
        'PUT',
        '/workloads/bulk_create',
        Array.from({ length: 1001 }, () => ({})),
      )
    ).status,
    406,
  )

  t.equal((await org('DELETE', SMALL.paymentsDb)).status, 405)
  const byReference = '/orgs/1/workloads?external_data_set=cmdb&external_data_reference=1'
  const doomed = [SMALL.paymentsDb, results[0].href, byReference, '/orgs/1/workloads/none'].map((href) => ({ href }))
  const failures = (await org('PUT', '/workloads/bulk_delete', doomed)).body
  t.equal(failures.length, 2)
  partial(t, failures, [
    { href: SMALL.paymentsDb, errors: [{ token: 'method_not_allowed_error', message: 'Not allowed' }] },
    { href: '/orgs/1/workloads/none', errors: [{ token: 'not_found_error' }] },
  ])
  t.equal((await org('GET', '/workloads')).body.length, 3)
  t.equal((await org('GET', '/workloads?include_deleted=true')).body.length, 5)
})

t.test('events record every write, newest first', async (t) => {
  let now = START_OF_TEST
  const { simulator, org } = await startPce(t, { now: () => (now += 1000) })
  await org('POST', '/labels', { key: 'app', value: 'one' })
  await org('POST', '/labels', { key: 'app', value: 'one' })
  await org('PUT', SMALL.paymentsRules, { description: 'x' })
  await fetch(`${simulator.url}/api/v2/orgs/1/labels`)
  const events = (await org('GET', '/events')).body
  t.equal(events.length, 4, 'reads leave none')
  partial(t, events, [
    { event_type: 'request.authentication_failed', status: 'failure' },
    {
      event_type: 'rule_set.update',
      resource_changes: [{ change_type: 'update', changes: { description: { before: null, after: 'x' } } }],
    },
    { event_type: 'label.create', status: 'failure', action: { http_status_code: 406 } },
    { event_type: 'label.create', status: 'success', action: { api_method: 'POST', http_status_code: 201 } },
  ])
  const since = encodeURIComponent(events[1].timestamp)
  t.equal((await org('GET', `/events?timestamp[gte]=${since}`)).body.length, 2)
  t.equal((await org('GET', `/events?event_type=label.create&status=failure`)).body.length, 1)
  t.equal((await org('GET', '/events?timestamp[gte]=2026-03-01T00:00:00')).status, 406, 'a time without a zone')
  t.equal((await org('GET', events[0].href)).body.event_type, 'request.authentication_failed')
})
