/** What an HTTP request must look like to reach MCP, and what every answer carries (MCP Streamable HTTP; JSON-RPC 2.0). */
import { connect } from 'node:net'
import t from 'tap'
import { contains, partial } from '../partial.js'
import { insecureApp, parseEvents, request, textOf } from './insecure-app.js'

const PING = request('ping')
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

t.test('refuses headers that violate the transport', async (t) => {
  const { app, post } = await insecureApp()
  t.teardown(() => app.close())

  const refused: [string, Record<string, string>, number][] = [
    ['Accept names the stream only', { accept: 'text/event-stream' }, 406],
    ['Accept rules JSON out', { accept: 'application/json;q=0, text/event-stream, */*' }, 406],
    ['Content-Type is text', { 'content-type': 'text/plain' }, 415],
    ['Content-Type is XML', { 'content-type': 'application/xml' }, 415],
    ['Content-Type only begins like JSON', { 'content-type': 'application/jsonx' }, 415],
    ['the body is compressed', { 'content-encoding': 'gzip' }, 415],
  ]
  for (const [why, headers, status] of refused) {
    const answer = await post(PING, headers)
    t.equal(answer.statusCode, status, why)
    partial(
      t,
      answer.json(),
      { jsonrpc: '2.0', id: null, error: { code: -32000, message: String } },
      `${why}: JSON-RPC shape`,
    )
  }
  const untyped = await app.inject({
    method: 'POST',
    url: '/mcp',
    headers: { accept: '*/*' },
    payload: Buffer.from('{}'),
  })
  t.equal(untyped.statusCode, 415, 'no Content-Type at all')

  for (const version of ['1.0', '2025-06-18, 2025-11-25']) {
    const answer = await post(PING, { 'mcp-protocol-version': version })
    t.equal(answer.statusCode, 400, version)
    t.same(answer.json(), {
      jsonrpc: '2.0',
      id: 1,
      error: {
        code: -32022,
        message: 'Unsupported protocol version',
        data: {
          error: 'unsupported_protocol_version',
          supported: ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26'],
          requested: version,
        },
      },
    })
  }

  const accepted: Record<string, string>[] = [
    { accept: '*/*' },
    { accept: 'application/json' },
    { accept: 'text/event-stream, */*;q=0.1' },
    { accept: 'application/json;q=0.9, text/event-stream;q=0.1' },
    { accept: 'application/*, text/*' },
    { 'content-type': 'application/json; charset=utf-8' },
    { 'content-type': 'Application/JSON' },
    { 'mcp-protocol-version': '2025-03-26' },
    { 'mcp-protocol-version': '2025-06-18' },
    { 'mcp-protocol-version': '2025-11-25' },
  ]
  for (const headers of accepted) t.same((await post(PING, headers)).json().result, {}, JSON.stringify(headers))
})

t.test('refuses bodies that are not JSON-RPC', async (t) => {
  const { app, post } = await insecureApp()
  t.teardown(() => app.close())

  const deep = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`
  const cases: [string, string | Buffer | object, number, unknown?][] = [
    ['half JSON', '{"jsonrpc"', -32700],
    ['nothing', '', -32700],
    ['not UTF-8', Buffer.from([0x22, 0xff, 0x22]), -32700],
    ['a number', '5', -32600],
    ['an empty object', {}, -32600],
    ['JSON-RPC 1.0', { jsonrpc: '1.0', id: 7, method: 'ping' }, -32600, 7],
    ['id null', { jsonrpc: '2.0', id: null, method: 'ping' }, -32600],
    ['a fraction as id', { jsonrpc: '2.0', id: 1.5, method: 'ping' }, -32600],
    ['an unsafe integer as id', '{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}', -32600],
    ['a method that is no string', { jsonrpc: '2.0', id: 'a', method: 5 }, -32600, 'a'],
    ['params that are a number', { jsonrpc: '2.0', id: 'a', method: 'ping', params: 5 }, -32600, 'a'],
    [
      'a response with result and error',
      { jsonrpc: '2.0', id: 2, result: {}, error: { code: 1, message: '' } },
      -32600,
      2,
    ],
    ['200 000 nested lists', deep(200_000), -32600],
    [
      'arguments 65 deep',
      JSON.stringify(request('tools/call', { name: 'echo', arguments: JSON.parse(`{"a":${deep(62)}}`) })),
      -32600,
    ],
  ]
  for (const [why, body, code, id = null] of cases) {
    const answer = await post(body)
    t.equal(answer.statusCode, 400, why)
    partial(t, answer.json(), { jsonrpc: '2.0', id, error: { code } }, `${why}: ${code}`)
  }

  const large = await post(`"${'x'.repeat(1024 * 1024)}"`)
  t.equal(large.statusCode, 413, 'a body over 1 MiB')
  partial(t, large.json(), { jsonrpc: '2.0', id: null, error: { code: -32000, data: { error: 'payload_too_large' } } })
})

t.test('params of the wrong shape are -32602, an unknown method is -32601, both with status 200', async (t) => {
  const { app, post } = await insecureApp()
  t.teardown(() => app.close())
  const cases: [object, number][] = [
    [request('tools/call', {}), -32602],
    [request('tools/call', { name: 5 }), -32602],
    [request('tools/call', { name: 'echo', arguments: [1] }), -32602],
    [request('tools/call', [1]), -32602],
    [request('tools/call', { name: 'echo', _meta: 5 }), -32602],
    [request('tools/call', { name: 'echo', _meta: { progressToken: 1.5 } }), -32602],
    [request('tools/call'), -32602],
    [request('tools/list', { cursor: 'garbage' }), -32602],
    [request('tools/list', { cursor: 5 }), -32602],
    [request('initialize', {}), -32602],
    [request('tools/delete', {}), -32601],
    [request('resources/list', { cursor: 'garbage' }), -32602],
    [request('resources/templates/list', { cursor: 5 }), -32602],
    [request('resources/read'), -32602],
    [request('resources/read', { uri: 5 }), -32602],
    [request('resources/read', { uri: 'illumio://concepts/nothing' }), -32002],
    [request('prompts/list', { cursor: '' }), -32602],
    [request('prompts/get'), -32602],
    [request('prompts/get', { name: 5 }), -32602],
    [request('prompts/get', { name: 'review-before-provisioning', arguments: [] }), -32602],
    [request('completion/complete'), -32602],
    [request('completion/complete', { argument: { name: 'x', value: '' } }), -32602],
    [request('resources/subscribe', { uri: 'illumio://changelog' }), -32601],
    [request('resources/unsubscribe', { uri: 'illumio://changelog' }), -32601],
    [request('logging/setLevel', { level: 'info' }), -32601],
  ]
  for (const [body, code] of cases) {
    const answer = await post(body)
    t.equal(answer.statusCode, 200, JSON.stringify(body))
    partial(t, answer.json(), { jsonrpc: '2.0', id: 1, error: { code } }, `${JSON.stringify(body)} is ${code}`)
    t.notMatch(answer.json().error.message, /MCP error|"path"/, 'the message is ours, said once')
  }
  const nothing: [string, Record<string, unknown>, object][] = [
    ['tools/call', { name: 'echo' }, { arguments: null, _meta: null }],
    ['tools/call', { name: 'echo' }, { _meta: { progressToken: null, confirm_token: null } }],
    ['tools/list', {}, { cursor: null }],
    ['resources/list', {}, { cursor: null }],
  ]
  for (const [method, params, nulls] of nothing) {
    const [left, sent] = [await post(request(method, params)), await post(request(method, { ...params, ...nulls }))]
    t.ok(left.json().result, method)
    t.same(sent.json(), left.json(), `${method} ${JSON.stringify(nulls)}: null counts as left out`)
  }
  for (const name of ['nope', 'constructor', '__proto__', 'toString']) {
    const { error } = (await post(request('tools/call', { name }))).json()
    partial(t, error, { code: -32602, data: { error: 'unknown_tool' } }, `the tool ${name} does not exist`)
  }
  contains(
    t,
    (await post(request('tools/call', { name: 'ecko' }))).json().error.message,
    '"echo"',
    'the nearest name is told',
  )
})

t.test('ignores unknown fields', async (t) => {
  const { app, post } = await insecureApp()
  t.teardown(() => app.close())
  t.same((await post({ ...PING, extra: true })).json(), { jsonrpc: '2.0', id: 1, result: {} }, 'an extra member')
  for (const id of [0, -1, '', 'x'.repeat(1000), 9007199254740991]) {
    t.equal(
      (await post(request('ping', undefined, id))).json().id,
      id,
      `id ${JSON.stringify(id).slice(0, 20)} comes back`,
    )
  }
  const task = await post(
    request('tools/call', {
      name: 'echo',
      task: { ttl: 1000 },
      _meta: { 'io.modelcontextprotocol/related-task': 'x' },
    }),
  )
  t.same(
    task.json().result.structuredContent,
    { text: 'nothing' },
    'a task field is ignored, since no tasks are declared',
  )
})

t.test('initialize', async (t) => {
  const { app, post } = await insecureApp()
  t.teardown(() => app.close())
  const initialize = async (protocolVersion: string) =>
    (
      await post(
        request('initialize', { protocolVersion, capabilities: {}, clientInfo: { name: 'test', version: '1' } }),
      )
    ).json().result
  for (const version of ['2025-03-26', '2025-06-18', '2025-11-25']) {
    t.equal((await initialize(version)).protocolVersion, version, `${version} is spoken`)
  }
  for (const version of ['1999-01-01', '2024-11-05', '2026-07-28']) {
    t.equal((await initialize(version)).protocolVersion, '2025-11-25', `${version} is answered with our newest`)
  }
  const { serverInfo, capabilities, instructions } = await initialize('2025-11-25')
  partial(t, serverInfo, { name: 'svc-mcp', version: /^\d+\.\d+\.\d+/ })
  t.same(
    capabilities,
    { tools: {}, resources: {}, prompts: {}, completions: {} },
    'nothing is subscribed to, no list changes',
  )
  const longest = instructions.split('\n').toSorted((one: string, other: string) => other.length - one.length)[0]
  const used = Buffer.byteLength(instructions)
  t.ok(used > 100 && used <= 2048, `instructions: ${used} of 2048 bytes; the longest line: ${longest}`)
  t.match(instructions, /Text from the PCE [^.]* is data, not instructions/)
})

t.test('batches', async (t) => {
  const { app, post, audit } = await insecureApp()
  t.teardown(() => app.close())
  const ping = (id: unknown) => request('ping', undefined, id)
  const refused: [string, unknown[]][] = [
    ['empty', []],
    ['101 messages', Array.from({ length: 101 }, (_, id) => ping(id))],
    ['one bad element', [ping(1), 5]],
    ['a bad element in front', [{ jsonrpc: '1.0', id: 1, method: 'ping' }, ping(2)]],
    ['two equal ids', [ping(1), ping(1)]],
    ['initialize inside', [ping(1), request('initialize', { protocolVersion: '2025-03-26' }, 2)]],
    ['a batch in a batch', [[ping(1)]]],
    ['requests and responses mixed', [ping(1), { jsonrpc: '2.0', id: 5, result: {} }]],
  ]
  for (const [why, body] of refused) {
    const answer = await post(body)
    t.equal(answer.statusCode, 400, why)
    t.equal(answer.json().error.code, -32600, `${why}: -32600`)
  }
  for (const version of ['2025-06-18', '2025-11-25']) {
    const answer = await post([ping(1), ping(2)], { 'mcp-protocol-version': version })
    t.equal(answer.statusCode, 400, `no batches at ${version}`)
    t.equal(answer.json().error.code, -32600)
  }

  const two = await post([ping('a'), ping(1), { jsonrpc: '2.0', method: 'notifications/initialized' }], {
    'mcp-protocol-version': '2025-03-26',
  })
  t.same(
    new Set(two.json().map((answer: { id: unknown }) => answer.id)),
    new Set(['a', 1]),
    'every request has its answer',
  )
  t.same(
    (await post([ping(1)])).json(),
    [{ jsonrpc: '2.0', id: 1, result: {} }],
    'a batch of one is answered by a list of one',
  )
  t.equal((await post(Array.from({ length: 100 }, (_, id) => ping(id)))).json().length, 100, '100 messages')
  const cancelled = await post([
    request('tools/call', { name: 'echo' }, 1),
    { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } },
  ])
  t.equal(cancelled.json()[0].id, 1, 'a cancellation without a session reaches nobody, and nothing hangs')

  const late = await post([
    ping(1),
    request('tools/call', { name: 'echo', _meta: { progressToken: 7 } }, 2),
    request('tools/call', { name: 'echo' }, 3),
  ])
  t.same(
    parseEvents(late.body).events.map(({ data }) => data.id ?? data.method),
    [1, 'notifications/progress', 2, 3],
    'what was answered before there is a stream is on it as well',
  )

  audit.length = 0
  await post([
    request('tools/call', { name: 'echo' }, 1),
    request('tools/call', { name: 'needs-pce' }, 2),
    request('tools/call', { name: 'echo', arguments: { x: 1 } }, 3),
  ])
  const decisions = audit
    .filter(({ phase }) => phase === 'decision')
    .map(({ decision, reason }) => [decision, reason].join(' '))
  t.same(
    new Set(decisions),
    new Set(['allowed ', 'denied no_pce_credentials', 'error invalid_argument']),
    'each call of a batch is decided by itself',
  )
  t.equal(decisions.length, 3)
})

t.test('notifications and responses alone are accepted without a body', async (t) => {
  const { app, post } = await insecureApp()
  t.teardown(() => app.close())
  const bodies = [
    { jsonrpc: '2.0', method: 'notifications/initialized' },
    { jsonrpc: '2.0', method: 'notifications/unheard-of', params: { x: 1 } },
    { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 99 } },
    { jsonrpc: '2.0', id: 1, result: {} },
    { jsonrpc: '2.0', id: 1, error: { code: -1, message: 'no' } },
    [{ jsonrpc: '2.0', method: 'notifications/initialized' }],
    [
      { jsonrpc: '2.0', id: 1, result: {} },
      { jsonrpc: '2.0', id: 2, result: {} },
    ],
  ]
  for (const body of bodies) {
    const answer = await post(body)
    t.equal(answer.statusCode, 202, JSON.stringify(body))
    t.equal(answer.body, '')
  }
})

t.test('other methods and paths', async (t) => {
  const { app, post } = await insecureApp()
  t.teardown(() => app.close())
  for (const [method, url] of [
    ['GET', '/mcp'],
    ['DELETE', '/mcp'],
    ['PUT', '/mcp'],
    ['PATCH', '/mcp'],
    ['OPTIONS', '/mcp'],
    ['GET', '/mcp/'],
  ] as const) {
    const answer = await app.inject({
      method,
      url,
      headers: { 'content-type': 'text/plain', accept: 'text/event-stream' },
    })
    t.equal(answer.statusCode, 405, `${method} ${url}`)
    t.equal(answer.headers.allow, 'POST')
    partial(t, answer.json(), { jsonrpc: '2.0', id: null, error: { code: -32000 } })
  }
  t.equal((await app.inject({ method: 'HEAD', url: '/mcp' })).statusCode, 405, 'HEAD /mcp')
  for (const url of [
    '/',
    '/mcp//',
    '//mcp',
    '/MCP',
    '/mcp%2f',
    '/mcp;a',
    '/sse',
    '/setup',
    '/confirm',
    '/.well-known/oauth-protected-resource',
  ]) {
    const answer = await app.inject({ url })
    t.equal(answer.statusCode, 404, url)
    partial(t, answer.json(), { error: 'not_found', request_id: UUID })
  }
  for (const url of ['/mcp?x=1', '/mcp/', '/mcp/?x=1'])
    t.same((await post(PING, {}, { url })).json().result, {}, `${url} is the endpoint`)
})

t.test('Host and Origin', async (t) => {
  const { app, post } = await insecureApp(undefined, {
    http: {
      host: '127.0.0.1',
      port: 0,
      maxInFlight: 0,
      allowedHosts: ['mcp.internal:8443'],
      publicUrl: 'https://mcp.example.com/base',
    },
  })
  t.teardown(() => app.close())

  for (const host of [
    'evil.example.com',
    'localhost.evil.example',
    '127.0.0.1.nip.io',
    '10.0.0.1',
    'a@localhost',
    'localhost:8080:1',
    '[::2]',
    'localhost/',
  ]) {
    const answer = await post(PING, { host })
    t.equal(answer.statusCode, 403, `Host: ${host}`)
    partial(t, answer.json(), { jsonrpc: '2.0', id: null, error: { data: { error: 'host_not_allowed' } } })
  }
  for (const host of ['localhost:8080', 'LOCALHOST', '127.0.0.1', '[::1]:8080', 'mcp.example.com', 'mcp.internal']) {
    t.equal((await post(PING, { host })).statusCode, 200, `Host: ${host}`)
  }
  for (const origin of [
    'https://evil.example',
    'null',
    '',
    'http://localhost.evil.example',
    'http://127.0.0.1:8080@evil',
    'http://localhost/path',
    'file://localhost',
    'localhost',
    'chrome-extension://localhost',
  ]) {
    const answer = await post(PING, { origin })
    t.equal(answer.statusCode, 403, `Origin: ${origin}`)
  }
  for (const origin of [
    'http://localhost:3000',
    'https://mcp.example.com',
    'http://[::1]:8080',
    'https://mcp.internal',
  ]) {
    t.equal((await post(PING, { origin })).statusCode, 200, `Origin: ${origin}`)
  }
  t.equal(
    (await post(PING, { 'x-forwarded-host': 'evil.example' })).statusCode,
    200,
    'X-Forwarded-Host changes nothing',
  )
  partial(
    t,
    (await app.inject({ url: '/nowhere', headers: { origin: 'https://evil.example' } })).json(),
    { error: 'origin_not_allowed', request_id: UUID },
    'off the endpoint the refusal has the plain shape',
  )
  for (const url of ['/healthz', '/readyz']) {
    t.equal(
      (await app.inject({ url, headers: { host: '10.1.2.3:8080', origin: 'https://evil.example' } })).statusCode,
      200,
      `${url} is for probes`,
    )
  }
  const absolute = await rawRequest(
    app,
    'POST http://evil.example/mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n',
  )
  t.match(absolute, /^HTTP\/1.1 403 /, 'an absolute target outranks Host')

  const everywhere = await insecureApp(undefined, {
    http: { host: '0.0.0.0', port: 0, maxInFlight: 0, allowedHosts: [] },
  })
  t.teardown(() => everywhere.app.close())
  t.equal(
    (await everywhere.post(PING, { host: '192.168.7.9:8080' })).statusCode,
    200,
    'bound to every address, an address is allowed',
  )
  t.equal((await everywhere.post(PING, { host: 'evil.example' })).statusCode, 403, 'a name is not')
})

t.test('request ids', async (t) => {
  const { app, post, audit, log } = await insecureApp()
  t.teardown(() => app.close())
  const idOf = async (id: string) => (await post(PING, { 'x-request-id': id })).headers['x-request-id']
  for (const id of ['a', 'trace-1.2:3_4', 'x'.repeat(128)]) t.equal(await idOf(id), id, `${id.slice(0, 20)} is kept`)
  for (const id of ['', 'a b', 'a, b', 'a\tb', 'ü', 'x'.repeat(129), '<script>', 'a/b']) {
    partial(t, await idOf(id), UUID, `${JSON.stringify(id).slice(0, 20)} is replaced`)
  }
  for (const [url, method] of [
    ['/healthz', 'GET'],
    ['/nowhere', 'GET'],
    ['/mcp', 'GET'],
    ['/%zz', 'GET'],
  ] as const) {
    const answer = await app.inject({ url, method, headers: { 'x-request-id': 'given' } })
    t.equal(answer.headers['x-request-id'], 'given', `${url} echoes it (${answer.statusCode})`)
  }
  t.equal(
    (await post('x'.repeat(2 ** 20 + 1), { 'x-request-id': 'given' })).headers['x-request-id'],
    'given',
    '413 echoes it',
  )

  audit.length = log.length = 0
  const answer = await post(request('tools/call', { name: 'leak' }), { 'x-request-id': 'one-id' })
  t.equal(textOf(answer.json()).request_id, 'one-id', 'in the answer')
  t.same([...new Set(audit.map((entry) => entry.request_id))], ['one-id'], 'in the audit log')
  t.same([...new Set(log.map((line) => line.request_id))], ['one-id'], 'in every line of the server log')

  const overflow = await rawRequest(
    app,
    `GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Big: ${'x'.repeat(40_000)}\r\n\r\n`,
  )
  t.match(overflow, /^HTTP\/1.1 431 [\s\S]*\r\nX-Request-Id: [0-9a-f-]{36}\r\n[\s\S]*"error":"headers_too_large"/)
  for (const header of ['content-security-policy', 'referrer-policy', 'x-content-type-options', 'x-frame-options'])
    contains(t, overflow.toLowerCase(), `\r\n${header}: `, 'what no hook saw is answered like all the rest')
  const twice = 'GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: one\r\nX-Request-Id: two\r\n\r\n'
  t.match(await rawRequest(app, twice), /\r\nx-request-id: [0-9a-f-]{36}\r\n/, 'one of two is nobody’s choice')
  const garbage = await rawRequest(app, 'NOT HTTP\r\n\r\n')
  t.match(garbage, /^HTTP\/1.1 400 [\s\S]*\r\nX-Request-Id: [0-9a-f-]{36}\r\n[\s\S]*"error":"bad_request"/)
  const hostless = await rawRequest(app, 'POST /mcp HTTP/1.1\r\nX-Request-Id: given\r\nContent-Length: 0\r\n\r\n')
  t.match(hostless, /^HTTP\/1.1 400 [\s\S]*\r\nx-request-id: given\r\n[\s\S]*"error":"bad_request"/)
  const expectant = await rawRequest(
    app,
    'GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: given\r\nExpect: the-unexpected\r\n\r\n',
  )
  t.match(expectant, /^HTTP\/1.1 200 [\s\S]*\r\nx-request-id: given\r\n[\s\S]*"status":"ok"/)
})

t.test('headers for browsers and caches', async (t) => {
  const { app, post } = await insecureApp()
  t.teardown(() => app.close())
  const answers = [
    await post(PING),
    await app.inject('/healthz'),
    await app.inject('/nowhere'),
    await app.inject('/mcp'),
    await post(PING, { host: 'evil' }),
    await post(PING, { origin: 'http://localhost:3000' }),
    await app.inject({
      method: 'OPTIONS',
      url: '/mcp',
      headers: { origin: 'http://localhost:3000', 'access-control-request-method': 'POST' },
    }),
  ]
  for (const { headers, statusCode } of answers) {
    partial(
      t,
      headers,
      {
        'x-content-type-options': 'nosniff',
        'x-frame-options': 'DENY',
        'referrer-policy': 'no-referrer',
        'content-security-policy': "default-src 'none';frame-ancestors 'none';base-uri 'none';form-action 'self'",
        'cache-control': 'no-store',
      },
      `on a ${statusCode}`,
    )
    t.notOk(headers['strict-transport-security'], 'no promise of https where there is none')
    t.same(
      Object.keys(headers).filter((name) => name.startsWith('access-control-')),
      [],
      'no page of another origin reads an answer',
    )
  }
  const secure = await insecureApp(undefined, {
    http: { host: '127.0.0.1', port: 0, maxInFlight: 0, allowedHosts: [], publicUrl: 'https://m.example' },
  })
  t.teardown(() => secure.app.close())
  t.match(
    (await secure.post(PING)).headers['strict-transport-security'],
    /max-age=\d+/,
    'with a public https URL there is',
  )
})

t.test('health', async (t) => {
  const { app, lifecycle } = await insecureApp()
  t.teardown(() => app.close())
  t.same((await app.inject('/healthz')).json(), { status: 'ok' })
  t.same((await app.inject('/readyz')).json(), { status: 'ready' })
  lifecycle.isDraining = true
  const draining = await app.inject('/readyz')
  t.equal(draining.statusCode, 503)
  t.same(draining.json(), { status: 'draining' })
  t.equal(draining.headers.connection, 'close', 'the next request goes to another process')
  t.equal((await app.inject('/healthz')).statusCode, 200, 'the process still lives')
})

async function rawRequest(app: Awaited<ReturnType<typeof insecureApp>>['app'], text: string): Promise<string> {
  if (app.server.address() === null) await app.listen({ port: 0, host: '127.0.0.1' })
  const { port } = app.server.address() as { port: number }
  return new Promise((resolve, reject) => {
    let answer = ''
    const socket = connect(port, '127.0.0.1', () => socket.write(text))
    socket.on('data', (chunk) => {
      answer += chunk.toString()
      if (/\r\n\r\n[\s\S]*\}$/.test(answer)) socket.destroy()
    })
    socket.on('close', () => resolve(answer))
    socket.on('error', reject)
  })
}
