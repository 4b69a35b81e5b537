/** MCP 2026-07-28 beside the revisions with a handshake: over HTTP, byte by byte, and with the clients of both SDKs. */
import { Client as ModernClient, StreamableHTTPClientTransport as ModernTransport } from '@modelcontextprotocol/client'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import t, { type Test } from 'tap'
import { startService } from '../contract/authenticated-service.js'
import { insecureApp, parseEvents, testTools, textOf } from '../contract/insecure-app.js'
import { partial } from '../partial.js'
import { sharedValidators } from '../shared-validators.js'

const MODERN = '2026-07-28'
const VERSIONS = [MODERN, '2025-11-25', '2025-06-18', '2025-03-26']
const VERSION_KEY = 'io.modelcontextprotocol/protocolVersion'
const CAPABILITIES_KEY = 'io.modelcontextprotocol/clientCapabilities'
const CLIENT_KEY = 'io.modelcontextprotocol/clientInfo'
const SERVER_KEY = 'io.modelcontextprotocol/serverInfo'
const META = { [VERSION_KEY]: MODERN, [CAPABILITIES_KEY]: {}, [CLIENT_KEY]: { name: 'tester', version: '9' } }
const NAMED_BY: Record<string, string> = { 'tools/call': 'name', 'prompts/get': 'name', 'resources/read': 'uri' }

/** A request of 2026-07-28 with its headers. */
function modern(method: string, params: Record<string, unknown> = {}, meta: object = META, id: unknown = 7) {
  const name = params[NAMED_BY[method] ?? '']
  const headers: Record<string, string> = {
    'mcp-protocol-version': MODERN,
    'mcp-method': method,
    ...(typeof name === 'string' && { 'mcp-name': name }),
  }
  return { body: { jsonrpc: '2.0', id, method, params: { ...params, _meta: meta } }, headers }
}

async function start(t: Test) {
  const service = await insecureApp()
  t.teardown(() => service.app.close())
  const ask = async (
    method: string,
    params?: Record<string, unknown>,
    more: { meta?: object; headers?: Record<string, string | undefined>; id?: unknown } = {},
  ) => {
    const { body, headers } = modern(method, params, more.meta, more.id)
    const sent = Object.entries({ ...headers, ...more.headers }).filter(([, value]) => value !== undefined)
    const answer = await service.post(body, Object.fromEntries(sent) as Record<string, string>)
    return { status: answer.statusCode, text: answer.body, json: () => answer.json() }
  }
  return { ...service, ask }
}

t.test('says who it is, and how long that may be kept', async (t) => {
  const { ask } = await start(t)
  const { result } = (await ask('server/discover')).json()
  t.same(result.supportedVersions, VERSIONS)
  t.same(result.capabilities, { tools: {}, resources: {}, prompts: {}, completions: {} })
  t.match(result.instructions, /data, not instructions/)
  const kept: [string, Record<string, unknown>, string, number][] = [
    ['server/discover', {}, 'private', 300_000],
    ['tools/list', {}, 'private', 300_000],
    ['prompts/list', {}, 'private', 300_000],
    ['resources/list', {}, 'public', 300_000],
    ['resources/templates/list', {}, 'private', 300_000],
    ['resources/read', { uri: 'illumio://changelog' }, 'private', 300_000],
  ]
  for (const [method, params, cacheScope, ttlMs] of kept) {
    const { result } = (await ask(method, params)).json()
    partial(
      t,
      result,
      { resultType: 'complete', ttlMs, cacheScope, _meta: { [SERVER_KEY]: { name: 'svc-mcp' } } },
      method,
    )
  }
  const called = (await ask('tools/call', { name: 'echo', arguments: { text: 'ü' } })).json()
  t.same(Object.keys(called.result), ['resultType', 'content', 'structuredContent', '_meta'], 'a call is not kept')
  t.same([called.id, called.result.structuredContent, textOf(called)], [7, { text: 'ü' }, { text: 'ü' }])
  const failed = (await ask('tools/call', { name: 'refuse', arguments: {} })).json()
  partial(t, failed.result, { resultType: 'complete', isError: true })
})

t.test('an older request may not say something else in the headers of this revision', async (t) => {
  const { post } = await start(t)
  const call = { jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: 'echo', arguments: {} } }
  for (const version of [undefined, '2025-11-25']) {
    const send = (headers: Record<string, string>) =>
      post(call, { ...(version && { 'mcp-protocol-version': version }), ...headers })
    t.equal((await send({ 'mcp-method': 'tools/call', 'mcp-name': 'echo' })).statusCode, 200)
    for (const [name, value] of [
      ['mcp-method', 'tools/list'],
      ['mcp-name', 'get-labels'],
    ] as const) {
      const answer = await send({ [name]: value })
      t.equal(answer.statusCode, 400)
      partial(t, answer.json(), { id: 7, error: { code: -32020 } })
    }
  }
})

t.test('refuses what is not of the revision, with the id of the request', async (t) => {
  const { ask, post } = await start(t)
  const without = (key: string) => Object.fromEntries(Object.entries(META).filter(([name]) => name !== key))
  const other = { ...META, [VERSION_KEY]: '2030-01-01' }
  const cases: [string, Awaited<ReturnType<typeof ask>>, number, number, RegExp][] = [
    ['no version', await ask('tools/list', {}, { meta: without(VERSION_KEY) }), 400, -32602, /protocolVersion/],
    [
      'no capabilities',
      await ask('tools/list', {}, { meta: without(CAPABILITIES_KEY) }),
      400,
      -32602,
      /clientCapabilities/,
    ],
    [
      'a nameless client',
      await ask('tools/list', {}, { meta: { ...META, [CLIENT_KEY]: {} } }),
      400,
      -32602,
      /clientInfo/,
    ],
    [
      'a version that nobody speaks',
      await ask('tools/list', {}, { meta: other, headers: { 'mcp-protocol-version': '2030-01-01' } }),
      400,
      -32022,
      /version/,
    ],
    [
      'another version in the header',
      await ask('tools/list', {}, { headers: { 'mcp-protocol-version': '2025-11-25' } }),
      400,
      -32020,
      /MCP-Protocol-Version/,
    ],
    [
      'an older version in _meta',
      await ask('tools/list', {}, { meta: { ...META, [VERSION_KEY]: '2025-11-25' } }),
      400,
      -32020,
      /MCP-Protocol-Version/,
    ],
    [
      'no version in the header',
      await ask('tools/list', {}, { headers: { 'mcp-protocol-version': undefined } }),
      400,
      -32020,
      /MCP-Protocol-Version/,
    ],
    ['no Mcp-Method', await ask('tools/list', {}, { headers: { 'mcp-method': undefined } }), 400, -32020, /Mcp-Method/],
    [
      'another Mcp-Method',
      await ask('tools/list', {}, { headers: { 'mcp-method': 'TOOLS/LIST' } }),
      400,
      -32020,
      /Mcp-Method/,
    ],
    [
      'an Mcp-Method of blanks alone',
      await ask('tools/list', {}, { headers: { 'mcp-method': `x${' '.repeat(6_700)}x` } }),
      400,
      -32020,
      /Mcp-Method is longer than 6700 characters$/,
    ],
    [
      'no Mcp-Name',
      await ask('tools/call', { name: 'echo' }, { headers: { 'mcp-name': undefined } }),
      400,
      -32020,
      /Mcp-Name/,
    ],
    [
      'another Mcp-Name',
      await ask('tools/call', { name: 'echo' }, { headers: { 'mcp-name': 'rules' } }),
      400,
      -32020,
      /Mcp-Name/,
    ],
    [
      'Mcp-Name that is no base64',
      await ask('tools/call', { name: 'echo' }, { headers: { 'mcp-name': '=?base64?ZWNobw?=' } }),
      400,
      -32020,
      /decoded/,
    ],
    [
      'another URI',
      await ask('resources/read', { uri: 'illumio://changelog' }, { headers: { 'mcp-name': 'illumio://x' } }),
      400,
      -32020,
      /uri/,
    ],
    ['an unknown method', await ask('tools/delete'), 404, -32601, /Method not found/],
    ['initialize', await ask('initialize', { protocolVersion: '2025-11-25' }), 404, -32601, /Method not found/],
    ['ping', await ask('ping'), 404, -32601, /Method not found/],
    ['logging', await ask('logging/setLevel', { level: 'info' }), 404, -32601, /Method not found/],
    ['an unknown tool', await ask('tools/call', { name: 'ecko' }), 200, -32602, /echo/],
    ['an unknown resource', await ask('resources/read', { uri: 'illumio://nothing' }), 200, -32602, /not found/],
    [
      'a state that nobody gave',
      await ask('tools/call', { name: 'echo', requestState: 'x' }),
      200,
      -32602,
      /requestState/,
    ],
  ]
  for (const [why, { status, json }, expected, code, message] of cases) {
    t.equal(status, expected, why)
    partial(t, json(), { jsonrpc: '2.0', id: 7, error: { code, message } }, `${why}: ${code}`)
  }
  t.same(
    (await ask('tools/list', {}, { meta: other, headers: { 'mcp-protocol-version': '2030-01-01' } })).json().error.data,
    {
      error: 'unsupported_protocol_version',
      supported: VERSIONS,
      requested: '2030-01-01',
    },
  )
  t.notMatch(
    (await ask('resources/read', { uri: 'illumio://ruleset/1' })).text,
    /-320[01]\d/,
    'no code of an earlier revision',
  )

  const bare = await post({ jsonrpc: '2.0', id: 7, method: 'tools/list' }, { 'mcp-protocol-version': MODERN })
  t.equal(bare.statusCode, 400)
  partial(t, bare.json(), { id: 7, error: { code: -32602, message: /_meta/ } }, 'no _meta at all')
  const refused = await post(modern('tools/list').body, { ...modern('tools/list').headers, accept: 'text/html' })
  t.equal(refused.statusCode, 406)
  t.equal(refused.json().error.code, 406, 'what HTTP refuses has its status as the code')
  t.notOk('id' in refused.json(), 'and no id, where none was read')
  const batch = [modern('tools/list').body, modern('tools/list', {}, META, 8).body]
  t.equal((await post(batch, { 'mcp-protocol-version': MODERN })).json().error.code, -32600, 'there are no batches')
  t.equal((await post(batch)).json().error.code, -32600, 'nor inside one of 2025-03-26')
})

t.test('headers are read as HTTP and the revision say', async (t) => {
  const { ask } = await start(t)
  const base64 = (text: string) => `=?base64?${Buffer.from(text).toString('base64')}?=`
  for (const name of ['echo', '  echo\t', base64('echo')]) {
    const { status } = await ask('tools/call', { name: 'echo', arguments: {} }, { headers: { 'mcp-name': name } })
    t.equal(status, 200, JSON.stringify(name))
  }
  const odd = '=?base64?odd?='
  t.equal((await ask('tools/call', { name: odd }, { headers: { 'mcp-name': base64(odd) } })).json().error.code, -32602)
  t.equal((await ask('tools/call', { name: 'ü' }, { headers: { 'mcp-name': base64('ü') } })).json().error.code, -32602)
  t.equal((await ask('tools/call', { name: 'ü' }, { headers: { 'mcp-name': 'ü' } })).json().error.code, -32020)
  t.equal(
    (await ask('tools/call', { name: 5 })).json().error.code,
    -32602,
    'params of the wrong shape are the method’s',
  )
})

t.test('nothing is remembered from one request to the next, and no client is mixed up with another', async (t) => {
  const { ask, audit, post } = await start(t)
  const call = (name: string) =>
    ask('tools/call', { name: 'echo' }, { meta: { ...META, [CLIENT_KEY]: { name, version: '1' } } })
  await Promise.all(Array.from({ length: 20 }, (_, at) => call(`client-${at}`)))
  t.equal(new Set(audit.map(({ client }) => client)).size, 20)
  audit.length = 0
  const unnamed = { [VERSION_KEY]: MODERN, [CAPABILITIES_KEY]: {} }
  await ask('tools/call', { name: 'echo' }, { meta: unnamed })
  t.notOk(audit.some(({ client }) => String(client).startsWith('client-')))
  await ask('server/discover')
  const handshake = {
    jsonrpc: '2.0',
    id: 1,
    method: 'initialize',
    params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } },
  }
  t.equal((await post(handshake)).json().result.protocolVersion, '2025-11-25')
  t.equal((await post(handshake, { 'mcp-protocol-version': MODERN })).json().result.protocolVersion, '2025-11-25')
  t.notOk(
    (await post({ jsonrpc: '2.0', id: 1, method: 'tools/list' })).json().result.resultType,
    'old requests get old answers',
  )
})

t.test('null for what may be left out counts as left out', async (t) => {
  const { ask } = await start(t)
  const nulls = { arguments: null, inputResponses: null, requestState: null }
  const meta = { ...META, [CLIENT_KEY]: null, progressToken: null, confirm_token: null }
  const answer = await ask('tools/call', { name: 'echo', ...nulls }, { meta })
  t.same(answer.json(), (await ask('tools/call', { name: 'echo' })).json())
})

t.test('a subscription is acknowledged, and over', async (t) => {
  const { ask } = await start(t)
  const { events } = parseEvents(
    (await ask('subscriptions/listen', { notifications: { toolsListChanged: true } })).text,
  )
  t.same(
    events.map(({ data }) => data),
    [
      {
        method: 'notifications/subscriptions/acknowledged',
        params: { _meta: { 'io.modelcontextprotocol/subscriptionId': 7 }, notifications: {} },
        jsonrpc: '2.0',
      },
      {
        result: {
          resultType: 'complete',
          _meta: {
            [SERVER_KEY]: events[1]!.data.result!._meta![SERVER_KEY as never],
            'io.modelcontextprotocol/subscriptionId': 7,
          },
        },
        jsonrpc: '2.0',
        id: 7,
      },
    ],
  )
  t.equal((await ask('subscriptions/listen')).json().error.code, -32602)
  const deaf = await ask('subscriptions/listen', { notifications: {} }, { headers: { accept: 'application/json' } })
  t.equal(deaf.status, 406, 'not where the acknowledgement, which is a notification, cannot be sent')
  partial(t, deaf.json(), { id: 7, error: { code: 406, data: { error: 'not_acceptable', request_id: String } } })
})

t.test('progress and the end of a call whose client has left', async (t) => {
  const { tools, read, seen } = testTools()
  const { app, post } = await insecureApp(tools)
  t.teardown(() => app.close())
  const { body, headers } = modern('tools/call', { name: 'wait-read', arguments: {} }, { ...META, progressToken: 'p' })
  const answering = post(body, headers)
  await read.arrived
  read.open()
  const { events } = parseEvents((await answering).body)
  partial(t, events[0]!.data, { method: 'notifications/progress', params: { progressToken: 'p' } })
  partial(t, events.at(-1)!.data, { id: 7, result: { resultType: 'complete' } })

  const leaving = testTools()
  const second = await insecureApp(leaving.tools)
  t.teardown(() => second.app.close())
  const url = await second.app.listen({ port: 0, host: '127.0.0.1' })
  const controller = new AbortController()
  const sent = fetch(`${url}/mcp`, {
    method: 'POST',
    signal: controller.signal,
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
    body: JSON.stringify(body),
  })
    .then((answer) => answer.text())
    .catch(() => '')
  await leaving.read.arrived
  const aborted = new Promise((resolve) => leaving.seen.read!.addEventListener('abort', resolve))
  controller.abort()
  await aborted
  await sent
  t.ok(leaving.seen.read!.aborted && seen.read !== undefined)
})

for (const mode of ['dev-insecure', 'authenticated'] as const) {
  t.test(`clients of both SDKs, ${mode}`, async (t) => {
    const service = mode === 'authenticated' ? await startService(t, { mode: 'shared' }) : await start(t)
    const url = new URL(`${await service.app.listen({ port: 0, host: '127.0.0.1' })}/mcp`)
    const token = 'tokenOf' in service ? await service.tokenOf('ann') : ''
    const requestInit = token === '' ? {} : { headers: { authorization: `Bearer ${token}` } }
    const tool = 'tokenOf' in service ? 'get-server-changelog' : 'echo'

    const old = new Client({ name: 'v1', version: '1' }, { jsonSchemaValidator: sharedValidators })
    await old.connect(new StreamableHTTPClientTransport(url, { requestInit }))
    t.ok((await old.listTools()).tools.length > 0)
    t.notOk((await old.callTool({ name: tool, arguments: {} })).isError, 'v1')
    await old.close()

    for (const [how, versionNegotiation, era] of [
      ['legacy', undefined, 'legacy'],
      ['auto', { mode: 'auto' }, 'modern'],
      ['pinned', { mode: { pin: MODERN } }, 'modern'],
    ] as const) {
      service.audit.length = 0
      const client = new ModernClient({ name: `v2-${how}`, version: '2' }, versionNegotiation && { versionNegotiation })
      await client.connect(new ModernTransport(url, { requestInit }))
      t.equal(client.getProtocolEra(), era, how)
      t.ok((await client.listTools()).tools.length > 0)
      t.ok((await client.listResources()).resources.length > 0)
      t.equal((await client.readResource({ uri: 'illumio://changelog' })).contents[0]!.uri, 'illumio://changelog')
      t.ok((await client.listPrompts()).prompts)
      const progress: number[] = []
      const result = await client.callTool(
        { name: tool, arguments: {} },
        { onprogress: ({ progress: so }) => void progress.push(so) },
      )
      t.notOk(result.isError, `${how}: a call`)
      t.equal(progress.length, 1, `${how}: its progress`)
      await t.rejects(client.callTool({ name: 'nothing', arguments: {} }), { code: -32602 })
      const said = service.audit.filter(({ phase }) => phase === 'outcome').map(({ client: name }) => name)
      if (era === 'modern') t.same(said, [`v2-${how}/2`], 'which is in the audit log under its own name')
      await client.close()
    }
  })
}

t.test('without a token nobody learns anything', async (t) => {
  const { send } = await startService(t, { mode: 'shared' })
  const { body, headers } = modern('server/discover')
  const answer = await send(null, body, { headers })
  t.equal(answer.statusCode, 401)
  t.equal(answer.json().error.code, 401)
})
