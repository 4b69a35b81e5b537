/** What the pages say, held against the server: commands that need no server of ours, settings, messages. */
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { readConfig } from '../../config/index.js'
import { createPceSimulator } from '../../pce-simulator/index.js'
import type { InsecureHttpConfig } from '../../schemas/config.js'
import { SCHEMA_VERSION } from '../../storage/state/tables.js'
import { tools } from '../../tools/index.js'
import { bundleProgram } from '../bundle-program.js'
import { startService } from '../contract/authenticated-service.js'
import { insecureApp, textOf } from '../contract/insecure-app.js'
import { freePort } from '../free-port.js'
import { emptyFolder, pretend, readPage, startCommand } from './commands.js'

const LISTEN = { host: '127.0.0.1', port: 8080 }

t.test('a rolling restart goes on only when the process before serves', async (t) => {
  const restart = async (t: Test, body: string) => {
    const systemctl = pretend(t, 'systemctl', body)
    const key = 'docs/authenticated-http.md#several-processes'
    const { code } = await startCommand(t, key, { cwd: emptyFolder(t), env: { PATH: systemctl.path } }).ended
    return { code, calls: systemctl.calls() }
  }
  t.same(await restart(t, 'true'), {
    code: 0,
    calls: [
      ['restart', 'svc-mcp@1'],
      ['restart', 'svc-mcp@2'],
    ],
  })
  t.same(await restart(t, 'false'), { code: 1, calls: [['restart', 'svc-mcp@1']] })
})

t.test('the schema of the state file is the one that the page names', (t) => {
  const [, version] = /The schema\s+version\s+of\s+the\s+state\s+file\s+is\s+(\d+)/.exec(
    readPage('docs/operations.md'),
  )!
  t.equal(version, String(SCHEMA_VERSION))
  t.end()
})

t.test('every message of the troubleshooting table is what the server says', async (t) => {
  const messages = [...readPage('docs/troubleshooting.md').matchAll(/^\| `(.+?)` \|/gm)].map(([, message]) => message!)
  const simulator = await createPceSimulator({ seed: 1, workloads: 20, flows: 10 })
  const { port } = new URL(await simulator.listen({ port: 0 }))
  const service = await startService(t)
  t.teardown(() => simulator.close())
  const good = {
    MCP_DEV_INSECURE: '1',
    PCE_HOST: 'http://127.0.0.1',
    PCE_PORT: port,
    API_KEY: simulator.credentials.key,
    API_SECRET: simulator.credentials.secret,
  }
  const refusal = (run: () => unknown): string => {
    try {
      run()
    } catch (error) {
      return (error as Error).message
    }
    return 'nothing was refused'
  }
  const ask = async (env: object, name = 'check-pce-connection', args: object = {}) => {
    const config = readConfig('http', { ...good, ...env }, LISTEN) as InsecureHttpConfig
    const { app, call } = await insecureApp(tools, config)
    t.teardown(() => app.close())
    // The table has each message as a person reads it, without the escapes that JSON needs.
    return JSON.stringify(textOf(await call(name, args))).replaceAll('\\"', '"')
  }
  const asked = [
    refusal(() => readConfig('stdio', {})),
    refusal(() => readConfig('http', {}, LISTEN)),
    await listenWhereSomebodyIs(t),
    await ask({ PCE_PORT: String(await freePort()) }),
    await ask({ PCE_HOST: 'https://127.0.0.1', PCE_PORT: String(service.pce.port) }),
    await ask({ API_SECRET: 'wrong' }),
    await ask({ PCE_ORG_ID: '7' }),
    await ask({}, 'create-ruleset', { name: 'x', scopes: [['app=paymnts']] }),
    JSON.stringify(await service.call(await service.tokenOf('new'), 'get-labels')),
    JSON.stringify(await service.call(await service.tokenOf('guest', null), 'get-labels')),
  ]
  t.equal(messages.length, 10)
  for (const [index, message] of messages.entries()) {
    const inOrder = message.split('…').map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'))
    t.match(asked[index], new RegExp(inOrder.join('.*')))
  }
})

/** What svc-mcp-http says on a port that is taken, as if that were 8080. */
async function listenWhereSomebodyIs(t: Test): Promise<string> {
  const somebody = createServer().listen(0, '127.0.0.1')
  await once(somebody, 'listening')
  t.teardown(() => somebody.close())
  const { port } = somebody.address() as AddressInfo
  const { stderr } = spawnSync(process.execPath, [bundleProgram('http'), '--port', String(port)], {
    cwd: emptyFolder(t),
    encoding: 'utf8',
    env: { PATH: process.env.PATH, MCP_DEV_INSECURE: '1' },
  })
  return stderr.replaceAll(String(port), '8080')
}

t.test('README is a front door: one picture, and no longer than a few screens', (t) => {
  const readme = readPage('README.md')
  t.ok(readme.trimEnd().split('\n').length <= 150, 'at most 150 lines')
  t.same(readme.match(/!\[[^\]]*\]\([^)]*\.(?:svg|png)\)|<img\b/g)?.length, 1)
  t.end()
})
