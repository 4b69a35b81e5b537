/** The service of a company, started by the commands of the pages: people log in to /setup, and a restart loses no key. */
import { spawnSync } from 'node:child_process'
import { readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { createWorld, untilReady } from '../edge/support/authenticated-world.js'
import { connectAs, createPerson } from '../edge/support/oauth-client.js'
import { freePort } from '../free-port.js'
import { Browser } from '../identity/browser.js'
import { startIdentityProvider } from '../identity/identity-provider.js'
import { partial } from '../partial.js'
import { emptyFolder, pretend, ROOT, runCommand, startCommand } from './commands.js'

const KEYS = 'docs/authenticated-http.md#start-it'
const START = 'docs/authenticated-http.md#start-it:2'

t.before(() => {
  const { status, stderr } = spawnSync('npm', ['run', '--silent', 'build'], { cwd: ROOT, encoding: 'utf8' })
  if (status !== 0) throw new Error(stderr)
})

t.test('the service of a company, by the commands of the page', async (t) => {
  const idp = await startIdentityProvider(t, { people: { alice: { groups: ['mcp-admins'] } } })
  const port = await freePort()
  const base = `http://127.0.0.1:${port}`
  const { pce, certificate, oauth } = await createWorld(t, { publicUrl: base, idp })
  const { clientId } = idp.allowRedirects([`${base}/setup/callback`], { isPublic: true })
  const folder = emptyFolder(t)
  symlinkSync(join(ROOT, 'dist'), join(folder, 'dist'))
  const installed = pretend(t, 'svc-mcp-http', `exec "${process.execPath}" "${ROOT}/dist/http.js" "$@"`)

  await runCommand(t, KEYS, { cwd: folder })
  const made = ['kek', 'confirm-key'].map((name) => readFileSync(join(folder, 'secrets', name), 'utf8'))
  t.not((await startCommand(t, KEYS, { cwd: folder }).ended).code, 0, 'a second time it stops')
  t.same(
    ['kek', 'confirm-key'].map((name) => readFileSync(join(folder, 'secrets', name), 'utf8')),
    made,
    'and the keys are as they were',
  )

  async function serve() {
    const server = startCommand(t, START, {
      cwd: folder,
      // The stand-in for a PCE is on loopback, with a certificate of its own.
      env: { PATH: installed.path, MCP_ALLOWED_PCE_HOSTS: '127.0.0.1', PCE_CA_FILE: certificate.certPath },
      own: {
        'https://mcp.example.com': base,
        'https://login.example.com/keys': oauth.jwksUrl,
        'https://login.example.com/v2.0': oauth.issuer,
        'svc-mcp-setup': clientId,
        8080: String(port),
        '8c2f…,': '',
      },
    })
    await server.says(/is listening on/)
    await untilReady({ origin: base })
    return server
  }
  const person = createPerson(idp, 'alice')
  const ask = async (name: string, args: Record<string, unknown> = {}) => {
    const { client } = await connectAs(`${base}/mcp`, person)
    const { structuredContent } = await client.callTool({ name, arguments: args })
    await client.close()
    return structuredContent
  }

  const first = await serve()
  const browser = new Browser()
  const page = await idp.logIn(browser, await browser.open(`${base}/setup/login`), 'alice')
  t.same([page.url, page.status], [`${base}/setup`, 200], 'a person logs in to /setup')
  await ask('register-pce-credentials', pce.registration)
  partial(t, await ask('check-pce-connection'), { connected: true })
  await first.stop()

  const second = await serve()
  partial(t, await ask('check-pce-credentials-status'), { registered: true, mode: 'per_user' })
  partial(t, await ask('check-pce-connection'), { connected: true })
  await second.stop()
})
