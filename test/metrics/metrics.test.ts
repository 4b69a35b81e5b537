/** What /metrics says of the calls that were made, and of nothing else. */
import { request } from 'node:http'
import { once } from 'node:events'
import t from 'tap'
import { PUBLIC_URL, registrationFor, startService } from '../contract/authenticated-service.js'
import { insecureApp, testTools } from '../contract/insecure-app.js'
import { startMeasured } from './measured-service.js'
import { readScrape } from './scrape.js'

const CALLS = 'svc_mcp_tool_calls_total'
const REQUESTS = 'svc_mcp_pce_requests_total'

t.test('calls by tool, outcome and gate, each once', async (t) => {
  const { call, scrape, tokenOf, pce } = await startMeasured(t)
  const [ann, bob] = await Promise.all([tokenOf('ann'), tokenOf('bob', 'reader')])
  await call(ann, 'register-pce-credentials', registrationFor(pce))
  await call(ann, 'get-labels')
  await call(ann, 'get-labels', { max_results: 5 })
  await call(ann, 'get-labels', { max_results: 'many' })
  await call(bob, 'get-labels')
  await call(bob, 'create-ruleset', { name: 'x', scopes: [] })
  const { series, value } = await scrape()
  t.strictSame(
    new Set(series(CALLS).map(({ labels, value }) => ({ ...labels, value }))),
    new Set([
      { tool: 'register-pce-credentials', outcome: 'success', gate: 'handler', value: 1 },
      { tool: 'get-labels', outcome: 'success', gate: 'handler', value: 2 },
      { tool: 'get-labels', outcome: 'error', gate: 'arguments', value: 1 },
      { tool: 'get-labels', outcome: 'denied', gate: 'pce', value: 1 },
      { tool: 'create-ruleset', outcome: 'denied', gate: 'role', value: 1 },
    ]),
  )
  const counts = series('svc_mcp_tool_call_duration_seconds_count').map(({ labels, value }) => ({ ...labels, value }))
  t.equal(counts.length, 5)
  t.ok(
    counts.some(
      ({ tool, outcome, value }: Record<string, unknown>) =>
        tool === 'get-labels' && outcome === 'success' && value === 2,
    ),
  )
  const codes = series('svc_mcp_tool_errors_total').filter(({ value }) => value > 0)
  t.strictSame(
    new Set(codes.map(({ labels, value }) => [labels.code, value])),
    new Set([
      ['invalid_argument', 1],
      ['no_pce_credentials', 1],
      ['forbidden', 1],
    ]),
  )
  t.equal(value('svc_mcp_build_info', { version: '0.2.0', mode: 'per_user' }), 1)
})

t.test('requests to PCEs by operation and status, with retries and waits', async (t) => {
  const { call, scrape, tokenOf, pce } = await startMeasured(t)
  const ann = await tokenOf('ann')
  await call(ann, 'register-pce-credentials', registrationFor(pce))
  const before = await scrape()
  t.equal(before.value(REQUESTS, { operation: 'GET health', status: '200' }), 1)
  t.equal(before.value(REQUESTS, { operation: 'GET settings/workloads', status: '200' }), 1)
  pce.simulator.faults.add({ path: '/orgs/1/labels', kind: 'status', retryAfter: 1, times: 1 })
  await call(ann, 'get-labels')
  const { value, series } = await scrape()
  t.equal(value(REQUESTS, { operation: 'GET labels', status: '200' }), 1)
  t.equal(value('svc_mcp_pce_retries_total', { operation: 'GET labels' }), 1)
  t.equal(value('svc_mcp_pce_retry_wait_seconds_total', { operation: 'GET labels' }), 1)
  t.equal(value('svc_mcp_pce_request_duration_seconds_count', { operation: 'GET labels' }), 1)
  t.strictSame(
    series(REQUESTS).filter(({ labels }) => labels.operation === 'other'),
    [],
  )
})

t.test('neither names that a client makes up nor who called are in it', async (t) => {
  const { call, scrape, tokenOf, pce, config } = await startMeasured(t)
  const token = await tokenOf('ann-the-admin')
  await call(token, 'register-pce-credentials', registrationFor(pce))
  for (let n = 0; n < 50; n++) await call(token, `evil-${n}"} 1\nsvc_mcp_forged{x="${n}`)
  const { series, text } = await scrape()
  t.strictSame(
    series(CALLS).filter(({ labels }) => labels.tool !== 'register-pce-credentials'),
    [{ name: CALLS, labels: { tool: 'unknown', outcome: 'error', gate: 'lookup' }, value: 50 }],
  )
  const secrets = ['ann-the-admin', token, 'evil', 'forged', pce.simulator.credentials.key, `:${pce.port}`]
  for (const secret of [...secrets, pce.simulator.credentials.secret, config.http.publicUrl, 'idp.example.test'])
    t.notOk(text.includes(secret), secret)
})

t.test('refused tokens by reason, key fetches and the state', async (t) => {
  const { call, scrape, tokenOf, keys, url } = await startMeasured(t)
  await fetch(`${url}/mcp`, { method: 'POST' })
  await call('made.up', 'get-labels')
  await call(await tokenOf('ann', 'admin', { exp: 1_000_000_000 }), 'get-labels')
  await call(await tokenOf('ann'), 'check-pce-credentials-status')
  const { series, value } = await scrape()
  t.strictSame(
    new Set(series('svc_mcp_tokens_refused_total').map(({ labels, value }) => [labels.reason, value])),
    new Set([
      ['no token', 1],
      ['malformed token', 1],
      ['exp passed', 1],
    ]),
  )
  t.equal(value('svc_mcp_key_fetches_total', { outcome: 'success' }), keys.fetches)
  t.equal(value('svc_mcp_key_fetches_total', { outcome: 'failure' }), 0)
  t.equal(typeof value('svc_mcp_signing_keys_loaded_timestamp_seconds'), 'number')
  const find = { operation: 'credentials.get', outcome: 'success' }
  t.equal(value('svc_mcp_state_operation_duration_seconds_count', find), 2, 'for the context, and for the tool')
})

t.test('keys that cannot be loaded are failures, and have no time', async (t) => {
  const { scrape } = await startMeasured(t, { keysAreDown: true })
  const loaded = async (): Promise<void> => {
    const { value } = await scrape()
    if (value('svc_mcp_key_fetches_total', { outcome: 'failure' }) === 0) return loaded()
    t.equal(value('svc_mcp_key_fetches_total', { outcome: 'failure' }), 1)
    t.equal(value('svc_mcp_signing_keys_loaded_timestamp_seconds'), undefined)
  }
  await loaded()
})

t.test('places that are taken, and the delay of the event loop', async (t) => {
  const { scrape, url, tokenOf } = await startMeasured(t)
  t.equal((await scrape()).value('svc_mcp_requests_in_flight'), 0)
  const token = await tokenOf('ann')
  const sent = request(`${url}/mcp`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'content-length': 100,
    },
  })
  sent.write('{')
  const seen = async (): Promise<number> => (await scrape()).value('svc_mcp_requests_in_flight') || seen()
  t.equal(await seen(), 1)
  const { value, names } = await scrape()
  t.equal(value('svc_mcp_heavy_calls_running'), 0)
  t.equal(value('svc_mcp_heavy_calls_waiting'), 0)
  t.equal(value('svc_mcp_state_pool_connections'), undefined, 'a file has no connections')
  t.ok(names.has('nodejs_eventloop_lag_p99_seconds'))
  sent.on('error', () => {})
  sent.destroy()
  const gone = async (): Promise<void> =>
    (await scrape()).value('svc_mcp_requests_in_flight') === 0 ? undefined : gone()
  await gone()
})

t.test('the Host guard stands before it, and there is nothing else', async (t) => {
  const { metricsUrl, app } = await startMeasured(t)
  const ask = async (path: string, host: string, method = 'GET') => {
    const asked = request(new URL(path, metricsUrl), { method, headers: { host } })
    const [answer] = await once(asked.end(), 'response')
    answer.resume()
    return answer.statusCode
  }
  t.equal(await ask('/metrics', 'rebound.example.org'), 403)
  t.equal(await ask('/metrics', new URL(PUBLIC_URL).host), 200)
  t.equal(await ask('/metrics', '127.0.0.1'), 200, 'as the proxy in the pod sends it')
  t.equal(await ask('/metrics', '127.0.0.1', 'POST'), 404)
  t.equal(await ask('/mcp', '127.0.0.1', 'POST'), 404)
  t.equal(
    (await app.inject({ url: '/metrics', headers: { host: '127.0.0.1' } })).statusCode,
    404,
    'nor on the main port',
  )
})

t.test('an audit log that fails is counted, whoever notices', async (t) => {
  const { call, scrape, tokenOf } = await startMeasured(t, { config: { auditLogPath: '/dev/full' } })
  await call(await tokenOf('ann'), 'get-labels')
  const { value } = await scrape()
  t.equal(value('svc_mcp_audit_failures_total', { operation: 'write' }), 1)
})

t.test('which check keeps it from taking calls', async (t) => {
  const readyOf = async (options: { keysAreDown?: boolean }) => {
    const { scrape } = await startMeasured(t, options)
    return (await scrape()).series('svc_mcp_ready').map(({ labels, value }) => [labels.check, value])
  }
  const state = process.env.SERVICE_STATE === 'postgres' ? 'state database' : 'state file'
  t.strictSame(await readyOf({}), [
    ['signing keys', 1],
    [state, 1],
    ['audit log', 1],
  ])
  t.strictSame(await readyOf({ keysAreDown: true }), [
    ['signing keys', 0],
    [state, 1],
    ['audit log', 1],
  ])
})

t.test('off by default, in every mode', async (t) => {
  const { app } = await startService(t)
  t.equal(app.metricsServer, null)
  const insecure = await insecureApp()
  t.teardown(() => insecure.app.close())
  t.equal(insecure.app.metricsServer, null)
})

t.test('the end of the last call can still be seen', async (t) => {
  const { tools, write } = testTools()
  const http = { host: '127.0.0.1', port: 0, allowedHosts: [], maxInFlight: 256, metricsPort: 0 }
  const { app, call } = await insecureApp(tools, { http })
  const url = await app.metricsServer!.listen({ host: '127.0.0.1', port: 0 })
  const called = call('wait-write')
  await write.arrived
  const closed = app.close()
  await new Promise((resolve) => setImmediate(resolve))
  const scrape = async () => readScrape(await (await fetch(`${url}/metrics`)).text())
  t.equal((await scrape()).value('svc_mcp_requests_in_flight'), 1)
  write.open()
  await called
  await closed
  await t.rejects(fetch(`${url}/metrics`))
})

t.test('without a login, too', async (t) => {
  const http = { host: '127.0.0.1', port: 0, allowedHosts: [], maxInFlight: 256, metricsPort: 0 }
  const { app, call } = await insecureApp(undefined, { http })
  t.teardown(() => app.close())
  await call('echo')
  const { payload } = await app.metricsServer!.inject({ url: '/metrics', headers: { host: 'localhost' } })
  t.match(payload, /^svc_mcp_tool_calls_total\{tool="echo",outcome="success",gate="handler"\} 1$/m)
})
