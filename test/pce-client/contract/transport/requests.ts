import type { Test } from 'tap'
import { partial } from '../../../partial.js'
import { failureOf, type ContractPce, type Json } from '../start-contract-pce.js'
import { proveTransport } from './prove-transport.js'

const LABELS = '/orgs/1/labels'

/** The four verbs, collections and the check of the connection (S9, P1, P3, P7, P10). */
export async function requestOperations(t: Test, pce: ContractPce): Promise<void> {
  const { client, simulator, connect } = pce
  const [label] = await pce.list(LABELS)
  const headers = () => simulator.requests.at(-1)?.headers ?? {}

  await proveTransport(t, 'get', async (t) => {
    const answer = await client.get('labels', { params: { key: 'app', max_results: 1 }, headers: { 'X-Extra': 'yes' } })
    t.equal(answer.status, 200)
    t.match(answer.headers['x-total-count'], /^\d+$/, 'with the headers of the answer')
    t.equal(answer.json<Json[]>().length, 1)
    partial(t, headers(), { accept: 'application/json', 'x-extra': 'yes' })
    t.notOk(headers()['content-type'], 'no Content-Type without a body')
    const query = { key: 'app', max_results: '1' }
    pce.wire(t, { method: 'GET', path: LABELS, query }, 'below the organisation')
    await client.get(label!.href)
    pce.wire(t, { method: 'GET', path: label!.href }, 'an href has its organisation already')
    await client.get('/product_version', { includeOrg: false })
    pce.wire(t, { method: 'GET', path: '/product_version' }, 'or none')
    await client.get('//labels//1')
    pce.wire(t, { method: 'GET', path: '/orgs/1/labels/1' }, 'slashes too many do not matter')
    client.includeOrg = false
    await client.get('node_available')
    pce.wire(t, { method: 'GET', path: '/node_available' }, 'include_org false')
    client.includeOrg = true
    const path = `${LABELS}/999999`
    await pce.refused(t, () => client.get(path), { status: 404, method: 'GET', path }, 'not there')
  })

  let made = ''
  await proveTransport(t, 'post', async (t) => {
    const json = { key: 'app', value: 'Transport ü' }
    const answer = await client.post('labels', { json })
    t.equal(answer.status, 201)
    made = answer.json<{ href: string }>().href
    partial(t, headers(), { 'content-type': 'application/json', accept: 'application/json' }, 'JSON by default')
    pce.wire(t, { method: 'POST', path: LABELS, body: json, status: 201 }, 'the body as given')
    const facts = { status: 406, method: 'POST', path: LABELS, token: 'label_key_and_value_must_be_unique' }
    await pce.refused(t, () => client.post('labels', { json }), facts, 'a duplicate')
    const bare = { status: 406, method: 'POST', path: LABELS, token: 'input_validation_error' }
    await pce.refused(t, () => client.post('labels'), bare, 'a body is always sent')
  })

  await proveTransport(t, 'put', async (t) => {
    const answer = await client.put(made, { json: { value: 'Transport ß' } })
    t.equal(answer.status, 204)
    t.equal(answer.text, '')
    t.equal(answer.json(), undefined)
    partial(t, headers(), { 'content-type': 'application/json' }, 'JSON by default')
    pce.wire(t, { method: 'PUT', path: made, body: { value: 'Transport ß' }, status: 204 }, 'the body as given')
    partial(t, simulator.state.find(made), { value: 'Transport ß' })
    await client.put(made)
    pce.wire(t, { method: 'PUT', path: made, body: {}, status: 204 }, 'a body is always sent')
    const facts = { status: 406, method: 'PUT', path: made, token: 'input_validation_error' }
    await pce.refused(t, () => client.put(made, { json: { key: 'env' } }), facts, 'a bad body')
  })

  await proveTransport(t, 'delete', async (t) => {
    t.equal((await client.delete(made)).status, 204)
    t.notOk(headers()['content-type'], 'no Content-Type without a body')
    pce.wire(t, { method: 'DELETE', path: made, status: 204 }, 'without a body')
    const facts = { status: 406, method: 'DELETE', path: made, token: 'label_already_deleted' }
    await pce.refused(t, () => client.delete(made), facts, 'it is gone')
  })

  await proveTransport(t, 'get_collection', async (t) => {
    const answer = await client.getCollection('labels', { params: { key: 'app' } })
    const rows = answer.json<Json[]>()
    t.ok(rows.length > 0 && rows.every(({ key }) => key === 'app'), 'the whole collection that passes the filter')
    const [first, job, file] = pce.look()
    partial(t, first, { method: 'GET', path: `/api/v2${LABELS}`, status: 202, headers: { prefer: 'respond-async' } })
    t.strictSame(first?.query, { key: 'app' })
    t.match(job?.path, /^\/api\/v2\/orgs\/1\/jobs\/[0-9a-f-]{36}$/, 'then the job')
    t.match(file?.path, /^\/api\/v2\/orgs\/1\/datafiles\/[0-9a-f-]{36}$/, 'then its file')
    t.strictSame(client.waits[0], 1000, 'after the time of Retry-After')
    const path = '/orgs/1/no_such_kind'
    await pce.refused(t, () => client.getCollection('no_such_kind'), { status: 404, method: 'GET', path }, 'above 399')
    simulator.faults.add({
      kind: 'status',
      path: /\/jobs\//,
      times: 1,
      status: 403,
      body: [{ token: 'forbidden_error' }],
    })
    const error = (await failureOf(() => client.getCollection('labels'))) as Json
    partial(t, error, { name: 'PceApiError', status: 403 }, 'above 399, while the job is read')
    simulator.faults.add({
      kind: 'status',
      path: /\/jobs\//,
      times: 1,
      status: 200,
      body: { href: '/orgs/1/jobs/1', status: 'failed', result: { message: 'No room' } },
    })
    const failed = (await failureOf(() => client.getCollection('labels'))) as Json
    partial(t, failed, { name: 'PceApiError', code: 'job_failed', message: /No room/ }, 'a job that failed')
    simulator.clearRequests()
  })

  await proveTransport(t, 'must_connect', async (t) => {
    t.equal(await client.mustConnect(), undefined)
    const settings = '/orgs/1/settings/workloads'
    const both = [
      { method: 'GET', path: '/health' },
      { method: 'GET', path: settings },
    ]
    pce.wire(t, both, 'the PCE, then the organisation')
    pce.refuseNext('GET', '/health', 404, 'not_found_error')
    await client.mustConnect()
    pce.wire(t, [{ ...both[0]!, status: 404 }, both[1]!], 'without /health the organisation decides')
    const stranger = connect({ retryCount: 0 })
    stranger.setCredentials('api_0', 'wrong')
    await t.rejects(stranger.mustConnect(), { name: 'PceApiError', status: 401 }, 'wrong credentials')
    const foreigner = connect({ retryCount: 0, orgId: 2 })
    await t.rejects(foreigner.mustConnect(), { name: 'PceApiError', status: 403 }, 'another organisation')
    simulator.clearRequests()
  })

  await proveTransport(t, 'check_connection', async (t) => {
    t.equal(await client.checkConnection(), true)
    pce.wire(
      t,
      [
        { method: 'GET', path: '/health' },
        { method: 'GET', path: '/orgs/1/settings/workloads' },
      ],
      'as must_connect',
    )
    const stranger = connect({ retryCount: 0 })
    stranger.setCredentials('api_0', 'wrong')
    t.equal(await stranger.checkConnection(), false, 'wrong credentials')
    const nowhere = connect({ port: 1, retryCount: 0 })
    t.equal(await nowhere.checkConnection(), false, 'no PCE')
    simulator.clearRequests()
  })
}
