/**
 * Which tools a server offers (D121 to D124): what is listed is what may be called. Some cells of the matrix; all of them are in
 * offer-matrix.long.ts.
 */
import t from 'tap'
import type { OfferConfig } from '../../schemas/config.js'
import { TOOLSETS } from '../../tools/define.js'
import { tools } from '../../tools/index.js'
import { insecureApp, request } from './insecure-app.js'
import { startService } from './authenticated-service.js'
import { ALL, lookWithLogin, lookWithoutLogin, SETTINGS } from './offer-cells.js'

t.test('what is listed may be called, and nothing else', async (t) => {
  await lookWithoutLogin(t, SETTINGS[0]!, true)
  await lookWithoutLogin(t, SETTINGS[2]!, false)
  await lookWithoutLogin(t, SETTINGS[4]!, true)
  await lookWithLogin(t, 'shared', SETTINGS[0]!, { readOnly: false, hideForbidden: true })
  await lookWithLogin(t, 'per_user', SETTINGS[3]!, { readOnly: true, hideForbidden: false })
})

t.test('a hidden tool is an unknown one, in the same words, and its call is audited', async (t) => {
  const { call, post, audit } = await insecureApp(tools, { offer: { readOnly: true } })
  const unknown = (name: string, more = '') => ({
    code: -32602,
    message: `There is no tool "${name}".${more}`,
    error: 'unknown_tool',
  })
  const answerTo = async (name: string, args: object = {}, headers: Record<string, string> = {}) => {
    const params = { name, arguments: args }
    const { error } = JSON.parse((await post(request('tools/call', params), headers)).body)
    return { code: error.code, message: error.message, error: error.data.error }
  }
  t.same(await answerTo('provision-policy', { dry_run: true }), unknown('provision-policy'))
  t.same(await answerTo('provision-polic'), unknown('provision-polic'), 'and it is no answer to what was meant')
  t.same(await answerTo('delete-label'), unknown('delete-label'))
  t.same(await answerTo('get-label'), unknown('get-label', ' Did you mean "get-labels"?'))
  t.same(
    await answerTo('get-label', {}, { 'x-mcp-exclude-tools': 'get-labels' }),
    unknown('get-label'),
    'nor is one that the client has left out',
  )
  t.same(
    audit.map(({ phase, tool, decision, reason }) => [phase, tool, decision, reason]),
    ['provision-policy', 'provision-polic', 'delete-label', 'get-label', 'get-label'].map((tool) => [
      'decision',
      tool,
      'error',
      'unknown_tool',
    ]),
  )
  t.equal((await call('get-server-changelog')).result.isError, undefined, 'what is offered works')
})

t.test('hints name no tool that is not offered', async (t) => {
  const hintOf = async (headers: Record<string, string>) => {
    const { send, tokenOf } = service
    const params = { name: 'get-labels', arguments: {} }
    const { payload } = await send(await tokenOf('ann'), request('tools/call', params), { headers })
    return (JSON.parse(JSON.parse(payload).result.content[0].text) as { hint?: string }).hint
  }
  const login = { clientId: 'setup' }
  let service = await startService(t, { config: { login } })
  const there = 'Register your PCE API key at https://mcp.example.test/setup in a browser, where no model can see it'
  t.equal(await hintOf({}), `${there}; register-pce-credentials works too.`)
  t.equal(await hintOf({ 'x-mcp-readonly': '1' }), `${there}.`)
  service = await startService(t)
  t.equal(
    await hintOf({}),
    'Register your PCE API key with register-pce-credentials; this server has no login for browsers.',
  )
  t.equal(await hintOf({ 'x-mcp-tools': 'get-labels' }), 'This server has no login for browsers.')
})

t.test('the list leads nobody to a tool that is not offered, and still describes every argument', async (t) => {
  const { post } = await insecureApp(tools)
  const listed = async (headers: Record<string, string>) => {
    const { body } = await post(request('tools/list'), headers)
    return JSON.parse(body).result.tools as { name: string; description: string; inputSchema: Schema }[]
  }
  const whole = await listed({})
  const texts = ({ name, description, inputSchema }: (typeof whole)[number]) =>
    [[name, description] as const, ...describedIn(inputSchema, name)].filter(([, text]) => text !== undefined)
  const offers = [
    ...Object.keys(TOOLSETS).map((set) => ({ 'x-mcp-toolsets': set })),
    ...ALL.map((name) => ({ 'x-mcp-tools': name })),
    // A tool that no text names leads nobody to itself when it is left out alone.
    ...ALL.filter((name) => whole.flatMap(texts).some(([, text]) => text!.includes(name))).map((name) => ({
      'x-mcp-exclude-tools': name,
    })),
  ]
  t.ok(offers.length > ALL.length + Object.keys(TOOLSETS).length, 'some tools are named by others')
  for (const headers of offers) {
    const found = await listed(headers)
    const hidden = ALL.filter((name) => !found.some((tool) => tool.name === name))
    const leads = new RegExp(`(?<![\\w-])(?:${hidden.join('|')})(?![\\w-])`)
    const said = found.flatMap(texts)
    t.same(
      said.filter(([, text]) => leads.test(text!)),
      [],
      JSON.stringify(headers),
    )
    const before = whole.filter(({ name }) => !hidden.includes(name)).flatMap(texts)
    t.same(
      said.map(([path]) => path),
      before.map(([path]) => path),
      'whatever is described to others is described',
    )
  }
  const told = async (tool: string, argument: string) =>
    (await listed({ 'x-mcp-tools': tool }))[0]!.inputSchema.properties![argument]!.description
  const forms = 'key=value, iplist:NAME, href, IP, CIDR … Same key or kind ORed, others ANDed; ORed blocks: a=b&c=d'
  t.equal(await told('discover-process-egress', 'include_sources'), forms, 'as the tool that it refers to says it')
  t.equal(
    (await listed({ 'x-mcp-tools': 'get-traffic-flows' }))[0]!.description,
    'Traffic by chosen dimensions, busiest first.',
  )
  t.same(await listed({}), whole, 'and those who have them all read the same as before')
})

interface Schema {
  description?: string
  properties?: Record<string, Schema>
}

/** The descriptions in a schema, by path. */
function describedIn(value: unknown, path: string): [path: string, text: string | undefined][] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, one]): [string, string | undefined][] =>
    key === 'description' && typeof one === 'string' ? [[path, one]] : describedIn(one, `${path}.${key}`),
  )
}

t.test('the instructions lead nobody to a tool that is not offered', async (t) => {
  const { post } = await insecureApp(tools)
  const policyIn = async (headers: Record<string, string>) => {
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } }
    const { body } = await post(request('initialize', params), headers)
    const lines = (JSON.parse(body).result.instructions as string).split('\n')
    return lines.filter((line) => /^Policy|^A changing/.test(line)).map((line) => line.split(/[;:.]/)[0])
  }
  const draft = 'Policy (rule sets, rules, IP lists, services) is written as a draft and enforced only'
  const approve = 'A changing tool may wait for a person or answer confirm_required'
  t.same(await policyIn({}), [`${draft} after provision-policy`, approve])
  t.same(await policyIn({ 'x-mcp-toolsets': 'rules' }), [`${draft} once provisioned, by somebody else`, approve])
  t.same(await policyIn({ 'x-mcp-readonly': '1' }), [
    'Policy is written as a draft and enforced only once it is provisioned',
  ])
})

t.test('a header that says nothing that can be done is a 400, and nothing is ignored', async (t) => {
  const { post } = await insecureApp(tools, { offer: { toolsets: ['traffic', 'server'] } })
  const known = ['default', 'all', ...Object.keys(TOOLSETS)].join(', ')
  const TOOLS =
    'check-pce-connection, discover-process-egress, find-unmanaged-traffic, get-events, get-server-changelog, get-traffic-flows, get-traffic-flows-summary'
  const cases: [header: string, value: string, message: string][] = [
    ['X-MCP-Readonly', 'maybe', 'X-MCP-Readonly must be true or false.'],
    ['X-MCP-Readonly', 'true,false', 'X-MCP-Readonly must be true or false.'],
    ['X-MCP-Toolsets', ',', 'X-MCP-Toolsets has commas and no name.'],
    [
      'X-MCP-Toolsets',
      'traffic,trafic',
      `X-MCP-Toolsets: there is no toolset "trafic". Did you mean "traffic"? Known: ${known}`,
    ],
    ['X-MCP-Toolsets', 'label', `X-MCP-Toolsets: there is no toolset "label". Known: ${known}`],
    [
      'X-MCP-Tools',
      'get-traffic-flow',
      `X-MCP-Tools: there is no tool "get-traffic-flow". Did you mean "get-traffic-flows"? Known: ${TOOLS}`,
    ],
    ['X-MCP-Exclude-Tools', 'get-label', `X-MCP-Exclude-Tools: there is no tool "get-label". Known: ${TOOLS}`],
  ]
  for (const [header, value, message] of cases) {
    const { statusCode, body } = await post(request('tools/list'), { [header]: value })
    t.equal(statusCode, 400, `${header}: ${value}`)
    const { jsonrpc, id, error } = JSON.parse(body)
    t.same(
      { jsonrpc, id, code: error.code, message: error.message },
      { jsonrpc: '2.0', id: null, code: -32000, message },
    )
    t.equal(error.data.error, 'bad_request')
    t.equal(error.data.header, header)
  }
  const listed = async (headers: Record<string, string>) => {
    const { body } = await post(request('tools/list'), headers)
    return JSON.parse(body).result.tools.map(({ name }: { name: string }) => name)
  }
  const offered = TOOLS.split(', ')
  for (const value of ['', ' ', '0', 'False', 'NO', 'off']) t.same(await listed({ 'X-MCP-Readonly': value }), offered)
  for (const value of ['1', 'TRUE', 'yes', 'on']) t.same(await listed({ 'X-MCP-Readonly': value }), offered)
  t.same(await listed({ 'X-MCP-Toolsets': ' server , traffic,' }), offered)
  t.same(await listed({ 'X-MCP-Toolsets': ' ', 'X-MCP-Tools': '', 'X-MCP-Exclude-Tools': ' ' }), offered)
  t.same(
    await listed({ 'X-MCP-Tools': 'get-labels,get-events', 'X-MCP-Toolsets': 'inventory,server' }),
    ['get-events'],
    'what the operator does not offer stays out',
  )
  t.same(await listed({ 'X-MCP-Toolsets': 'objects' }), [], 'and may leave nothing')
})

t.test('what comes later is beyond the default', async (t) => {
  const [first, ...others] = tools
  const later = { ...first!, name: 'judge-rules', toolset: 'vens' } as const
  const listed = async (offer: OfferConfig, headers: Record<string, string> = {}) => {
    const { app, post } = await insecureApp([later, ...others], { offer })
    const { body } = await post(request('tools/list'), headers)
    await app.close()
    return JSON.parse(body).result.tools.map(({ name }: { name: string }) => name) as string[]
  }
  const has = async (offer: OfferConfig, headers?: Record<string, string>) =>
    (await listed(offer, headers)).includes('judge-rules')
  t.equal(await has({}), false)
  t.equal(await has({ toolsets: ['default'] }), false)
  t.equal(await has({ toolsets: ['all'] }), true)
  t.equal(await has({ toolsets: ['default', 'vens'] }), true)
  t.equal(await has({ toolsets: ['traffic'] }), false)
  t.same(await listed({ tools: ['judge-rules', 'get-labels'] }), ['judge-rules', 'get-labels'])
  t.equal(await has({}, { 'x-mcp-toolsets': 'all' }), false, 'a client cannot widen it')
  t.equal(await has({ toolsets: ['all'] }, { 'x-mcp-toolsets': 'default' }), false)
  t.equal(await has({ toolsets: ['all'] }, { 'x-mcp-toolsets': 'vens' }), true)
})

t.test('no token is minted for a hidden tool, and none is suggested', async (t) => {
  const { confirm, call, tokenOf, audit } = await startService(t, {
    mode: 'shared',
    config: { offer: { excluded: ['ringfence-batch'], hideForbidden: true } },
  })
  const token = await tokenOf('ann')
  const mint = async (tool: string, headers: Record<string, string> = {}) => {
    const answer = await confirm(token, { tool, params_hash: 'a'.repeat(64) }, headers)
    const { error } = JSON.parse(answer.payload)
    return [answer.statusCode, error]
  }
  t.same(await mint('provision-policy'), [200, undefined])
  t.same(await mint('ringfence-batch'), [404, 'unknown_tool'])
  t.same(await mint('provision-policy', { 'x-mcp-readonly': 'true' }), [404, 'unknown_tool'])
  t.same(await mint('provision-policy', { 'x-mcp-tools': 'ringfence-batch' }), [404, 'unknown_tool'])
  t.same(await mint('provision-policy', { 'x-mcp-toolsets': 'nothing' }), [400, 'bad_request'])
  t.same(
    audit.map(({ tool, decision, reason }) => [tool, decision, reason]),
    [
      ['provision-policy', 'allowed', undefined],
      ['ringfence-batch', 'error', 'unknown_tool'],
      ['provision-policy', 'error', 'unknown_tool'],
      ['provision-policy', 'error', 'unknown_tool'],
      [undefined, 'error', 'bad_request'],
    ],
  )
  const saidTo = async (role: 'reader' | 'admin') =>
    (await call(await tokenOf('rita', role), 'provision-polic')).error.message as string
  t.equal(await saidTo('admin'), 'There is no tool "provision-polic". Did you mean "provision-policy"?')
  t.equal(await saidTo('reader'), 'There is no tool "provision-polic".', 'nor one that is hidden from the role')
})
