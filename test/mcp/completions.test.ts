/** completion/complete: names of applications and environments, within what the caller may see (MCP utilities, completion). */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { startService, type Json, type ServiceOptions } from '../contract/authenticated-service.js'
import { insecureApp, request } from '../contract/insecure-app.js'
import { fakeClock } from '../fake-clock.js'
import { partial } from '../partial.js'
import { tools } from '../../tools/index.js'

const PROMPT = { type: 'ref/prompt', name: 'ringfence-application' }
const PAGE = { type: 'ref/resource', uri: 'illumio://application/{app}/{env}' }
const NOTHING = { values: [], total: 0, hasMore: false }

async function start(t: Test, options: ServiceOptions = {}) {
  const service = await startService(t, { mode: 'shared', ...options })
  const complete = async (token: string, ref: object, name: string, value: string, headers = {}): Promise<Json> => {
    const params = { ref, argument: { name, value } }
    const answer = await service.send(
      token,
      { jsonrpc: '2.0', id: 1, method: 'completion/complete', params },
      { headers },
    )
    return answer.json()
  }
  /** The labels that the PCE has from now on. */
  const setLabels = (values: Record<string, string[]>) => {
    const body = Object.entries(values).flatMap(([key, list]) =>
      list.map((value, at) => ({ href: `/orgs/1/labels/${key}-${at}`, key, value })),
    )
    service.pce.simulator.faults.add({
      kind: 'status',
      path: /\/labels$/,
      method: 'GET',
      times: 999,
      status: 200,
      body,
    })
  }
  const labelReads = () => service.pce.simulator.requests.filter(({ path }) => /\/labels/.test(path)).length
  return { ...service, complete, setLabels, labelReads }
}

t.test('what begins with the typed text comes before what contains it', async (t) => {
  const { complete, tokenOf, setLabels, audit, pce, log } = await start(t)
  const reader = await tokenOf('ann', 'reader')
  setLabels({
    app: ['web-pay', 'Payroll', 'payments', 'crm', 'epayments', 'pay\u202Eevil'],
    env: ['prod', 'preprod', 'dev'],
  })
  const valuesOf = async (ref: object, name: string, value: string) =>
    (await complete(reader, ref, name, value)).result.completion
  t.same(await valuesOf(PROMPT, 'application_name', 'PAY'), {
    values: ['payments', 'Payroll', 'pay⟨U+202E⟩evil', 'epayments', 'web-pay'],
    total: 5,
    hasMore: false,
  })
  t.same((await valuesOf(PROMPT, 'application_environment', 'prod')).values, ['prod', 'preprod'])
  t.same((await valuesOf(PAGE, 'app', 'crm')).values, ['crm'])
  t.same((await valuesOf(PAGE, 'env', '')).values, ['dev', 'preprod', 'prod'], 'nothing typed yet')
  t.same(await valuesOf(PAGE, 'env', 'x'.repeat(5_000)), NOTHING)
  t.same((await valuesOf({ type: 'ref/prompt', name: 'quarterly-compliance-review' }, 'framework', 'i')).values, [
    'iso-27001',
    'cis',
    'hipaa',
    'nist',
    'pci-dss',
    'swift-csp',
  ])
  t.same(await valuesOf({ type: 'ref/resource', uri: 'illumio://ruleset/{id}' }, 'id', '1'), NOTHING)
  t.same(audit, [], 'a letter that somebody types is no tool call')
  const [read] = pce.simulator.requests.filter(({ path }) => path.endsWith('/labels'))
  t.ok(
    log.some(({ request_id: id }) => id !== undefined && id === read!.headers['x-request-id']),
    'the PCE is told for which request',
  )
})

t.test('at most 100 of them, and how many there are', async (t) => {
  const { complete, tokenOf, setLabels } = await start(t)
  setLabels({ app: Array.from({ length: 250 }, (_, at) => `app-${String(at).padStart(3, '0')}`) })
  const { completion } = (await complete(await tokenOf('ann'), PROMPT, 'application_name', 'app')).result
  t.same(
    { ...completion, values: [completion.values.length, completion.values[0], completion.values[99]] },
    { values: [100, 'app-000', 'app-099'], total: 250, hasMore: true },
  )
})

t.test('the labels are read once a minute, however fast somebody types', async (t) => {
  let time = Date.UTC(2026, 10, 24)
  const { complete, tokenOf, labelReads, pce } = await start(t, { now: () => time })
  const token = () => tokenOf('ann')
  const first = await token()
  const typed = await Promise.all(
    ['', 'p', 'pa', 'pay'].map((value) => complete(first, PROMPT, 'application_name', value)),
  )
  t.ok(typed.every(({ result }) => result.completion.values.includes('payments')))
  const reads = labelReads()
  t.ok(reads > 0 && reads <= 2, `${reads} requests for four letters`)
  time += 59_000
  await complete(await token(), PROMPT, 'application_environment', 'p')
  t.equal(labelReads(), reads)
  time += 2_000
  pce.simulator.faults.add({ kind: 'status', path: /\/labels$/, method: 'GET', times: 1, status: 403 })
  t.same(
    (await complete(await token(), PROMPT, 'application_name', 'p')).result.completion,
    NOTHING,
    'a PCE that refuses',
  )
  const refused = labelReads()
  t.equal(refused, reads + 1)
  time += 9_000
  t.same((await complete(await token(), PROMPT, 'application_name', 'p')).result.completion, NOTHING)
  t.equal(labelReads(), refused, 'it is left alone for a while')
  time += 2_000
  t.ok((await complete(await token(), PROMPT, 'application_name', 'p')).result.completion.total > 0)
})

t.test('nobody sees names that they may not ask for, and nobody gets an error', async (t) => {
  const { complete, tokenOf, labelReads } = await start(t)
  const ann = await tokenOf('ann')
  const emptyFor = async (token: string, headers = {}) =>
    t.same((await complete(token, PROMPT, 'application_name', 'p', headers)).result.completion, NOTHING)
  await emptyFor(await tokenOf('bob', null))
  const { error } = await complete(ann, PROMPT, 'application_name', 'p', { 'x-mcp-exclude-tools': 'get-labels' })
  t.equal(error.code, -32602, 'the prompt is gone with its tool')
  t.same(
    (await complete(ann, PAGE, 'app', 'p', { 'x-mcp-exclude-tools': 'get-labels' })).result.completion,
    NOTHING,
    'the page is there, the names of labels are not',
  )
  t.equal(labelReads(), 0)
  t.ok((await complete(ann, PAGE, 'app', 'p')).result.completion.total > 0)

  const without = await start(t, { mode: 'per_user' })
  const answer = await without.complete(await without.tokenOf('ann'), PROMPT, 'application_name', 'p')
  t.same(answer.result.completion, NOTHING, 'no PCE credentials')
  t.equal(without.labelReads(), 0)

  const limited = await start(t, { rates: { perCaller: 1 } })
  const cara = await limited.tokenOf('cara')
  t.ok((await limited.complete(cara, PROMPT, 'application_name', '')).result)
  partial(t, (await limited.complete(cara, PROMPT, 'application_name', '')).error, { data: { error: 'rate_limited' } })
})

t.test('the labels of one caller are not those of another', async (t) => {
  const { complete, tokenOf, setLabels, call, pce } = await start(t, { mode: 'per_user' })
  const other = await startService(t, { mode: 'shared' })
  const credentials = ({ simulator, port }: typeof pce) => ({
    pce_host: '127.0.0.1',
    pce_port: port,
    pce_org_id: Number(simulator.orgId),
    api_key: simulator.credentials.key,
    api_secret: simulator.credentials.secret,
  })
  const [ann, bob] = [await tokenOf('ann'), await tokenOf('bob')]
  await call(ann, 'register-pce-credentials', credentials(pce))
  await call(bob, 'register-pce-credentials', credentials(other.pce))
  setLabels({ app: ['only-ann-has-this'] })
  const valuesFor = async (token: string) =>
    (await complete(token, PROMPT, 'application_name', 'only')).result.completion.values
  t.same(await valuesFor(ann), ['only-ann-has-this'])
  t.same(await valuesFor(bob), [])
})

t.test('references and arguments that do not exist are named', async (t) => {
  const { complete, tokenOf } = await start(t)
  const ann = await tokenOf('ann')
  const cases: [object, string, RegExp][] = [
    [{ type: 'ref/prompt', name: 'nope' }, 'application_name', /There is no prompt "nope"/],
    [PROMPT, 'app', /"app": unknown argument\. Known: application_name, application_environment/],
    [{ type: 'ref/prompt', name: 'review-before-provisioning' }, 'x', /"x": unknown argument\. it takes none/],
    [{ type: 'ref/resource', uri: 'illumio://application/payments/prod' }, 'app', /There is no resource template/],
    [{ type: 'ref/tool', name: 'get-labels' }, 'key', /params.ref must be/],
    [{ type: 'ref/prompt' }, 'key', /params.ref must be/],
    [PAGE, '__proto__', /"__proto__": unknown argument/],
  ]
  for (const [ref, name, message] of cases)
    partial(t, (await complete(ann, ref, name, '')).error, { code: -32602, message }, JSON.stringify(ref))
  partial(t, (await complete(ann, PROMPT, 'application_name', 5 as never)).error, {
    code: -32602,
    message: 'params.argument must be {name, value}, both strings',
  })
})

t.test('nobody waits for a PCE that does not answer', async (t) => {
  const silent = createServer(() => {})
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    silent.closeAllConnections()
    silent.close()
  })
  const asked = new Promise((resolve) => silent.once('request', resolve))
  const { port } = silent.address() as AddressInfo
  const clock = fakeClock()
  const pce = { url: `http://127.0.0.1:${port}`, port: String(port), orgId: '1', apiKey: 'k', apiSecret: 's' }
  const { app, post } = await insecureApp(tools, { pce: { ...pce, tls: { verify: true } } }, { timers: clock })
  t.teardown(() => app.close())
  const params = { ref: PROMPT, argument: { name: 'application_name', value: 'p' } }
  const answer = post(request('completion/complete', params))
  await asked
  clock.advance(3000)
  t.same((await answer).json().result.completion, NOTHING)

  const without = await insecureApp(tools)
  t.teardown(() => without.app.close())
  t.same(
    (await without.post(request('completion/complete', params))).json().result.completion,
    NOTHING,
    'no PCE at all',
  )
})
