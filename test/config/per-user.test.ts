/** Which secrets a mode reads from files, and what the operator of a per_user server hears about the PCEs of users. */
import t from 'tap'
import { readConfig } from '../../config/index.js'
import type { StartupError } from '../../schemas/config.js'
import { partial } from '../partial.js'
import { problemsOf } from './problems-of.js'

type Env = Record<string, string>

const LOOPBACK = { host: '127.0.0.1', port: 8080 }
const KEY = Buffer.alloc(32, 7).toString('base64')
const OTHER = Buffer.alloc(32, 8).toString('base64')
const COMMON = {
  MCP_PUBLIC_URL: 'https://mcp.example.com',
  MCP_OAUTH_ISSUER: 'https://idp.example.com/v2.0',
  MCP_OAUTH_JWKS_URL: 'https://idp.example.com/keys',
  MCP_OAUTH_AUDIENCE: 'api://svc-mcp',
  MCP_ROLE_DEFAULT: 'reader',
}
const SHARED = { ...COMMON, MCP_PCE_MODE: 'shared', PCE_HOST: 'pce.example.com' }

t.test('each mode reads only the files of its own secrets', (t) => {
  const files: Env = {
    '/key': `${KEY}\n`,
    '/other': `${OTHER}\n`,
    '/name': 'api_1\n',
    '/word': 'a word\n',
    '/proxy': 'http://me:pw@proxy:3128\n',
  }
  const read = (env: Env) => {
    const asked: string[] = []
    const readFile = (path: string) => {
      asked.push(path)
      if (files[path] === undefined) throw Object.assign(new Error('no such file'), { code: 'ENOENT' })
      return files[path]
    }
    return { config: readConfig('http', env, LOOPBACK, { readFile }), asked: asked.toSorted() }
  }
  /** Every secret of the other mode names a file that is not there. */
  const shared = read({
    ...SHARED,
    API_KEY_FILE: '/name',
    API_SECRET_FILE: '/word',
    MCP_CONFIRM_HMAC_KEY_FILE: '/key',
    MCP_CONFIRM_HMAC_KEY_PREVIOUS_FILE: '/other',
    MCP_KEK_FILE: '/nowhere/kek',
    MCP_KEK_PREVIOUS_FILE: '/nowhere/previous',
    MCP_OAUTH_CLIENT_SECRET_FILE: '/nowhere/secret',
  })
  partial(t, shared.config, {
    mode: 'shared',
    pce: { apiKey: 'api_1', apiSecret: 'a word' },
    confirm: { hmacKey: Buffer.alloc(32, 7), previousHmacKey: Buffer.alloc(32, 8) },
  })
  t.same(shared.asked, ['/key', '/name', '/other', '/word'])

  const perUser = read({
    ...COMMON,
    MCP_KEK_FILE: '/key',
    MCP_KEK_PREVIOUS_FILE: '/other',
    MCP_CONFIRM_HMAC_KEY: OTHER,
    MCP_OAUTH_CLIENT_ID: 'setup',
    MCP_OAUTH_CLIENT_SECRET_FILE: '/word',
    API_KEY_FILE: '/nowhere/key',
    API_SECRET_FILE: '/nowhere/secret',
    PCE_PROXY_URL_FILE: '/proxy',
  })
  partial(t, perUser.config, {
    userPce: { proxyUrl: 'http://me:pw@proxy:3128' },
    mode: 'per_user',
    keystore: { kek: Buffer.alloc(32, 7), previousKek: Buffer.alloc(32, 8) },
    login: { clientId: 'setup', clientSecret: 'a word' },
    warnings: [
      /every user registers a PCE key; API_KEY_FILE, API_SECRET_FILE set but ignored\.$/,
      /^PCE_PROXY_URL without MCP_ALLOWED_PCE_HOSTS/,
    ],
  })
  t.same(perUser.asked, ['/key', '/other', '/proxy', '/word'])
  for (const name of ['MCP_KEK', 'MCP_KEK_PREVIOUS', 'MCP_OAUTH_CLIENT_SECRET', 'MCP_CONFIRM_HMAC_KEY_PREVIOUS']) {
    const env = { ...COMMON, MCP_KEK: KEY, MCP_CONFIRM_HMAC_KEY: OTHER, MCP_OAUTH_CLIENT_ID: 'setup' }
    const { [name]: _left, ...others } = env as Env
    const problem = `Cannot read ${name}_FILE '/nowhere/x': there is no such file or folder (ENOENT)`
    t.throws(() => read({ ...others, [`${name}_FILE`]: '/nowhere/x' }), { name: 'StartupError', faults: [{ problem }] })
  }
  t.end()
})

t.test('warns at start-up about the consequences of user-chosen PCEs', (t) => {
  const warningsOf = (env: Env) =>
    readConfig(
      'http',
      { ...COMMON, MCP_OAUTH_CLIENT_ID: 'setup', MCP_KEK: KEY, MCP_CONFIRM_HMAC_KEY: OTHER, ...env },
      LOOPBACK,
    ).warnings
  const proxied =
    'PCE_PROXY_URL without MCP_ALLOWED_PCE_HOSTS: the proxy resolves the host names users register, so it must refuse internal addresses itself.'
  const unshown = 'PCE_CLIENT_CERT_FILE is presented only to the hosts in MCP_ALLOWED_PCE_HOSTS, and that is not set.'
  const both = { PCE_PROXY_URL: 'http://proxy:3128', PCE_CLIENT_CERT_FILE: '/client.pem' }
  t.same(warningsOf({}), [])
  t.same(warningsOf({ PCE_PROXY_URL: both.PCE_PROXY_URL }), [proxied])
  t.same(warningsOf(both), [proxied, unshown])
  t.same(warningsOf({ ...both, MCP_ALLOWED_PCE_HOSTS: ' , ' }), [proxied, unshown], 'blank entries name nobody')
  t.same(warningsOf({ ...both, MCP_ALLOWED_PCE_HOSTS: 'pce.example.com' }), [])
  t.same(
    warningsOf({ ...both, ...SHARED, API_KEY: 'k', API_SECRET: 's' }),
    ['MCP_PCE_MODE=shared: one PCE key serves everybody; MCP_OAUTH_CLIENT_ID, MCP_KEK set but ignored.'],
    'the operator chooses the PCE',
  )
  t.same(
    warningsOf({ MCP_CONFIRM_HMAC_KEY: KEY }),
    [
      'MCP_KEK and MCP_CONFIRM_HMAC_KEY are the same key, so anyone who learns one has both. Give MCP_CONFIRM_HMAC_KEY a key of its own.',
    ],
    'one key for two purposes',
  )
  t.same(warningsOf({ API_KEY: 'k' }), [
    'MCP_PCE_MODE is per_user by default: every user registers a PCE key; API_KEY set but ignored.',
  ])
  t.end()
})

t.test('MCP_PUBLIC_URL may have a path, but not that of a route of ours', (t) => {
  const env = { ...COMMON, MCP_KEK: KEY, MCP_CONFIRM_HMAC_KEY: OTHER }
  const read = (url: string) => readConfig('http', { ...env, MCP_PUBLIC_URL: url }, LOOPBACK)
  t.equal(read('https://example.com/pce/').http.publicUrl, 'https://example.com/pce')
  for (const route of ['mcp', 'setup', 'confirm'])
    t.same(
      problemsOf(() => read(`https://example.com/pce/${route}/`)),
      [`MCP_PUBLIC_URL must not end in /${route}, which the server adds itself`],
    )
  t.end()
})

t.test('a mode that does not exist is told without what another mode would ignore', (t) => {
  const env = { ...COMMON, MCP_KEK: KEY, MCP_CONFIRM_HMAC_KEY: OTHER, MCP_OAUTH_CLIENT_ID: 'setup', MCP_DEBUG: '1' }
  for (const more of [{}, { MCP_DEV_INSECURE: '1' }] as Env[])
    try {
      readConfig('http', { ...env, ...more, MCP_PCE_MODE: 'hybrid' }, LOOPBACK)
      t.fail('it is refused')
    } catch (error) {
      const { faults, warnings } = error as StartupError
      t.same(
        faults.map(({ problem }) => problem),
        ["MCP_PCE_MODE 'hybrid' is unknown: use per_user or shared"],
      )
      t.same(
        warnings.filter((warning) => /MCP_PCE_MODE/.test(warning)),
        [],
      )
      t.equal(warnings.filter((warning) => warning.includes('MCP_DEBUG')).length, 1, 'with what holds in every mode')
    }
  t.end()
})
