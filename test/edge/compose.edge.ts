/** deploy/compose without a container engine: the commands and settings of its services as processes, from login to a call of the PCE. */
import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js'
import t, { type Test } from 'tap'
import { parse } from 'yaml'
import { freePort } from '../free-port.js'
import { ROOT } from '../deploy/manifests.js'
import { Browser, type Page } from '../identity/browser.js'
import type { IdentityProvider } from '../identity/identity-provider.js'
import { contains, partial } from '../partial.js'
import { startPostgres } from '../postgres/start-postgres.js'
import { untilReady } from './support/authenticated-world.js'
import type { Json } from './support/call-tool.js'
import { connectAs, createPerson } from './support/oauth-client.js'
import { startProgram } from './support/start-program.js'
import { trustingFetch } from './support/trusting-fetch.js'
import { found } from './support/within.js'

interface Service {
  command: string[]
  environment?: Record<string, string>
}

const PORTS = ['8443', '9000', '9001', '9443', '8080']

t.before(() => {
  const { status, stderr } = spawnSync('npm', ['run', '--silent', 'build'], { cwd: ROOT, encoding: 'utf8' })
  if (status !== 0) throw new Error(stderr)
})

/** The services with free ports in place of theirs, and a folder in place of the volume. */
async function readServices(folder: string) {
  const free = new Map<string, string>()
  for (const port of PORTS) free.set(port, String(await freePort()))
  const adapt = (text: string) =>
    text
      .replaceAll(/(?<![\w.])\/trial(?=\/|$)/gm, folder)
      .replaceAll(/\b\d{4}\b/g, (number) => free.get(number) ?? number)
  const { services } = parse(readFileSync(join(ROOT, 'deploy/compose/compose.yaml'), 'utf8')) as {
    services: Record<string, Service>
  }
  return {
    adapt,
    port: (name: string) => free.get(name)!,
    service: (name: string) => {
      const { command, environment = {} } = services[name]!
      return {
        command: command.map(adapt),
        env: Object.fromEntries(Object.entries(environment).map(([key, value]) => [key, adapt(value)])),
      }
    },
  }
}

const valueOf = (result: unknown): Json => {
  const { structuredContent, content } = result as CallToolResult
  return structuredContent ?? JSON.parse((content[0] as { text: string }).text)
}

/** Starts a service that goes on; its words after the program's name. */
function startService(t: Test, command: string[], env: Record<string, string>) {
  const [program, ...args] = command as [string, ...string[]]
  const child = spawn(program, args, {
    cwd: ROOT,
    env: { PATH: process.env.PATH, HOME: tmpdir(), ...env },
    stdio: 'ignore',
  })
  const ended = new Promise((resolve) => child.once('close', resolve))
  t.teardown(async () => {
    child.kill('SIGTERM')
    await ended
  })
}

t.test('from one command to a call of the PCE', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'compose-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const { adapt, service, port } = await readServices(folder)
  const once = (name: string) => {
    const { command, env } = service(name)
    const options = { cwd: ROOT, env: { PATH: process.env.PATH, ...env }, encoding: 'utf8' } as const
    const { status, stdout, stderr } = spawnSync(process.execPath, command, options)
    t.equal(status, 0, `${name} ${stderr}`)
    return stdout
  }

  once('prepare')
  const made = () => readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), 'utf8')])
  const first = made()
  t.same(
    first.map(([name]) => name),
    ['confirm-key', 'kek', 'postgres-password', 'state-url', 'tls.key', 'tls.pem'],
  )
  t.equal(statSync(join(folder, 'tls.key')).mode & 0o004, 0o004, 'for the users of the other containers')
  once('prepare')
  t.same(made(), first, 'a second start keeps what there is')

  const caddyfile = join(folder, 'Caddyfile')
  writeFileSync(caddyfile, adapt(readFileSync(join(ROOT, 'deploy/compose/Caddyfile'), 'utf8')))
  const proxy = service('proxy')
  startService(
    t,
    proxy.command.map((word) => word.replace('/etc/caddy/Caddyfile', caddyfile)),
    proxy.env,
  )
  for (const name of ['identity-provider', 'pce'])
    startService(t, [process.execPath, ...service(name).command], service(name).env)
  await found(
    () =>
      fetch(`http://localhost:${port('9000')}/jwks`).then(
        ({ status }) => status === 200,
        () => false,
      ),
    'the identity provider answers through the proxy',
  )
  const server = service('server')
  const { env } = server
  const stateUrl = env.MCP_STATE_URL_FILE!
  t.equal(stateUrl, join(folder, 'state-url'))
  // PostgreSQL as the tests start it, with the password that was made for its container.
  const postgres = await startPostgres(t)
  const written = new URL(readFileSync(stateUrl, 'utf8'))
  await postgres.query(`ALTER ROLE svc_mcp PASSWORD '${written.password}'`)
  writeFileSync(stateUrl, written.href.replace(':5432/', `:${postgres.port}/`))
  await startProgram(t, { args: server.command, env: { ...env, MCP_LOG_LEVEL: 'warn' } }).listening
  await untilReady({ origin: `http://127.0.0.1:${port('8080')}` })

  const words = adapt(once('welcome'))
  const load = trustingFetch(readFileSync(join(folder, 'tls.pem'), 'utf8'))
  const [url] = /https:\S+\/mcp/.exec(words)!
  const [, pceUrl, orgId, key, secret] = /PCE (\S+), organization (\d+), key (\S+), secret (\S+)/.exec(words)!
  const people = [...words.matchAll(/^ +(\w+) +may (.*)$/gm)].map(([, name, may]) => [name!, may!] as const)
  t.same(people, [
    ['alice', 'read, change and provision'],
    ['oscar', 'read and change'],
    ['rita', 'read'],
  ])

  const issuer = env.MCP_OAUTH_ISSUER!
  /** Login and consent, as the pages of the provider ask for them. */
  async function logIn(browser: Browser, page: Page, login: string, stopAt?: string): Promise<Page> {
    let at = page
    while (at.status === 200 && at.url.startsWith(`${issuer}/interaction/`)) {
      const isLogin = /name="prompt" value="login"/.test(at.body)
      at = await browser.submit(at, isLogin ? { login, password: 'any' } : {}, stopAt)
    }
    return at
  }
  const roles: unknown[] = []
  for (const [name] of people) {
    const person = createPerson({ logIn } as unknown as IdentityProvider, name)
    person.fetch = load
    const { client } = await connectAs(url, person)
    const call = async (tool: string, args: object = {}) =>
      valueOf(await client.callTool({ name: tool, arguments: { ...args } }))
    const registration = {
      pce_host: pceUrl!.replace(/:\d+$/, ''),
      pce_port: Number(pceUrl!.split(':').at(-1)),
      pce_org_id: Number(orgId),
      api_key: key,
      api_secret: secret,
    }
    partial(t, await call('register-pce-credentials', registration), { connection: { ok: true } })
    t.equal((await call('get-labels', { key: 'env' })).error, undefined, name)
    const [changed, provisioned] = [
      await call('create-label', { key: 'app', value: `of-${name}` }),
      await call('provision-policy', { change_description: 'try' }),
    ]
    roles.push([changed.error ?? 'ok', provisioned.error ?? 'ok'])
    await client.close()
  }
  t.same(roles, [
    ['ok', 'confirm_required'],
    ['ok', 'forbidden'],
    ['forbidden', 'forbidden'],
  ])

  const browser = new Browser(load)
  const page = await browser.open(`${env.MCP_PUBLIC_URL}/setup`)
  const inside = await logIn(browser, page.url.startsWith(issuer) ? page : await browser.submit(page, {}), 'alice')
  t.equal(inside.status, 200)
  contains(t, inside.body, 'alice')
})

t.test('the Caddyfile for one machine is valid', async (t) => {
  const args = ['validate', '--config', join(ROOT, 'deploy/proxy/Caddyfile'), '--adapter', 'caddyfile']
  const env = { PATH: process.env.PATH, HOME: t.testdir() }
  const { status, stderr } = spawnSync('caddy', args, { env, encoding: 'utf8' })
  t.equal(status, 0, stderr)
})
