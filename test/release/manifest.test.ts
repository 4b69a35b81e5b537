/** The manifest of the bundle for Claude Desktop: what its form gives a server, as the client itself works it out. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { getMcpConfigForManifest, MANIFEST_SCHEMAS } from '@anthropic-ai/mcpb'
import t from 'tap'
import { readConfig } from '../../config/index.js'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const read = (path: string) => JSON.parse(readFileSync(join(ROOT, path), 'utf8'))
const manifest = MANIFEST_SCHEMAS['0.3'].parse(read('deploy/claude-desktop/manifest.json'))
const GIVEN = { pce_host: 'pce.example.com', api_key: 'api_1', api_secret: 'secret-canary' }

/** The command line and the environment that a client with these answers starts. */
async function start(userConfig: Record<string, string | number | boolean>) {
  const config = await getMcpConfigForManifest({
    manifest,
    extensionPath: '/bundle',
    systemDirs: {},
    userConfig,
    pathSeparator: '/',
  })
  return config!
}

t.test('is of this version, and keeps secrets as secrets', async (t) => {
  const { version, license, engines } = read('package.json')
  t.same([manifest.version, manifest.license, manifest.compatibility?.runtimes?.node], [version, license, engines.node])
  const fields = Object.entries(manifest.user_config!)
  t.same(
    fields.filter(([, { sensitive }]) => sensitive).map(([name]) => name),
    ['api_key', 'api_secret'],
  )
  t.same(
    fields.filter(([, field]) => field.default === undefined),
    [],
    'a field without a default is passed on as a placeholder',
  )
  t.same(
    fields.filter(([, { required }]) => required).map(([name]) => name),
    Object.keys(GIVEN),
  )
})

t.test('what has to be given is enough, and everything else is what the server has by itself', async (t) => {
  const { command, args, env } = await start(GIVEN)
  t.same([command, args], ['node', ['/bundle/dist/stdio.js']])
  const bare = { PCE_HOST: 'pce.example.com', API_KEY: 'api_1', API_SECRET: 'secret-canary' }
  const { offer: _said, ...config } = readConfig('stdio', env!)
  const { offer: _default, ...plain } = readConfig('stdio', bare)
  t.same(config, plain)
})

t.test('every answer arrives, with words for switches', async (t) => {
  const answers = { pce_port: 8443, pce_org_id: 7, read_only: true, toolsets: 'traffic,analysis', ca_file: '/ca.pem' }
  const { env } = await start({ ...GIVEN, ...answers })
  t.equal(env!.MCP_READ_ONLY, 'true')
  const config = readConfig('stdio', env!)
  t.same([config.pce.port, config.pce.orgId, config.pce.tls.caFile], ['8443', '7', '/ca.pem'])
  t.same(config.offer, { readOnly: true, toolsets: ['traffic', 'analysis'] })
  const { env: off } = await start({ ...GIVEN, read_only: false })
  t.equal(off!.MCP_READ_ONLY, 'false')
  t.equal(readConfig('stdio', off!).offer?.readOnly ?? false, false)
})
