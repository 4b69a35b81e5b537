/** The example of docs/teams.md: its settings ('docs/teams.md#the-file'), its file, and every call with its answer. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { readConfig } from '../../config/index.js'
import type { SharedConfig } from '../../schemas/config.js'
import { startService, type Json } from '../contract/authenticated-service.js'
import { handMade } from '../tools/hand-made.js'
import { readPage } from './commands.js'

/** The settings that every server of this mode needs, which the example leaves out. */
const OTHERS = {
  PCE_HOST: 'pce.example.com',
  API_KEY: 'api_1',
  API_SECRET: 'secret',
  MCP_PUBLIC_URL: 'https://mcp.example.test',
  MCP_OAUTH_ISSUER: 'https://idp.example.test/',
  MCP_OAUTH_JWKS_URL: 'https://idp.example.test/keys',
  MCP_OAUTH_AUDIENCE: 'https://mcp.example.test',
  MCP_CONFIRM_HMAC_KEY: Buffer.alloc(32, 9).toString('base64'),
}

t.test('every answer of the example is what the server says', async (t) => {
  const page = readPage('docs/teams.md')
  const [, file = ''] = /```json\n(.*?)```/s.exec(page) ?? []
  const [, settings = ''] = /```bash\n(.*?)```/s.exec(page) ?? []
  const folder = mkdtempSync(join(tmpdir(), 'teams-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const scopesPath = join(folder, 'scopes.json')
  writeFileSync(scopesPath, file)
  const ruleSet = (name: string, app: string) => ({
    name,
    scope: `app=${app} env=prod`,
    allow: [{ from: 'ams', to: 'ams', services: [{ port: 5432, proto: 6 }] }],
  })
  const estate = handMade({
    hosts: {
      pay1: { ip: '10.0.0.1', labels: 'app=payments env=prod' },
      pay2: { ip: '10.0.0.2', labels: 'app=payments env=dev' },
      shop1: { ip: '10.0.0.3', labels: 'app=shop env=prod' },
    },
    ruleSets: [ruleSet('Payments', 'payments'), ruleSet('Shop', 'shop')],
    flows: [],
  })
  const env = Object.fromEntries(
    settings
      .trim()
      .split('\n')
      .map((line) => line.split('=')),
  )
  const { mode, roles, ...read } = readConfig(
    'http',
    { ...OTHERS, ...env },
    { host: '127.0.0.1', port: 0 },
  ) as SharedConfig
  t.equal(read.scopesPath, '/etc/svc-mcp/scopes.json')
  const { call, confirm, tokenOf } = await startService(t, {
    mode,
    config: { roles, scopesPath, offer: { toolsets: ['all'] } },
    estate: { estate },
  })
  const rows = [...page.matchAll(/^\| (\w+) \| `([a-z-]+) (\{.*\})` \| `(.*)` \|$/gm)]
  t.equal(rows.length, 13)
  for (const [, group = '', tool = '', args = '', said] of rows) {
    const token = await tokenOf(group, null, { groups: [group] })
    let answer: Json = await call(token, tool, JSON.parse(args))
    if (answer.error === 'confirm_required') {
      const { confirm_token: given } = (await confirm(token, answer.confirm.body)).json()
      answer = await call(token, tool, JSON.parse(args), { confirm_token: given })
    }
    t.equal(answer.error === undefined ? 'ok' : answer.message, said, `${group}: ${tool} ${args}`)
  }
})
