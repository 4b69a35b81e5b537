/**
 * docs/operations.md done by its commands, with the files of deploy as they stand and real processes: under systemd and in a container, of
 * which there are stand-ins.
 */
import { execFile, spawnSync } from 'node:child_process'
import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { emptyFolder, pretend, readPage, ROOT, runCommand, startCommand, textOf } from '../docs/commands.js'
import { freePort } from '../free-port.js'
import { partial } from '../partial.js'
import { startPostgres } from '../postgres/start-postgres.js'
import { createWorld, entriesOf, GROUP_OF, newKey } from './support/authenticated-world.js'
import { callTool } from './support/call-tool.js'
import { sendRequest, type Target } from './support/send-request.js'
import { found } from './support/within.js'

const PAGE = 'docs/operations.md'
/** Servers that this starts ask for keys and a PCE in this process, which must not wait for it. */
const execute = promisify(execFile)
const PATIENT = { timeout: 400_000 }

/** A machine as the page describes it, all of it in one folder, and what makes its settings those of the test. */
async function createMachine(t: Test) {
  const world = await createWorld(t)
  const root = emptyFolder(t)
  const at = (...names: string[]) => join(root, ...names)
  const places = {
    '/etc/systemd/system': at('units'),
    '/etc/logrotate.d/svc-mcp': at('logrotate'),
    '/etc/svc-mcp': at('etc'),
    '/var/lib/svc-mcp': at('lib'),
    '/var/log/svc-mcp': at('log'),
    '/var/backups/svc-mcp': at('backups'),
    '/run/svc-mcp': at('run'),
    '/opt/svc-mcp': at('opt'),
    '/usr/local/bin': at('bin'),
    '/usr/local/sbin': at('bin'),
  }
  for (const name of ['units', 'bin', 'run', 'log', 'lib', 'pids', 'logs', 'images', 'containers', 'volumes'])
    mkdirSync(at(name), { mode: 0o700 })
  t.teardown(() => {
    for (const name of readdirSync(at('pids'))) {
      try {
        process.kill(Number(readFileSync(at('pids', name), 'utf8')), 'SIGKILL')
      } catch {
        // It has ended.
      }
    }
  })
  const port = String(await freePort())
  const standIn = (name: string, program = name) => {
    // Node.js 20 takes an --env-file for its own, wherever it stands.
    const args = `${program} "\${@/#--env-file/--settings}"`
    const script = `exec "${process.execPath}" "${ROOT}/test/docs/stand-ins/${name}.mjs" ${args}`
    writeFileSync(at('bin', program), `#!/bin/bash\n${script}\n`, { mode: 0o755 })
  }
  for (const program of ['systemctl', 'systemd-run', 'journalctl']) standIn('systemd', program)
  standIn('docker')
  writeFileSync(at('bin/useradd'), '#!/bin/sh\n', { mode: 0o755 })
  writeFileSync(
    at('bin/logrotate'),
    `#!/bin/sh\nsed -i -e '/^ *su /d' -e 's#/var/log/svc-mcp#${at('log')}#' '${at('logrotate')}'\nexec /usr/sbin/logrotate --state '${at('rotated')}' "$@"\n`,
    { mode: 0o755 },
  )

  const env = {
    PATH: `${at('bin')}:${process.env.PATH}`,
    STAND_IN_ROOT: root,
    STAND_IN_PLACES: JSON.stringify(places),
    STAND_IN_PORT: port,
    STAND_IN_SERVER: join(ROOT, 'dist/http.js'),
  }
  const surroundings = (key: string, own: Record<string, string> = {}, cwd = root) => {
    const text = textOf(key)
    const here = Object.fromEntries(Object.entries(places).filter(([there]) => text.includes(there)))
    return { cwd, env, own: { ...own, ...here } }
  }
  const run = (key: string, own?: Record<string, string>, cwd?: string) =>
    runCommand(t, key, surroundings(key, own, cwd))
  const endOf = (key: string, own?: Record<string, string>) => startCommand(t, key, surroundings(key, own)).ended
  const fails = async (key: string, own?: Record<string, string>) => (await endOf(key, own)).code !== 0

  /** What `npm install` makes of a version, or a version that does not start. */
  const install = (version: string, works = true) => {
    const modules = at('opt', version, 'node_modules')
    mkdirSync(join(modules, '.bin'), { recursive: true })
    const program = works ? `exec "${process.execPath}" "${ROOT}/dist/http.js" "$@"` : 'exit 1'
    writeFileSync(join(modules, '.bin/svc-mcp-http'), `#!/bin/sh\n${program}\n`, { mode: 0o755 })
    spawnSync('ln', ['-sfn', ROOT, join(modules, 'svc-mcp')])
  }

  /** Makes the settings with the commands of the page, and adds where the PCE of the test is. */
  async function configure() {
    const key = 'docs/operations.md#running-it'
    const own = {
      'https://mcp.example.com': world.env.MCP_PUBLIC_URL!,
      'https://login.example.com/v2.0': world.oauth.issuer,
      'https://login.example.com/keys': world.oauth.jwksUrl,
      'mcp-admins': GROUP_OF.admin,
      'mcp-readers': GROUP_OF.reader,
    }
    await run(key, own)
    const made = readFileSync(at('etc/env'), 'utf8')
    t.equal(statSync(at('etc/env')).mode & 0o777, 0o600)
    t.ok(await fails(key, own), 'a second time it stops')
    t.equal(readFileSync(at('etc/env'), 'utf8'), made, 'and the keys are as they were')
    const { MCP_ALLOWED_PCE_HOSTS: hosts, PCE_CA_FILE: ca } = world.env
    appendFileSync(at('etc/env'), `MCP_ALLOWED_PCE_HOSTS=${hosts}\nPCE_CA_FILE=${ca}\n`)
  }
  const setEnv = (change: (text: string) => string) =>
    writeFileSync(at('etc/env'), change(readFileSync(at('etc/env'), 'utf8')))

  const [alice, bob] = (await Promise.all(['alice', 'bob'].map((sub) => world.tokenOf(sub)))) as [string, string]
  const register = (target: Target, token: string) =>
    callTool(target, token, 'register-pce-credentials', world.pce.registration)
  const registered = async (target: Target) =>
    Promise.all(
      [alice, bob].map(async (token) => {
        const { error, labels } = await callTool(target, token, 'get-labels', { key: 'env' })
        return labels === undefined ? error : 'ok'
      }),
    )
  return { at, port, run, endOf, fails, install, configure, setEnv, register, registered, alice, bob, env }
}

const isReady = async (target: Target) => (await sendRequest(target, { method: 'GET', path: '/readyz' })).status === 200

t.before(() => {
  const { status, stderr } = spawnSync('npm', ['run', '--silent', 'build'], { cwd: ROOT, encoding: 'utf8' })
  if (status !== 0) throw new Error(stderr)
})

t.test('under systemd', PATIENT, async (t) => {
  const { at, run, endOf, fails, install, configure, setEnv, register, registered, alice, bob, env } =
    await createMachine(t)
  const targets = [1, 2].map((n) => ({ origin: 'http://localhost', socketPath: at('run', `${n}.sock`) }))
  const [one, two] = targets as [Target, Target]
  await configure()
  const npm = pretend(t, 'npm')
  install('0.2.0')
  await runCommand(t, 'docs/operations.md#under-systemd', {
    cwd: at(),
    env: { PATH: npm.path },
    own: { '/opt/svc-mcp': at('opt'), '/usr/local/bin': at('bin') },
  })
  t.same(npm.calls(), [['install', '--omit=dev', '--prefix', at('opt/0.2.0'), './svc-mcp-0.2.0.tgz']])
  await run('docs/operations.md#under-systemd:2')
  await register(one, alice)
  t.same(await registered(two), ['ok', 'no_pce_credentials'])

  await t.test('the first look, and the version', async (t) => {
    const { stdout } = await endOf('docs/operations.md#the-first-look')
    t.match(stdout, /^\{"status":"ready"\}\n/)
    await run('docs/operations.md#the-first-look:3')
    partial(t, JSON.parse(await run('docs/operations.md#monitoring')), { version: /^\d+\.\d+\.\d+$/ })
  })

  await t.test('back up, and restore', async (t) => {
    await run('docs/operations.md#back-up-and-restore')
    const [backup, ...more] = readdirSync(at('backups'))
    t.same([more, statSync(at('backups', backup!)).mode & 0o777], [[], 0o600])
    await register(two, bob)
    await run('docs/operations.md#somebody-leaves', { 'alice@example.com': 'alice' })
    t.same(await registered(one), ['no_pce_credentials', 'ok'])

    // They had no time to put their file in order.
    for (const name of ['1', '2']) process.kill(Number(readFileSync(at('pids', name), 'utf8')), 'SIGKILL')
    const own = { 'keystore-20261124-021500.db': backup! }
    await run('docs/operations.md#back-up-and-restore:3', own)
    t.same(await registered(two), ['ok', 'no_pce_credentials'], 'as it was then')
    t.same(readdirSync(at('lib/replaced')).toSorted(), ['keystore.db', 'keystore.db-shm', 'keystore.db-wal'])
    t.ok(await fails('docs/operations.md#back-up-and-restore:3', own), 'nothing is replaced where that cannot be kept')
    await execute('systemctl', ['start', 'svc-mcp@1', 'svc-mcp@2'], { env })
    t.same(await registered(one), ['ok', 'no_pce_credentials'])

    const [, grep] = /`(zgrep -hE .+)`/.exec(readPage(PAGE))!
    const { stdout } = spawnSync('bash', ['-c', grep!.replace('/var/log/svc-mcp', at('log'))], { encoding: 'utf8' })
    partial(t, entriesOf(stdout), [
      { command: 'forget-user', sub: 'alice', phase: 'decision' },
      { command: 'forget-user', sub: 'alice', outcome: 'success' },
    ])
  })

  await t.test('a version that does not start, and the way back', async (t) => {
    install('0.3.0', false)
    t.ok(await fails('docs/operations.md#upgrade-and-roll-back'))
    t.same(await registered(two), ['ok', 'no_pce_credentials'], 'the other process still serves')
    await run('docs/operations.md#upgrade-and-roll-back:2')
    t.same(await registered(one), ['ok', 'no_pce_credentials'])
    install('0.3.0')
    await run('docs/operations.md#upgrade-and-roll-back')
    t.same(await registered(one), ['ok', 'no_pce_credentials'])
  })

  await t.test('the audit log', async (t) => {
    await run('docs/operations.md#rotate-the-audit-log')
    await found(() => existsSync(at('log/audit-1.log')) && existsSync(at('log/audit-2.log')), 'new files')
    t.same(
      readdirSync(at('log')).map((name) => name.replace(/\d{8}-\d{6}/, 'WHEN')),
      ['audit-1.log', 'audit-1.log-WHEN', 'audit-2.log', 'audit-2.log-WHEN', 'audit-commands.log-WHEN'],
    )
  })

  await t.test('MCP_KEK changes, and a backup from before is restored', async (t) => {
    const restart = () => run('docs/operations.md#the-first-look:3')
    const old = /^MCP_KEK=(.*)$/m.exec(readFileSync(at('etc/env'), 'utf8'))![1]!
    setEnv((text) => text.replace(/^MCP_KEK=.*$/m, `MCP_KEK=${newKey()}\nMCP_KEK_PREVIOUS=${old}`))
    await restart()
    await run('docs/operations.md#change-keys')
    setEnv((text) => text.replace(/^MCP_KEK_PREVIOUS=.*\n/m, ''))
    await restart()
    t.same(await registered(one), ['ok', 'no_pce_credentials'])

    spawnSync('mv', [at('lib/replaced'), at('lib/replaced-1')])
    const own = { 'keystore-20261124-021500.db': readdirSync(at('backups'))[0]! }
    t.ok(await fails('docs/operations.md#back-up-and-restore:3', own), 'it needs the key of its time')
    setEnv((text) => `${text}MCP_KEK_PREVIOUS=${old}\n`)
    await restart()
    await run('docs/operations.md#change-keys')
    setEnv((text) => text.replace(/^MCP_KEK_PREVIOUS=.*\n/m, ''))
    await restart()
    t.same(await registered(one), ['ok', 'no_pce_credentials'])
  })

  await t.test('the keystore moves to PostgreSQL', async (t) => {
    const postgres = await startPostgres(t)
    setEnv((text) => `${text}MCP_STATE_URL=${postgres.url}\n`)
    for (const n of ['1', '2']) await execute('systemctl', ['stop', `svc-mcp@${n}`], { env })
    await run('docs/operations.md#postgresql')
    for (const n of ['1', '2']) await execute('systemctl', ['start', `svc-mcp@${n}`], { env })
    t.same(await registered(one), ['ok', 'no_pce_credentials'])
    t.ok(await fails('docs/operations.md#postgresql'), 'once')
    for (const n of ['1', '2']) await execute('systemctl', ['stop', `svc-mcp@${n}`], { env })
  })
})

t.test('in a container', PATIENT, async (t) => {
  const { at, port, run, endOf, install, configure, setEnv, register, registered, alice, bob, env } =
    await createMachine(t)
  const target = { origin: `http://127.0.0.1:${port}` }
  /** A container is there before its server is. */
  const up = () => found(() => isReady(target).catch(() => false), 'it serves')
  await configure()
  install('0.2.0')
  spawnSync('ln', ['-sfn', at('opt/0.2.0/node_modules/.bin/svc-mcp-http'), at('bin/svc-mcp-http')])
  const checkout = at('checkout')
  mkdirSync(checkout)
  writeFileSync(join(checkout, 'Dockerfile'), '')
  spawnSync('cp', ['-r', join(ROOT, 'docs'), join(ROOT, 'deploy'), checkout])
  for (const name of ['mcp.pem', 'mcp.key']) writeFileSync(join(checkout, 'deploy/proxy', name), '')
  const runIn = (key: string, own?: Record<string, string>) => run(key, own, checkout)

  await runIn('docs/operations.md#in-a-container')
  await up()
  await register(target, alice)
  // Below it there may be a complaint: whoever asks a server that starts hears that it has no keys yet.
  t.match((await endOf('docs/operations.md#the-first-look:2', { 8080: port })).stdout, /^\{"status":"ready"\}\n/)

  await t.test('back up, and restore', async (t) => {
    await run('docs/operations.md#back-up-and-restore:2')
    const [backup, ...more] = readdirSync(at()).filter((name) => name.startsWith('keystore-'))
    t.same(more, [])
    await register(target, bob)
    await run('docs/operations.md#somebody-leaves:2', { 'alice@example.com': 'alice' })
    t.same(await registered(target), ['no_pce_credentials', 'ok'])
    await run('docs/operations.md#back-up-and-restore:4', { 'keystore-20261124-021500.db': backup! })
    await up()
    t.same(await registered(target), ['ok', 'no_pce_credentials'], 'as it was then')
    t.equal(statSync(at('volumes/svc-mcp-state/keystore.db')).mode & 0o777, 0o600)
  })

  await t.test('upgrade, and back', async (t) => {
    await runIn('docs/operations.md#upgrade-and-roll-back:3')
    await up()
    t.same(await registered(target), ['ok', 'no_pce_credentials'])
    await run('docs/operations.md#upgrade-and-roll-back:4')
    await up()
    t.same(await registered(target), ['ok', 'no_pce_credentials'])
  })

  await t.test('the audit log', async (t) => {
    await run('docs/operations.md#rotate-the-audit-log:2')
    t.same(await registered(target), ['ok', 'no_pce_credentials'])
    const folder = at('volumes/svc-mcp-state')
    const [rotated] = readdirSync(folder).filter((name) => name.startsWith('audit.log-'))
    const entries = [rotated!, 'audit.log'].map((name) => entriesOf(readFileSync(join(folder, name), 'utf8')))
    partial(
      t,
      entries[0]!.filter(({ command }) => command !== undefined),
      [
        { phase: 'decision', sub: 'alice' },
        { phase: 'outcome', sub: 'alice' },
      ],
    )
    t.same(entries[1]!.map(({ tool, phase }) => [tool, phase]).toSorted(), [
      ['get-labels', 'decision'],
      ['get-labels', 'decision'],
      ['get-labels', 'outcome'],
    ])
  })

  await t.test('MCP_KEK changes', async (t) => {
    const [, line] = /a restart is\s`([^`]+)`/.exec(readPage(PAGE))!
    const restart = async () => {
      await execute('bash', ['-euc', line!], { cwd: checkout, env })
      return up()
    }
    const old = /^MCP_KEK=(.*)$/m.exec(readFileSync(at('etc/env'), 'utf8'))![1]!
    setEnv((text) => text.replace(/^MCP_KEK=.*$/m, `MCP_KEK=${newKey()}\nMCP_KEK_PREVIOUS=${old}`))
    await restart()
    await run('docs/operations.md#change-keys:2')
    setEnv((text) => text.replace(/^MCP_KEK_PREVIOUS=.*\n/m, ''))
    await restart()
    t.same(await registered(target), ['ok', 'no_pce_credentials'])
  })
})
