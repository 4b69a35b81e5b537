/** svc-mcp-http as a process in the authenticated modes: what keeps it from starting, where its secrets are, its signals, its end. */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  copyFileSync,
  existsSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { linesOf, messagesOf } from '../log-lines.js'
import { contains, partial } from '../partial.js'
import { createWorld, entriesOf, newKey, sharedEnv, type World } from './support/authenticated-world.js'
import { callTool, mintFor } from './support/call-tool.js'
import { sendRequest, type Target } from './support/send-request.js'
import { startProgram, type StartOptions } from './support/start-program.js'
import { found, within } from './support/within.js'

const IP_RANGES = { ip_ranges: [{ from_ip: '10.0.0.0/8' }] }
/** Processes that start at a time. */
const AT_ONCE = 4

interface Refusal extends Pick<StartOptions, 'args'> {
  why: string
  env?: Record<string, string | undefined>
  /** The message of the first line of level 60; those of other faults follow. */
  line: string
}

/** Every one ends with 1, says this first, and prints no secret. */
async function refuseAll(t: Test, { env, secrets }: World, refusals: readonly Refusal[]) {
  for (let at = 0; at < refusals.length; at += AT_ONCE) {
    await Promise.all(
      refusals.slice(at, at + AT_ONCE).map(async ({ why, args = ['--port', '0'], env: more = {}, line }) => {
        const { code, stdout, stderr } = await startProgram(t, { args, env: { ...env, ...more } }).ended
        const [first] = linesOf(stderr).filter(({ level }) => level === 60)
        t.same([code, stdout, first?.msg], [1, '', line], why)
        for (const secret of [...Object.values(secrets), more.MCP_KEK ?? secrets.kek]) t.notMatch(stderr, secret)
      }),
    )
  }
}

t.test('refuses to start', async (t) => {
  const world = await createWorld(t)
  const shared = { ...sharedEnv(world) }
  const file = (name: string, text: string) => {
    const path = join(world.folder, name)
    writeFileSync(path, text)
    return path
  }
  const thirtyOne = Buffer.alloc(31, 1).toString('base64')
  const zeros = Buffer.alloc(32).toString('base64')
  await refuseAll(t, world, [
    {
      why: 'a foreign address',
      args: ['--host', '0.0.0.0'],
      line: "Refusing to bind '0.0.0.0' without MCP_DEV_INSECURE=1",
    },
    {
      why: 'the address comes first',
      args: ['--host', '::'],
      env: { MCP_OAUTH_ISSUER: '' },
      line: "Refusing to bind '::' without MCP_DEV_INSECURE=1",
    },
    {
      why: 'all OAuth variables that are missing, and no others',
      env: { MCP_OAUTH_ISSUER: undefined, MCP_OAUTH_AUDIENCE: '', MCP_KEK: undefined },
      line: 'Missing required OAuth env vars: MCP_OAUTH_ISSUER, MCP_OAUTH_AUDIENCE',
    },
    { why: 'no key for the keystore', env: { MCP_KEK: undefined }, line: 'MCP_KEK env var is required' },
    {
      why: 'no key for confirm tokens',
      env: { MCP_CONFIRM_HMAC_KEY: undefined },
      line: 'MCP_CONFIRM_HMAC_KEY env var is required',
    },
    {
      why: 'nor in shared mode',
      env: { ...shared, MCP_CONFIRM_HMAC_KEY: undefined },
      line: 'MCP_CONFIRM_HMAC_KEY env var is required',
    },
    {
      why: 'no PCE in shared mode',
      env: { MCP_PCE_MODE: 'shared' },
      line: 'MCP_PCE_MODE=shared requires PCE_HOST env var',
    },
    {
      why: 'no key for the PCE in shared mode',
      env: { ...shared, API_KEY: undefined, API_SECRET: undefined },
      line: 'MCP_PCE_MODE=shared requires API_KEY, API_SECRET env vars',
    },
    {
      why: 'a mode that is announced, and is not there',
      env: { MCP_PCE_MODE: 'hybrid' },
      line: "MCP_PCE_MODE 'hybrid' is unknown: use per_user or shared",
    },
    { why: 'a short key', env: { MCP_KEK: thirtyOne }, line: 'MCP_KEK must be base64 of 32 random bytes' },
    { why: 'no key at all', env: { MCP_KEK: zeros }, line: 'MCP_KEK must be 32 random bytes, not zeros' },
    {
      why: 'a key that is there twice',
      env: { MCP_KEK_FILE: file('kek', newKey()) },
      line: 'MCP_KEK and MCP_KEK_FILE are both set: keep one',
    },
    {
      why: 'a key that is nowhere',
      env: { MCP_KEK: undefined, MCP_KEK_FILE: '/nowhere/kek' },
      line: "Cannot read MCP_KEK_FILE '/nowhere/kek': there is no such file or folder (ENOENT)",
    },
    {
      why: 'an issuer that anybody could pose as',
      env: { MCP_OAUTH_JWKS_URL: 'http://idp.example.test/keys' },
      line: 'MCP_OAUTH_JWKS_URL must be an https URL, or http on loopback',
    },
  ])
  t.notOk(existsSync(world.keystorePath), 'none of them has made a keystore')
})

t.test('a foreign keystore stops the start and is left unchanged', async (t) => {
  const world = await createWorld(t)
  const alice = await world.tokenOf('alice')
  const server = await world.serve()
  await callTool(server.target, alice, 'register-pce-credentials', world.pce.registration)
  t.equal((await server.stop()).code, 0)
  const path = world.keystorePath
  const bytes = readFileSync(path)
  const place = (name: string, content: Buffer) => {
    const other = join(world.folder, name)
    writeFileSync(other, content, { mode: 0o600 })
    return other
  }
  const torn = place('torn.db', bytes)
  truncateSync(torn, bytes.length - 1000)
  const spoilt = place(
    'spoilt.db',
    Buffer.concat([bytes.subarray(0, 4096), Buffer.alloc(8192, 0x5a), bytes.subarray(12_288)]),
  )
  const text = place('text.db', Buffer.from('this is no database '.repeat(500)))
  const empty = place('empty.db', Buffer.alloc(0))
  const spoiltFiles = [torn, spoilt, text, empty]
  const digests = () => spoiltFiles.map((file) => createHash('sha256').update(readFileSync(file)).digest('hex'))
  const before = digests()
  const damaged = 'is damaged'
  const at = (file: string) => `MCP_KEYSTORE_PATH '${file}'`
  await refuseAll(t, world, [
    { why: 'another key', env: { MCP_KEK: newKey() }, line: `MCP_KEK does not match the keystore '${path}'` },
    {
      why: 'two other keys',
      env: { MCP_KEK: newKey(), MCP_KEK_PREVIOUS: newKey() },
      line: `MCP_KEK does not match the keystore '${path}', and neither does MCP_KEK_PREVIOUS`,
    },
    { why: 'half a file', env: { MCP_KEYSTORE_PATH: torn }, line: `${at(torn)} ${damaged}` },
    { why: 'pages of something else', env: { MCP_KEYSTORE_PATH: spoilt }, line: `${at(spoilt)} ${damaged}` },
    { why: 'a text', env: { MCP_KEYSTORE_PATH: text }, line: `${at(text)} is not an SQLite file` },
    {
      why: 'nothing in it',
      env: { MCP_KEYSTORE_PATH: empty },
      line: `${at(empty)} is empty`,
    },
  ])
  t.same(digests(), before)
  const { target } = await world.serve()
  partial(
    t,
    await callTool(target, alice, 'get-labels', { key: 'env' }),
    { labels: Array },
    'with its key it is still good',
  )
})

/** What a process is told in secret, by the name of the variable. */
const secretsOf: Record<string, (world: World) => Record<string, string>> = {
  shared: ({ pce, secrets }) => ({
    API_KEY: pce.simulator.credentials.key,
    API_SECRET: pce.simulator.credentials.secret,
    MCP_CONFIRM_HMAC_KEY: secrets.hmac,
    MCP_CONFIRM_HMAC_KEY_PREVIOUS: newKey(),
  }),
  per_user: ({ secrets }) => ({
    MCP_KEK: secrets.kek,
    MCP_KEK_PREVIOUS: newKey(),
    MCP_CONFIRM_HMAC_KEY: secrets.hmac,
    MCP_CONFIRM_HMAC_KEY_PREVIOUS: newKey(),
    MCP_OAUTH_CLIENT_SECRET: newKey(),
  }),
}
for (const [mode, readSecrets] of Object.entries(secretsOf)) {
  t.test(`${mode}: secrets from files leak nowhere, and those in the environment are removed`, async (t) => {
    const world = await createWorld(t)
    const alice = await world.tokenOf('alice')
    const secrets = readSecrets(world)
    // Says on SIGUSR2 what the process, and a child of it, have in their environment.
    const report = join(world.folder, 'environment')
    const probe = join(world.folder, 'probe.mjs')
    writeFileSync(
      probe,
      `import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
process.report.excludeNetwork = true // a report asks for the name of every address otherwise
process.on('SIGUSR2', () => {
  const child = spawnSync(process.execPath, ['-p', 'JSON.stringify(process.env)'], { encoding: 'utf8' }).stdout
  writeFileSync(${JSON.stringify(report)}, JSON.stringify(process.env) + child + JSON.stringify(process.report.getReport().environmentVariables))
})`,
    )
    const basis =
      mode === 'shared'
        ? { ...sharedEnv(world), MCP_STATE_PATH: join(world.folder, 'state.db') }
        : { ...world.env, MCP_OAUTH_CLIENT_ID: 'svc-mcp' }
    const inFiles = Object.entries(secrets).map(([name, value]) => {
      const path = join(world.folder, name)
      writeFileSync(path, `${value}\n`)
      return { [name]: undefined, [`${name}_FILE`]: path }
    })
    const [fromFiles, fromEnvironment] = await Promise.all([
      world.serve({ env: Object.assign({}, basis, ...inFiles) }),
      world.serve({ env: { ...basis, ...secrets, NODE_OPTIONS: `--import=${probe}` } }),
    ])
    if (mode === 'per_user') await callTool(fromFiles.target, alice, 'register-pce-credentials', world.pce.registration)
    for (const { target } of [fromFiles, fromEnvironment])
      partial(t, await callTool(target, alice, 'get-labels', { key: 'env' }), { labels: Array })
    const initial = readFileSync(`/proc/${fromFiles.pid}/environ`, 'utf8')
    fromEnvironment.child.kill('SIGUSR2')
    await found(() => existsSync(report) && readFileSync(report, 'utf8').endsWith('}'), 'the environment is told')
    const told = readFileSync(report, 'utf8')
    contains(t, told, 'MCP_OAUTH_ISSUER')
    for (const [name, value] of Object.entries(secrets)) {
      contains(t, initial, `${name}_FILE=`)
      t.notOk(initial.includes(value), `${name} of a file`)
      t.notOk(told.includes(value), `${name} of the environment`)
    }
  })
}

t.test('--help describes every mode and command', async (t) => {
  const [help, command] = await Promise.all([
    startProgram(t, { args: ['--help'] }).ended,
    startProgram(t, { args: ['rewrap-keystore', '--help'] }).ended,
  ])
  for (const [name, words] of [
    ['backup-state', ['<file>', 'while servers are running', 'docs/operations.md']],
    ['forget-user', ['<subject>', '--issuer', 'MCP_AUDIT_LOG_PATH', 'can register again', 'docs/operations.md']],
  ] as const) {
    const { code, stdout } = await startProgram(t, { args: [name, '--help'] }).ended
    t.equal(code, 0)
    for (const word of words) contains(t, stdout.replace(/\s+/g, ' '), word)
    contains(t, help.stdout, name)
  }
  t.same([help.code, help.stderr, command.code, command.stderr], [0, '', 0, ''])
  for (const word of [
    '--host',
    '--port',
    '--socket',
    'rewrap-keystore',
    'MCP_OAUTH_ISSUER',
    'MCP_PCE_MODE=shared',
    'MCP_KEK_FILE',
  ])
    contains(t, help.stdout, word)
  contains(t, command.stdout, 'MCP_KEK_PREVIOUS')
})

t.test('an operator backs up the keystore and forgets a person while a server runs', async (t) => {
  const world = await createWorld(t)
  const [alice, bob] = (await Promise.all(['alice', 'bob'].map((sub) => world.tokenOf(sub)))) as [string, string]
  const server = await world.serve({ env: { MCP_AUDIT_LOG_PATH: world.auditPath } })
  for (const token of [alice, bob])
    await callTool(server.target, token, 'register-pce-credentials', world.pce.registration)
  await callTool(server.target, alice, 'create-iplist', { name: 'waits', ...IP_RANGES })
  partial(t, await callTool(server.target, alice, 'provision-policy'), { error: 'confirm_required' })

  // What the server has of secrets and URLs, the commands need not have.
  const env = { MCP_KEYSTORE_PATH: world.keystorePath, MCP_OAUTH_ISSUER: world.oauth.issuer }
  const run = (args: string[], more: Record<string, string> = {}) =>
    startProgram(t, { args, env: { ...env, ...more } }).ended
  const backup = join(world.folder, 'backup.db')
  partial(t, await run(['backup-state', backup]), { code: 0, stdout: '' })

  const forgotten = await run(['forget-user', 'alice'])
  t.equal(forgotten.code, 0)
  partial(t, messagesOf(forgotten.stderr), [
    /^Removed for 'alice' of .*: PCE credentials: 1, last check: 1, open confirmation: 1, approval: 0, last use: 1$/,
    /can register again$/,
  ])
  partial(
    t,
    entriesOf(forgotten.stdout),
    [
      { phase: 'decision', decision: 'allowed', command: 'forget-user', sub: 'alice', os_user: String },
      { phase: 'outcome', outcome: 'success', removed: { credentials: 1, last_checks: 1, challenges: 1 } },
    ],
    'without a file the audit log is standard output',
  )
  partial(t, await callTool(server.target, alice, 'get-labels'), { error: 'no_pce_credentials' }, 'at once')
  partial(t, await callTool(server.target, bob, 'get-labels', { key: 'env' }), { labels: Array })
  t.equal((await run(['forget-user', 'bob'], { MCP_AUDIT_LOG_PATH: world.auditPath })).stdout, '')
  partial(t, world.auditEntries().at(-1), { command: 'forget-user', sub: 'bob', outcome: 'success' })
  partial(t, await run(['forget-user', 'bob'], { MCP_OAUTH_ISSUER: '' }), {
    code: 1,
    stderr: /The identity provider of the person is not known/,
  })
  partial(t, await run(['forget-user', 'bob', '--issuer', 'https://other.example']), {
    code: 0,
    stderr: /Nothing is stored for 'bob' of https:\/\/other\.example/,
  })
  t.equal((await server.stop()).code, 0)

  copyFileSync(backup, world.keystorePath)
  for (const end of ['-wal', '-shm']) rmSync(world.keystorePath + end, { force: true })
  const again = await world.serve()
  for (const token of [alice, bob])
    partial(t, await callTool(again.target, token, 'get-labels', { key: 'env' }), { labels: Array })
})

t.test('rotates the keystore key while servers run', async (t) => {
  const world = await createWorld(t)
  const people = await Promise.all(['alice', 'bob', 'carol'].map((sub) => world.tokenOf(sub)))
  const [alice, bob, carol] = people as [string, string, string]
  const old = world.secrets.kek
  const both = { MCP_KEK: newKey(), MCP_KEK_PREVIOUS: old }
  const alone = { MCP_KEK: both.MCP_KEK }
  const rewrap = (env: Record<string, string>) =>
    startProgram(t, { args: ['rewrap-keystore'], env: { ...world.env, ...env } }).ended
  const works = async (target: Target, token: string) =>
    partial(t, await callTool(target, token, 'get-labels', { key: 'env' }), { labels: Array })

  const refusal = async (ended: Promise<{ code: number | null; stderr: string }>) => {
    const { code, stderr } = await ended
    return [code, linesOf(stderr).find(({ level }) => level === 60)?.msg]
  }
  t.same(await refusal(rewrap({})), [
    1,
    `MCP_KEYSTORE_PATH '${world.keystorePath}' does not exist: there is nothing to rewrap`,
  ])
  const first = await world.serve()
  await callTool(first.target, alice, 'register-pce-credentials', world.pce.registration)
  await callTool(first.target, bob, 'register-pce-credentials', world.pce.registration)
  t.equal((await first.stop()).code, 0)

  const second = await world.serve({ env: both })
  await callTool(second.target, carol, 'register-pce-credentials', world.pce.registration)
  const done = await rewrap(both)
  partial(t, done, {
    code: 0,
    stdout: '',
    stderr: /"msg":"2 rewrapped with MCP_KEK, 1 already were, 0 cannot be opened with either key"/,
  })
  for (const token of people) await works(second.target, token)
  t.match((await rewrap(both)).stderr, /"msg":"0 rewrapped with MCP_KEK, 3 already were/, 'again: nothing to do')
  t.equal((await second.stop()).code, 0)

  t.same(await refusal(startProgram(t, { args: ['--port', '0'], env: world.env }).ended), [
    1,
    `MCP_KEK does not match the keystore '${world.keystorePath}'`,
  ])
  const third = await world.serve({ env: alone })
  for (const token of people) await works(third.target, token)
})

t.test('stopped during a confirmed change, it finishes, answers and audits it', async (t) => {
  const world = await createWorld(t)
  const alice = await world.tokenOf('alice')
  const env = {
    ...sharedEnv(world),
    MCP_STATE_PATH: join(world.folder, 'state.db'),
    MCP_AUDIT_LOG_PATH: world.auditPath,
    NODE_OPTIONS: `--import=${new URL('../hold-last-moment.mjs', import.meta.url).href}`,
  }
  const server = await world.serve({ env })
  const { target } = server
  await callTool(target, alice, 'create-iplist', { name: 'last', ...IP_RANGES })
  const meta = { confirm_token: await mintFor(target, alice, 'provision-policy') }
  const held = world.pce.hold(({ method, path }) => method === 'POST' && path.endsWith('/sec_policy'))
  const call = callTool(target, alice, 'provision-policy', {}, { meta })
  await within(held.reached, 'the PCE is asked')
  const before = world.pce.simulator.state.policyVersion
  const ended = server.stop()
  const look = async () => {
    const { status, body } = await sendRequest(target, { method: 'GET', path: '/readyz' })
    return status === 503 && JSON.parse(body)
  }
  t.same(await found(look, 'it says that it stops'), { status: 'draining' })
  partial(
    t,
    await callTool(target, alice, 'get-labels', { key: 'env' }),
    { labels: Array },
    'for a moment it still serves',
  )
  server.child.kill('SIGCONT')
  held.release()
  partial(t, await call, { version: before + 1 })
  t.equal((await ended).code, 0)
  t.equal(world.pce.simulator.state.policyVersion, before + 1, 'done once')
  partial(
    t,
    world
      .auditEntries()
      .filter(({ tool }) => tool === 'provision-policy')
      .slice(-2),
    [
      { phase: 'decision', decision: 'allowed', confirm_jti: String },
      { phase: 'outcome', outcome: 'success' },
    ],
    'the audit log is complete',
  )
  const again = await world.serve({ env })
  partial(t, await callTool(again.target, alice, 'provision-policy', {}, { meta }), { error: 'confirm_token_replay' })
})

t.test('a rotated audit log continues in a new file, at once with SIGHUP', async (t) => {
  const world = await createWorld(t)
  const alice = await world.tokenOf('alice')
  const server = await world.serve({ env: { MCP_AUDIT_LOG_PATH: world.auditPath } })
  const call = (id: string) =>
    callTool(server.target, alice, 'get-server-changelog', {}, { headers: { 'x-request-id': id } })
  const [first, second] = [`${world.auditPath}.1`, `${world.auditPath}.2`]
  await call('one')
  renameSync(world.auditPath, first)
  server.child.kill('SIGHUP')
  await found(() => existsSync(world.auditPath), 'a new file is there')
  await call('two')
  renameSync(world.auditPath, second)
  await call('three')
  t.same(
    [first, second, world.auditPath].map((path) => idsIn(world, path)),
    [
      ['one', 'one'],
      ['two', 'two'],
      ['three', 'three'],
    ],
  )
  t.equal(statSync(world.auditPath).mode & 0o777, 0o600)
  t.equal((await server.stop()).code, 0)
})

t.test('its files are private to its user, whatever the umask', async (t) => {
  const world = await createWorld(t)
  const through = ['bash', '-c', 'umask 0; exec "$@"', 'bash']
  const folder = join(world.folder, 'made', 'by', 'it')
  const env = { MCP_KEYSTORE_PATH: join(folder, 'keystore.db'), MCP_AUDIT_LOG_PATH: world.auditPath }
  const { target } = await world.serve({ through, env })
  await callTool(target, await world.tokenOf('alice'), 'register-pce-credentials', world.pce.registration)
  const listed = execFileSync('find', [folder, world.auditPath, '-printf', '%f %m\n'], { encoding: 'utf8' })
  t.same(listed.trim().split('\n').toSorted(), [
    'audit.log 600',
    'it 700',
    'keystore.db 600',
    'keystore.db-shm 600',
    'keystore.db-wal 600',
  ])
})

const idsIn = (world: World, path: string) => world.auditEntries(path).map(({ request_id: id }) => id)
