/** Traces, as a collector receives them over OTLP. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build } from 'esbuild'
import t, { type Test } from 'tap'
import { bundleProgram } from '../bundle-program.js'
import { registrationFor, startPce, startService, type ServiceOptions } from '../contract/authenticated-service.js'
import { partial } from '../partial.js'
import { compiled } from '../suite-folder.js'
import { startCollector, treeOf } from './collector.js'

const TRACE = '0af7651916cd43dd8448eb211c80319c'
const CALLER = 'b7ad6b7169203331'
const FROM_CALLER = { traceparent: `00-${TRACE}-${CALLER}-01`, tracestate: 'vendor=1' }

/** The service with a collector, which the libraries find in the environment of the process. */
async function startTraced(t: Test, options: ServiceOptions = {}, env: Record<string, string> = {}) {
  const collector = await startCollector(t)
  const set = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, ...env }
  Object.assign(process.env, set)
  const config = { tracing: true, replicaId: 'mcp-7', ...options.config } as never
  try {
    return { ...(await startService(t, { ...options, config })), collector }
  } finally {
    for (const name of Object.keys(set)) delete process.env[name]
  }
}

const WINDOW = { start_date: '2026-06-08', end_date: '2026-06-14' }

const callOf = (name: string, args: object = {}) => ({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name, arguments: args },
})

t.test('a call is one trace, from the client through the stages to the PCE', async (t) => {
  const { app, call, tokenOf, pce, collector } = await startTraced(t)
  const token = await tokenOf('ann')
  await call(token, 'register-pce-credentials', registrationFor(pce))
  pce.simulator.clearRequests()
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  const headers = {
    ...FROM_CALLER,
    authorization: `Bearer ${token}`,
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
  }
  // The body comes on its own, when the request is under way: its events are then none of the request's.
  for (const name of ['get-labels', 'check-pce-connection']) {
    const asking = request(`${url}/mcp`, { method: 'POST', headers: { ...headers, expect: '100-continue' } })
    asking.flushHeaders()
    await once(asking, 'continue')
    asking.end(JSON.stringify(callOf(name)))
    const [answer] = (await once(asking, 'response')) as [IncomingMessage]
    await once(answer.resume(), 'end')
  }
  await app.close()

  const spans = collector.spans.filter(({ traceId }) => traceId === TRACE)
  const [first, second] = spans.filter(({ parentId }) => parentId === CALLER)
  t.strictSame(treeOf(spans, first!.spanId), {
    auth: {},
    context: {},
    'tools/call get-labels': { gates: {}, handler: { 'GET labels': {} } },
  })
  t.strictSame(treeOf(spans, second!.spanId), {
    auth: {},
    context: {},
    'tools/call check-pce-connection': {
      gates: {},
      handler: { 'GET health': {}, 'GET settings/workloads': {}, 'GET product_version': {} },
    },
  })
  const asked = spans.find(({ name }) => name === 'GET labels')!
  t.strictSame(
    new Set(pce.simulator.requests.map(({ headers }) => headers.traceparent)),
    new Set(spans.filter(({ kind }) => kind === 3).map(({ spanId }) => `00-${TRACE}-${spanId}-01`)),
    'the PCE is told, whether its answer is read whole or as it comes',
  )
  t.equal(pce.simulator.requests[0]!.headers.tracestate, 'vendor=1')
  t.same(
    [asked.kind, asked.attributes],
    [3, { 'http.request.method': 'GET', 'url.template': 'labels', 'http.response.status_code': 200 }],
  )
  const served = spans.find(({ name }) => name === 'POST /mcp')!
  t.same(
    [served.kind, served.attributes],
    [2, { 'http.request.method': 'POST', 'http.route': '/mcp', 'http.response.status_code': 200 }],
  )
  partial(t, collector.resources[0]!, { 'service.name': 'svc-mcp', 'service.instance.id': 'mcp-7' })
  t.equal(collector.headers[0]!.path, '/v1/traces')
})

t.test('neither arguments nor people, hosts or secrets are in it', async (t) => {
  const { app, call, send, tokenOf, pce, collector } = await startTraced(t)
  const token = await tokenOf('ann-the-admin')
  await call(token, 'register-pce-credentials', registrationFor(pce))
  await call(token, 'get-labels', { value: 'payments-secret' })
  await call(token, 'made-up-by-the-client')
  await send(token, callOf('get-labels'), { url: '/made-up-by-the-client?token=secret' })
  await app.close()
  t.ok(collector.spans.length > 10)
  t.ok(collector.spans.some(({ name }) => name === 'tools/call unknown'))
  const { key, secret } = pce.simulator.credentials
  for (const text of ['ann-the-admin', 'payments-secret', 'made-up', token, key, secret, '127.0.0.1', String(pce.port)])
    t.notOk(collector.raw.includes(text), text)
})

t.test('what fails is marked with its code', async (t) => {
  const { app, call, send, tokenOf, collector } = await startTraced(t)
  await call(await tokenOf('ann'), 'get-labels')
  await send('made.up', callOf('get-labels'))
  await app.close()
  const failed = collector.spans.filter(({ isError }) => isError)
  t.strictSame(failed.map(({ name, attributes }) => [name, attributes['error.type']]).sort(), [
    ['auth', 'unauthorized'],
    ['gates', 'no_pce_credentials'],
    ['tools/call get-labels', 'no_pce_credentials'],
  ])
})

t.test('a call in a worker thread stays in its trace', async (t) => {
  const worker = pathToFileURL(compiled('programs/worker.ts'))
  const { app, send, tokenOf, collector } = await startTraced(t, { mode: 'shared', worker })
  await send(await tokenOf('ann'), callOf('get-traffic-flows-summary', WINDOW), { headers: FROM_CALLER })
  await app.close()
  const spans = collector.spans.filter(({ traceId }) => traceId === TRACE)
  const handler = spans.find(({ name }) => name === 'handler')!
  const asked = new Set(spans.filter(({ parentId }) => parentId === handler.spanId).map(({ name }) => name))
  t.ok(asked.has('POST traffic_flows/async_queries'), [...asked].join(', '))
  t.ok(asked.has('GET traffic_flows/async_queries/{id}/download'))
})

t.test('the standard variables are read', async (t) => {
  const { app, call, tokenOf, collector } = await startTraced(
    t,
    {},
    {
      OTEL_SERVICE_NAME: 'mcp-of-berlin',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=prod',
      OTEL_EXPORTER_OTLP_HEADERS: 'x-collector-key=abc',
    },
  )
  await call(await tokenOf('ann'), 'check-pce-credentials-status')
  await app.close()
  partial(t, collector.resources[0]!, { 'service.name': 'mcp-of-berlin', 'deployment.environment.name': 'prod' })
  t.equal(collector.headers[0]!['x-collector-key'], 'abc')

  const silent = await startTraced(t, {}, { OTEL_TRACES_SAMPLER: 'always_off' })
  await silent.call(await silent.tokenOf('ann'), 'check-pce-credentials-status')
  await silent.app.close()
  t.strictSame(silent.collector.spans, [])
})

t.test('a collector that is away keeps neither a call nor the end waiting', async (t) => {
  const { app, call, tokenOf, log } = await startTraced(t, {}, { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' })
  const { registered } = await call(await tokenOf('ann'), 'check-pce-credentials-status')
  t.equal(registered, false)
  await app.close()
  t.ok(app.server.listening === false && log.length > 0)
})

t.test('stdio: a trace for each call, where a collector is set', async (t) => {
  const collector = await startCollector(t)
  const { simulator, port } = await startPce(t)
  const child = spawn(process.execPath, [bundleProgram('stdio')], {
    cwd: mkdtempSync(join(tmpdir(), 'stdio-')),
    env: {
      PATH: process.env.PATH,
      PCE_HOST: '127.0.0.1',
      PCE_PORT: String(port),
      PCE_TLS_VERIFY: 'false',
      API_KEY: simulator.credentials.key,
      API_SECRET: simulator.credentials.secret,
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    },
  })
  child.stderr.resume()
  const say = (message: object) => child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
  const clientInfo = { name: 'tester', version: '9' }
  say({ id: 0, method: 'initialize', params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo } })
  await once(child.stdout, 'data')
  say({ method: 'notifications/initialized' })
  say({ ...callOf('get-labels') })
  await once(child.stdout, 'data')
  child.stdin.end()
  await once(child, 'close')
  t.strictSame(treeOf(collector.spans, ''), {
    'tools/call get-labels': { gates: {}, handler: { 'GET labels': {} } },
  })
})

t.test('what makes metrics and traces is loaded only where it is asked for', async (t) => {
  const names = ['stdio', 'http', 'worker']
  const { metafile } = await build({
    absWorkingDir: process.cwd(),
    entryPoints: names.map((name) => `programs/${name}.ts`),
    outdir: 'dist',
    bundle: true,
    splitting: true,
    packages: 'external',
    format: 'esm',
    platform: 'node',
    metafile: true,
    write: false,
  })
  const atStart = (path: string, seen = new Set<string>()): Set<string> => {
    if (seen.has(path)) return seen
    seen.add(path)
    for (const { path: next, kind } of metafile.outputs[path]?.imports ?? [])
      if (kind === 'import-statement') atStart(next, seen)
    return seen
  }
  t.ok([...atStart('dist/http.js')].includes('fastify'), 'packages are seen')
  for (const name of names) {
    const loaded = [...atStart(`dist/${name}.js`)]
    t.strictSame(
      loaded.filter((path) => /^(prom-client|@opentelemetry)/.test(path)),
      [],
      name,
    )
  }
})

t.test('a message that names a trace is of that one, and its HTTP request is linked with it', async (t) => {
  const { app, send, tokenOf, collector } = await startTraced(t)
  const [own, parent] = ['4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7']
  const token = await tokenOf('ann')
  const callIn = (traceparent: string) => {
    const call = callOf('get-server-changelog')
    return { ...call, params: { ...call.params, _meta: { traceparent, tracestate: 'vendor=2' } } }
  }
  await send(token, callIn(`00-${own}-${parent}-01`), { headers: FROM_CALLER })
  await send(token, callIn('made up'), { headers: FROM_CALLER })
  await app.close()
  const calls = collector.spans.filter(({ name }) => name === 'tools/call get-server-changelog')
  const requests = collector.spans.filter(({ name }) => name === 'POST /mcp')
  t.strictSame(
    calls.map(({ traceId, parentId, links }) => ({ traceId, parentId, links })),
    [
      { traceId: own, parentId: parent, links: [requests[0]!.spanId] },
      { traceId: TRACE, parentId: requests[1]!.spanId, links: [] },
    ],
    'and a trace that cannot be read is none',
  )
})
