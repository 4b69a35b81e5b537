/** What is looked at before any value: the names of the variables, the quotes around their values, the lines of .env. */
import t from 'tap'
import { readConfig, readEnvironment } from '../../config/index.js'
import { readDotEnv } from '../../config/read-dotenv.js'
import { VARIABLES } from '../../config/variables.js'
import { StartupError } from '../../schemas/config.js'
import { CONFIG_VARIABLES } from '../../scripts/docs/config-variables.js'
import { problemsOf } from './problems-of.js'

type Env = Record<string, string>

const PCE = { PCE_HOST: 'pce.example.com', API_KEY: 'api_1', API_SECRET: 'secret-canary' }
const NAMES = CONFIG_VARIABLES.map(({ name }) => name)

/** Faults and warnings of svc-mcp with these variables beside a PCE. */
function find(env: Env): { faults: string[]; warnings: readonly string[] } {
  try {
    return { faults: [], warnings: readConfig('stdio', { ...PCE, ...env }).warnings }
  } catch (error) {
    if (!(error instanceof StartupError)) throw error
    return { faults: error.faults.map(({ problem, remedy }) => `${problem} | ${remedy}`), warnings: [] }
  }
}

t.test('a name that nearly is a known one stops the start and names it', (t) => {
  const cases: [string, string][] = [
    ['PCE_HSOT', 'PCE_HOST'],
    ['PCE_HOTS', 'PCE_HOST'],
    ['PCE_ORGID', 'PCE_ORG_ID'],
    ['pce_host', 'PCE_HOST'],
    ['Pce_Tls_Verify', 'PCE_TLS_VERIFY'],
    ['MCP_KEY', 'MCP_KEK'],
    ['MCP_OAUTH_ISUER', 'MCP_OAUTH_ISSUER'],
    ['MCP_OAUTH_JWKS_URI', 'MCP_OAUTH_JWKS_URL'],
    ['MCP_ROLE_GROUP_ADMIN', 'MCP_ROLE_GROUPS_ADMIN'],
    ['MCP_KEK_FIEL', 'MCP_KEK_FILE'],
    ['MCP_ROLE_GROUPS_READERS', 'MCP_ROLE_GROUPS_READER'],
  ]
  for (const [name, meant] of cases)
    t.same(find({ [name]: 'x' }).faults, [
      `${name} is not a variable of this server | Did you mean ${meant}? Rename it, or unset it if it belongs to another program.`,
    ])
  t.same(find({ PCE_PORT_FILE: '/x' }).faults, [
    'PCE_PORT_FILE is not a variable of this server | PCE_PORT is not read from a file: set PCE_PORT itself.',
  ])
  t.same(find({ PCE_HSOT: '' }), { faults: [], warnings: [] }, 'an empty one is unset')
  t.end()
})

t.test('a field that was left blank in the form of a client is not set, and leaves what .env says', (t) => {
  const optional = ['PCE_PORT', 'PCE_ORG_ID', 'MCP_READ_ONLY', 'MCP_TOOLSETS', 'PCE_CA_FILE']
  const blank = Object.fromEntries(optional.map((name) => [name, `\${user_config.${name.toLowerCase()}}`]))
  const before = process.cwd()
  process.chdir(t.testdir({ '.env': 'MCP_READ_ONLY=1\n' }))
  Object.assign(process.env, PCE, blank)
  t.teardown(() => {
    process.chdir(before)
    for (const name of [...Object.keys(PCE), ...optional]) delete process.env[name]
  })
  const { env, ...found } = readEnvironment({ hasForm: true })
  const { warnings, ...config } = readConfig('stdio', env, { found })
  t.same(warnings, [
    `Not set, because the client passed on the placeholder of a field that was left blank: ${optional.join(', ')}.`,
  ])
  const { warnings: _none, ...plain } = readConfig('stdio', { ...PCE, MCP_READ_ONLY: '1' })
  t.same(config, plain)

  Object.assign(process.env, PCE)
  const { faults } = find(readEnvironment().env as Env)
  const named = ['MCP_READ_ONLY', 'PCE_ORG_ID', 'PCE_PORT']
  t.same(faults.map((fault) => fault.split(' ')[0]).toSorted(), named, 'elsewhere such a placeholder is a mistake')
  t.equal(find({ PCE_PORT: '${PORT}' }).faults.length, 1, 'as one of a shell is')
  t.end()
})

t.test('every known name is found behind a slip of the finger', (t) => {
  const missed = NAMES.filter((name) => /^(MCP|PCE)_/.test(name)).flatMap((name) => {
    const at = name.length - 2
    const slips = [
      name.slice(0, at) + name.slice(at + 1),
      name.slice(0, at) + name[at + 1]! + name[at]! + name.slice(at + 2),
      `${name}X`,
      name.toLowerCase(),
    ].filter((slip) => slip !== name)
    return slips.filter((slip) => find({ [slip]: 'x' }).faults.length !== 1)
  })
  t.same(missed, [])
  t.end()
})

t.test('other names are a warning, those that platforms set as well', (t) => {
  const kubernetes = ['pce', 'mcp', 'pce-tls', 'mcp-oauth'].flatMap((service) => {
    const prefix = service.toUpperCase().replaceAll('-', '_')
    const port = `${prefix}_PORT_443_TCP`
    return [
      `${prefix}_SERVICE_HOST`,
      `${prefix}_SERVICE_PORT`,
      `${prefix}_SERVICE_PORT_HTTPS`,
      ...(prefix === 'PCE' ? [] : [`${prefix}_PORT`]),
      port,
      `${port}_PROTO`,
      `${port}_PORT`,
      `${port}_ADDR`,
    ]
  })
  const ofClients = ['MCP_TIMEOUT', 'MCP_TOOL_TIMEOUT', 'MCP_DEBUG', 'MCP_SERVER_NAME', 'MCP_PROXY_AUTH_TOKEN']
  for (const name of [...kubernetes, ...ofClients]) t.same(find({ [name]: 'x' }).faults, [], name)
  t.same(find({ PCE_SERVICE_HOST: '10.0.0.1', MCP_DEBUG: '1', PCE_ORG: '1', PCE_API_KEY: 'k', MCP_PORT: '1' }), {
    faults: [],
    warnings: [
      'Ignored, because this server has no such variable: MCP_DEBUG, MCP_PORT (did you mean --port?), PCE_API_KEY (did you mean API_KEY?), PCE_ORG (did you mean PCE_ORG_ID?), PCE_SERVICE_HOST. A platform or another program may have set them.',
    ],
  })
  t.same(find({ PCE_PORT: 'tcp://10.0.0.1:443' }).faults, [
    'PCE_PORT must be a whole number from 1 to 65535 | It is "tcp://10.0.0.1:443", as Kubernetes sets it for a service named pce: give the pod enableServiceLinks: false.',
  ])
  t.end()
})

t.test('the names are those of the documentation', (t) => {
  const { everywhere, stdio, http, authenticated, perUser, shared } = VARIABLES
  const by = (...kinds: string[]) => CONFIG_VARIABLES.filter(({ appliesTo }) => kinds.includes(appliesTo))
  for (const [names, kind] of [
    [everywhere, 'stdio, HTTP'],
    [stdio, 'stdio'],
    [http, 'HTTP'],
    [authenticated, 'authenticated HTTP'],
    [perUser, 'per_user'],
    [shared, 'shared'],
  ] as const)
    t.same(
      [...names].sort(),
      by(kind)
        .map(({ name }) => name)
        .sort(),
      kind,
    )
  t.end()
})

t.test('quotes around a value', (t) => {
  const without = 'Only shells and .env files strip quotes:'
  t.same(find({ PCE_HOST: '"pce.example.com"', API_SECRET: "'secret-canary'", PCE_ORG_ID: '“7”' }).faults, [
    `PCE_HOST is in quotes, which are part of its value here | ${without} write PCE_HOST=pce.example.com`,
    `API_SECRET is in quotes, which are part of its value here | ${without} leave them out.`,
    `PCE_ORG_ID is in quotes, which are part of its value here | ${without} write PCE_ORG_ID=7`,
  ])
  t.same(find({ API_SECRET: '"half', PCE_PROXY_URL: '' }), { faults: [], warnings: [] }, 'one quote may be meant')
  t.same(find({ OTHER: '"x"' }), { faults: [], warnings: [] })
  t.end()
})

t.test('whitespace at the ends of a secret is told without the secret', (t) => {
  for (const value of [' secret-canary', 'secret-canary\r', 'secret\u0007canary'])
    t.same(find({ API_SECRET: value }).faults, [
      'API_SECRET begins or ends with whitespace, or contains a control character | Remove it. It often comes from copying, or from a file with Windows line endings.',
    ])
  t.end()
})

t.test('a placeholder is no value', (t) => {
  const told = (name: string) =>
    `${name} still contains a placeholder | Write the value itself: shells and compose files replace names in \${…}, this server does not.`
  t.same(find({ PCE_HOST: '${PCE_HOST}', API_KEY: 'api_…', API_SECRET: '<your secret>' }).faults, [
    told('PCE_HOST'),
    told('API_KEY'),
    told('API_SECRET'),
  ])
  t.same(find({ API_SECRET: '${env:SECRET}' }).faults, [told('API_SECRET')])
  for (const secret of ['a$b', '{x}', 'a<b>c', '$HOME', '...']) t.same(find({ API_SECRET: secret }).faults, [], secret)
  t.end()
})

t.test('svc-mcp says which settings are of the other program', (t) => {
  t.same(find({ MCP_ROLE_DEFAULT: 'reader', MCP_KEK_FILE: '/k', MCP_LOG_LEVEL: 'warn' }), {
    faults: [],
    warnings: [
      'Nobody logs in over stdio, so no role limits the tools; MCP_ROLE_DEFAULT, MCP_KEK_FILE set but ignored: svc-mcp-http reads them.',
    ],
  })
  t.end()
})

t.test('warnings are told beside the faults that they may explain', (t) => {
  try {
    readConfig('stdio', { ...PCE, PCE_HOST: '', PCE_URL: 'pce.example.com' })
    t.fail('it is refused')
  } catch (error) {
    t.same((error as StartupError).warnings, [
      'Ignored, because this server has no such variable: PCE_URL (did you mean PCE_HOST?). A platform or another program may have set it.',
    ])
  }
  t.end()
})

t.test('a .env file', (t) => {
  const read = (text: string | Buffer) => readDotEnv(Buffer.from(text as string))
  const good = { PCE_HOST: 'pce.example.com', API_KEY: 'k' }
  const text = 'PCE_HOST=pce.example.com\nAPI_KEY=k\n'
  const utf16 = (line: string) => Buffer.from(line, 'utf16le')
  const only = (variables: Env) => ({ variables, faults: [], warnings: [] })
  t.same(read(text), only(good))
  t.same(read(`\ufeff${text}`), only(good), 'with a byte order mark')
  t.same(read(text.replaceAll('\n', '\r\n')), only(good), 'with the line ends of Windows')
  t.same(read(`# c\n\n  export PCE_HOST = "pce.example.com" # c\nAPI_KEY='k'`), only(good))
  t.same(read('OTHER="a\nb"\nAPI_KEY=k'), only({ OTHER: 'a\nb', API_KEY: 'k' }), "somebody's value of two lines")
  t.same(read(''), only({}))

  const notUtf8 = (encoding: string) => ({
    problem: `.env is not UTF-8 text${encoding}`,
    remedy: 'Save it as UTF-8. Every editor can do that, and so can PowerShell: Set-Content -Encoding utf8.',
  })
  const big = utf16(`\ufeff${text}`).swap16()
  for (const bytes of [utf16(`\ufeff${text}`), utf16(text), big, big.subarray(2)])
    t.same(readDotEnv(bytes), { variables: {}, faults: [notUtf8(' but UTF-16')], warnings: [] })
  t.same(readDotEnv(Buffer.from('PCE_HOST=pc\xe9', 'latin1')).faults, [notUtf8('')])
  t.same(
    readDotEnv(utf16('\ufeffOTHER=1')),
    { variables: {}, faults: [], warnings: ['.env is not UTF-8 text but UTF-16: it was not read.'] },
    'a file of another program stops nothing',
  )

  const faultsOf = (more: string) =>
    read(`${text}${more}`).faults.map(({ problem, remedy }) => `${problem} | ${remedy}`)
  t.same(faultsOf('garbage canary\nPCE_PORT=8443'), [
    'Line 3 of .env is not NAME=value | Correct it, or delete it; a comment begins with #.',
  ])
  t.same(read(`garbage\n${text}`).variables, good, 'and takes no other line with it')
  t.same(faultsOf('PCE_PORT: 8443'), [
    'Line 3 of .env names PCE_PORT but is not NAME=value | Begin the line with PCE_PORT=',
  ])
  t.same(faultsOf('API_SECRET=abc#canary'), [
    'Line 3 of .env: a # in the value of API_SECRET begins a comment, and the rest would be lost | Put quotes around the value: API_SECRET="…". If you meant a comment, put a space before the #.',
  ])
  t.same(faultsOf('API_SECRET="abc#canary"'), [])
  t.same(faultsOf('API_SECRET="canary\nPCE_ORG_ID=1'), [
    'Line 3 of .env: the value of API_SECRET begins with " but does not end with it | Write the whole value on that line, and end it with " too.',
  ])
  t.same(read(`${text}API_KEY=other\n`), {
    variables: { ...good, API_KEY: 'other' },
    faults: [],
    warnings: ['Line 3 of .env sets API_KEY, as line 2 does: the last one counts.'],
  })
  t.same(read('garbage\nOTHER=1'), {
    variables: { OTHER: '1' },
    faults: [],
    warnings: ['Line 1 of .env is not NAME=value: it was skipped.'],
  })
  t.end()
})

t.test('a switch takes 1 and true, 0 and false, and one that disables a protection 1 alone', (t) => {
  const insecure = (value: string) => {
    try {
      return readConfig('http', { MCP_DEV_INSECURE: value }, { host: '127.0.0.1', port: 0 }).mode
    } catch {
      return 'refused'
    }
  }
  t.equal(insecure('1'), 'insecure')
  const others = ['0', 'false', 'true', 'TRUE', ' 1 ', '1\n', 'yes', 'on', '2', '11', '１']
  t.same(others.map(insecure), Array(others.length).fill('refused'))
  const verifies = (value: string) => readConfig('stdio', { ...PCE, PCE_TLS_VERIFY: value }).pce.tls.verify
  t.same(['1', 'true', '0', 'False'].map(verifies), [true, true, false, false])
  t.end()
})

t.test('all faults are told together, what the gates say first', (t) => {
  const env = {
    MCP_PCE_MODE: 'shared',
    PCE_HOST: 'https://pce.example.com/api',
    PCE_PORT: 'x',
    API_KEY: 'k',
    MCP_OAUTH_ISSUER: 'idp',
    MCP_KEKK: 'x',
    MCP_CONFIRM_TTL_SECONDS: '0',
    PCE_CA_FILE: '"/ca.pem"',
  }
  const check = ({ mode }: { mode: string }) => ({ faults: [{ problem: `checked in ${mode}`, remedy: '…' }] })
  const found = { faults: [{ problem: 'found before', remedy: '…' }], warnings: [] }
  t.same(
    problemsOf(() => readConfig('http', env, { host: '0.0.0.0', port: 0 }, { found, check })),
    [
      "Refusing to bind '0.0.0.0' without MCP_DEV_INSECURE=1",
      'Missing required OAuth env vars: MCP_PUBLIC_URL, MCP_OAUTH_JWKS_URL, MCP_OAUTH_AUDIENCE',
      'MCP_PCE_MODE=shared requires API_SECRET env var',
      'MCP_CONFIRM_HMAC_KEY env var is required',
      'found before',
      'MCP_KEKK is not a variable of this server',
      'PCE_CA_FILE is in quotes, which are part of its value here',
      'MCP_OAUTH_ISSUER must be an https URL, or http on loopback',
      'MCP_CONFIRM_TTL_SECONDS must be a whole number from 1 to 3600',
      'PCE_HOST must not contain a path',
      'PCE_PORT must be a whole number from 1 to 65535',
      'checked in shared',
    ],
  )
  t.end()
})
