/** MCP_STATE_URL and what goes with it: what is taken, what is refused and in which words, and that no word has the password in it. */
import assert from 'node:assert/strict'
import t from 'tap'
import fc from 'fast-check'
import { readConfig } from '../../config/index.js'
import { StartupError, type DatabaseConfig, type PerUserConfig } from '../../schemas/config.js'
import { partial } from '../partial.js'
import { problemsOf } from './problems-of.js'

type Env = Record<string, string>

const LOOPBACK = { host: '127.0.0.1', port: 8080 }
const RIGHT = {
  MCP_PUBLIC_URL: 'https://mcp.example.com',
  MCP_OAUTH_ISSUER: 'https://idp.example.com/v2.0',
  MCP_OAUTH_JWKS_URL: 'https://idp.example.com/keys',
  MCP_OAUTH_AUDIENCE: 'api://svc-mcp',
  MCP_ROLE_DEFAULT: 'reader',
  MCP_KEK: Buffer.alloc(32, 7).toString('base64'),
  MCP_CONFIRM_HMAC_KEY: Buffer.alloc(32, 9).toString('base64'),
}
const FAR = 'postgres://svc:pw@db.example.com/state'
const NEAR = 'postgres://svc:pw@127.0.0.1/state'

const read = (env: Env, files: Record<string, string> = {}) =>
  readConfig('http', { ...RIGHT, ...env }, LOOPBACK, { readFile: (path: string) => files[path]! }) as PerUserConfig
const databaseOf = (url: string, env: Env = {}): DatabaseConfig | undefined =>
  read({ MCP_STATE_URL: url, ...env }).database
const refused = (url: string, env: Env = {}) => problemsOf(() => databaseOf(url, env))

t.test('what a URL says', async (t) => {
  t.equal(read({}).database, undefined)
  t.equal(databaseOf(''), undefined)
  t.same(databaseOf(NEAR), {
    connection: { host: '127.0.0.1', port: 5432, user: 'svc', password: 'pw', database: 'state' },
    where: '127.0.0.1:5432/state',
    connectTimeoutSeconds: 30,
    poolSize: 10,
    limits: 'shared',
  })
  t.same(databaseOf('postgresql://svc@[::1]:6000/state')?.connection, {
    host: '::1',
    port: 6000,
    user: 'svc',
    database: 'state',
  })
  t.same(databaseOf('postgres://s%40v:p%2Fw%25%3F%20%C3%BC@localhost/st%23ate')?.connection, {
    host: 'localhost',
    port: 5432,
    user: 's@v',
    password: 'p/w%? ü',
    database: 'st#ate',
  })
  const socket = databaseOf('postgres://svc@localhost/state?host=/run/postgresql')
  t.equal(socket?.connection.host, '/run/postgresql')
  t.equal(socket?.where, '/run/postgresql/state')
  t.equal(socket?.tls, undefined)
  t.same(databaseOf(`${FAR}?sslmode=verify-full`)?.tls, {})
  t.same(databaseOf(`${NEAR}?sslmode=verify-full&sslrootcert=/ca.pem&sslcert=/c.pem&sslkey=/c.key`)?.tls, {
    rootCertFile: '/ca.pem',
    certFile: '/c.pem',
    keyFile: '/c.key',
  })
  t.equal(databaseOf(`${NEAR}?sslmode=verify-full&sslrootcert=/a%40b.pem`)?.tls?.rootCertFile, '/a@b.pem')
  partial(
    t,
    databaseOf(NEAR, { MCP_LIMITS: 'replica', MCP_STATE_POOL_SIZE: '2', MCP_STATE_CONNECT_TIMEOUT_SECONDS: '3600' })!,
    { limits: 'replica', poolSize: 2, connectTimeoutSeconds: 3600 },
  )
})

t.test('what no URL may be', async (t) => {
  const cases: [string, string][] = [
    ['db.example.com', 'must be a PostgreSQL URL'],
    ['host=db user=svc', 'must be a PostgreSQL URL'],
    ['postgres://', 'must name a user, a host, a database'],
    ['mysql://svc:pw@127.0.0.1/state', 'must be a PostgreSQL URL'],
    ['http://svc:pw@127.0.0.1/state', 'must be a PostgreSQL URL'],
    [` ${NEAR}`, 'must be a PostgreSQL URL'],
    [`${NEAR}\n${NEAR}`, 'must be a PostgreSQL URL'],
    [`${NEAR}#x`, 'must be a PostgreSQL URL'],
    ['postgres://svc:pw@127.0.0.1:99999/state', 'must be a PostgreSQL URL'],
    ['postgres://svc:p/w@127.0.0.1/state', 'must be a PostgreSQL URL'],
    ['postgres://svc:p@s/word@127.0.0.1?sslmode=disable', 'must be a PostgreSQL URL'],
    [`${NEAR}?sslmode=verify-full&sslrootcert=/a@b.pem`, 'must be a PostgreSQL URL'],
    ['postgres://svc:p%w@127.0.0.1/state', 'has a % that is not an escape'],
    ['postgres://svc:pw@127.0.0.1/st%ate', 'has a % that is not an escape'],
    ['postgres://svc:%ff@127.0.0.1/state', 'has a % that is not an escape'],
    ['postgres://127.0.0.1/state', 'must name a user'],
    ['postgres://:pw@127.0.0.1/state', 'must name a user'],
    ['postgres://svc:pw@127.0.0.1', 'must name a database'],
    ['postgres://svc:pw@127.0.0.1/', 'must name a database'],
    ['postgres:///state', 'must name a user, a host'],
    ['postgres://svc:pw@127.0.0.1/state/more', 'must name one database'],
    [`${NEAR}?sslmode=disable&connect_timeout=3`, 'has a parameter that is not supported: connect_timeout'],
    [`${NEAR}?password=pw`, 'has a parameter that is not supported: password'],
    [`${NEAR}?SSLMODE=disable`, 'has a parameter that is not supported: SSLMODE'],
    [`${NEAR}?host=db.example.com`, 'has a second host in a parameter'],
    [`${FAR}?host=127.0.0.1`, 'has a second host in a parameter'],
    [`${NEAR}?host=`, 'has a second host in a parameter'],
    [`${NEAR}?sslmode=require`, 'has an sslmode that is not verify-full or disable'],
    [`${NEAR}?sslmode=`, 'has an sslmode that is not verify-full or disable'],
    [`${NEAR}?sslrootcert=/ca.pem`, 'names certificates without sslmode=verify-full'],
    [`${NEAR}?sslmode=disable&sslkey=/c.key`, 'names certificates without sslmode=verify-full'],
    ['postgres://svc:${PASSWORD}@127.0.0.1/state', 'still contains a placeholder'],
    ['<url of the database>', 'still contains a placeholder'],
  ]
  for (const [url, problem] of cases) t.same(refused(url), [`MCP_STATE_URL ${problem}`], url)
  for (const mode of ['', '?sslmode=disable', '?sslmode=prefer', '?sslmode=require', '?sslmode=verify-ca'])
    t.same(
      refused(`${FAR}${mode}`),
      ["MCP_STATE_URL must have sslmode=verify-full, since 'db.example.com' is another machine"],
      mode,
    )
  for (const host of ['10.0.0.1', '127.0.0.1.example.com', 'localhost.example.com', '0.0.0.0', '[::2]', '128.0.0.1'])
    t.equal(refused(`postgres://svc@${host}/state`).length, 1, host)
  for (const host of ['127.0.0.1', '127.9.9.9', 'localhost', 'LOCALHOST', '[::1]'])
    t.same(refused(`postgres://svc@${host}/state`), [], host)
})

t.test('what goes with it', async (t) => {
  t.same(refused('', { MCP_LIMITS: 'shared' }), ['MCP_LIMITS=shared requires MCP_STATE_URL'])
  t.same(refused('', { MCP_LIMITS: 'replica' }), [])
  t.same(refused(NEAR, { MCP_LIMITS: 'both' }), ['MCP_LIMITS must be one of shared, replica'])
  for (const size of ['1', '201', '-3', 'many', '3.5'])
    t.same(refused(NEAR, { MCP_STATE_POOL_SIZE: size }), ['MCP_STATE_POOL_SIZE must be a whole number from 2 to 200'])
  for (const size of ['2', '200']) t.same(refused(NEAR, { MCP_STATE_POOL_SIZE: size }), [])
  for (const seconds of ['0', '3601', '30s'])
    t.same(refused(NEAR, { MCP_STATE_CONNECT_TIMEOUT_SECONDS: seconds }), [
      'MCP_STATE_CONNECT_TIMEOUT_SECONDS must be a whole number from 1 to 3600',
    ])
  const { warnings } = read({ MCP_STATE_URL: NEAR, MCP_KEYSTORE_PATH: '/k.db', MCP_OAUTH_CLIENT_ID: 'setup' })
  t.same(warnings, ['MCP_STATE_URL: the state is in that database; MCP_KEYSTORE_PATH set but ignored.'])
})

t.test('from a file', async (t) => {
  const from = (text: string, more: Env = {}) =>
    problemsOf(() => read({ MCP_STATE_URL_FILE: '/url', ...more }, { '/url': text }))
  t.same(read({ MCP_STATE_URL_FILE: '/url' }, { '/url': `${NEAR}\n` }).database, databaseOf(NEAR))
  t.same(from(NEAR, { MCP_STATE_URL: NEAR }), ['MCP_STATE_URL and MCP_STATE_URL_FILE are both set: keep one'])
  t.same(from(''), ["MCP_STATE_URL_FILE '/url' is empty"])
  t.same(from(`${NEAR}\n\n`), ['MCP_STATE_URL must be a PostgreSQL URL'])
})

t.test('no message has any of the password, wherever else the fault is', async () => {
  const word = fc.stringMatching(/^[A-Za-z0-9]{8,16}$/).map((text) => `Zq${text}`)
  // The first three move the end of the host.
  const reserved = fc.oneof(
    fc.constantFrom('@', '/', '?'),
    fc.constantFrom('', '#', ':', '%', '&', '=', ' ', '\\', '[', ']', "'", '${', '<', '\n'),
  )
  const password = fc.array(fc.tuple(word, reserved), { minLength: 1, maxLength: 4 })
  const rest = fc.constantFrom(
    '@db.example.com/state',
    '@db.example.com?sslmode=require',
    '@127.0.0.1/state?sslmode=nothing',
    '@127.0.0.1',
    '@127.0.0.1/state?unknown=1',
    '@/',
    '',
  )
  const start = fc.constantFrom('postgres://svc:', 'postgres://:', 'mysql://svc:', 'svc:', 'host=db password=')
  const names = fc.constantFrom('MCP_STATE_URL', 'MCP_STATE_URL_FILE', 'MCP_DATABASE_URL')
  fc.assert(
    fc.property(start, password, rest, names, fc.boolean(), (before, pieces, after, name, isEscaped) => {
      const plain = pieces.flat().join('')
      // A whole URL with a shorter password, whose host may be named.
      fc.pre(after !== '' || isEscaped || !plain.includes('@'))
      const url = `${before}${isEscaped ? encodeURIComponent(plain) : plain}${after}`
      const env: Env = name === 'MCP_STATE_URL_FILE' ? { [name]: '/url' } : { [name]: url }
      let said: string
      try {
        said = JSON.stringify(read({ ...env, MCP_LIMITS: 'neither' }, { '/url': url }).warnings)
      } catch (error) {
        if (!(error instanceof StartupError)) throw error
        said = JSON.stringify([error.message, error.faults])
      }
      for (const [piece] of pieces) assert.equal(said.includes(piece), false, `${url}: ${said}`)
    }),
    { numRuns: 300 },
  )
})
