/** Resource templates: pages about objects of the PCE, through the gates of the tools that they are put together from. */
import t from 'tap'
import { startService, type Json, type Line, type ServiceOptions } from '../contract/authenticated-service.js'
import { parseEvents } from '../contract/insecure-app.js'
import { contains, partial } from '../partial.js'

const ESTATE = { seed: 3, workloads: 60, flows: 400, pollsUntilDone: 1 }

async function start(t: Parameters<typeof startService>[0], options: ServiceOptions = {}) {
  const service = await startService(t, { mode: 'shared', estate: ESTATE, ...options })
  const ask = async (token: string, method: string, params?: object): Promise<Json> => {
    const { payload } = await service.send(token, { jsonrpc: '2.0', id: 1, method, ...(params && { params }) })
    return payload.startsWith('{') ? JSON.parse(payload) : parseEvents(payload).events.at(-1)!.data
  }
  const read = (token: string, uri: string) => ask(token, 'resources/read', { uri })
  return { ...service, ask, read }
}

const pageOf = (answer: Json) => JSON.parse(answer.result.contents[0].text)
const ofTools = (audit: Line[], phase: string) =>
  audit
    .filter((entry) => entry.phase === phase)
    .map(({ tool, role, decision, outcome }) => ({ tool, role, decision, outcome }))

t.test('a page about an application is what its tools answer, as calls of the reader', async (t) => {
  const { ask, read, tokenOf, call, audit } = await start(t)
  const reader = await tokenOf('ann', 'reader')
  const { resourceTemplates } = (await ask(reader, 'resources/templates/list')).result
  t.same(
    resourceTemplates.map(({ uriTemplate, mimeType }: Json) => [uriTemplate, mimeType]),
    [
      ['illumio://ruleset/{id}', 'application/json'],
      ['illumio://application/{app}/{env}', 'application/json'],
    ],
  )
  t.same(ofTools(audit, 'decision'), [], 'a list is no tool call')

  const answer = await read(reader, 'illumio://application/payments/prod')
  const { uri, mimeType } = answer.result.contents[0]
  t.same({ uri, mimeType }, { uri: 'illumio://application/payments/prod', mimeType: 'application/json' })
  const page = pageOf(answer)
  t.same(Object.keys(page), [
    ...['application', 'lookback_days', 'as_of', 'workloads', 'inbound', 'outbound', 'rule_sets', 'readiness'],
  ])
  t.same(page.application, { app: 'payments', env: 'prod' })
  const tools = ['get-workloads', 'get-traffic-flows', 'get-traffic-flows', 'get-rulesets', 'enforcement-readiness']
  t.same(
    ofTools(audit, 'decision'),
    tools.map((tool) => ({ tool, role: 'reader', decision: 'allowed', outcome: undefined })),
  )
  t.same(
    ofTools(audit, 'outcome').map(({ outcome }) => outcome),
    tools.map(() => 'success'),
  )
  for (const name of ['workloads', 'rule_sets']) {
    const { tool, arguments: args } = page[name].from
    const direct = await call(reader, tool, args)
    t.same(page[name].answer, direct, `${name}: the same as the call that it names`)
  }
  t.ok(page.workloads.answer.total > 0)
  t.ok(page.inbound.answer.total_pce_flows > 0)
  t.equal(page.readiness.answer.app, 'payments')
})

t.test('a page about a rule set', async (t) => {
  const { read, tokenOf, call } = await start(t)
  const admin = await tokenOf('ann')
  const { rulesets } = await call(admin, 'get-rulesets', { max_results: 1 })
  const [{ href, name }] = rulesets
  const page = pageOf(await read(admin, `illumio://ruleset/${href.split('/').at(-1)}`))
  t.equal(page.rule_set.answer.rulesets[0].name, name)
  t.same(page.rule_set.from, { tool: 'get-rulesets', arguments: { href } })
})

t.test('values in a URI are decoded and checked, and what does not exist is not found', async (t) => {
  const { read, tokenOf } = await start(t)
  const admin = await tokenOf('ann')
  const odd = 'Größe & Co/1 "x" 100% a=b,c'
  const cases: [string, number, RegExp][] = [
    ['illumio://application/paymnts/prod', -32002, /^Resource not found: .*app=paymnts/],
    ['illumio://application/payments/PROD', -32002, /^Resource not found: .*env=PROD/],
    [
      'illumio://application',
      -32002,
      /^Resource not found: illumio:\/\/application\/{app}\/{env}: app and env missing$/,
    ],
    [
      'illumio://application/payments',
      -32002,
      /^Resource not found: illumio:\/\/application\/{app}\/{env}: env missing$/,
    ],
    [
      'illumio://application/payments/prod/x',
      -32002,
      /^Resource not found: .*{env}: too many values: write a \/ in a value as %2F$/,
    ],
    ['illumio://applications/payments', -32002, /^Resource not found$/],
    ['illumio://application//prod', -32602, /^app: must not be empty$/],
    ['illumio://application/payments/%20', -32602, /^env: must not be empty$/],
    ['illumio://application/pay ments/prod', -32602, /^app: percent-encode/],
    ['illumio://application/größe/prod', -32602, /^app: percent-encode/],
    ['illumio://application/100%/prod', -32602, /^app: percent-encode/],
    ['illumio://application/payments/prod?x', -32602, /^env: percent-encode/],
    ['illumio://application/%ff/prod', -32602, /^app: .* not UTF-8$/],
    [`illumio://application/${'x'.repeat(256)}/prod`, -32602, /^app: at most 255 characters$/],
    [`illumio://application/${'x'.repeat(5_000)}/prod`, -32002, /^Resource not found$/],
    [
      `illumio://application/${encodeURIComponent(odd)}/prod`,
      -32002,
      /: No match for: "app=Größe & Co\/1 \\"x\\" 100% a=b,c"\. /,
    ],
    ['illumio://ruleset/0', -32002, /^Resource not found: /],
    ['illumio://ruleset/..%2F..%2Flabels', -32602, /^id: the last part of an href/],
    ['illumio://ruleset/{id}', -32602, /^id: percent-encode/],
    ['illumio://Ruleset/1', -32002, /^Resource not found$/],
  ]
  for (const [uri, code, message] of cases) {
    const { error } = await read(admin, uri)
    t.equal(error?.code, code, uri.slice(0, 80))
    partial(t, error?.message, message)
  }
})

t.test('a page is refused as its tools are', async (t) => {
  const { read, tokenOf, audit } = await start(t)
  const uri = 'illumio://application/payments/prod'
  const { error } = await read(await tokenOf('bob', null), uri)
  partial(t, error, { code: -32000, data: { error: 'forbidden_no_role', request_id: String } })
  t.same(ofTools(audit, 'decision'), [{ tool: 'get-workloads', role: null, decision: 'denied', outcome: undefined }])

  const without = await start(t, { mode: 'per_user' })
  const refused = await without.read(await without.tokenOf('ann'), 'illumio://ruleset/1')
  partial(t, refused.error, { code: -32000, data: { error: 'no_pce_credentials', hint: String } })
})

t.test('a page counts as many calls against the limit of the caller as it makes', async (t) => {
  const { read, ask, tokenOf, audit } = await start(t, { rates: { perCaller: 6 } })
  const ann = await tokenOf('ann')
  const { error } = await read(ann, 'illumio://application/nothing/prod')
  t.equal(error.code, -32002, 'five: the request is the first')
  const limited = await read(ann, 'illumio://application/payments/prod')
  partial(t, limited.error, { code: -32000, data: { error: 'rate_limited', retry_after: Number } })
  t.equal(ofTools(audit, 'decision').length, 1, 'nothing of the second one was called')
  partial(
    t,
    await ask(await tokenOf('bob'), 'resources/list'),
    { result: { resources: { length: 22 } } },
    'others are not held up',
  )
})

t.test('a section that fails says so; what the budget does not hold is left out, and says where it is', async (t) => {
  const { read, tokenOf, pce, log } = await start(t, {
    config: { limits: { responseBudgetBytes: 4_000, trafficQueryTimeoutSeconds: 600, trafficMaxParts: 64 } },
  })
  pce.simulator.faults.add({ kind: 'status', path: /\/rule_sets/, method: 'GET', times: 99, status: 403 })
  const answer = await read(await tokenOf('ann'), 'illumio://application/payments/prod')
  const { text } = answer.result.contents[0]
  t.ok(Buffer.byteLength(text) <= 4_000, `${Buffer.byteLength(text)} bytes`)
  const page = JSON.parse(text)
  partial(t, page.rule_sets, { from: { tool: 'get-rulesets' }, error: { code: 'pce_error', message: String } })
  const omitted = Object.values(page as Record<string, Json>).filter((part) => part?.omitted !== undefined)
  t.ok(omitted.length > 0)
  for (const part of omitted) contains(t, part.omitted, 'call the tool for them')
  t.same(
    log.filter(({ msg }) => msg === 'request failed'),
    [],
  )
})

t.test('a client that asked for progress hears of each call of a page, and of nothing for a document', async (t) => {
  const { send, tokenOf } = await start(t)
  const ann = await tokenOf('ann')
  const eventsOf = async (uri: string) => {
    const params = { uri, _meta: { progressToken: 'p' } }
    const { payload } = await send(ann, { jsonrpc: '2.0', id: 1, method: 'resources/read', params })
    return payload.startsWith('{') ? [JSON.parse(payload)] : parseEvents(payload).events.map(({ data }) => data)
  }
  t.equal((await eventsOf('illumio://architecture/labels')).length, 1)
  const [first, ...rest] = await eventsOf('illumio://ruleset/1')
  t.same(first.params, { progress: 0, progressToken: 'p' })
  t.equal(rest.at(-1).id, 1)
})

t.test('pages and prompts exist for whom their tools are offered', async (t) => {
  const { send, tokenOf, audit } = await start(t)
  const ann = await tokenOf('ann')
  const ask = async (method: string, params: object, headers: Record<string, string>) =>
    (await send(ann, { jsonrpc: '2.0', id: 1, method, params }, { headers })).json()
  const names = async (headers: Record<string, string>) => {
    const { resourceTemplates } = (await ask('resources/templates/list', {}, headers)).result
    const { prompts } = (await ask('prompts/list', {}, headers)).result
    return {
      pages: resourceTemplates.map(({ name }: Json) => name),
      prompts: prompts.map(({ name }: Json) => name),
    }
  }
  const reading = [
    ...['analyze-application-traffic', 'explain-blocked-traffic', 'review-before-provisioning'],
    'morning-report',
    'quarterly-compliance-review',
  ]
  t.same(await names({ 'x-mcp-readonly': 'true' }), { pages: ['Rule set', 'Application'], prompts: reading })
  t.same(await names({ 'x-mcp-exclude-tools': 'get-traffic-flows' }), {
    pages: ['Rule set'],
    prompts: ['onboard-application', 'quarterly-compliance-review'],
  })
  t.same(await names({ 'x-mcp-tools': 'get-labels' }), { pages: [], prompts: [] })

  const readonly = { 'x-mcp-readonly': 'true' }
  const review = { name: 'review-before-provisioning' }
  const textFor = async (headers: Record<string, string>) =>
    (await ask('prompts/get', review, headers)).result.messages[0].content.text as string
  t.match(await textFor({}), /`provision-policy` with `dry_run` true/)
  t.notMatch(await textFor(readonly), /provision-policy/, 'what is not offered is not named')
  const isolate = {
    name: 'emergency-isolate-application',
    arguments: { application_name: 'a', application_environment: 'b' },
  }
  partial(t, (await ask('prompts/get', isolate, readonly)).error, { code: -32602, message: /There is no prompt/ })

  const page = { uri: 'illumio://application/payments/prod' }
  const hidden = await ask('resources/read', page, { 'x-mcp-exclude-tools': 'enforcement-readiness' })
  partial(t, hidden.error, { code: -32002, message: 'Resource not found' })
  const short = { uri: 'illumio://application/payments' }
  const unnamed = await ask('resources/read', short, { 'x-mcp-exclude-tools': 'enforcement-readiness' })
  partial(t, unnamed.error, { code: -32002, message: 'Resource not found' })
  t.same(ofTools(audit, 'decision'), [], 'not even its other tools were called')

  const order = { uri: 'illumio://concepts/rule-processing' }
  const lastLine = async (headers: Record<string, string>) =>
    (await ask('resources/read', order, headers)).result.contents[0].text.trimEnd().split('\n').at(-1)
  t.equal(await lastLine(readonly), 'Not offered to you here: `create-deny-rule`.')
  t.notMatch(await lastLine({}), /Not offered/)
  const modes = await ask('resources/read', { uri: 'illumio://concepts/enforcement-modes' }, {})
  const { text } = modes.result.contents[0]
  t.match(text, /says what one workload would lose/)
  t.notMatch(text, /set-enforcement-mode/, 'a line about a tool beyond the default is for those who have it')
})
