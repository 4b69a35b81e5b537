/** svc-mcp-http as a process: its command line, its refusals, its banner, its end. */
import { spawn, type ChildProcess } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { bundleProgram } from '../bundle-program.js'
import { createPceSimulator } from '../../pce-simulator/index.js'
import { linesOf, listeningOn, messagesOf } from '../log-lines.js'
import { contains, partial } from '../partial.js'

const HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
const children: ChildProcess[] = []
t.teardown(() => children.forEach((child) => child.kill('SIGKILL')))

function start(args: string[], env: Record<string, string> = {}) {
  const child = spawn(process.execPath, [bundleProgram('http'), ...args], {
    env: { PATH: process.env.PATH, ...env },
    cwd: mkdtempSync(join(tmpdir(), 'http-')),
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  children.push(child)
  const output = { stdout: '', stderr: '' }
  child.stdout.on('data', (chunk: Buffer) => (output.stdout += chunk.toString()))
  const ended = new Promise<{ code: number | null; stdout: string; stderr: string }>((resolve) =>
    child.on('close', (code) => resolve({ code, ...output })),
  )
  const listening = new Promise<string>((resolve, reject) => {
    child.stderr.on('data', (chunk: Buffer) => {
      output.stderr += chunk.toString()
      const where = listeningOn(output.stderr)
      if (where !== undefined) resolve(where)
    })
    ended.then(() => reject(new Error(output.stderr)), reject)
  })
  listening.catch(() => {})
  return { child, ended, listening, output }
}

t.test('refuses to start', async (t) => {
  const cases: [string, string[], Record<string, string>, RegExp][] = [
    ['a foreign address', ['--host', '0.0.0.0'], {}, /^Refusing to bind '0\.0\.0\.0' without MCP_DEV_INSECURE=1$/],
    [
      'no login',
      [],
      {},
      /^Missing required OAuth env vars: MCP_PUBLIC_URL, MCP_OAUTH_ISSUER, MCP_OAUTH_JWKS_URL, MCP_OAUTH_AUDIENCE$/,
    ],
    ['an unknown option', ['--prot', '1'], { MCP_DEV_INSECURE: '1' }, /unknown option '--prot'/],
    ['a word too many', ['serve'], { MCP_DEV_INSECURE: '1' }, /^there is no command 'serve'$/],
    ['no host at all', ['--host', ''], { MCP_DEV_INSECURE: '1' }, /'--host <host>'.*must not be empty/],
    ['a bad port', ['--port', '65536'], { MCP_DEV_INSECURE: '1' }, /'--port <port>'.*0 to 65535/],
    [
      'an address that is not ours',
      ['--host', '192.0.2.1'],
      { MCP_DEV_INSECURE: '1' },
      /^Cannot listen on 192\.0\.2\.1:8080: this machine has no such address \(EADDRNOTAVAIL\)$/,
    ],
    [
      'a CA file that is not there',
      ['--port', '0'],
      { MCP_DEV_INSECURE: '1', PCE_HOST: 'x', API_KEY: 'k', API_SECRET: 'secret-canary', PCE_CA_FILE: '/nowhere.pem' },
      /^PCE_CA_FILE: cannot read the CA bundle \/nowhere\.pem: there is no such file or folder \(ENOENT\)$/,
    ],
  ]
  const ends = await Promise.all(cases.map(([, args, env]) => start(args, env).ended))
  for (const [index, { code, stdout, stderr }] of ends.entries()) {
    const [why, , , message] = cases[index]!
    t.equal(code, 1, `${why}: exit 1`)
    const [first] = linesOf(stderr).filter(({ level }) => level === 60)
    partial(t, first, { msg: message, remedy: String }, why)
    t.equal(stdout, '', 'standard output stays empty')
    t.notMatch(stderr, /secret-canary|\n\s+at /, 'no secret, no stack')
  }
})

t.test('--help and --version', async (t) => {
  const [help, version] = await Promise.all([start(['--help']).ended, start(['--version']).ended])
  t.equal(help.code, 0)
  for (const option of ['--host', '--port', '--socket']) contains(t, help.stdout, option)
  t.equal(version.code, 0)
  t.match(version.stdout, /^\d+\.\d+\.\d+\S*\n$/)
})

t.test('--read-only and --toolsets', async (t) => {
  const env = { MCP_DEV_INSECURE: '1', MCP_READ_ONLY: '0', MCP_TOOLSETS: 'objects' }
  const { child, listening } = start(['--port', '0', '--read-only', '--toolsets', 'rules,provisioning'], env)
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' })
  const answer = await fetch(await listening, { method: 'POST', headers: HEADERS, body })
  const { result } = (await answer.json()) as { result: { tools: { name: string }[] } }
  t.same(
    result.tools.map(({ name }) => name),
    ['compare-draft-active', 'get-rulesets'],
  )
  child.kill('SIGKILL')
})

t.test('a server that is told to stop finishes its running calls', async (t) => {
  const simulator = await createPceSimulator({ seed: 1, workloads: 20, flows: 10 })
  const pce = new URL(await simulator.listen({ port: 0 }))
  t.teardown(() => simulator.close())
  const { child, ended, listening, output } = start(['--port', '0'], {
    MCP_DEV_INSECURE: '1',
    PCE_HOST: pce.href,
    API_KEY: simulator.credentials.key,
    API_SECRET: simulator.credentials.secret,
    PCE_ORG_ID: String(simulator.orgId),
    NODE_OPTIONS: `--import=${new URL('../hold-last-moment.mjs', import.meta.url).href}`,
  })
  const url = await listening
  t.match(url, /^http:\/\/127\.0\.0\.1:\d+\/mcp$/, 'it says where it listens, with the real port')
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }
  const [first, warning, , last] = linesOf(output.stderr)
  partial(
    t,
    first,
    { level: 30, version, mode: 'insecure', msg: `svc-mcp ${version} is starting` },
    'the first line has the version',
  )
  partial(t, warning, { level: 40, msg: /without auth.*production/ }, 'and warns that anybody is let in')
  t.same([last!.level, last!.msg], [30, `svc-mcp ${version} is listening on ${url}`])
  const { origin, port } = new URL(url)

  simulator.faults.add({ kind: 'slow', path: /labels$/, method: 'POST', times: 1, delayMs: 4000 })
  const call = fetch(url, {
    method: 'POST',
    headers: HEADERS,
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'create-label', arguments: { key: 'app', value: 'drain' } },
    }),
  })
  let isAnswered = false
  void call.then(() => (isAnswered = true))
  while (!simulator.requests.some(({ method }) => method === 'POST'))
    await new Promise((resolve) => setImmediate(resolve))
  const idle = connect(Number(port), '127.0.0.1')
  await new Promise((resolve) => idle.once('connect', resolve))
  child.kill('SIGTERM')
  let ready = await fetch(`${origin}/readyz`)
  while (ready.status === 200) ready = await fetch(`${origin}/readyz`)
  t.equal(ready.status, 503, 'it is not ready for more')
  t.same(await ready.json(), { status: 'draining' })
  child.kill('SIGCONT')
  const isOpen = () =>
    fetch(`${origin}/readyz`).then(
      () => true,
      () => false,
    )
  while (await isOpen()) await new Promise((resolve) => setImmediate(resolve))
  t.equal(isAnswered, false, 'and soon nobody can ask any more, while the call goes on')
  // A call that takes more than a few seconds is answered as a stream of events.
  const [json] = /\{.*\}/.exec(await (await call).text())!
  const answer = JSON.parse(json) as { result: { isError?: boolean } }
  t.notOk(answer.result.isError, 'the call under way is answered')
  const { code, stdout, stderr } = await ended
  t.equal(code, 0, 'and the process ends well, with a silent connection still open')
  t.equal(messagesOf(stderr).includes('stopping'), true, 'with nothing but lines of the log on standard error')
  const entries = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
  partial(
    t,
    entries,
    [
      { phase: 'decision', tool: 'create-label' },
      { phase: 'outcome', outcome: 'success' },
    ],
    'its audit log is complete',
  )
  t.equal(simulator.requests.filter(({ method }) => method === 'POST').length, 1, 'one label was made')
  idle.destroy()
})

t.test('changes nothing on the PCE that cannot be audited', async (t) => {
  const simulator = await createPceSimulator({ seed: 1, workloads: 20, flows: 10 })
  const pce = new URL(await simulator.listen({ port: 0 }))
  t.teardown(() => simulator.close())
  const { child, ended, listening } = start(['--port', '0'], {
    MCP_DEV_INSECURE: '1',
    PCE_HOST: pce.href,
    API_KEY: simulator.credentials.key,
    API_SECRET: simulator.credentials.secret,
  })
  const url = await listening
  child.stdout.destroy()
  const call = async (name: string, args: object) => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } })
    return (await (await fetch(url, { method: 'POST', headers: HEADERS, body })).json()) as object
  }
  partial(
    t,
    await call('create-label', { key: 'app', value: 'unseen' }),
    { result: { isError: true, content: [{ text: /"error":"audit_unavailable"/ }] } },
    'not even the first call after the reader of standard output is gone',
  )
  t.notOk(simulator.requests.some(({ method }) => method === 'POST'))
  partial(t, await call('get-labels', { key: 'env' }), { result: { structuredContent: {} } }, 'reading goes on')
  child.kill('SIGTERM')
  t.equal((await ended).code, 0)
})

t.test('SIGHUP reopens the audit log and does nothing else, and SIGUSR1 does not open the inspector', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'audit-'))
  const path = join(folder, 'audit.log')
  const { child, ended, listening } = start(['--port', '0'], { MCP_DEV_INSECURE: '1', MCP_AUDIT_LOG_PATH: path })
  const url = await listening
  const callAs = async (requestId: string) => {
    const answer = await fetch(url, {
      method: 'POST',
      headers: { ...HEADERS, 'x-request-id': requestId },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'get-server-changelog' } }),
    })
    t.equal(answer.status, 200)
    await answer.text()
  }
  await callAs('before')
  renameSync(path, `${path}.1`)
  child.kill('SIGUSR1')
  child.kill('SIGHUP')
  while (!existsSync(path)) await new Promise((resolve) => setImmediate(resolve))
  await callAs('after')
  for (const [file, requestId] of [
    [`${path}.1`, 'before'],
    [path, 'after'],
  ] as const) {
    const entries = readFileSync(file, 'utf8').trim().split('\n')
    t.same(
      entries.map((line) => (JSON.parse(line) as { request_id: string }).request_id),
      [requestId, requestId],
      `the entries of the call ${requestId} it`,
    )
    t.equal(statSync(file).mode & 0o777, 0o600)
  }
  child.kill('SIGTERM')
  const { code, stderr } = await ended
  t.equal(code, 0)
  t.notMatch(stderr, /debugger/i)
})

t.test('reports a keystore that was newly created', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'http-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const key = Buffer.alloc(32, 7).toString('base64')
  const env = {
    MCP_PUBLIC_URL: 'http://127.0.0.1:1',
    MCP_OAUTH_ISSUER: 'http://127.0.0.1:1',
    MCP_OAUTH_JWKS_URL: 'http://127.0.0.1:1/keys',
    MCP_OAUTH_AUDIENCE: 'mcp',
    MCP_KEK: key,
    MCP_CONFIRM_HMAC_KEY: key,
    MCP_ROLE_DEFAULT: 'reader',
  }
  const path = join(folder, 'lost', 'volume', 'keystore.db')
  const told = async () => {
    const { child, listening, ended } = start(['--port', '0'], { ...env, MCP_KEYSTORE_PATH: path })
    await listening
    child.kill('SIGTERM')
    return (await ended).stderr.split('\n').filter((line) => line.includes(path))
  }
  const [line, ...more] = await told()
  t.same(more, [])
  partial(t, JSON.parse(line!), {
    level: 40,
    msg:
      `MCP_KEYSTORE_PATH '${path}' did not exist and has been created, in the new folder '${join(folder, 'lost')}': ` +
      'this is a new, empty keystore, and nobody is registered. If you expected an existing one, check the path and the mount.',
  })
  for (const name of ['lost', 'lost/volume']) t.equal(statSync(join(folder, name)).mode & 0o777, 0o700)
  t.same(await told(), [], 'and from then on it is the keystore')
  rmSync(path)
  for (const end of ['-wal', '-shm']) rmSync(path + end, { force: true })
  partial(t, await told(), [/'[^']*keystore\.db' did not exist and has been created: this is a new, empty keystore/])

  const within = join(path, 'volume', 'keystore.db')
  const { code, stderr } = await start(['--port', '0'], { ...env, MCP_KEYSTORE_PATH: within }).ended
  t.equal(code, 1)
  t.match(
    linesOf(stderr).find(({ level }) => level === 60)?.msg,
    /^MCP_KEYSTORE_PATH '[^']*' cannot be reached: a part of the path is a file, not a folder \(ENOTDIR\)$/,
    'a folder that cannot be made',
  )
})

t.test('a Unix socket', async (t) => {
  const path = join(mkdtempSync(join(tmpdir(), 'sock-')), 'mcp.sock')
  const ask = () =>
    new Promise<number | undefined>((resolve, reject) => {
      httpRequest(
        { socketPath: path, path: '/mcp', method: 'POST', headers: { ...HEADERS, host: 'localhost' } },
        (answer) => {
          answer.resume()
          resolve(answer.statusCode)
        },
      )
        .on('error', reject)
        .end(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' }))
    })
  const first = start(['--socket', path], { MCP_DEV_INSECURE: '1' })
  t.equal(await first.listening, `unix:${path}`)
  t.equal(await ask(), 200)
  first.child.kill('SIGKILL')
  await first.ended
  const second = start(['--socket', path], { MCP_DEV_INSECURE: '1' })
  t.equal(await second.listening, `unix:${path}`, 'the file a killed process left is no obstacle')
  const third = start(['--socket', path], { MCP_DEV_INSECURE: '1' })
  const refused = await Promise.race([third.ended, third.listening])
  partial(t, refused, { code: 1, stderr: /EADDRINUSE/ }, 'a living one is')
  t.equal(await ask(), 200, 'and goes on living')

  rmSync(path)
  const fourth = start(['--socket', path], { MCP_DEV_INSECURE: '1' })
  t.equal(await fourth.listening, `unix:${path}`)
  second.child.kill('SIGINT')
  t.equal((await second.ended).code, 0)
  t.equal(await ask(), 200, 'a process that stops leaves the socket of the next one where it is')
  let isOver = false
  void fourth.ended.then(() => (isOver = true))
  fourth.child.kill('SIGINT')
  while (existsSync(path)) await new Promise((resolve) => setImmediate(resolve))
  t.equal(isOver, false, 'and takes its own away at once')
  t.equal((await fourth.ended).code, 0)

  writeFileSync(path, 'somebody’s')
  const fifth = start(['--socket', path], { MCP_DEV_INSECURE: '1' })
  partial(t, await Promise.race([fifth.ended, fifth.listening]), {
    code: 1,
    stderr: /what has that name is not a socket/,
  })
  t.equal(readFileSync(path, 'utf8'), 'somebody’s', 'a file that is no socket stays as it is')
})
