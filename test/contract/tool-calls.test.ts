/** The way of a tool call behind the endpoint: gates, arguments, audit, errors, progress, cancellation (docs/architecture.md). */
import * as fs from 'node:fs'
import { mkdtempSync, readFileSync, renameSync, statSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import t from 'tap'
import { createCallTracker } from '../../plugins/dispatcher/run-handler.js'
import { createFileAudit } from '../../plugins/dispatcher/audit-log.js'
import { createDispatcher } from '../../plugins/dispatcher/dispatch.js'
import { auditGate, type Gate, pceGate, roleGate } from '../../plugins/dispatcher/admit-call.js'
import { createReadiness } from '../../plugins/health/check-readiness.js'
import type { Role } from '../../schemas/caller.js'
import { catalogueOf } from '../../tools/catalogue/catalogue-of.js'
import { tools as realTools } from '../../tools/index.js'
import { createPceSimulator } from '../../pce-simulator/index.js'
import { fakeClock } from '../fake-clock.js'
import { partial } from '../partial.js'
import { until } from '../until.js'
import { insecureApp, parseEvents, request, testTools, textOf, type Line } from './insecure-app.js'
import { noCredentials } from '../tools/harness.js'

const tick = () => new Promise((resolve) => setImmediate(resolve))

t.test('refuses arguments that violate the schema', async (t) => {
  const { tools, seen } = testTools()
  const { app, call } = await insecureApp(tools)
  t.teardown(() => app.close())
  const problemsOf = async (args: object) => {
    const answer = await call('rules', args)
    t.equal(answer.result.isError, true)
    t.notOk('structuredContent' in answer.result, 'an error carries no structuredContent')
    const body = textOf(answer)
    t.equal(body.error, 'invalid_argument')
    for (const { path, message } of body.problems)
      t.ok(body.message.includes(`${path || 'arguments'}: ${message}`), 'the message says it too')
    return Object.fromEntries(
      body.problems.map(({ path, message }: { path: string; message: string }) => [path, message]),
    )
  }

  t.same(await problemsOf({}), { '/name': 'required', '/rules': 'required' }, 'every missing argument is named')
  t.same(
    await problemsOf({ name: '', mode: 'on', limit: 99, rules: [{ providers: 'ams' }, {}, 5] }),
    {
      '/name': 'must not be empty',
      '/mode': 'expected one of "visibility_only", "full"',
      '/limit': 'must be at most 10',
      '/rules/0/providers': 'expected array, got string',
      '/rules/1/providers': 'required',
      '/rules/2': 'expected object, got number',
    },
    'every bad path is named, at every depth',
  )
  partial(
    t,
    await problemsOf({ name: 'x', rules: [{ provider: ['ams'], providers: [] }], Mode: 'full' }),
    {
      '/Mode': /did you mean 'mode'\? Known: name, mode, limit, rules/,
      '/rules/0/provider': /did you mean 'providers'/,
    },
    'unknown names are told the nearest one, at every depth',
  )
  t.same(
    await problemsOf({ name: 'x', rules: [{ providers: [], service: { port: 'https', prot: 'tcp', proto: 'tcp' } }] }),
    {
      '/rules/0/service/port': 'expected integer, got string',
      '/rules/0/service/prot': "unknown argument; did you mean 'proto'? Known: port, proto",
    },
    'of alternatives the one that was meant is judged',
  )
  t.same(await problemsOf({ name: 'x', rules: [{ providers: [], service: 5 }] }), {
    '/rules/0/service': 'expected string or object, got number',
  })
  t.same(await problemsOf({ name: null, rules: [] }), { '/name': 'expected string, got null' })
  partial(t, await problemsOf(JSON.parse('{"name":"x","rules":[],"__proto__":{"limit":1}}')), {
    '/__proto__': /unknown argument/,
  })
  t.same(
    await problemsOf({ name: 'x'.repeat(256), rules: Array.from({ length: 201 }, () => 0) }),
    { '/name': 'at most 255 characters', '/rules': 'at most 200 entries' },
    'what is longer than a PCE takes is refused where the schema says nothing',
  )
  t.same(
    Object.keys(await problemsOf({ name: 'x'.repeat(255), rules: Array.from({ length: 200 }, () => 0) }))[0],
    '/rules/0',
    'and no shorter',
  )
  t.same(await problemsOf({ name: '⟨U+202E⟩'.repeat(256), rules: [] }), { '/name': 'at most 255 characters' })
  t.equal((await call('rules', { name: '⟨U+202E⟩'.repeat(255), rules: [] })).result.isError, undefined)
  const before = seen.writes
  const deep = JSON.parse(`${'['.repeat(40)}${']'.repeat(40)}`) as unknown
  t.same(await problemsOf({ name: 'x', rules: deep }), {
    [`/rules${'/0'.repeat(15)}`]: 'nested more than 16 levels deep',
  })
  t.same(
    await problemsOf({ name: 'x', rules: [], more: Object.fromEntries(Array.from({ length: 101 }, (_, n) => [n, 0])) }),
    { '/more': 'at most 100 properties' },
  )
  t.equal(seen.writes, before, 'the handler never ran')
  partial(t, textOf(await call('leak', { x: 1 })).problems, [
    { path: '/x', message: 'unknown argument; none are accepted here' },
  ])

  t.same((await call('echo')).result.structuredContent, { text: 'nothing' }, 'defaults are filled in')
  const shown = { text: 'a⟨U+000A⟩⟨U+2028⟩\u{1F600}⟨U+D800⟩' }
  const raw = { text: 'a\n\u2028\u{1F600}\ud800' }
  for (const text of [raw, shown]) {
    t.same((await call('echo', text)).result.structuredContent, shown, 'hidden characters come back as escapes')
  }
})

t.test('what a failure reveals, and to whom', async (t) => {
  const { app, call, log } = await insecureApp()
  t.teardown(() => app.close())

  const leak = await call('leak')
  t.equal(leak.result.isError, true)
  partial(t, textOf(leak), { error: 'internal', message: /log/, request_id: String })
  t.notMatch(JSON.stringify(leak), /secret|srv/, 'nothing of an unexpected error reaches the client')
  partial(
    t,
    log.find((line) => line.err),
    { level: 50, tool: 'leak', err: { message: 'secret=abc at /srv/x.js' } },
    'the log has it',
  )

  const refuse = textOf(await call('refuse'))
  partial(t, refuse, {
    error: 'label_not_found',
    message: "There is no label 'app=x'.",
    valid: ['app=y'],
    request_id: /-/,
  })
  t.not(refuse.request_id, 'forged', 'details cannot displace what the server says')

  const misanswer = await call('misanswer')
  partial(
    t,
    textOf(misanswer),
    { error: 'internal', hint: /current state/ },
    'a change whose answer is unusable is not called undone',
  )
  t.notOk(misanswer.result.structuredContent)

  partial(
    t,
    textOf(await call('needs-pce', { bad: 1 })),
    { error: 'no_pce_credentials', hint: /PCE_HOST/ },
    'the PCE gate comes before the arguments',
  )

  const good = await call('echo', { text: 'x' })
  t.same(textOf(good), good.result.structuredContent, 'an answer is text and structured content alike')
  t.notOk(good.result.isError)
})

t.test('the audit log', async (t) => {
  const { app, call, audit, log } = await insecureApp()
  t.teardown(() => app.close())

  await call('rules', { name: 'canary', rules: [] })
  t.equal(audit.length, 2, 'one decision and one outcome')
  const [decision, outcome] = audit as [Line, Line]
  partial(t, decision, {
    ts: /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/,
    phase: 'decision',
    decision: 'allowed',
    tool: 'rules',
    route: '/mcp',
    role: 'admin',
    iss: null,
    sub: null,
    mode: 'insecure',
    transport: 'http',
  })
  partial(t, outcome, { phase: 'outcome', outcome: 'success', tool: 'rules', duration_ms: Number })
  t.equal(decision.call_id, outcome.call_id, 'a call id joins them')
  t.notMatch(JSON.stringify(audit), 'canary', 'arguments are no part of it')

  for (const [name, args, expected] of [
    ['leak', {}, [{ decision: 'allowed' }, { outcome: 'error', reason: 'internal' }]],
    ['refuse', {}, [{ decision: 'allowed' }, { outcome: 'error', reason: 'label_not_found' }]],
    ['needs-pce', {}, [{ decision: 'denied', reason: 'no_pce_credentials' }]],
    ['echo', { x: 1 }, [{ decision: 'error', reason: 'invalid_argument' }]],
    ['x'.repeat(1000), {}, [{ decision: 'error', reason: 'unknown_tool', tool: 'x'.repeat(128) }]],
  ] as const) {
    audit.length = log.length = 0
    await call(name, args)
    t.equal(audit.length, expected.length, `${name.slice(0, 10)}: ${expected.length} entries`)
    partial(t, audit, expected)
    t.equal(log.filter((line) => line.msg === 'tool call').length, 1, 'and one line of the server log')
  }
  partial(
    t,
    log.find((line) => line.msg === 'tool call'),
    { gate: 'lookup', outcome: 'error', ms: Number, sub: null, request_id: String },
  )
})

t.test('an audit log that cannot be written', async (t) => {
  const { tools, seen } = testTools()
  const { app, call, log } = await insecureApp(tools, { auditLogPath: '/dev/full' })
  t.teardown(() => app.close())
  partial(t, textOf(await call('rules', { name: 'x', rules: [] })), {
    error: 'audit_unavailable',
    hint: /Nothing was changed/,
  })
  t.equal(seen.writes, 0, 'nothing that changes the PCE runs')
  t.same((await call('echo')).result.structuredContent, { text: 'nothing' }, 'reading goes on')
  t.ok(
    log.some((line) => line.level === 50 && /audit/.test(String(line.msg))),
    'and the operator hears of it',
  )
  t.rejects(
    insecureApp(tools, { auditLogPath: '/nowhere/audit.log' }),
    /MCP_AUDIT_LOG_PATH '\/nowhere\/audit.log' cannot be written: there is no such file or folder \(ENOENT\)/,
  )
})

t.test('an audit file', async (t) => {
  const path = join(mkdtempSync(join(tmpdir(), 'audit-')), 'audit.log')
  const { tools, write } = testTools()
  const { app, call } = await insecureApp(tools, { auditLogPath: path })
  const lines = (file = path) =>
    readFileSync(file, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Line)
  const running = call('wait-write')
  await write.arrived
  partial(
    t,
    lines(),
    [{ phase: 'decision', decision: 'allowed', tool: 'wait-write' }],
    'the decision is there before the tool has done anything',
  )
  write.open()
  await running
  t.equal(lines().length, 2)
  t.equal(statSync(path).mode & 0o777, 0o600, 'readable by its owner only')

  renameSync(path, `${path}.1`)
  app.dispatcher.audit?.reopen()
  await call('echo')
  t.equal(lines(`${path}.1`).length, 2, 'after a rotation the old file stays as it was')
  partial(t, lines(), [{ tool: 'echo' }, { tool: 'echo' }])
  await app.close()
})

t.test('gates', async (t) => {
  const { tools, seen } = testTools()
  const ROLES_OF: Record<string, Role[]> = { rules: ['operator', 'admin'], leak: ['admin'] }
  const asked: string[] = []
  const late: Gate = { name: 'late', needs: 'arguments', check: () => void asked.push('late') }
  const entries: Line[] = []
  let isEnding = false
  const dispatcher = createDispatcher({
    tools: catalogueOf(tools.map((tool) => ({ ...tool, roles: ROLES_OF[tool.name] ?? tool.roles }))),
    gates: [roleGate, pceGate('Register.'), late],
    audit: {
      write() {
        throw new Error('of routes and commands')
      },
      async writeInTurn(entry) {
        entries.push({ ...entry })
        if (isEnding) dispatcher.abandonAll()
      },
      flush() {},
      sync: async () => {},
      check() {},
      reopen() {},
      close() {},
    },
    log: { debug() {}, info() {}, warn() {}, error() {} },
    limits: { responseBudgetBytes: 1, trafficQueryTimeoutSeconds: 1, trafficMaxParts: 64 },
    callTracker: createCallTracker(),
    server: { name: 'x', version: '1', changelog: async () => null },
    now: () => Date.parse('2026-01-02T03:04:05Z'),
  })
  const dispatch = async (name: string, role: Role | null, args = {}) => {
    const result = await dispatcher.dispatch(
      { name, arguments: args, requestId: 'r', sender: new AbortController(), progress() {} },
      {
        caller: { mode: 'shared', role, iss: 'https://idp', sub: 'ann' },
        transport: 'http',
        credentials: noCredentials,
        pce: null,
      },
    )
    return result.ok ? 'ok' : result.error
  }

  partial(t, await dispatch('echo', null), { code: 'forbidden_no_role' })
  partial(t, await dispatch('rules', 'reader', { name: 'x', rules: [] }), {
    code: 'forbidden',
    details: { allowed_roles: ['operator', 'admin'] },
  })
  partial(t, await dispatch('leak', 'operator'), { code: 'forbidden', details: { allowed_roles: ['admin'] } })
  partial(t, await dispatch('needs-pce', 'reader', { bad: 1 }), { code: 'no_pce_credentials', hint: 'Register.' })
  partial(t, await dispatch('rules', 'operator', {}), { code: 'invalid_argument' })
  t.same(asked, [], 'a gate that needs the arguments is not asked about a call that fails before')
  t.equal(seen.writes, 0)
  t.equal(await dispatch('rules', 'operator', { name: 'x', rules: [] }), 'ok')
  t.same(asked, ['late'])
  t.same(
    entries.map(({ phase, decision, reason }) => [phase, decision, reason].join(' ').trim()),
    [
      'decision denied forbidden_no_role',
      'decision denied forbidden',
      'decision denied forbidden',
      'decision denied no_pce_credentials',
      'decision error invalid_argument',
      'decision allowed',
      'outcome',
    ],
  )
  isEnding = true
  partial(t, await dispatch('rules', 'operator', { name: 'x', rules: [] }), { code: 'cancelled' })
  t.equal(seen.writes, 1, 'what was allowed and has not begun when the process ends does not begin')
  partial(t, entries.slice(-2), [{ decision: 'allowed' }, { outcome: 'error', reason: 'cancelled' }])
  partial(t, entries[0], { ts: '2026-01-02T03:04:05.000Z', iss: 'https://idp', sub: 'ann', role: null, mode: 'shared' })
})

t.test('an audit line cut off by a full disk does not corrupt the next one', async (t) => {
  let room = Infinity
  const writeSync = (fd: number, line: Buffer, offset: number) => {
    if (room === 0) throw Object.assign(new Error('no space'), { code: 'ENOSPC' })
    const written = fs.writeSync(fd, line, offset, Math.min(room, line.length - offset))
    room -= written
    return written
  }
  const path = join(mkdtempSync(join(tmpdir(), 'audit-')), 'audit.log')
  const audit = createFileAudit(path, { ...fs, writeSync })
  const write = (call_id: string) => audit.write({ call_id } as never)
  write('first')
  room = 5
  t.throws(() => write('lost'), { code: 'ENOSPC' })
  t.throws(() => write('lost too'), { code: 'ENOSPC' })
  await t.rejects(async () => audit.check(), { code: 'ENOSPC' }, 'readiness reports it')
  room = Infinity
  write('second')
  await audit.check()
  write('third')
  await audit.sync()
  const [first, cut, gap, ...more] = readFileSync(path, 'utf8').split('\n')
  t.same([first, cut], ['{"call_id":"first"}', '{"cal'])
  partial(
    t,
    JSON.parse(gap!),
    { phase: 'gap', since: /^\d{4}-.*Z$/ },
    'before the next entry it says that some are missing',
  )
  t.same(more, ['{"call_id":"second"}', '{"call_id":"third"}', ''], 'and it says so once')

  room = 0
  t.throws(() => write('lost again'), { code: 'ENOSPC' })
  room = Infinity
  await audit.check()
  await audit.check()
  write('fourth')
  const [later, ...rest] = readFileSync(path, 'utf8').trimEnd().split('\n').slice(5)
  partial(t, JSON.parse(later!), { phase: 'gap', since: /^\d{4}-.*Z$/ }, 'readiness may be the first to notice')
  t.same(rest, ['{"call_id":"fourth"}'])
  audit.close()
  t.throws(() => write('late'), 'a closed file is an error, not silence')
})

t.test('an audit log whose disk has less than 64 KiB free is not ready', async (t) => {
  let free = 16
  const statfsSync = () => ({ bavail: free, bsize: 4096 })
  const path = join(mkdtempSync(join(tmpdir(), 'audit-')), 'audit.log')
  const audit = createFileAudit(path, { ...fs, statfsSync } as never)
  t.teardown(() => audit.close())
  await audit.check()
  free = 15
  await t.rejects(async () => audit.check(), { message: 'no space is left for the audit log' })
})

t.test('while entries cannot be synced, changes are refused and the server is not ready', async (t) => {
  let isBroken = true
  const fdatasync = (fd: number, callback: fs.NoParamCallback) =>
    isBroken ? callback(Object.assign(new Error('EIO'), { code: 'EIO' })) : fs.fdatasync(fd, callback)
  const path = join(t.testdir(), 'audit.log')
  const audit = createFileAudit(path, { ...fs, fdatasync })
  const { tools, seen } = testTools()
  const dispatcher = createDispatcher({
    tools: catalogueOf(tools),
    gates: [auditGate(audit)],
    audit,
    log: { debug() {}, info() {}, warn() {}, error() {} },
    limits: { responseBudgetBytes: 1000, trafficQueryTimeoutSeconds: 1, trafficMaxParts: 64 },
    callTracker: createCallTracker(),
    server: { name: 'x', version: '1', changelog: async () => null },
    now: Date.now,
  })
  const isReady = async () => {
    const checks = [{ name: 'audit log', run: () => audit.check() }]
    return (await createReadiness(checks, { changed() {}, patienceMs: 60_000 })()) === null
  }
  const call = async (name: string, args: object) => {
    const result = await dispatcher.dispatch(
      { name, arguments: { ...args }, requestId: 'r', sender: new AbortController(), progress() {} },
      {
        caller: { mode: 'shared', role: 'admin', iss: 'https://idp', sub: 'ann' },
        transport: 'http',
        credentials: noCredentials,
        pce: null,
      },
    )
    return result.ok ? 'ok' : result.error.code
  }
  const change = () => call('rules', { name: 'x', rules: [] })

  t.ok(await isReady(), 'nobody knows yet')
  for (let times = 0; times < 3; times++) {
    t.equal(await change(), 'audit_unavailable')
    t.notOk(await isReady())
    t.equal(await call('echo', {}), 'ok', 'reading goes on')
    t.notOk(await isReady())
  }
  t.equal(seen.writes, 0)
  const entries = () =>
    readFileSync(path, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Line)
  t.notOk(entries().some(({ phase }) => phase === 'gap'))

  isBroken = false
  t.equal(await change(), 'ok', 'it comes back without a restart')
  t.ok(await isReady())
  partial(t, entries().slice(-3), [{ phase: 'gap', since: String }, { decision: 'allowed' }, { outcome: 'success' }])
  audit.close()
})

t.test('concurrent clients with id 1 each get their own answer', async (t) => {
  const { app } = await insecureApp()
  t.teardown(() => app.close())
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  const answers = await Promise.all(
    Array.from({ length: 40 }, async (_, index) => {
      const answer = await fetch(`${url}/mcp`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
        body: JSON.stringify(
          request('tools/call', {
            name: 'echo',
            arguments: { text: `secret-${index}` },
            ...(index % 2 && { _meta: { progressToken: 1 } }),
          }),
        ),
      })
      return answer.text()
    }),
  )
  t.same(
    answers.map((answer) => [...new Set(answer.match(/secret-\d+/g))]),
    answers.map((_answer, index) => [`secret-${index}`]),
    'each sees its own secret and no other',
  )
})

t.test('progress', async (t) => {
  const { tools, read } = testTools()
  const { app, post } = await insecureApp(tools)
  t.teardown(() => app.close())
  for (const progressToken of [0, '', 'token', 7]) {
    const answer = await post(request('tools/call', { name: 'echo', _meta: { progressToken } }), {
      'x-request-id': 'a-stream',
    })
    partial(t, answer.headers, {
      'content-type': /^text\/event-stream/,
      'x-accel-buffering': 'no',
      'cache-control': 'no-store',
      'x-request-id': 'a-stream',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'referrer-policy': 'no-referrer',
      'content-security-policy': /default-src 'none'/,
    })
    const { events } = parseEvents(answer.body)
    t.equal(events[0]?.event, 'message')
    partial(
      t,
      events[0]?.data,
      { method: 'notifications/progress', params: { progressToken, progress: 0 } },
      `token ${JSON.stringify(progressToken)}`,
    )
    partial(
      t,
      events.at(-1)?.data,
      { id: 1, result: { structuredContent: { text: 'nothing' } } },
      'the answer comes last',
    )
  }
  t.match(
    (await post(request('tools/call', { name: 'echo' }))).headers['content-type'],
    /^application\/json/,
    'without a token nobody is told',
  )

  const batch = await post([
    request('tools/call', { name: 'echo', _meta: { progressToken: 1 } }, 1),
    request('ping', undefined, 2),
  ])
  const ids = parseEvents(batch.body).events.map(({ data }) => data.id)
  t.same(new Set(ids), new Set([undefined, 1, 2]), 'a batch with progress is a stream with every answer')
  read.open()

  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  const client = new Client({ name: 'test', version: '1' })
  const transport = new StreamableHTTPClientTransport(new URL(`${url}/mcp`))
  await client.connect(transport)
  const heard: number[] = []
  const result = await client.callTool({ name: 'wait-read' }, undefined, {
    onprogress: ({ progress }) => heard.push(progress),
    resetTimeoutOnProgress: true,
  })
  t.same(result.structuredContent, { text: 'read' })
  t.same(heard, [0], 'the SDK client hears it')
  await client.ping()
  await transport.terminateSession()
  await client.close()
})

t.test('a long call becomes a stream with keep-alives', async (t) => {
  const { tools, read } = testTools()
  const clock = fakeClock()
  const { app, post } = await insecureApp(tools, {}, { timers: clock })
  t.teardown(() => app.close())
  const running = post(request('tools/call', { name: 'wait-read' }))
  await read.arrived
  clock.advance(45_000)
  read.open()
  const answer = await running
  t.equal(clock.waiting, 0, 'no timer is left')
  t.match(answer.headers['content-type'], /^text\/event-stream/)
  const { events, comments } = parseEvents(answer.body)
  t.equal(comments.length, 5, 'one when it becomes a stream, and one every 10 s')
  partial(t, events, [{ event: 'message', data: { id: 1, result: { structuredContent: { text: 'read' } } } }])
})

t.test('a client that does not ask for streams gets JSON, however long it takes', async (t) => {
  const { app, post } = await insecureApp()
  t.teardown(() => app.close())
  const MODERN = '2026-07-28'
  const meta = {
    'io.modelcontextprotocol/protocolVersion': MODERN,
    'io.modelcontextprotocol/clientCapabilities': {},
    progressToken: 1,
  }
  for (const accept of ['application/json', '*/*', 'application/json, text/event-stream;q=0', undefined])
    for (const isModern of [false, true]) {
      const { tools, read } = testTools()
      const clock = fakeClock()
      const { app } = await insecureApp(tools, {}, { timers: clock })
      t.teardown(() => app.close())
      const ask = (name: string) =>
        app.inject({
          method: 'POST',
          url: '/mcp',
          headers: {
            'content-type': 'application/json',
            ...(accept !== undefined && { accept }),
            ...(isModern && { 'mcp-protocol-version': MODERN, 'mcp-method': 'tools/call', 'mcp-name': name }),
          },
          payload: request('tools/call', { name, _meta: isModern ? meta : { progressToken: 1 } }),
        })
      const quick = await ask('echo')
      const why = `${accept}, ${isModern}`
      t.match(quick.headers['content-type'], /^application\/json/, why)
      t.same(quick.json().result.structuredContent, { text: 'nothing' }, why)
      const running = ask('wait-read')
      await read.arrived
      clock.advance(45_000)
      read.open()
      const answer = await running
      t.match(answer.headers['content-type'], /^application\/json/, why)
      t.equal(answer.body.match(/^\n*/)![0].length, 5, `${why}: signs of life after 5 s, and every 10 s`)
      t.same(answer.json().result.structuredContent, { text: 'read' }, why)
    }
  const calls = [1, 2].map((id) => request('tools/call', { name: 'echo', _meta: { progressToken: id } }, id))
  const batch = await post(calls, { accept: 'application/json', 'mcp-protocol-version': '2025-03-26' })
  t.same(
    batch.json().map(({ id, result }: { id: number; result: object }) => [id, Object.keys(result)]),
    [1, 2].map((id) => [id, ['content', 'structuredContent']]),
    'nothing of a batch is lost',
  )
})

t.test('a client that leaves', async (t) => {
  const { tools, read, write, seen } = testTools()
  const { app, audit, post } = await insecureApp(tools)
  t.teardown(() => app.close())
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  let closed = 0
  app.server.on('connection', (socket) => socket.on('close', () => closed++))
  const leave = async (name: string, arrived: Promise<void>, before = () => Promise.resolve()) => {
    const socket = httpRequest(`${url}/mcp`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    })
    socket.on('error', () => {})
    socket.end(JSON.stringify(request('tools/call', { name })))
    await arrived
    await before()
    const others = closed
    socket.destroy()
    await until(() => closed > others)
  }
  const outcome = (tool: string) => audit.find((entry) => entry.phase === 'outcome' && entry.tool === tool)

  await leave('wait-read', read.arrived, async () => {
    const cancel = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } }
    t.equal((await post(cancel)).statusCode, 202)
    t.equal(seen.read?.aborted, false, 'a cancellation in a request of its own names no call for certain')
  })
  await until(() => outcome('wait-read') !== undefined)
  partial(
    t,
    outcome('wait-read'),
    { outcome: 'error', reason: 'cancelled', client_gone: true },
    'a reading call is aborted',
  )
  t.equal(seen.read?.aborted, true)

  await leave('wait-write', write.arrived)
  for (let turn = 0; turn < 50; turn++) await tick()
  t.equal(seen.write?.aborted, false, 'a changing call is not')
  t.equal(outcome('wait-write'), undefined)
  write.open()
  await until(() => outcome('wait-write') !== undefined)
  partial(t, outcome('wait-write'), { outcome: 'success', client_gone: true }, 'it runs to its end and is audited')
})

t.test('limits requests in flight', async (t) => {
  const { tools, read } = testTools()
  const { app, post } = await insecureApp(tools, {
    http: { host: '127.0.0.1', port: 0, allowedHosts: [], maxInFlight: 2 },
  })
  t.teardown(() => app.close())
  for (let round = 0; round < 5; round++)
    t.equal((await post(request('ping'))).statusCode, 200, 'one after the other they are no crowd')
  const running = [
    post(request('tools/call', { name: 'wait-read' })),
    post(request('tools/call', { name: 'wait-read' })),
  ]
  await read.arrived
  await until(() => app.server !== null)
  const over = await post(request('ping'))
  t.equal(over.statusCode, 503)
  t.equal(over.headers['retry-after'], '1')
  partial(t, over.json(), { jsonrpc: '2.0', error: { code: -32000, data: { error: 'overloaded' } } })
  t.equal((await app.inject('/readyz')).statusCode, 200, 'health is exempt')
  read.open()
  for (const answer of await Promise.all(running)) t.equal(answer.statusCode, 200)
  t.equal((await post(request('ping'))).statusCode, 200, 'afterwards there is room again')
})

t.test('closing waits for running calls', async (t) => {
  const { tools, write } = testTools()
  const { app, audit } = await insecureApp(tools)
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  const running = fetch(`${url}/mcp`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body: JSON.stringify(request('tools/call', { name: 'wait-write' })),
  })
  await write.arrived
  const closed = app.close()
  write.open()
  const answer = await running
  t.equal(answer.headers.get('connection'), 'close', 'no further request comes this way')
  partial(t, await answer.json(), { result: { structuredContent: { text: 'written' } } }, 'the answer is delivered')
  await closed
  partial(t, audit.at(-1), { phase: 'outcome', outcome: 'success' })
})

t.test('the tools of the server', async (t) => {
  const simulator = await createPceSimulator({ seed: 2, workloads: 20, flows: 50 })
  const pceUrl = new URL(await simulator.listen({ port: 0 }))
  const pce = {
    url: `http://${pceUrl.hostname}`,
    port: pceUrl.port,
    orgId: String(simulator.orgId),
    apiKey: simulator.credentials.key,
    apiSecret: simulator.credentials.secret,
    tls: { verify: true },
  }
  const { app, post, audit } = await insecureApp(realTools, { pce })
  t.teardown(async () => {
    await app.close()
    await simulator.close()
  })
  const { tools } = (await post(request('tools/list'))).json().result
  t.same(
    tools.map(({ name }: { name: string }) => name),
    [...tools.map(({ name }: { name: string }) => name)].sort(),
    'a stable order',
  )
  for (const tool of tools) {
    t.match(tool.name, /^[A-Za-z0-9_.-]{1,128}$/)
    partial(
      t,
      tool.annotations,
      {
        title: String,
        readOnlyHint: Boolean,
        destructiveHint: Boolean,
        idempotentHint: Boolean,
        openWorldHint: Boolean,
      },
      tool.name,
    )
    partial(t, tool.inputSchema, { type: 'object', additionalProperties: false }, `${tool.name}: a closed input schema`)
    t.equal(tool.outputSchema.type, 'object')
    t.notMatch(JSON.stringify(tool), /"\$ref":"(?!#)/, 'no schema lives elsewhere')
  }
  t.equal((await post(request('tools/list'))).body, (await post(request('tools/list'))).body, 'twice the same bytes')

  simulator.clearRequests()
  const answer = await post(request('tools/call', { name: 'get-labels', arguments: { key: 'env' } }), {
    'x-request-id': 'from-the-proxy',
  })
  t.notOk(answer.json().result.isError, answer.body.slice(0, 200))
  t.ok(simulator.requests.length > 0)
  for (const { headers } of simulator.requests)
    t.equal(headers['x-request-id'], 'from-the-proxy', 'the PCE is told the request id')
  partial(t, audit[0], { pce_host: `127.0.0.1:${pceUrl.port}`, request_id: 'from-the-proxy' })

  simulator.faults.add({
    kind: 'status',
    status: 403,
    path: /labels/,
    times: 10,
    body: [{ token: 'forbidden_error', message: 'Forbidden' }],
  })
  partial(
    t,
    textOf(
      (await post(request('tools/call', { name: 'create-label', arguments: { key: 'app', value: 'new' } }))).json(),
    ),
    {
      error: 'pce_error',
      http_status: 403,
      token: 'forbidden_error',
      pce_message: 'Forbidden',
      hint: /permission/,
      request_id: String,
    },
    'what the PCE says is passed on under our code',
  )
})
