/** svc-mcp as the subprocess of a client (S1, MCP transports, stdio). */
import { spawn, type ChildProcess } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { Client as ModernClient } from '@modelcontextprotocol/client'
import { StdioClientTransport as ModernStdio } from '@modelcontextprotocol/client/stdio'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import t from 'tap'
import { bundleProgram } from '../bundle-program.js'
import { createPceSimulator } from '../../pce-simulator/index.js'
import { messagesOf } from '../log-lines.js'
import { partial } from '../partial.js'
import { type Reply, startServer } from '../pce-client/support.js'

const PROGRAM = bundleProgram('stdio')
const children: ChildProcess[] = []
t.teardown(() => children.forEach((child) => child.kill('SIGKILL')))

const simulator = await createPceSimulator({ seed: 1, workloads: 20, flows: 10 })
const pceUrl = new URL(await simulator.listen({ port: 0 }))
t.teardown(() => simulator.close())
const PCE = {
  PCE_HOST: `http://${pceUrl.hostname}`,
  PCE_PORT: pceUrl.port,
  PCE_ORG_ID: String(simulator.orgId),
  API_KEY: simulator.credentials.key,
  API_SECRET: simulator.credentials.secret,
}
const folder = () => mkdtempSync(join(tmpdir(), 'stdio-'))

function start(env: Record<string, string>, { args = [] as string[], cwd = folder() } = {}) {
  const child = spawn(process.execPath, [PROGRAM, ...args], { env: { PATH: process.env.PATH, ...env }, cwd })
  children.push(child)
  const output = { stdout: '', stderr: '' }
  child.stdout.on('data', (chunk: Buffer) => (output.stdout += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (output.stderr += chunk.toString()))
  child.stdin.on('error', () => {})
  const ended = new Promise<{ code: number | null; stdout: string; stderr: string }>((resolve) =>
    child.on('close', (code) => resolve({ code, ...output })),
  )
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const say = (message: object) => child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
  const answer = async () => JSON.parse((await lines.next()).value as string)
  return { child, ended, say, answer, output }
}

const INITIALIZE = {
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'tester', version: '9' } },
}

t.test('refuses to start', async (t) => {
  const [missing, unknown, help, version] = await Promise.all([
    start({ API_KEY: 'k' }).ended,
    start(PCE, { args: ['--port', '1'] }).ended,
    start({}, { args: ['--help'] }).ended,
    start({}, { args: ['--version'] }).ended,
  ])
  t.same([missing.code, missing.stdout], [1, ''])
  t.same(
    messagesOf(missing.stderr),
    [
      'Missing required env vars: PCE_HOST, API_SECRET',
      'Not started. svc-mcp --help shows what it needs, and docs/configuration.md lists every setting.',
    ],
    'one line names all that is missing',
  )
  partial(t, unknown, { code: 1, stdout: '', stderr: /--port/ })
  partial(t, help, { code: 0, stdout: /PCE_HOST/ })
  partial(t, version, { code: 0, stdout: /^\d+\.\d+\.\d+\S*\n$/ })
})

t.test('works with the client of SDK v2, whichever era it begins with', async (t) => {
  for (const [how, versionNegotiation, era] of [
    ['legacy', undefined, 'legacy'],
    ['auto', { mode: 'auto' }, 'modern'],
    ['pinned', { mode: { pin: '2026-07-28' } }, 'modern'],
  ] as const) {
    const client = new ModernClient({ name: `v2-${how}`, version: '2' }, versionNegotiation && { versionNegotiation })
    const env = { PATH: process.env.PATH ?? '', ...PCE }
    await client.connect(
      new ModernStdio({ command: process.execPath, args: [PROGRAM], cwd: folder(), env, stderr: 'ignore' }),
    )
    t.equal(client.getProtocolEra(), era, how)
    t.ok((await client.listTools()).tools.length > 0)
    t.equal((await client.readResource({ uri: 'illumio://changelog' })).contents[0]!.uri, 'illumio://changelog')
    t.notOk((await client.callTool({ name: 'check-pce-connection', arguments: {} })).isError, `${how}: a call`)
    await t.rejects(client.callTool({ name: 'nope', arguments: {} }), { code: -32602 })
    await client.close()
  }
})

t.test("works with the SDK's client, and the environment overrides .env", async (t) => {
  const cwd = folder()
  const audit = join(cwd, 'audit.log')
  const inFile = { ...PCE, PCE_HOST: 'http://192.0.2.1', API_SECRET: `'${PCE.API_SECRET}'`, MCP_AUDIT_LOG_PATH: audit }
  writeFileSync(
    join(cwd, '.env'),
    Object.entries(inFile)
      .map(([name, value]) => `${name}=${value}\n`)
      .join(''),
  )
  const client = new Client({ name: 'tester', version: '9' })
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [PROGRAM],
    cwd,
    env: { PATH: process.env.PATH ?? '', PCE_HOST: PCE.PCE_HOST, API_KEY: '' },
    stderr: 'ignore',
  })
  await client.connect(transport)
  partial(t, client.getServerVersion(), {
    name: 'svc-mcp',
    version: (JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string })
      .version,
  })
  t.ok(client.getInstructions())
  const { tools } = await client.listTools()
  t.ok(tools.length > 0)
  const good = await client.callTool({ name: 'check-pce-connection' })
  t.notOk(good.isError, JSON.stringify(good.content))
  const bad = await client.callTool({ name: 'create-label', arguments: { key: 'app', val: 'x' } })
  t.equal(bad.isError, true)
  t.rejects(client.callTool({ name: 'nope' }), { code: -32602 })
  await client.ping()
  await client.close()
  const entries = readFileSync(audit, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
  partial(t, entries, [
    {
      phase: 'decision',
      decision: 'allowed',
      tool: 'check-pce-connection',
      transport: 'stdio',
      mode: 'stdio',
      role: 'admin',
      client: 'tester/9',
    },
    { phase: 'outcome', outcome: 'success' },
    { phase: 'decision', decision: 'error', reason: 'invalid_argument' },
    { phase: 'decision', decision: 'error', reason: 'unknown_tool' },
  ])
})

t.test('--read-only and --toolsets', async (t) => {
  const listed = async (args: string[], env: Record<string, string> = {}) => {
    const { child, ended, say, answer } = start({ ...PCE, ...env }, { args })
    say({ id: 1, method: 'tools/list' })
    say({ id: 2, method: 'tools/call', params: { name: 'provision-policy', arguments: { nonsense: 1 } } })
    const { result } = await answer()
    const { error } = await answer()
    child.stdin.end()
    await ended
    const names = (result.tools as { name: string }[]).map(({ name }) => name)
    t.equal(error?.code === -32602, !names.includes('provision-policy'), 'what is not listed cannot be called')
    return names
  }
  const rules = [
    'create-deny-rule',
    'create-ruleset',
    'delete-deny-rule',
    'delete-ruleset',
    'delete-sec-rule',
    'get-rulesets',
    'update-deny-rule',
    'update-ruleset',
    'update-sec-rule',
  ]
  const [all, reading, some, both, overridden, mixed] = await Promise.all([
    listed([]),
    listed(['--read-only']),
    listed(['--toolsets', 'rules']),
    listed(['--toolsets=rules, provisioning', '--read-only']),
    listed(['--toolsets', 'rules'], { MCP_TOOLSETS: 'traffic', MCP_EXCLUDE_TOOLS: 'get-rulesets' }),
    listed(['--read-only'], { MCP_READ_ONLY: '0', MCP_TOOLS: 'get-rulesets,delete-ruleset' }),
  ])
  t.equal(all.length, 50)
  t.equal(reading.length, 24)
  t.same(some, rules)
  t.same(both, ['compare-draft-active', 'get-rulesets'])
  t.same(
    overridden,
    rules.filter((name) => name !== 'get-rulesets'),
  )
  t.same(mixed, ['get-rulesets'])
})

t.test('the handshake of a client that shows MCP Apps has the pages in its list, and of another has not', async (t) => {
  const apps = { 'io.modelcontextprotocol/ui': { mimeTypes: ['text/html;profile=mcp-app'] } }
  const ask = async (extensions?: typeof apps) => {
    const client = new Client({ name: 'tester', version: '9' }, { capabilities: { ...(extensions && { extensions }) } })
    await client.connect(
      new StdioClientTransport({ command: process.execPath, args: [PROGRAM], env: PCE, stderr: 'ignore' }),
    )
    const { tools } = await client.listTools()
    const pages = tools.flatMap(({ _meta: meta }) =>
      meta === undefined ? [] : [(meta.ui as { resourceUri: string }).resourceUri],
    )
    const read = await Promise.all(pages.map(async (uri) => (await client.readResource({ uri })).contents[0]!.mimeType))
    await client.close()
    return { pages, read }
  }
  const [shows, plain] = await Promise.all([ask(apps), ask()])
  t.same(shows, {
    pages: ['change', 'ringfence', 'paths', 'map'].map((page) => `ui://svc-mcp/${page}.html`),
    read: Array<string>(4).fill('text/html;profile=mcp-app'),
  })
  t.same(plain.pages, [])
})

t.test('garbage does not stop it, and standard output stays JSON-RPC', async (t) => {
  const { child, ended, say, answer, output } = start(PCE)
  for (let line = 0; line < 3; line++) child.stdin.write(`${'garbage '.repeat(131_072)}\n`)
  child.stdin.write(Buffer.from([0x00, 0xff, 0xfe, 0x0a]))
  say({ id: 1, method: 'ping' })
  for (let line = 0; line < 4; line++) partial(t, await answer(), { jsonrpc: '2.0', id: null, error: { code: -32700 } })
  t.same(await answer(), { result: {}, jsonrpc: '2.0', id: 1 }, 'a ping is answered before initialize')
  say({ id: 2, method: 'tools/call', params: { name: 'check-pce-connection', arguments: {} } })
  partial(t, await answer(), { id: 2, result: { structuredContent: {} } })
  child.stdin.end()
  t.equal((await ended).code, 0)
  for (const line of output.stdout.trim().split('\n')) t.equal(JSON.parse(line).jsonrpc, '2.0')
  t.match(output.stderr, /"tool":"check-pce-connection".*"outcome":"success"/, 'the server log goes to standard error')
  t.notMatch(output.stdout, /"phase"/, 'without a path there is no audit log')
})

t.test('takes as much of a PCE as MCP_PCE_ANSWER_MIB and MCP_PCE_LIST_MIB say, in its threads as well', async (t) => {
  const blank = (mib: number): Reply => ({
    headers: { 'content-type': 'application/json' },
    body: `[${' '.repeat(mib * 1024 * 1024)}]`,
  })
  const { port } = await startServer(t, ({ path, headers: { prefer } }): Reply => {
    if (path.includes('/datafiles/')) return blank(2)
    if (path.includes('/jobs/')) return { body: { status: 'done', result: { href: '/orgs/1/datafiles/1' } } }
    if (prefer === 'respond-async') return { status: 202, headers: { location: '/orgs/1/jobs/1', 'retry-after': '0' } }
    // Clusters come in one answer; of labels there is nothing, so that the job is asked.
    return path.includes('/container_clusters') ? blank(1) : { headers: { 'x-total-count': '9' }, body: [] }
  })
  const env = { ...PCE, PCE_HOST: 'http://127.0.0.1', PCE_PORT: String(port), PCE_ORG_ID: '1' }
  const outcomesWith = async (bounds: Record<string, string>) => {
    const { child, say, answer } = start({ ...env, ...bounds })
    const outcomes = []
    for (const [name, args] of [
      ['get-container-workload-profiles', {}],
      ['get-workloads', { labels: ['app=a'] }],
      ['get-policy-coverage-report', { app_name: 'a', env_name: 'b' }],
    ] as const) {
      say({ id: name, method: 'tools/call', params: { name, arguments: args } })
      outcomes.push(JSON.parse((await answer()).result.content[0].text))
    }
    child.stdin.end()
    return outcomes
  }
  const hint = /MCP_PCE_ANSWER_MIB, or MCP_PCE_LIST_MIB for long lists/
  partial(t, await outcomesWith({ MCP_PCE_ANSWER_MIB: '1', MCP_PCE_LIST_MIB: '2' }), [
    { error: 'pce_answer_too_large', message: /is larger than 1 MiB/, hint },
    { error: 'pce_answer_too_large', message: /is larger than 2 MiB/, hint },
    { error: 'pce_answer_too_large', message: /is larger than 2 MiB/, hint },
  ])
  partial(t, await outcomesWith({ MCP_PCE_ANSWER_MIB: '2', MCP_PCE_LIST_MIB: '3' }), [
    { clusters: [] },
    { error: 'unresolved_label_filter' },
    { error: 'not_found' },
  ])
})

t.test('the end of input', async (t) => {
  const piped = start(PCE)
  piped.say(INITIALIZE)
  const listing = { method: 'tools/call', params: { name: 'get-labels', arguments: { key: 'env' } } }
  // The server has two seconds for calls that are left at the end. Its first call also loads code, so that one is over
  // by then.
  piped.say({ id: 1, ...listing })
  await piped.answer()
  await piped.answer()
  piped.say({ id: 2, ...listing })
  piped.child.stdin.end()
  const { code, stdout } = await piped.ended
  t.equal(code, 0)
  partial(
    t,
    stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line)),
    [{ id: 0 }, { id: 1 }, { id: 2, result: { structuredContent: {} } }],
    'what came before it is still answered',
  )

  const cwd = folder()
  const audit = join(cwd, 'audit.log')
  const stuck = start({ ...PCE, MCP_AUDIT_LOG_PATH: audit }, { cwd })
  simulator.faults.add({ kind: 'hang', path: /labels$/, method: 'POST', times: 1 })
  simulator.clearRequests()
  stuck.say(INITIALIZE)
  await stuck.answer()
  stuck.say({
    id: 1,
    method: 'tools/call',
    params: { name: 'create-label', arguments: { key: 'app', value: 'stuck' } },
  })
  const asked = async (wanted: string) => {
    while (!simulator.requests.some(({ method }) => method === wanted))
      await new Promise((resolve) => setImmediate(resolve))
  }
  await asked('POST')
  simulator.faults.add({ kind: 'hang', path: /labels$/, method: 'GET', times: 1 })
  simulator.clearRequests()
  stuck.say({
    id: 2,
    method: 'tools/call',
    params: { name: 'delete-label', arguments: { key: 'env', value: 'prod' } },
  })
  await asked('GET')
  stuck.child.stdin.end()
  // The PCE never answers, so a program that waited for it would end by the limit of a request, and not say `cancelled`.
  t.equal((await stuck.ended).code, 0)
  const entries = readFileSync(audit, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
  partial(
    t,
    entries,
    [
      { phase: 'decision', tool: 'create-label', decision: 'allowed' },
      { phase: 'decision', tool: 'delete-label', decision: 'allowed' },
      { phase: 'outcome', tool: 'delete-label', outcome: 'error', reason: 'cancelled' },
      { phase: 'outcome', tool: 'create-label', outcome: 'error', reason: 'outcome_unknown' },
    ],
    'and the audit log says that its outcome is unknown, unless it had not begun to write',
  )
})

t.test('SIGHUP reopens the audit log and stops nothing, and SIGUSR1 does not open the inspector', async (t) => {
  const cwd = folder()
  const audit = join(cwd, 'audit.log')
  const { child, ended, say, answer, output } = start({ ...PCE, MCP_AUDIT_LOG_PATH: audit }, { cwd })
  say({ id: 0, method: 'ping' })
  await answer()
  renameSync(audit, `${audit}.1`)
  child.kill('SIGUSR1')
  child.kill('SIGHUP')
  while (!existsSync(audit)) await new Promise((resolve) => setImmediate(resolve))
  for (let id = 1; id <= 5; id++) {
    say({ id, method: 'ping' })
    partial(t, await answer(), { id, result: {} })
  }
  child.stdin.end()
  const { code } = await ended
  t.equal(code, 0)
  t.notMatch(output.stderr, /debugger/i)
})

t.test('a client that stops reading', async (t) => {
  const { child, ended, say, answer } = start(PCE)
  say(INITIALIZE)
  await answer()
  child.stdout.destroy()
  for (let id = 1; id < 5; id++) say({ id, method: 'tools/list' })
  const { code, stderr } = await ended
  t.equal(code, 0, 'is no error')
  t.notMatch(stderr, /EPIPE|\n\s+at /)
})

t.test('a client that closes standard error', async (t) => {
  const { child, ended, say, answer } = start(PCE)
  say(INITIALIZE)
  await answer()
  child.stderr.destroy()
  for (let id = 1; id < 5; id++) {
    say({ id, method: 'tools/call', params: { name: 'get-labels', arguments: { key: 'env' } } })
    partial(t, await answer(), { id, result: { structuredContent: {} } })
  }
  child.stdin.end()
  t.equal((await ended).code, 0)
})
