/** What the environment may say, and the exact words when it does not (S3, S16, D8, D9, D10, D11). */
import t from 'tap'
import { readConfig, readEnvironment, withFlags } from '../../config/index.js'
import { CONFIG_VARIABLES } from '../../scripts/docs/config-variables.js'
import { StartupError, type InsecureHttpConfig } from '../../schemas/config.js'
import { partial } from '../partial.js'
import { problemsOf } from './problems-of.js'

type Env = Record<string, string>

const LOOPBACK = { host: '127.0.0.1', port: 8080 }
const PCE = { PCE_HOST: 'pce.example.com', API_KEY: 'api_1', API_SECRET: 'secret-canary' }
const OAUTH = {
  MCP_PUBLIC_URL: 'https://mcp.example.com',
  MCP_OAUTH_ISSUER: 'https://idp.example.com/v2.0',
  MCP_OAUTH_JWKS_URL: 'https://idp.example.com/keys',
  MCP_OAUTH_AUDIENCE: 'api://svc-mcp',
}
const KEY = Buffer.alloc(32, 7).toString('base64')
const HMAC_KEY = Buffer.alloc(32, 9).toString('base64')
const KEYS = { MCP_KEK: KEY, MCP_CONFIRM_HMAC_KEY: HMAC_KEY }
const NO_KEYS = ['MCP_KEK env var is required', 'MCP_CONFIRM_HMAC_KEY env var is required']
const NO_OAUTH =
  'Missing required OAuth env vars: MCP_PUBLIC_URL, MCP_OAUTH_ISSUER, MCP_OAUTH_JWKS_URL, MCP_OAUTH_AUDIENCE'

const without = (env: Env, ...names: string[]) =>
  Object.fromEntries(Object.entries(env).filter(([name]) => !names.includes(name)))

t.test('stdio reports everything missing, and nothing else, in one line', (t) => {
  const cases: [Env, string][] = [
    [{}, 'Missing required env vars: PCE_HOST, API_KEY, API_SECRET'],
    [{ PCE_HOST: 'x' }, 'Missing required env vars: API_KEY, API_SECRET'],
    [{ ...PCE, API_SECRET: '' }, 'Missing required env vars: API_SECRET'],
    [{ ...PCE, API_KEY: '  ' }, 'Missing required env vars: API_KEY'],
  ]
  for (const [env, problem] of cases)
    t.same(
      problemsOf(() => readConfig('stdio', env)),
      [problem],
    )
  partial(t, readConfig('stdio', PCE), {
    mode: 'stdio',
    logLevel: 'info',
    limits: { responseBudgetBytes: 24_000, trafficQueryTimeoutSeconds: 600, trafficMaxParts: 64 },
    pce: { url: 'pce.example.com', port: '443', orgId: '1', apiKey: 'api_1', tls: { verify: true } },
    warnings: [],
  })
  const boundsWith = (env: Env) => readConfig('stdio', { ...PCE, ...env }).pce.bounds
  t.same(boundsWith({}), { answerMib: 32, listMib: 256, timeoutSeconds: 120 })
  const largest = { MCP_PCE_ANSWER_MIB: '256', MCP_PCE_LIST_MIB: '4096', MCP_PCE_TIMEOUT_SECONDS: '3600' }
  t.same(boundsWith(largest), { answerMib: 256, listMib: 4096, timeoutSeconds: 3600 })
  t.end()
})

t.test('the offer', (t) => {
  const offerOf = (env: Env) => readConfig('stdio', { ...PCE, ...env }).offer
  t.same(offerOf({}), {})
  t.same(offerOf({ MCP_READ_ONLY: '0' }), {})
  t.same(
    offerOf({
      MCP_READ_ONLY: 'true',
      MCP_TOOLSETS: 'traffic, rules,,traffic',
      MCP_TOOLS: 'get-labels',
      MCP_EXCLUDE_TOOLS: ' get-events ',
    }),
    { readOnly: true, toolsets: ['traffic', 'rules'], tools: ['get-labels'], excluded: ['get-events'] },
  )
  for (const name of ['MCP_TOOLSETS', 'MCP_TOOLS', 'MCP_EXCLUDE_TOOLS'])
    t.same(
      problemsOf(() => offerOf({ [name]: ' , ' })),
      [`${name} is set but names nothing`],
    )
  t.same(withFlags({ MCP_READ_ONLY: '0', MCP_TOOLSETS: 'all' }, { readOnly: true, toolsets: 'rules' }), {
    MCP_READ_ONLY: '1',
    MCP_TOOLSETS: 'rules',
  })
  t.same(withFlags({ MCP_READ_ONLY: '1', MCP_TOOLSETS: 'all' }, {}), { MCP_READ_ONLY: '1', MCP_TOOLSETS: 'all' })

  const shared = { ...PCE, ...OAUTH, MCP_PCE_MODE: 'shared', MCP_CONFIRM_HMAC_KEY: HMAC_KEY }
  t.same(readConfig('http', { ...shared, MCP_HIDE_FORBIDDEN: '1' }, LOOPBACK).offer, { hideForbidden: true })
  const registering = (env: Env) =>
    readConfig('http', { ...OAUTH, ...KEYS, ...env }, LOOPBACK).warnings.filter((line) => line.includes('CLIENT_ID'))
  const none = 'No MCP_OAUTH_CLIENT_ID: nobody can log in to /setup with a browser. '
  const byTool = `${none}Users can register a PCE key only with register-pce-credentials, where a model can see it.`
  const byProgram = `${none}register-pce-credentials is not offered either, so only a program with an access token can register a PCE key, at /setup.`
  t.same(registering({}), [byTool])
  t.same(registering({ MCP_TOOLSETS: 'traffic' }), [byTool], 'no toolset takes it away')
  const taken: Env[] = [
    { MCP_READ_ONLY: '1' },
    { MCP_TOOLS: 'get-labels' },
    { MCP_EXCLUDE_TOOLS: 'register-pce-credentials' },
  ]
  for (const env of taken) t.same(registering(env), [byProgram], JSON.stringify(env))
  t.end()
})

t.test('secrets do not stay in the environment of the process', (t) => {
  t.teardown(() => ['API_SECRET', 'PCE_HOST'].forEach((name) => delete process.env[name]))
  Object.assign(process.env, { API_SECRET: 'secret-canary', PCE_HOST: 'pce.example.com' })
  partial(t, readEnvironment().env, { API_SECRET: 'secret-canary', PCE_HOST: 'pce.example.com' })
  t.equal(process.env.API_SECRET, undefined)
  t.equal(process.env.PCE_HOST, 'pce.example.com', 'everything else does')
  t.end()
})

t.test('malformed values name their variable and never a secret', (t) => {
  const cases: [Env, RegExp | string][] = [
    [{ PCE_PORT: '0' }, 'PCE_PORT must be a whole number from 1 to 65535'],
    [{ PCE_PORT: '65536' }, /^PCE_PORT/],
    [{ PCE_PORT: '44e1' }, /^PCE_PORT/],
    [{ PCE_ORG_ID: '0' }, /^PCE_ORG_ID/],
    [{ PCE_ORG_ID: 'one' }, /^PCE_ORG_ID/],
    [{ PCE_HOST: 'https://pce.example.com:8443', PCE_PORT: '9443' }, 'PCE_HOST names port 8443, but PCE_PORT is 9443'],
    [{ PCE_HOST: 'pce.example.com:9443', PCE_PORT: '8443' }, 'PCE_HOST names port 9443, but PCE_PORT is 8443'],
    [{ PCE_HOST: 'https://me:secret-canary@pce.example.com' }, /^PCE_HOST/],
    [{ PCE_HOST: 'ftp://pce.example.com' }, /^PCE_HOST/],
    [{ PCE_HOST: 'not a host' }, /^PCE_HOST/],
    [{ PCE_TLS_VERIFY: 'no' }, 'PCE_TLS_VERIFY must be 1 or 0 (true and false will do)'],
    [{ PCE_CLIENT_KEY_FILE: '/k' }, 'PCE_CLIENT_KEY_FILE requires PCE_CLIENT_CERT_FILE'],
    [{ PCE_PROXY_URL: 'proxy:3128' }, /^PCE_PROXY_URL/],
    [{ MCP_LOG_LEVEL: 'loud' }, /^MCP_LOG_LEVEL/],
    [{ MCP_RESPONSE_BUDGET_BYTES: '800001' }, /^MCP_RESPONSE_BUDGET_BYTES/],
    [{ MCP_RESPONSE_BUDGET_BYTES: '-1' }, /^MCP_RESPONSE_BUDGET_BYTES/],
    [{ MCP_TRAFFIC_QUERY_TIMEOUT_SECONDS: '0' }, /^MCP_TRAFFIC_QUERY_TIMEOUT_SECONDS/],
    [{ MCP_TRAFFIC_MAX_PARTS: '0' }, 'MCP_TRAFFIC_MAX_PARTS must be a whole number from 1 to 1000'],
    [{ MCP_TRAFFIC_MAX_PARTS: '1001' }, /^MCP_TRAFFIC_MAX_PARTS/],
    [{ MCP_PCE_ANSWER_MIB: '0' }, 'MCP_PCE_ANSWER_MIB must be a whole number from 1 to 256'],
    [{ MCP_PCE_ANSWER_MIB: '257' }, /^MCP_PCE_ANSWER_MIB/],
    [{ MCP_PCE_LIST_MIB: '0.5' }, 'MCP_PCE_LIST_MIB must be a whole number from 1 to 4096'],
    [{ MCP_PCE_LIST_MIB: '4097' }, /^MCP_PCE_LIST_MIB/],
    [{ MCP_PCE_TIMEOUT_SECONDS: '4' }, 'MCP_PCE_TIMEOUT_SECONDS must be a whole number from 5 to 3600'],
    [{ MCP_PCE_TIMEOUT_SECONDS: '3601' }, /^MCP_PCE_TIMEOUT_SECONDS/],
    [{ MCP_MAX_WORKLOADS_AFFECTED: '0' }, 'MCP_MAX_WORKLOADS_AFFECTED must be a whole number from 1 to 1000000'],
    [{ MCP_PROTECTED: ' , ' }, 'MCP_PROTECTED is set but names no label'],
    [{ MCP_PROTECTED: 'role=dc,app' }, 'MCP_PROTECTED must be labels as key=value, separated by commas'],
    [
      { MCP_FREEZE_WINDOWS: '22:00 - 06:00 UTC', MCP_FREEZE_OVERRIDE: 'two-persons' },
      'MCP_FREEZE_OVERRIDE is set, but nobody logs in here, so no call would wait for its confirmation',
    ],
    [
      { MCP_FREEZE_WINDOWS: 'Fri 18:00 - Mon 06:00' },
      'MCP_FREEZE_WINDOWS: "Fri 18:00 - Mon 06:00" must end with a time zone such as Europe/Berlin, and "06:00" is none',
    ],
  ]
  for (const [env, message] of cases) {
    try {
      readConfig('stdio', { ...PCE, ...env })
      t.fail(`${JSON.stringify(env)} was accepted`)
    } catch (error) {
      if (!(error instanceof StartupError)) throw error
      partial(t, error.faults[0]!.problem, message, JSON.stringify(env))
      t.equal(error.faults.length, 1)
      t.notMatch(error.message, 'secret-canary')
    }
  }
  partial(t, readConfig('stdio', { ...PCE, PCE_PORT: '65535', MCP_RESPONSE_BUDGET_BYTES: '800000' }), {
    pce: { port: '65535' },
    limits: { responseBudgetBytes: 800_000 },
  })
  t.end()
})

t.test('the PCE address', (t) => {
  const portOf = (env: Env) => readConfig('stdio', { ...PCE, ...env }).pce.port
  t.equal(
    portOf({ PCE_HOST: 'https://pce.example.com:8443' }),
    '8443',
    'a port in the address counts when PCE_PORT is not set',
  )
  t.equal(portOf({ PCE_HOST: 'pce.example.com:8443', PCE_PORT: '8443' }), '8443')
  t.equal(portOf({ PCE_HOST: 'https://pce.example.com/', PCE_PORT: '8443' }), '8443')
  t.equal(portOf({ PCE_HOST: '[::1]', PCE_PORT: '8443' }), '8443')
  t.equal(portOf({ PCE_HOST: 'http://127.0.0.1:4000' }), '4000')
  t.equal(portOf({ PCE_PORT: '' }), '443', 'an empty value is none')
  const { tls, proxyUrl } = readConfig('stdio', {
    ...PCE,
    PCE_CA_FILE: '/ca',
    PCE_CLIENT_CERT_FILE: '/cert',
    PCE_CLIENT_KEY_FILE: '/key',
    PCE_PROXY_URL: 'http://proxy:3128',
  }).pce
  t.same(tls, { verify: true, caFile: '/ca', clientCertFile: '/cert', clientKeyFile: '/key' })
  t.equal(proxyUrl, 'http://proxy:3128')
  const lab = readConfig('stdio', { ...PCE, PCE_TLS_VERIFY: 'FALSE' })
  t.equal(lab.pce.tls.verify, false)
  partial(t, lab.warnings, [/PCE_TLS_VERIFY=false/], 'with a warning')
  t.end()
})

t.test('HTTP without MCP_DEV_INSECURE=1: the start-up gates in order', (t) => {
  const shared = { MCP_PCE_MODE: 'shared' }
  const all = { ...OAUTH, ...KEYS }
  const cases: [Env, string | string[], Partial<typeof LOOPBACK>?][] = [
    [all, "Refusing to bind '0.0.0.0' without MCP_DEV_INSECURE=1", { host: '0.0.0.0' }],
    [{}, ["Refusing to bind '::' without MCP_DEV_INSECURE=1", NO_OAUTH, ...NO_KEYS], { host: '::' }],
    [{}, ["Refusing to bind '0' without MCP_DEV_INSECURE=1", NO_OAUTH, ...NO_KEYS], { host: '0' }],
    [
      {},
      ["Refusing to bind 'localhost.evil' without MCP_DEV_INSECURE=1", NO_OAUTH, ...NO_KEYS],
      { host: 'localhost.evil' },
    ],
    [{}, ["Refusing to bind '192.168.1.5' without MCP_DEV_INSECURE=1", NO_OAUTH, ...NO_KEYS], { host: '192.168.1.5' }],
    [
      {},
      ["Refusing to bind '127.0.0.1.evil' without MCP_DEV_INSECURE=1", NO_OAUTH, ...NO_KEYS],
      { host: '127.0.0.1.evil' },
    ],
    [
      { MCP_DEV_INSECURE: 'yes' },
      [
        "Refusing to bind '10.0.0.1' without MCP_DEV_INSECURE=1",
        NO_OAUTH,
        ...NO_KEYS,
        'MCP_DEV_INSECURE must be 1, in no other spelling',
      ],
      { host: '10.0.0.1' },
    ],
    [{ MCP_PCE_MODE: 'hybrid' }, [NO_OAUTH, "MCP_PCE_MODE 'hybrid' is unknown: use per_user or shared", NO_KEYS[1]!]],
    [{}, [NO_OAUTH, ...NO_KEYS], { host: '::1' }],
    [
      without(all, 'MCP_OAUTH_JWKS_URL', 'MCP_PUBLIC_URL'),
      'Missing required OAuth env vars: MCP_PUBLIC_URL, MCP_OAUTH_JWKS_URL',
    ],
    [{ ...all, MCP_PCE_MODE: 'hybrid' }, "MCP_PCE_MODE 'hybrid' is unknown: use per_user or shared"],
    [
      { ...OAUTH, ...shared },
      [
        'MCP_PCE_MODE=shared requires PCE_HOST env var',
        'MCP_PCE_MODE=shared requires API_KEY, API_SECRET env vars',
        NO_KEYS[1]!,
      ],
    ],
    [{ ...all, ...shared, PCE_HOST: 'x' }, 'MCP_PCE_MODE=shared requires API_KEY, API_SECRET env vars'],
    [{ ...all, ...shared, ...PCE, API_KEY: '' }, 'MCP_PCE_MODE=shared requires API_KEY env var'],
    [{ ...OAUTH, ...shared, ...PCE }, 'MCP_CONFIRM_HMAC_KEY env var is required'],
    [OAUTH, NO_KEYS],
    [{ ...OAUTH, MCP_KEK: KEY }, 'MCP_CONFIRM_HMAC_KEY env var is required'],
    [{ ...all, MCP_PUBLIC_URL: 'http://mcp.example.com' }, 'MCP_PUBLIC_URL must be an https URL, or http on loopback'],
    [{ ...all, MCP_OAUTH_JWKS_URL: 'http://idp/jwks' }, 'MCP_OAUTH_JWKS_URL must be an https URL, or http on loopback'],
    [
      { ...all, MCP_OAUTH_ISSUER: 'http://127.0.0.1.example.com' },
      'MCP_OAUTH_ISSUER must be an https URL, or http on loopback',
    ],
    [{ ...all, MCP_KEK: Buffer.alloc(31, 1).toString('base64') }, 'MCP_KEK must be base64 of 32 random bytes'],
    [{ ...all, MCP_KEK: KEY.replace('=', '') }, 'MCP_KEK must be base64 of 32 random bytes'],
    [{ ...all, MCP_KEK: `${KEY}\n` }, 'MCP_KEK must be base64 of 32 random bytes'],
    ...[
      Buffer.alloc(31, 1).toString('base64'),
      Buffer.alloc(33, 1).toString('base64'),
      Buffer.alloc(32, 0xfb).toString('base64url'),
      Buffer.alloc(32, 0xfb).toString('base64').replace('=', ''),
      Buffer.alloc(32, 1).toString('hex'),
    ].map((key): [Env, string] => [
      { ...all, MCP_CONFIRM_HMAC_KEY: key },
      'MCP_CONFIRM_HMAC_KEY must be base64 of 32 random bytes',
    ]),
    ...['MCP_OAUTH_AUDIENCE', 'MCP_OAUTH_TOKEN_ISSUER'].flatMap((name) =>
      ['svc ', ' svc', 'svc\n', 'a\u0000b'].map((value): [Env, string] => [
        { ...all, [name]: value },
        `${name} must not begin or end with whitespace or contain control characters`,
      ]),
    ),
    [
      { ...all, MCP_CONFIRM_HMAC_KEY: Buffer.alloc(32).toString('base64') },
      'MCP_CONFIRM_HMAC_KEY must be 32 random bytes, not zeros',
    ],
    [{ ...all, ...shared, ...PCE, PCE_PORT: 'x' }, 'PCE_PORT must be a whole number from 1 to 65535'],
    [
      { ...all, MCP_OAUTH_ISSUER: 'https://me:pw@idp.example.com' },
      'MCP_OAUTH_ISSUER must not contain a user name, a password or a fragment',
    ],
    [{ ...all, MCP_OAUTH_REQUIRED_SCOPE: 'a b' }, 'MCP_OAUTH_REQUIRED_SCOPE must be a single scope without whitespace'],
    ...['a\tb', 'openid api://x/"y"'].map((scopes): [Env, string] => [
      { ...all, MCP_OAUTH_REQUEST_SCOPE: scopes },
      'MCP_OAUTH_REQUEST_SCOPE must be scopes separated by blanks, without quotes, backslashes and other whitespace',
    ]),
    [{ ...all, MCP_ROLE_DEFAULT: 'Reader' }, 'MCP_ROLE_DEFAULT must be one of reader, operator, admin'],
    [{ ...all, MCP_CONFIRM_TTL_SECONDS: '0' }, 'MCP_CONFIRM_TTL_SECONDS must be a whole number from 1 to 3600'],
    [{ ...all, MCP_CONFIRM_TTL_SECONDS: '3601' }, 'MCP_CONFIRM_TTL_SECONDS must be a whole number from 1 to 3600'],
    [{ ...all, MCP_CONFIRM_TTL_SECONDS: '-5' }, 'MCP_CONFIRM_TTL_SECONDS must be a whole number from 1 to 3600'],
    [
      { ...all, MCP_RATE_LIMIT_PER_MINUTE: '1.5' },
      'MCP_RATE_LIMIT_PER_MINUTE must be a whole number from 0 to 1000000',
    ],
    [{ ...all, MCP_KEK_PREVIOUS: 'short' }, 'MCP_KEK_PREVIOUS must be base64 of 32 random bytes'],
    [{ ...all, MCP_KEK_PREVIOUS: KEY }, 'MCP_KEK_PREVIOUS is the same key as MCP_KEK'],
    [
      { ...all, MCP_CONFIRM_HMAC_KEY_PREVIOUS: HMAC_KEY },
      'MCP_CONFIRM_HMAC_KEY_PREVIOUS is the same key as MCP_CONFIRM_HMAC_KEY',
    ],
    [{ ...all, MCP_OAUTH_CLIENT_SECRET: 's' }, 'MCP_OAUTH_CLIENT_SECRET requires MCP_OAUTH_CLIENT_ID'],
    [
      { ...all, MCP_ALLOWED_PCE_HOSTS: 'https://pce' },
      "MCP_ALLOWED_PCE_HOSTS takes hosts like pce.example.com, not 'https://pce'",
    ],
    [{ ...all, MCP_ALLOW_INSECURE_PCE_TLS: 'yes' }, 'MCP_ALLOW_INSECURE_PCE_TLS must be 1, in no other spelling'],
  ]
  for (const [env, message, listen] of cases) {
    t.same(
      problemsOf(() => readConfig('http', env, { ...LOOPBACK, ...listen })),
      [message].flat(),
      JSON.stringify(env),
    )
  }
  partial(
    t,
    readConfig('http', all, { ...LOOPBACK, host: '0.0.0.0', socket: '/run/mcp.sock' } as never),
    { http: { socket: '/run/mcp.sock' } },
    'a Unix socket is no concern of the bind gate',
  )
  t.end()
})

t.test('approval by a person', (t) => {
  const perUser = { ...OAUTH, ...KEYS, MCP_OAUTH_CLIENT_ID: 'pages' }
  const shared = { ...OAUTH, MCP_CONFIRM_HMAC_KEY: HMAC_KEY, ...PCE, MCP_PCE_MODE: 'shared' }
  const read = (env: Env, files: Record<string, string> = {}) =>
    readConfig('http', env, LOOPBACK, { readFile: (path) => files[path] ?? '' })
  const approvalOf = (env: Env) => {
    const config = read(env)
    return config.mode === 'insecure' ? undefined : config.confirm.approval
  }
  t.equal(approvalOf(perUser), undefined)
  t.equal(approvalOf({ ...perUser, MCP_APPROVAL: 'token' }), undefined)
  t.same(approvalOf({ ...perUser, MCP_APPROVAL: 'page' }), { method: 'page', ttlSeconds: 900, maxAgeSeconds: 900 })
  const bounds = { MCP_APPROVAL_TTL_SECONDS: '86400', MCP_APPROVAL_MAX_AGE_SECONDS: '0' }
  t.same(approvalOf({ ...perUser, MCP_APPROVAL: 'two-person', ...bounds }), {
    method: 'two-person',
    ttlSeconds: 86_400,
    maxAgeSeconds: 0,
  })
  const login = { MCP_OAUTH_CLIENT_ID: 'pages', MCP_OAUTH_CLIENT_SECRET_FILE: '/word' }
  partial(t, read({ ...shared, ...login, MCP_APPROVAL: 'page', MCP_ROLE_DEFAULT: 'reader' }, { '/word': 's\n' }), {
    login: { clientId: 'pages', clientSecret: 's' },
    warnings: [],
  })
  partial(t, read({ ...shared, ...login, MCP_ROLE_DEFAULT: 'reader' }), {
    login: undefined,
    warnings: [/one PCE key serves everybody; MCP_OAUTH_CLIENT_ID, MCP_OAUTH_CLIENT_SECRET_FILE set but ignored/],
  })
  const override = { MCP_FREEZE_WINDOWS: '22:00 - 06:00 UTC', MCP_FREEZE_OVERRIDE: 'two-persons' }
  for (const [env, problem] of [
    [{ ...shared, MCP_APPROVAL: 'page' }, /^MCP_APPROVAL=page requires MCP_OAUTH_CLIENT_ID/],
    [{ ...OAUTH, ...KEYS, MCP_APPROVAL: 'two-person' }, /^MCP_APPROVAL=two-person requires MCP_OAUTH_CLIENT_ID/],
    [{ ...perUser, MCP_APPROVAL: 'Page' }, /^MCP_APPROVAL must be one of token, page, two-person/],
    [
      { ...perUser, MCP_APPROVAL: 'page', MCP_APPROVAL_TTL_SECONDS: '59' },
      /^MCP_APPROVAL_TTL_SECONDS must be a whole number from 60 to 86400/,
    ],
    [
      { ...perUser, MCP_APPROVAL: 'page', MCP_APPROVAL_MAX_AGE_SECONDS: '86401' },
      /^MCP_APPROVAL_MAX_AGE_SECONDS must be a whole number from 0 to 86400/,
    ],
    [{ ...perUser, ...override }, /^MCP_FREEZE_OVERRIDE needs approval by a person/],
    [{ ...perUser, ...override, MCP_APPROVAL: 'token' }, /^MCP_FREEZE_OVERRIDE needs approval by a person/],
    [
      { ...perUser, ...override, MCP_APPROVAL: 'page', MCP_FREEZE_WINDOWS: '' },
      /^MCP_FREEZE_OVERRIDE is set, but there is no freeze to override/,
    ],
    [
      { ...perUser, ...override, MCP_APPROVAL: 'page', MCP_FREEZE_OVERRIDE: 'yes' },
      /^MCP_FREEZE_OVERRIDE must be one of off, two-persons/,
    ],
  ] as [Env, RegExp][])
    t.throws(() => read(env), problem)
  partial(t, read({ ...perUser, ...override, MCP_APPROVAL: 'page' }), { guardrails: { freezeOverride: true } })
  t.equal(read({ ...perUser, ...override, MCP_FREEZE_OVERRIDE: 'off' }).guardrails?.freezeOverride, undefined)
  partial(t, read({ ...perUser, MCP_APPROVAL: 'two-person', MCP_ROLE_GROUPS_READER: 'staff' }), {
    warnings: [/^MCP_APPROVAL=two-person without MCP_ROLE_GROUPS_ADMIN: nobody is an admin/],
  })
  partial(t, read({ ...perUser, MCP_APPROVAL_TTL_SECONDS: '60', MCP_ROLE_DEFAULT: 'reader' }), {
    warnings: ['MCP_APPROVAL is token: a confirm token is enough; MCP_APPROVAL_TTL_SECONDS set but ignored.'],
  })
  t.end()
})

t.test('per_user, with defaults', (t) => {
  const config = readConfig('http', { ...OAUTH, ...KEYS }, LOOPBACK)
  partial(t, config, {
    mode: 'per_user',
    http: { host: '127.0.0.1', port: 8080, publicUrl: 'https://mcp.example.com', maxInFlight: 256 },
    oauth: {
      issuer: 'https://idp.example.com/v2.0',
      jwksUrl: 'https://idp.example.com/keys',
      audience: 'api://svc-mcp',
      requiredScope: 'svc-mcp.use',
    },
    confirm: { ttlSeconds: 120 },
    rates: { inFlightPerCaller: 32, perCaller: 600, confirmPerCaller: 10, refusedTokensPerAddress: 30 },
    keystore: { path: './data/keystore.db' },
    userPce: { allowInsecureTls: false, tls: { verify: true } },
    warnings: [/every caller gets forbidden_no_role/, /^No MCP_OAUTH_CLIENT_ID: nobody can log in to \/setup/],
  })
  if (config.mode !== 'per_user') return t.end()
  t.same(config.oauth.groupsClaims, ['groups', 'roles'])
  t.notOk('requestedScope' in config.oauth, 'clients ask for the scope that tokens must have')
  t.notOk('tokenIssuer' in config.oauth, 'tokens name the issuer itself')
  t.same(config.roles, { groups: { reader: [], operator: [], admin: [] }, otherwise: null })
  t.same(config.keystore.kek, Buffer.alloc(32, 7))
  t.same(config.userPce.allowedHosts, [])
  t.notOk('login' in config)

  const warningsWith = (env: Env) =>
    readConfig('http', { ...OAUTH, ...KEYS, MCP_OAUTH_CLIENT_ID: 'setup', ...env }, LOOPBACK).warnings
  for (const role of ['READER', 'OPERATOR', 'ADMIN'])
    t.same(warningsWith({ [`MCP_ROLE_GROUPS_${role}`]: 'staff' }), [], 'a group with a role is enough')
  partial(t, warningsWith({ MCP_ROLE_GROUPS_ADMIN: ' ,' }), [/every caller gets forbidden_no_role/])
  t.end()
})

t.test('takes URLs literally or refuses them', (t) => {
  const URLS = ['MCP_PUBLIC_URL', 'MCP_OAUTH_ISSUER', 'MCP_OAUTH_JWKS_URL']
  const all = { ...OAUTH, ...KEYS, MCP_ROLE_DEFAULT: 'reader' }
  for (const name of URLS) {
    const refuse = (value: string, message: string) =>
      t.same(
        problemsOf(() => readConfig('http', { ...all, [name]: value }, LOOPBACK)),
        [message],
        JSON.stringify(value),
      )
    for (const blank of [' ', '\t', '\n', '\u00a0', '\u0000']) {
      refuse(`https://a.example/x${blank}y`, `${name} must not contain whitespace`)
      refuse(`https://a.example/x${blank}`, `${name} must not contain whitespace`)
      refuse(`${blank}https://a.example/x`, `${name} must not contain whitespace`)
    }
    refuse('https://a.example/x#y', `${name} must not contain a user name, a password or a fragment`)
    refuse('https://me@a.example/x', `${name} must not contain a user name, a password or a fragment`)
    if (name !== 'MCP_OAUTH_JWKS_URL') refuse('https://a.example/x?y=1', `${name} must not contain a query`)
    t.doesNotThrow(() => readConfig('http', { ...all, [name]: 'https://a.example:8443/x/y' }, LOOPBACK))
  }
  // Entra ID names the application there where its tokens have keys of their own.
  const keys = 'https://login.example/keys?appid=1'
  partial(t, readConfig('http', { ...all, MCP_OAUTH_JWKS_URL: keys }, LOOPBACK), { oauth: { jwksUrl: keys } })
  t.end()
})

t.test('per_user, with every variable', (t) => {
  const other = Buffer.alloc(32, 8).toString('base64')
  const config = readConfig(
    'http',
    {
      ...OAUTH,
      ...KEYS,
      ...PCE,
      MCP_PUBLIC_URL: 'https://mcp.example.com/',
      MCP_OAUTH_REQUIRED_SCOPE: 'mine',
      MCP_OAUTH_REQUEST_SCOPE: ' openid  api://svc-mcp/mine offline_access openid',
      MCP_OAUTH_TOKEN_ISSUER: 'http://idp.example.com/adfs/services/trust',
      MCP_OAUTH_GROUPS_CLAIM: 'https://example.com/groups, groups',
      MCP_ROLE_GROUPS_READER: ' r1, r2 ,,',
      MCP_ROLE_GROUPS_OPERATOR: 'o1',
      MCP_ROLE_GROUPS_ADMIN: ',a1',
      MCP_ROLE_DEFAULT: 'reader',
      MCP_CONFIRM_TTL_SECONDS: '60',
      MCP_CONFIRM_TOOLS: 'update-workload, delete-ruleset,update-workload',
      MCP_KEK_PREVIOUS: other,
      MCP_CONFIRM_HMAC_KEY_PREVIOUS: other,
      MCP_RATE_LIMIT_PER_MINUTE: '0',
      MCP_CONFIRM_RATE_PER_MINUTE: '1',
      MCP_REFUSED_TOKENS_PER_MINUTE: '2',
      MCP_KEYSTORE_PATH: '/k.db',
      MCP_ALLOWED_PCE_HOSTS: 'pce.example.com:8443, 10.0.0.1',
      MCP_ALLOW_INSECURE_PCE_TLS: '1',
      MCP_OAUTH_CLIENT_ID: 'setup',
      MCP_OAUTH_CLIENT_SECRET: 's',
      PCE_CA_FILE: '/ca',
      PCE_PROXY_URL: 'http://proxy:3128',
      MCP_PCE_ANSWER_MIB: '1',
      MCP_PCE_LIST_MIB: '2',
      MCP_PCE_TIMEOUT_SECONDS: '5',
    },
    LOOPBACK,
  )
  partial(t, config, {
    http: { publicUrl: /^https:\/\/mcp\.example\.com$/ },
    oauth: {
      requiredScope: 'mine',
      requestedScope: 'openid api://svc-mcp/mine offline_access',
      tokenIssuer: 'http://idp.example.com/adfs/services/trust',
      groupsClaims: ['groups', 'roles', 'https://example.com/groups'],
    },
    roles: { groups: { reader: ['r1', 'r2'], operator: ['o1'], admin: ['a1'] }, otherwise: 'reader' },
    confirm: {
      ttlSeconds: 60,
      previousHmacKey: Buffer.alloc(32, 8),
      tools: ['update-workload', 'delete-ruleset'],
    },
    rates: { perCaller: 0, confirmPerCaller: 1, refusedTokensPerAddress: 2 },
    keystore: { path: '/k.db', previousKek: Buffer.alloc(32, 8) },
    userPce: {
      allowedHosts: ['pce.example.com:8443', '10.0.0.1'],
      allowInsecureTls: true,
      tls: { verify: true, caFile: '/ca' },
      proxyUrl: 'http://proxy:3128',
      bounds: { answerMib: 1, listMib: 2, timeoutSeconds: 5 },
    },
    login: { clientId: 'setup', clientSecret: 's' },
    warnings: [/PCE_HOST, API_KEY, API_SECRET set but ignored/, /MCP_ALLOW_INSECURE_PCE_TLS/],
  })
  t.end()
})

t.test('shared', (t) => {
  const env = { ...OAUTH, ...PCE, MCP_CONFIRM_HMAC_KEY: KEY, MCP_PCE_MODE: 'shared', MCP_ROLE_DEFAULT: 'reader' }
  const config = readConfig('http', env, LOOPBACK)
  partial(t, config, {
    mode: 'shared',
    pce: { url: 'pce.example.com', port: '443', orgId: '1', apiKey: 'api_1' },
    statePath: './data/state.db',
    warnings: [],
  })
  t.notOk('keystore' in config, 'a key-encryption key has no place here')
  partial(t, readConfig('http', { ...env, MCP_STATE_PATH: '/s.db' }, LOOPBACK), { statePath: '/s.db' })
  t.end()
})

t.test('secrets from files', (t) => {
  const files: Record<string, string> = {
    '/kek': `${KEY}\n`,
    '/hmac': `${HMAC_KEY}\r\n`,
    '/two': `${KEY}\n\n`,
    '/empty': '\n',
    '/secret': 'secret-canary',
  }
  const readFile = (path: string) => {
    if (files[path] === undefined) throw Object.assign(new Error('secret-canary'), { code: 'ENOENT' })
    return files[path]
  }
  const read = (env: Env) => readConfig('http', { ...OAUTH, ...env }, LOOPBACK, { readFile })
  const config = read({ MCP_KEK_FILE: '/kek', MCP_CONFIRM_HMAC_KEY_FILE: '/hmac' })
  partial(t, config, { keystore: { kek: Buffer.alloc(32, 7) }, confirm: { hmacKey: Buffer.alloc(32, 9) } })
  const cases: [Env, string][] = [
    [{ MCP_KEK_FILE: '/kek' }, 'MCP_CONFIRM_HMAC_KEY env var is required'],
    [{ MCP_KEK_FILE: '/kek', ...KEYS }, 'MCP_KEK and MCP_KEK_FILE are both set: keep one'],
    [
      { MCP_KEK_FILE: '/none', MCP_CONFIRM_HMAC_KEY: HMAC_KEY },
      "Cannot read MCP_KEK_FILE '/none': there is no such file or folder (ENOENT)",
    ],
    [{ MCP_KEK_FILE: '/empty', MCP_CONFIRM_HMAC_KEY: KEY }, "MCP_KEK_FILE '/empty' is empty"],
    [{ MCP_KEK_FILE: '/two', MCP_CONFIRM_HMAC_KEY: KEY }, 'MCP_KEK must be base64 of 32 random bytes'],
    [{ MCP_KEK_FILE: '/secret', MCP_CONFIRM_HMAC_KEY: KEY }, 'MCP_KEK must be base64 of 32 random bytes'],
  ]
  for (const [env, message] of cases)
    t.same(
      problemsOf(() => read(env)),
      [message],
    )
  t.same(
    problemsOf(() =>
      readConfig('http', { ...OAUTH, MCP_KEK_FILE: '/none' }, { ...LOOPBACK, host: '::' }, { readFile }),
    ),
    [
      "Refusing to bind '::' without MCP_DEV_INSECURE=1",
      'MCP_CONFIRM_HMAC_KEY env var is required',
      "Cannot read MCP_KEK_FILE '/none': there is no such file or folder (ENOENT)",
    ],
    'the gates come first',
  )
  const insecure = { MCP_DEV_INSECURE: '1', PCE_HOST: 'x', API_KEY: 'k', API_SECRET_FILE: '/secret' }
  partial(t, readConfig('http', insecure, LOOPBACK, { readFile }), { pce: { apiSecret: 'secret-canary' } })
  t.end()
})

t.test('metrics and traces are off unless they are asked for', (t) => {
  const read = (env: Env) => readConfig('http', { MCP_DEV_INSECURE: '1', ...env }, { host: '127.0.0.1', port: 8080 })
  const off = read({})
  t.same([off.http.metricsPort, off.tracing, off.replicaId], [undefined, undefined, undefined])
  t.equal(read({ MCP_METRICS_PORT: '9464' }).http.metricsPort, 9464)
  t.equal(read({ MCP_REPLICA_ID: 'mcp-7' }).replicaId, 'mcp-7')
  const collector = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318' }
  t.equal(read(collector).tracing, true)
  t.equal(read({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://collector/v1/traces' }).tracing, true)
  t.equal(read({ ...collector, OTEL_SDK_DISABLED: 'True' }).tracing, undefined)
  t.equal(read({ ...collector, OTEL_TRACES_EXPORTER: 'none' }).tracing, undefined)
  const { warnings } = read({ ...collector, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' })
  t.ok(warnings.some((warning) => warning.startsWith('OTEL_EXPORTER_OTLP_PROTOCOL is ignored')))
  t.same(
    problemsOf(() => read({ OTEL_EXPORTER_OTLP_ENDPOINT: 'https://me:secret@' })),
    ['OTEL_EXPORTER_OTLP_ENDPOINT must be an http or https URL'],
  )
  t.end()
})

t.test('dev-insecure', (t) => {
  const insecure = (env: Env = {}, host = '0.0.0.0') =>
    readConfig('http', { MCP_DEV_INSECURE: '1', ...env }, { host, port: 0 }) as InsecureHttpConfig
  partial(
    t,
    insecure(),
    { mode: 'insecure', http: { host: '0.0.0.0', port: 0, allowedHosts: [], maxInFlight: 256 } },
    'needs nothing, on any address',
  )
  t.equal(insecure().pce, undefined, 'not even a PCE')
  partial(t, insecure(PCE).pce, { url: 'pce.example.com' })
  t.same(
    problemsOf(() => insecure({ PCE_HOST: 'x' })),
    ['Missing required env vars: API_KEY, API_SECRET'],
    'half a PCE is a mistake',
  )
  t.throws(() => insecure({ MCP_PCE_MODE: 'hybrid' }), /MCP_PCE_MODE 'hybrid'.*per_user or shared/)
  t.throws(() => insecure({ MCP_MAX_IN_FLIGHT: 'many' }), /MCP_MAX_IN_FLIGHT/)
  t.throws(() => insecure({ MCP_PUBLIC_URL: 'mcp.example.com' }), /MCP_PUBLIC_URL/)
  for (const bad of [
    'https://mcp.example.com',
    'mcp.example.com/mcp',
    'user@mcp.example.com',
    'a b',
    'mcp.example.com:port',
    '*.example.com',
  ])
    t.throws(() => insecure({ MCP_ALLOWED_HOSTS: `ok.example,${bad}` }), /MCP_ALLOWED_HOSTS takes hosts/, bad)
  t.same(insecure({ MCP_ALLOWED_HOSTS: '::1,[fd00::1]:8443,10.0.0.1' }).http.allowedHosts.length, 3)
  t.same(insecure({ MCP_ALLOWED_HOSTS: ' a.example, ,b.example:8443,' }).http.allowedHosts, [
    'a.example',
    'b.example:8443',
  ])
  t.equal(insecure().http.trustedProxies, undefined)
  t.equal(insecure({ MCP_TRUSTED_PROXIES: ' , ' }).http.trustedProxies, undefined)
  t.same(insecure({ MCP_TRUSTED_PROXIES: ' 10.0.0.7, fd00::/8,unix,::ffff:10.1.0.0/112 ' }).http.trustedProxies, {
    networks: [
      { address: '10.0.0.7', prefix: 32 },
      { address: 'fd00::', prefix: 8 },
      { address: '::ffff:10.1.0.0', prefix: 112 },
    ],
    unix: true,
  })
  t.same(insecure({ MCP_TRUSTED_PROXIES: 'unix' }).http.trustedProxies, { networks: [], unix: true })
  t.same(insecure({ MCP_TRUSTED_PROXIES: '::1' }).http.trustedProxies, {
    networks: [{ address: '::1', prefix: 128 }],
    unix: false,
  })
  const misread = ['proxy.example', '10.0.0.0/33', '::/129', '10.0.0/8', '10.0.0.0/8/8', '10.0.0.0/', '10.0.0.7:80']
  for (const bad of [...misread, '10.0.0.0/-1', '[::1]', 'fe80::1%eth0', 'loopback', 'true', '*', '127.1'])
    t.same(
      problemsOf(() => insecure({ MCP_TRUSTED_PROXIES: `10.0.0.7,${bad}` })),
      [`MCP_TRUSTED_PROXIES takes addresses such as 10.0.0.7, networks such as 10.0.0.0/24, and unix, not '${bad}'`],
    )
  for (const all of ['0.0.0.0/0', '::/0', '10.0.0.0/0'])
    t.same(
      problemsOf(() => insecure({ MCP_TRUSTED_PROXIES: all })),
      [`MCP_TRUSTED_PROXIES must not trust every address: '${all}'`],
    )
  partial(
    t,
    insecure({ MCP_OAUTH_ISSUER: 'https://idp' }).warnings,
    [/MCP_OAUTH_ISSUER.*ignored/],
    'login variables that do nothing are not passed over in silence',
  )
  t.end()
})

t.test('the table of variables is complete', (t) => {
  const asked = new Set<string>()
  const spy = (env: Env) => new Proxy(env, { get: (target, name: string) => (asked.add(name), target[name]) })
  readConfig('stdio', spy(PCE))
  readConfig('http', spy({ ...PCE, MCP_DEV_INSECURE: '1' }), LOOPBACK)
  readConfig('http', spy({ ...OAUTH, ...KEYS }), LOOPBACK)
  readConfig('http', spy({ ...OAUTH, ...KEYS, ...PCE, MCP_PCE_MODE: 'shared' }), LOOPBACK)
  const listed = CONFIG_VARIABLES.flatMap(({ name, secret, mayBeInFile }) =>
    secret || mayBeInFile ? [name, `${name}_FILE`] : [name],
  )
  // Those of OpenTelemetry are its own.
  const ours = [...asked].filter((name) => !name.startsWith('OTEL_'))
  t.same(ours.sort(), [...listed].sort(), 'it lists what is read, and nothing else')
  t.equal(new Set(listed).size, listed.length)
  for (const { name, secret } of CONFIG_VARIABLES)
    t.equal(secret === true, /SECRET|KEK|HMAC|PROXY_URL|STATE_URL|WEBHOOK_URL/.test(name), `${name}: secret or not`)
  t.end()
})
