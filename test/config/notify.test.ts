/** The settings of the receiver of notifications: what is taken, what is refused, and that no message quotes the URL or the secret. */
import t from 'tap'
import { readConfig } from '../../config/index.js'
import { findReceiverFaults } from '../../programs/composition/notify.js'
import type { StartupError } from '../../schemas/config.js'
import { type NotifyConfig, type SharedConfig } from '../../schemas/config.js'
import { problemsOf } from './problems-of.js'

const KEY = Buffer.alloc(32, 7).toString('base64')
const SECRET = `whsec_${KEY}`
const URL = 'https://relay.example.com/T0/path-secret?token=query-secret'
const SHARED = {
  MCP_PCE_MODE: 'shared',
  PCE_HOST: 'pce.example.com',
  API_KEY: 'api_1',
  API_SECRET: 'secret',
  MCP_PUBLIC_URL: 'https://mcp.example.com',
  MCP_OAUTH_ISSUER: 'https://login.example.com',
  MCP_OAUTH_JWKS_URL: 'https://login.example.com/keys',
  MCP_OAUTH_AUDIENCE: 'https://mcp.example.com',
  MCP_CONFIRM_HMAC_KEY: Buffer.alloc(32, 8).toString('base64'),
  MCP_ROLE_DEFAULT: 'reader',
}
const read = (env: Record<string, string>, files: Record<string, string> = {}) =>
  readConfig(
    'http',
    { ...SHARED, ...env },
    { host: '127.0.0.1', port: 0 },
    {
      readFile: (path) => files[path]!,
    },
  ) as SharedConfig
const refused = (env: Record<string, string>) => problemsOf(() => read(env))

t.test('what is taken', (t) => {
  t.equal(read({}).notify, undefined)
  const expected = { url: URL, secret: Buffer.alloc(32, 7), names: false }
  t.same(read({ MCP_NOTIFY_WEBHOOK_URL: URL, MCP_NOTIFY_SECRET: SECRET }).notify, expected)
  const files = { MCP_NOTIFY_WEBHOOK_URL_FILE: '/url', MCP_NOTIFY_SECRET_FILE: '/secret', MCP_NOTIFY_NAMES: '1' }
  t.same(read(files, { '/url': `${URL}\n`, '/secret': `${SECRET}\n` }).notify, { ...expected, names: true })
  for (const bytes of [24, 64]) {
    const secret = Buffer.alloc(bytes, 7)
    const MCP_NOTIFY_SECRET = `whsec_${secret.toString('base64')}`
    t.same(read({ MCP_NOTIFY_WEBHOOK_URL: URL, MCP_NOTIFY_SECRET }).notify?.secret, secret)
  }
  t.end()
})

t.test('what is refused, by the name of the variable', (t) => {
  const form = 'MCP_NOTIFY_WEBHOOK_URL must be an https URL without a user name, a password or a fragment'
  for (const url of [
    'http://relay.example.com/path-secret',
    'http://127.0.0.1/path-secret',
    'relay.example.com/path-secret',
    'https://path-secret:x@relay.example.com',
    'https://relay.example.com/#path-secret',
    'https://relay.example.com/path secret',
  ])
    t.same(refused({ MCP_NOTIFY_WEBHOOK_URL: url, MCP_NOTIFY_SECRET: SECRET }), [form], url)
  t.same(refused({ MCP_NOTIFY_WEBHOOK_URL: URL }), ['MCP_NOTIFY_WEBHOOK_URL requires MCP_NOTIFY_SECRET'])
  const secret = 'MCP_NOTIFY_SECRET must be whsec_ and base64 of 24 to 64 random bytes'
  for (const value of [
    KEY,
    'whsec_',
    `whsec_${KEY.slice(0, -1)}`,
    `whsec_${Buffer.alloc(23).toString('base64')}`,
    `whsec_${Buffer.alloc(65).toString('base64')}`,
  ])
    t.same(refused({ MCP_NOTIFY_WEBHOOK_URL: URL, MCP_NOTIFY_SECRET: value }), [secret], value)
  t.end()
})

t.test('no message about a fault has the path of the URL or the secret in it', (t) => {
  try {
    read({ MCP_NOTIFY_WEBHOOK_URL: 'http://relay.example.com/path-secret', MCP_NOTIFY_SECRET: 'whsec_short-secret' })
    t.fail('it started')
  } catch (error) {
    const { message } = error as StartupError
    t.equal((error as StartupError).faults.length, 2)
    t.notMatch(message, /path-secret|short-secret/)
  }
  t.end()
})

t.test('without a URL nobody is told, and a secret on its own is said', (t) => {
  const { notify, warnings } = read({ MCP_NOTIFY_SECRET: SECRET, MCP_NOTIFY_NAMES: '1' })
  t.equal(notify, undefined)
  t.same(warnings, [
    'No MCP_NOTIFY_WEBHOOK_URL: nobody is told of anything; MCP_NOTIFY_SECRET, MCP_NOTIFY_NAMES set but ignored.',
  ])
  t.end()
})

t.test('addresses that no PCE may have are refused at the start', (t) => {
  const faultsOf = (url: string) =>
    findReceiverFaults({ url, secret: Buffer.alloc(32), names: false } satisfies NotifyConfig).map(
      ({ problem }) => problem,
    )
  const kinds = {
    '169.254.169.254': 'the address of a cloud metadata service',
    '[fe80::1]': 'a link-local address',
    '0.0.0.0': 'an unspecified address',
    '224.0.0.1': 'a multicast address',
  }
  for (const [host, kind] of Object.entries(kinds))
    t.same(faultsOf(`https://${host}/`), [`MCP_NOTIFY_WEBHOOK_URL: ${kind} is not allowed for a receiver`])
  for (const host of [
    'relay.example.com',
    '10.0.0.7',
    '10.0.0.7:22',
    '127.0.0.1:8443',
    'localhost',
    '[::1]',
    '[fd00::7]:8443',
  ])
    t.same(faultsOf(`https://${host}/`), [], host)
  t.end()
})
