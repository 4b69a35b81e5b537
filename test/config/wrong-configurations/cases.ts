/** What an operator may set wrongly, by theme: the rows of docs/wrong-configurations.md. */
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'libsql'
import type { Stage } from './set-stage.js'

/** Variables by name; null leaves one of the start unset. Words such as `$PCE` are those of the stage, `$DIR` the working directory. */
export type Settings = Readonly<Record<string, string | null>>

/** A start that nothing is wrong with. */
export interface Start {
  program: 'svc-mcp' | 'svc-mcp-http'
  env: Settings
  args?: readonly string[]
}

export interface Case {
  /** The start that is right but for this. */
  start: keyof typeof STARTS
  env?: Settings
  /** In place of those of the start. */
  args?: readonly string[]
  /** What else is wrong, in words for the page, and what brings it about in the working directory. */
  given?: string
  make?: (folder: string, stage: Stage) => void
  /** Starts of a server in the same folder before this one, which is stopped, or with `stays` is not. */
  earlier?: { env?: Settings; args?: readonly string[]; stays?: boolean }
  /** A question to the server that has started: the probe, or the tool that tries the PCE. */
  ask?: 'readyz' | 'check-pce-connection'
}

export interface Theme {
  title: string
  cases: readonly Case[]
}

const LOGIN: Settings = {
  MCP_PUBLIC_URL: 'https://mcp.example.com',
  MCP_OAUTH_ISSUER: 'https://login.example.com',
  MCP_OAUTH_JWKS_URL: 'http://127.0.0.1:$KEYS/keys',
  MCP_OAUTH_AUDIENCE: 'https://mcp.example.com',
  MCP_ROLE_DEFAULT: 'reader',
  MCP_CONFIRM_HMAC_KEY: '$HMAC_KEY',
}
const ANY_PORT = ['--port', '0']

export const STARTS = {
  stdio: {
    program: 'svc-mcp',
    env: { PCE_HOST: 'pce.example.com', API_KEY: 'api_1', API_SECRET: 'secret' },
  },
  tried: {
    program: 'svc-mcp',
    env: { PCE_HOST: 'http://127.0.0.1:$PCE', API_KEY: '$API_KEY', API_SECRET: '$API_SECRET' },
  },
  nothing: { program: 'svc-mcp-http', args: ANY_PORT, env: {} },
  development: { program: 'svc-mcp-http', args: ANY_PORT, env: { MCP_DEV_INSECURE: '1' } },
  per_user: {
    program: 'svc-mcp-http',
    args: ANY_PORT,
    env: { ...LOGIN, MCP_KEK: '$KEK', MCP_OAUTH_CLIENT_ID: 'svc-mcp-setup' },
  },
  shared: {
    program: 'svc-mcp-http',
    args: ANY_PORT,
    env: {
      ...LOGIN,
      MCP_PCE_MODE: 'shared',
      PCE_HOST: 'http://127.0.0.1:$PCE',
      API_KEY: '$API_KEY',
      API_SECRET: '$API_SECRET',
    },
  },
} as const satisfies Record<string, Start>

const file =
  (name: string, text: string | Uint8Array, mode = 0o600) =>
  (folder: string) => {
    writeFileSync(join(folder, name), text)
    chmodSync(join(folder, name), mode)
  }
const pem =
  (...names: string[]) =>
  (folder: string, stage: Stage) => {
    for (const name of names) writeFileSync(join(folder, name.includes('.') ? name : `${name}.pem`), stage.pem(name))
  }
const directory =
  (name: string, mode = 0o700) =>
  (folder: string) => {
    mkdirSync(join(folder, name))
    chmodSync(join(folder, name), mode)
  }
/** A `.env` file beside the settings of the start. */
const dotEnv = (given: string, text: string | Uint8Array, more: Partial<Case> = {}): Case => ({
  start: 'stdio',
  given,
  make: file('.env', text),
  ...more,
})

const MISSING: Theme = {
  title: 'Nothing is set, or not enough',
  cases: [
    { start: 'stdio', env: { PCE_HOST: null, API_KEY: null, API_SECRET: null } },
    { start: 'stdio', env: { API_SECRET: null } },
    { start: 'stdio', env: { PCE_HOST: ' ' } },
    { start: 'nothing' },
    { start: 'nothing', env: { PCE_HOST: 'pce.example.com', API_KEY: 'api_1', API_SECRET: 'secret' } },
    { start: 'development', env: { PCE_HOST: 'pce.example.com' } },
    { start: 'development', env: { API_KEY: 'api_1', API_SECRET: 'secret' } },
    { start: 'per_user', env: { MCP_OAUTH_ISSUER: null, MCP_OAUTH_AUDIENCE: null } },
    { start: 'per_user', env: { MCP_KEK: null } },
    { start: 'per_user', env: { MCP_CONFIRM_HMAC_KEY: null } },
    { start: 'per_user', env: { MCP_OAUTH_CLIENT_ID: null } },
    { start: 'per_user', env: { MCP_OAUTH_CLIENT_ID: null, MCP_OAUTH_CLIENT_SECRET: 'secret' } },
    { start: 'per_user', env: { MCP_ROLE_DEFAULT: null } },
    { start: 'shared', env: { PCE_HOST: null } },
    { start: 'shared', env: { API_KEY: null, API_SECRET: null } },
  ],
}

const MODES: Theme = {
  title: 'Modes, and settings of another mode',
  cases: [
    { start: 'per_user', env: { MCP_PCE_MODE: 'hybrid' } },
    { start: 'per_user', env: { MCP_PCE_MODE: 'Shared' } },
    { start: 'development', env: { MCP_PCE_MODE: 'insecure' } },
    {
      start: 'development',
      env: { MCP_OAUTH_ISSUER: 'https://login.example.com', MCP_OAUTH_AUDIENCE: 'https://mcp.example.com' },
    },
    { start: 'per_user', env: { PCE_HOST: 'pce.example.com', API_KEY: 'api_1', API_SECRET: 'secret' } },
    { start: 'shared', env: { MCP_KEK: '$KEK', MCP_KEYSTORE_PATH: '$DIR/keystore.db' } },
    { start: 'stdio', env: { MCP_CONFIRM_TOOLS: 'update-workload' } },
    { start: 'stdio', env: { MCP_ROLE_DEFAULT: 'reader', MCP_DEV_INSECURE: '1' } },
    { start: 'development', env: { MCP_CONFIRM_TOOLS: 'update-workload' } },
    { start: 'development', env: { MCP_APPROVAL: 'page', MCP_CONFIRM_STDIO: '1' } },
    { start: 'stdio', env: { MCP_APPROVAL: 'page' } },
    { start: 'stdio', env: { MCP_CONFIRM_STDIO: 'yes' } },
    { start: 'stdio', env: { MCP_CONFIRM_STDIO: '1', MCP_CONFIRM_TOOLS: 'update-worklod' } },
    { start: 'per_user', env: { MCP_CONFIRM_STDIO: '1' } },
  ],
}

const SEVERAL: Theme = {
  title: 'Several at once',
  cases: [
    {
      start: 'stdio',
      env: { PCE_HOST: 'https://pce.example.com/login', API_SECRET: null, PCE_ORG_ID: 'acme', PCE_TLS_VERFY: 'false' },
    },
    { start: 'stdio', env: { PCE_HOST: null, PCE_URL: 'https://pce.example.com' } },
    {
      start: 'shared',
      env: {
        MCP_PUBLIC_URL: null,
        API_KEY: null,
        MCP_OAUTH_ISSUER: 'login.example.com',
        PCE_PORT: 'https',
        PCE_CA_FILE: '$DIR/ca.pem',
        MCP_STATE_PATH: '$DIR',
        MCP_CONFIRM_TOOLS: 'get-labels',
      },
      args: ['--host', '0.0.0.0', '--port', '0'],
    },
  ],
}

const ADDRESS: Theme = {
  title: 'The address of the PCE',
  cases: [
    { start: 'stdio', env: { PCE_HOST: 'https://pce.example.com/api/v2' } },
    { start: 'stdio', env: { PCE_HOST: 'pce.example.com:8443/#/dashboard' } },
    { start: 'stdio', env: { PCE_HOST: 'https:/pce.example.com' } },
    { start: 'stdio', env: { PCE_HOST: 'ftp://pce.example.com' } },
    { start: 'stdio', env: { PCE_HOST: 'https://api_1:secret@pce.example.com' } },
    { start: 'stdio', env: { PCE_HOST: 'pce.example.com pce2.example.com' } },
    { start: 'stdio', env: { PCE_HOST: 'fd00::7' } },
    { start: 'stdio', env: { PCE_HOST: 'pce.example.com:https' } },
    { start: 'stdio', env: { PCE_HOST: 'http://pce.example.com' } },
    { start: 'stdio', env: { PCE_HOST: 'https://pce.example.com:8443', PCE_PORT: '443' } },
    { start: 'stdio', env: { PCE_PORT: '84443' } },
    { start: 'stdio', env: { PCE_PORT: 'https' } },
    { start: 'stdio', env: { PCE_PORT: '8443 ' } },
    { start: 'stdio', env: { PCE_PORT: 'tcp://10.0.0.1:443' } },
    { start: 'stdio', env: { PCE_ORG_ID: '0' } },
    { start: 'stdio', env: { PCE_ORG_ID: 'acme' } },
  ],
}

const REACHING: Theme = {
  title: 'The PCE does not answer as it should',
  cases: [
    { start: 'tried', env: { PCE_HOST: '127.0.0.1:$NOBODY' }, ask: 'check-pce-connection' },
    { start: 'tried', env: { PCE_HOST: 'https://127.0.0.1:$PCE' }, ask: 'check-pce-connection' },
    { start: 'tried', env: { PCE_HOST: 'http://localhost:$TLS_PCE' }, ask: 'check-pce-connection' },
    { start: 'tried', env: { PCE_HOST: 'https://localhost:$TLS_PCE' }, ask: 'check-pce-connection' },
    {
      start: 'tried',
      env: { PCE_HOST: 'https://localhost:$TLS_PCE', PCE_CA_FILE: '$DIR/other.pem' },
      make: pem('other'),
      given: '`other.pem` is that of another CA',
      ask: 'check-pce-connection',
    },
    {
      start: 'tried',
      env: { PCE_HOST: 'https://127.0.0.1:$TLS_PCE', PCE_CA_FILE: '$DIR/ca.pem' },
      make: pem('ca'),
      ask: 'check-pce-connection',
    },
    { start: 'tried', env: { PCE_HOST: 'http://127.0.0.1:$WEB' }, ask: 'check-pce-connection' },
    { start: 'tried', env: { API_SECRET: 'mistyped' }, ask: 'check-pce-connection' },
    { start: 'tried', env: { PCE_ORG_ID: '42' }, ask: 'check-pce-connection' },
    { start: 'tried', env: { PCE_PROXY_URL: 'http://127.0.0.1:$NOBODY' }, ask: 'check-pce-connection' },
    { start: 'shared', env: { API_SECRET: 'mistyped' }, ask: 'readyz' },
    { start: 'shared', env: { PCE_ORG_ID: '42' }, ask: 'readyz' },
    { start: 'shared', env: { PCE_HOST: '127.0.0.1:$NOBODY' }, ask: 'readyz' },
    { start: 'shared', env: { PCE_HOST: 'https://localhost:$TLS_PCE' }, ask: 'readyz' },
    { start: 'shared', env: { PCE_HOST: 'https://127.0.0.1:$PCE' }, ask: 'readyz' },
  ],
}

const NAMES: Theme = {
  title: 'Names that nothing reads',
  cases: [
    { start: 'stdio', env: { PCE_HSOT: 'pce.example.com' } },
    { start: 'stdio', env: { PCE_ORGID: '1' } },
    { start: 'stdio', env: { pce_port: '8443' } },
    { start: 'stdio', env: { PCE_PORT_FILE: '/run/secrets/port' } },
    { start: 'stdio', env: { PCE_HOST: null, PCE_FQDN: 'pce.example.com' } },
    { start: 'stdio', env: { API_KEY: null, PCE_API_KEY: 'api_1' } },
    { start: 'stdio', env: { PCE_SERVICE_HOST: '10.0.0.1', PCE_SERVICE_PORT: '443' } },
    { start: 'per_user', env: { MCP_KEK: null, MCP_KEK_FIEL: '/run/secrets/kek' } },
    { start: 'per_user', env: { MCP_OAUTH_JWKS_URL: null, MCP_OAUTH_JWKS_URI: 'https://login.example.com/keys' } },
    { start: 'per_user', env: { MCP_ROLE_GROUP_ADMIN: 'mcp-admins' } },
    { start: 'development', env: { MCP_PORT: '9000', MCP_HOST: '0.0.0.0' } },
    { start: 'per_user', env: { MCP_OAUTH_CLIENT_ID: null, MCP_CLIENT_ID: 'svc-mcp-setup' } },
  ],
}

const QUOTES: Theme = {
  title: 'Quotes, whitespace, placeholders',
  cases: [
    { start: 'stdio', env: { PCE_HOST: '"pce.example.com"' } },
    { start: 'stdio', env: { API_SECRET: "'secret'" } },
    { start: 'stdio', env: { PCE_ORG_ID: '“7”' } },
    { start: 'per_user', env: { MCP_KEK: '"$KEK"' } },
    { start: 'stdio', env: { API_SECRET: 'secret\r' } },
    { start: 'stdio', env: { API_KEY: ' api_1' } },
    { start: 'per_user', env: { MCP_OAUTH_AUDIENCE: 'https://mcp.example.com ' } },
    { start: 'per_user', env: { MCP_OAUTH_TOKEN_ISSUER: ' http://login.example.com/adfs/services/trust' } },
    { start: 'shared', env: { MCP_OAUTH_TOKEN_ISSUER: '<your issuer>' } },
    { start: 'per_user', env: { MCP_OAUTH_ISSUER: 'https://login.example.com\n' } },
    { start: 'stdio', env: { PCE_HOST: '${PCE_HOST}', API_SECRET: '${env:PCE_SECRET}' } },
    { start: 'stdio', env: { API_KEY: 'api_…' } },
    { start: 'stdio', env: { API_SECRET: '<your secret>' } },
    { start: 'per_user', env: { MCP_PUBLIC_URL: 'https://${DOMAIN}' } },
    { start: 'stdio', env: { API_KEY: 'secret', API_SECRET: 'api_1' } },
  ],
}

const SWITCHES: Theme = {
  title: 'Switches and words',
  cases: [
    { start: 'nothing', env: { MCP_DEV_INSECURE: 'yes' } },
    { start: 'stdio', env: { PCE_TLS_VERIFY: 'no' } },
    { start: 'stdio', env: { PCE_TLS_VERIFY: 'false' } },
    { start: 'per_user', env: { MCP_ALLOW_INSECURE_PCE_TLS: 'on' } },
    { start: 'per_user', env: { MCP_ALLOW_INSECURE_PCE_TLS: '1' } },
    { start: 'stdio', env: { MCP_LOG_LEVEL: 'verbose' } },
    { start: 'stdio', env: { MCP_LOG_LEVEL: 'WARN' } },
    { start: 'per_user', env: { MCP_ROLE_DEFAULT: 'Reader' } },
  ],
}

const NUMBERS: Theme = {
  title: 'Numbers and limits',
  cases: [
    { start: 'stdio', env: { MCP_RESPONSE_BUDGET_BYTES: '80kB' } },
    { start: 'stdio', env: { MCP_RESPONSE_BUDGET_BYTES: '500' } },
    { start: 'stdio', env: { MCP_TRAFFIC_QUERY_TIMEOUT_SECONDS: '2h' } },
    { start: 'stdio', env: { MCP_TRAFFIC_MAX_PARTS: '0' } },
    { start: 'stdio', env: { MCP_PCE_TIMEOUT_SECONDS: '0' } },
    { start: 'stdio', env: { MCP_PCE_ANSWER_MIB: '1024' } },
    { start: 'stdio', env: { MCP_PCE_LIST_MIB: '1.5' } },
    { start: 'stdio', env: { MCP_HEAVY_CALLS: '0' } },
    { start: 'stdio', env: { MCP_HEAVY_QUEUE: '-1' } },
    { start: 'stdio', env: { MCP_HEAVY_MEMORY_MIB: '32' } },
    { start: 'development', env: { MCP_MAX_IN_FLIGHT: 'many' } },
    { start: 'development', env: { MCP_METRICS_PORT: 'on' } },
    { start: 'development', env: { MCP_METRICS_PORT: '8080' }, args: ['--port', '8080'] },
    { start: 'stdio', env: { MCP_REPLICA_ID: 'pod 1' } },
    { start: 'development', env: { OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318' } },
    { start: 'per_user', env: { MCP_HEAVY_CALLS_PER_CALLER: '0' } },
    { start: 'per_user', env: { MCP_MAX_IN_FLIGHT_PER_CALLER: '1e3' } },
    { start: 'per_user', env: { MCP_RATE_LIMIT_PER_MINUTE: '10/s' } },
    { start: 'per_user', env: { MCP_CONFIRM_RATE_PER_MINUTE: '10.5' } },
    { start: 'per_user', env: { MCP_REFUSED_TOKENS_PER_MINUTE: '99999999' } },
    { start: 'per_user', env: { MCP_CONFIRM_TTL_SECONDS: '86400' } },
  ],
}

const DOT_ENV: Theme = {
  title: 'The .env file',
  cases: [
    dotEnv('`.env` in UTF-16', Buffer.from('\ufeffPCE_PORT=8443\r\n', 'utf16le')),
    dotEnv('`.env` in UTF-16 without a mark', Buffer.from('PCE_PORT=8443\r\n', 'utf16le')),
    dotEnv('`.env` in Latin-1: `API_SECRET=schlüssel`', Buffer.from('API_SECRET=schl\xfcssel\n', 'latin1')),
    dotEnv('`.env`: `PCE_PORT=8443`, then `hello`', 'PCE_PORT=8443\nhello\n'),
    dotEnv('`.env`: `PCE_PORT: 8443`', 'PCE_PORT: 8443\n'),
    dotEnv('`.env`: `API_SECRET=abc#def`', 'API_SECRET=abc#def\n'),
    dotEnv('`.env`: `API_SECRET="abc`', 'API_SECRET="abc\n'),
    dotEnv('`.env`: `PCE_PORT=443`, then `PCE_PORT=8443`', 'PCE_PORT=443\nPCE_PORT=8443\n'),
    dotEnv('`.env` has nothing for this server, and a line `hello`', 'hello\nDATABASE_URL=x\n'),
    dotEnv('`.env` is a folder', '', { make: directory('.env') }),
    dotEnv('`.env` that the user of the server may not read', '', { make: file('.env', 'PCE_PORT=8443\n', 0o000) }),
  ],
}

const SECRET_FILES: Theme = {
  title: 'Secrets in files',
  cases: [
    { start: 'stdio', env: { API_SECRET: null, API_SECRET_FILE: '$DIR/secret' } },
    { start: 'stdio', env: { API_SECRET_FILE: '$DIR/secret' }, make: file('secret', 'secret') },
    {
      start: 'stdio',
      env: { API_SECRET: null, API_SECRET_FILE: '$DIR/secret' },
      given: '`secret` is empty',
      make: file('secret', '\n'),
    },
    {
      start: 'stdio',
      env: { API_SECRET: null, API_SECRET_FILE: '$DIR/secret' },
      given: '`secret` is a folder',
      make: directory('secret'),
    },
    {
      start: 'stdio',
      env: { API_SECRET: null, API_SECRET_FILE: '$DIR/secret' },
      given: '`secret` that the user of the server may not read',
      make: file('secret', 'secret', 0o000),
    },
    {
      start: 'stdio',
      env: { API_SECRET: null, API_SECRET_FILE: '$DIR/secret' },
      given: '`secret` is a pipe that nobody writes to',
      make: (folder) => void execFileSync('mkfifo', [join(folder, 'secret')]),
    },
    {
      start: 'stdio',
      env: { API_SECRET: null, API_SECRET_FILE: '$DIR/secret' },
      given: '`secret` ends in an empty line',
      make: file('secret', 'secret\n\n'),
    },
    {
      start: 'per_user',
      env: { MCP_KEK: null, MCP_KEK_FILE: '$DIR/kek' },
      given: '`kek` has a comment below the key',
      make: (folder, { values }) => writeFileSync(join(folder, 'kek'), `${values.$KEK}\n# of 2026\n`),
    },
  ],
}

const KEYS: Theme = {
  title: 'The keys of the service',
  cases: [
    { start: 'per_user', env: { MCP_KEK: '0707070707070707070707070707070707070707070707070707070707070707' } },
    { start: 'per_user', env: { MCP_KEK: '-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_s' } },
    { start: 'per_user', env: { MCP_KEK: 'BwcHBwcHBwcHBwcHBwcHBw==' } },
    { start: 'per_user', env: { MCP_KEK: '$KEK\n' } },
    { start: 'per_user', env: { MCP_KEK: 'correct horse battery staple' } },
    { start: 'per_user', env: { MCP_KEK: 'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=' } },
    { start: 'per_user', env: { MCP_CONFIRM_HMAC_KEY: 'changeme' } },
    { start: 'per_user', env: { MCP_CONFIRM_HMAC_KEY: '$KEK' } },
    { start: 'per_user', env: { MCP_KEK_PREVIOUS: '$KEK' } },
    { start: 'per_user', env: { MCP_KEK_PREVIOUS: 'old' } },
    { start: 'shared', env: { MCP_CONFIRM_HMAC_KEY_PREVIOUS: '$HMAC_KEY' } },
    {
      start: 'per_user',
      env: { MCP_KEK: '$HMAC_KEY', MCP_CONFIRM_HMAC_KEY: '$KEK' },
      given: 'a keystore made with another `MCP_KEK`',
      earlier: {},
    },
  ],
}

const LOGINS: Theme = {
  title: 'The identity provider and the public address',
  cases: [
    { start: 'per_user', env: { MCP_PUBLIC_URL: 'http://mcp.example.com' } },
    { start: 'per_user', env: { MCP_PUBLIC_URL: 'mcp.example.com' } },
    { start: 'per_user', env: { MCP_PUBLIC_URL: 'https://mcp.example.com/mcp' } },
    { start: 'per_user', env: { MCP_PUBLIC_URL: 'https://mcp.example.com/setup/' } },
    { start: 'per_user', env: { MCP_PUBLIC_URL: 'https://mcp.example.com/?tenant=1' } },
    { start: 'development', env: { MCP_PUBLIC_URL: 'https://mcp.example.com/mcp' } },
    { start: 'per_user', env: { MCP_OAUTH_ISSUER: 'login.example.com' } },
    { start: 'per_user', env: { MCP_OAUTH_ISSUER: 'http://login.example.com' } },
    { start: 'per_user', env: { MCP_OAUTH_ISSUER: 'https://login.example.com/.well-known/openid-configuration' } },
    { start: 'per_user', env: { MCP_OAUTH_ISSUER: 'https://me:pw@login.example.com' } },
    { start: 'per_user', env: { MCP_OAUTH_JWKS_URL: 'https://login.example.com/.well-known/openid-configuration' } },
    { start: 'per_user', env: { MCP_OAUTH_JWKS_URL: 'https://login.example.com/keys#1' } },
    { start: 'per_user', env: { MCP_OAUTH_JWKS_URL: 'http://127.0.0.1:$NOBODY/keys' }, ask: 'readyz' },
    { start: 'per_user', env: { MCP_OAUTH_JWKS_URL: 'http://127.0.0.1:$WEB/keys' }, ask: 'readyz' },
    { start: 'per_user', env: { MCP_OAUTH_REQUIRED_SCOPE: 'openid svc-mcp.use' } },
    { start: 'per_user', env: { MCP_OAUTH_REQUEST_SCOPE: 'api://svc-mcp/"use"' } },
  ],
}

const HOSTS: Theme = {
  title: 'Hosts, proxies and networks',
  cases: [
    { start: 'development', env: { MCP_ALLOWED_HOSTS: 'https://mcp.example.com' } },
    { start: 'development', env: { MCP_ALLOWED_HOSTS: 'mcp.example.com/mcp' } },
    { start: 'development', env: { MCP_ALLOWED_HOSTS: '*.example.com' } },
    { start: 'development', env: { MCP_TRUSTED_PROXIES: 'proxy.example.com' } },
    { start: 'development', env: { MCP_TRUSTED_PROXIES: '10.0.0.7:8443' } },
    { start: 'development', env: { MCP_TRUSTED_PROXIES: '10.0.0.0/33' } },
    { start: 'development', env: { MCP_TRUSTED_PROXIES: '0.0.0.0/0' } },
    { start: 'per_user', env: { MCP_ALLOWED_PCE_HOSTS: 'https://pce.example.com' } },
    { start: 'per_user', env: { MCP_ALLOWED_PCE_HOSTS: '*.example.com,pce.example.org,pce&.example.net' } },
    { start: 'per_user', env: { MCP_ALLOWED_PCE_HOSTS: '10.0.0.0/8' } },
    { start: 'per_user', env: { PCE_PROXY_URL: 'http://proxy.example.com:3128' } },
    { start: 'stdio', env: { PCE_PROXY_URL: 'proxy.example.com:3128' } },
    { start: 'stdio', env: { PCE_PROXY_URL: 'socks5://proxy.example.com' } },
    { start: 'stdio', env: { PCE_PROXY_URL: 'http://me:100%@proxy.example.com:3128' } },
  ],
}

const CERTIFICATES: Theme = {
  title: 'Certificates for the PCE',
  cases: [
    { start: 'stdio', env: { PCE_CA_FILE: '$DIR/ca.pem' } },
    { start: 'stdio', env: { PCE_CA_FILE: '$DIR' } },
    {
      start: 'stdio',
      env: { PCE_CA_FILE: '$DIR/ca.pem' },
      given: '`ca.pem` that the user of the server may not read',
      make: file('ca.pem', 'x', 0o000),
    },
    {
      start: 'stdio',
      env: { PCE_CA_FILE: '$DIR/ca.der' },
      given: '`ca.der` is a DER file',
      make: (folder, stage) => {
        pem('ca')(folder, stage)
        execFileSync('openssl', ['x509', '-in', 'ca.pem', '-outform', 'der', '-out', 'ca.der'], { cwd: folder })
      },
    },
    {
      start: 'stdio',
      env: { PCE_CA_FILE: '$DIR/client.key' },
      given: '`client.key` is a key',
      make: pem('client.key'),
    },
    { start: 'stdio', env: { PCE_CA_FILE: '$DIR/ca.pem', PCE_TLS_VERIFY: 'false' }, make: pem('ca') },
    { start: 'stdio', env: { PCE_CLIENT_KEY_FILE: '$DIR/client.key' }, make: pem('client.key') },
    {
      start: 'stdio',
      env: { PCE_CLIENT_CERT_FILE: '$DIR/client.pem' },
      given: '`client.pem` has no key',
      make: pem('client'),
    },
    {
      start: 'stdio',
      env: { PCE_CLIENT_CERT_FILE: '$DIR/client.pem', PCE_CLIENT_KEY_FILE: '$DIR/server.key' },
      given: 'a key that is not that of the certificate',
      make: pem('client', 'server.key'),
    },
    {
      start: 'stdio',
      env: { PCE_CLIENT_CERT_FILE: '$DIR/client.pem', PCE_CLIENT_KEY_FILE: '$DIR/sealed.key' },
      given: '`sealed.key` has a passphrase',
      make: pem('client', 'sealed.key'),
    },
    {
      start: 'per_user',
      env: { PCE_CLIENT_CERT_FILE: '$DIR/client.pem', PCE_CLIENT_KEY_FILE: '$DIR/client.key' },
      make: pem('client', 'client.key'),
    },
  ],
}

const sqlite = (name: string, sql: string) => (folder: string) => {
  const db = new Database(join(folder, name))
  db.exec(sql)
  db.close()
}

const STATE: Theme = {
  title: 'Keystore, state file and audit log',
  cases: [
    { start: 'per_user', env: { MCP_KEYSTORE_PATH: '$DIR' } },
    { start: 'per_user', given: 'the working directory is read-only', make: (folder) => chmodSync(folder, 0o500) },
    { start: 'per_user', env: { MCP_KEYSTORE_PATH: '$DIR/volume/keystore.db' } },
    {
      start: 'per_user',
      env: { MCP_KEYSTORE_PATH: '$DIR/volume/keystore.db' },
      given: '`volume` is read-only',
      make: directory('volume', 0o500),
    },
    {
      start: 'per_user',
      env: { MCP_KEYSTORE_PATH: '$DIR/volume/new/keystore.db' },
      given: '`volume` is read-only',
      make: directory('volume', 0o500),
    },
    {
      start: 'per_user',
      env: { MCP_KEYSTORE_PATH: '$DIR/volume/keystore.db' },
      given: '`volume` is a file',
      make: file('volume', ''),
    },
    {
      start: 'per_user',
      env: { MCP_KEYSTORE_PATH: '$DIR/keystore.db' },
      given: '`keystore.db` is empty',
      make: file('keystore.db', ''),
    },
    {
      start: 'per_user',
      env: { MCP_KEYSTORE_PATH: '$DIR/keystore.db' },
      given: '`keystore.db` is a text file',
      make: file('keystore.db', 'API_KEY=api_1\n'.repeat(400)),
    },
    {
      start: 'per_user',
      env: { MCP_KEYSTORE_PATH: '$DIR/keystore.db' },
      given: '`keystore.db` is an SQLite file of another program',
      make: sqlite('keystore.db', 'CREATE TABLE bookmarks (url TEXT)'),
    },
    {
      start: 'per_user',
      env: { MCP_KEYSTORE_PATH: '$DIR/keystore.db' },
      given: '`keystore.db` is a symbolic link',
      make: (folder) => symlinkSync('elsewhere.db', join(folder, 'keystore.db')),
    },
    {
      start: 'per_user',
      env: { MCP_KEYSTORE_PATH: '$DIR/keystore.db' },
      given: '`keystore.db` may not be written',
      make: (folder) => {
        sqlite('keystore.db', 'CREATE TABLE any (x)')(folder)
        chmodSync(join(folder, 'keystore.db'), 0o400)
      },
    },
    {
      start: 'per_user',
      env: { MCP_KEYSTORE_PATH: '$DIR/keystore.db' },
      given: '`keystore.db` is gone, `keystore.db-wal` is not',
      make: file('keystore.db-wal', 'x'),
    },
    {
      start: 'per_user',
      env: { MCP_KEYSTORE_PATH: '$DIR/public/keystore.db' },
      given: 'anybody may write to `public`',
      make: directory('public', 0o777),
    },
    {
      start: 'per_user',
      env: { MCP_KEYSTORE_PATH: '/etc/passwd' },
    },
    { start: 'shared', env: { MCP_STATE_PATH: '/dev/null' } },
    { start: 'shared', env: { MCP_STATE_PATH: '$DIR/x.db', MCP_AUDIT_LOG_PATH: '$DIR/x.db' } },
    { start: 'stdio', env: { MCP_AUDIT_LOG_PATH: '$DIR/logs/audit.log' } },
    { start: 'stdio', env: { MCP_AUDIT_LOG_PATH: '$DIR' } },
    {
      start: 'stdio',
      env: { MCP_AUDIT_LOG_PATH: '$DIR/logs/audit.log' },
      given: '`logs` is read-only',
      make: directory('logs', 0o500),
    },
    {
      start: 'stdio',
      env: { MCP_AUDIT_LOG_PATH: '$DIR/audit.log' },
      given: '`audit.log` is a pipe without a reader',
      make: (folder) => void execFileSync('mkfifo', [join(folder, 'audit.log')]),
    },
  ],
}

const STATE_URL = 'postgres://svc_mcp:secret@127.0.0.1:$NOBODY/svc_mcp'

const DATABASE: Theme = {
  title: 'The state in PostgreSQL',
  cases: [
    { start: 'per_user', env: { MCP_STATE_URL: 'db.example.com:5432/svc_mcp' } },
    { start: 'per_user', env: { MCP_STATE_URL: 'mysql://svc_mcp:secret@127.0.0.1/svc_mcp' } },
    { start: 'per_user', env: { MCP_STATE_URL: 'postgres://svc_mcp:sec/ret@127.0.0.1/svc_mcp' } },
    { start: 'per_user', env: { MCP_STATE_URL: 'postgres://svc_mcp:s%cret@127.0.0.1/svc_mcp' } },
    { start: 'per_user', env: { MCP_STATE_URL: 'postgres://127.0.0.1' } },
    { start: 'per_user', env: { MCP_STATE_URL: 'postgres://svc_mcp:${PASSWORD}@127.0.0.1/svc_mcp' } },
    { start: 'per_user', env: { MCP_STATE_URL: 'postgres://svc_mcp:secret@db.example.com/svc_mcp?sslmode=require' } },
    { start: 'per_user', env: { MCP_STATE_URL: `${STATE_URL}?sslmode=prefer` } },
    { start: 'per_user', env: { MCP_STATE_URL: `${STATE_URL}?connect_timeout=3` } },
    { start: 'per_user', env: { MCP_STATE_URL: `${STATE_URL}?host=db.example.com` } },
    { start: 'per_user', env: { MCP_STATE_URL: `${STATE_URL}?sslmode=verify-full&sslrootcert=$DIR/ca.pem` } },
    {
      start: 'per_user',
      env: { MCP_STATE_URL: STATE_URL, MCP_STATE_URL_FILE: '$DIR/url' },
      make: file('url', STATE_URL),
    },
    { start: 'per_user', env: { MCP_STATE_URL: STATE_URL, MCP_STATE_POOL_SIZE: '1' } },
    { start: 'per_user', env: { MCP_STATE_URL: STATE_URL, MCP_STATE_CONNECT_TIMEOUT_SECONDS: '1' } },
    { start: 'shared', env: { MCP_LIMITS: 'shared' } },
    { start: 'shared', env: { MCP_STATE_URL: STATE_URL, MCP_LIMITS: 'none' } },
    { start: 'per_user', args: ['migrate'] },
    {
      start: 'per_user',
      env: { MCP_STATE_URL: STATE_URL },
      args: ['move-state', '--from', '$DIR/keystore.db'],
    },
  ],
}

const LISTENING: Theme = {
  title: 'Where it listens',
  cases: [
    { start: 'per_user', args: ['--host', '0.0.0.0', '--port', '0'] },
    { start: 'development', args: ['--host', '', '--port', '0'] },
    { start: 'development', args: ['--port', '65536'] },
    { start: 'development', args: ['--port', 'http'] },
    { start: 'development', args: ['--port'] },
    { start: 'development', args: ['--port', '$PCE'] },
    { start: 'development', args: ['--host', '192.0.2.1', '--port', '0'] },
    { start: 'development', args: ['--socket', '$DIR/mcp.sock', '--port', '8080'] },
    { start: 'development', args: ['--socket', '$DIR/run/mcp.sock'] },
    {
      start: 'development',
      args: ['--socket', '$DIR/run/mcp.sock'],
      given: '`run` is read-only',
      make: directory('run', 0o500),
    },
    { start: 'development', args: ['--socket', '$DIR/run/mcp.sock'], given: '`run` is a file', make: file('run', '') },
    { start: 'development', args: ['--socket', '$DIR/run'], given: '`run` is a folder', make: directory('run') },
    { start: 'development', args: ['--socket', `$DIR/${'long-'.repeat(20)}.sock`] },
    { start: 'development', args: ['--socket', ''] },
    {
      start: 'development',
      args: ['--socket', '$DIR/mcp.sock'],
      given: 'another server listens there',
      earlier: { args: ['--socket', '$DIR/mcp.sock'], stays: true },
    },
  ],
}

const TOOLS: Theme = {
  title: 'Confirmation and approval',
  cases: [
    { start: 'per_user', env: { MCP_CONFIRM_TOOLS: 'update-worklod' } },
    { start: 'per_user', env: { MCP_CONFIRM_TOOLS: 'update_workload,get-labels' } },
    { start: 'per_user', env: { MCP_CONFIRM_TOOLS: 'all' } },
    { start: 'per_user', env: { MCP_CONFIRM_TOOLS: 'register-pce-credentials' } },
    { start: 'per_user', env: { MCP_APPROVAL: 'two_person' } },
    { start: 'per_user', env: { MCP_APPROVAL: 'page', MCP_OAUTH_CLIENT_ID: null } },
    { start: 'shared', env: { MCP_APPROVAL: 'two-person', MCP_OAUTH_CLIENT_SECRET: 'secret' } },
    { start: 'shared', env: { MCP_APPROVAL: 'page', MCP_OAUTH_CLIENT_ID: 'svc-mcp', MCP_APPROVAL_TTL_SECONDS: '30' } },
    { start: 'shared', env: { MCP_APPROVAL_TTL_SECONDS: '60' } },
  ],
}

const OFFER: Theme = {
  title: 'Which tools are offered',
  cases: [
    { start: 'stdio', env: { MCP_READ_ONLY: 'yes' } },
    { start: 'stdio', env: { MCP_READONLY: '1' } },
    { start: 'stdio', env: { MCP_TOOLSETS: 'trafic,Rules' } },
    { start: 'stdio', env: { MCP_TOOLSETS: 'traffic analysis' } },
    { start: 'stdio', env: { MCP_TOOLSETS: ',' } },
    { start: 'stdio', env: { MCP_TOOLS: 'get-label,get_workloads,traffic' } },
    { start: 'stdio', env: { MCP_TOOLS: ' ' } },
    { start: 'stdio', env: { MCP_EXCLUDE_TOOLS: 'provision' } },
    { start: 'stdio', env: { MCP_DISABLED_TOOLS: 'provision-policy' } },
    { start: 'stdio', env: { MCP_TOOLSETS: 'traffic', MCP_TOOLS: 'get-traffic-flows,get-labels' } },
    {
      start: 'stdio',
      env: {
        MCP_READ_ONLY: '1',
        MCP_TOOLS: 'get-labels,create-label,get-workloads',
        MCP_EXCLUDE_TOOLS: 'get-workloads',
      },
    },
    { start: 'stdio', env: { MCP_READ_ONLY: '1', MCP_TOOLSETS: 'objects,ringfence' } },
    { start: 'stdio', env: { MCP_TOOLS: 'get-labels', MCP_EXCLUDE_TOOLS: 'get-labels' } },
    { start: 'stdio', env: { MCP_HIDE_FORBIDDEN: '1' } },
    { start: 'stdio', args: ['--toolsets', 'trafic'] },
    { start: 'stdio', args: ['--toolsets', ''] },
    { start: 'stdio', args: ['--read-only=1'] },
    { start: 'development', args: ['--toolsets', 'traffic,polices', '--port', '0'] },
    { start: 'development', args: ['--toolsets', '', '--port', '0'] },
    { start: 'development', env: { MCP_HIDE_FORBIDDEN: '1' } },
    { start: 'per_user', env: { MCP_HIDE_FORBIDDEN: 'on' } },
    { start: 'per_user', env: { MCP_READ_ONLY: '1', MCP_OAUTH_CLIENT_ID: null } },
    { start: 'per_user', env: { MCP_TOOLS: 'get-labels', MCP_OAUTH_CLIENT_ID: null } },
    { start: 'shared', env: { MCP_READ_ONLY: '1', MCP_TOOLS: 'provision-policy' } },
  ],
}

const COMMANDS: Theme = {
  title: 'Options and commands',
  cases: [
    { start: 'stdio', args: ['--port', '8080'] },
    { start: 'stdio', args: ['serve'] },
    { start: 'development', args: ['--prot', '8080'] },
    { start: 'development', args: ['serve'] },
    { start: 'per_user', args: ['backup-state'] },
    { start: 'per_user', args: ['backup-state', 'backup.db'] },
    {
      start: 'per_user',
      args: ['backup-state', 'backup.db'],
      given: '`backup.db` is there already',
      make: file('backup.db', 'x'),
      earlier: {},
    },
    { start: 'per_user', args: ['backup-state', 'backups/today.db'], earlier: {} },
    { start: 'per_user', env: { MCP_OAUTH_ISSUER: null }, args: ['forget-user', 'ann'] },
    { start: 'shared', args: ['rewrap-keystore'] },
    {
      start: 'per_user',
      env: { MCP_KEK: '$HMAC_KEY', MCP_CONFIRM_HMAC_KEY: '$KEK' },
      args: ['rewrap-keystore'],
      given: 'a keystore made with another `MCP_KEK`',
      earlier: {},
    },
  ],
}

export const THEMES: readonly Theme[] = [
  MISSING,
  MODES,
  SEVERAL,
  ADDRESS,
  REACHING,
  NAMES,
  QUOTES,
  SWITCHES,
  NUMBERS,
  DOT_ENV,
  SECRET_FILES,
  KEYS,
  LOGINS,
  HOSTS,
  CERTIFICATES,
  STATE,
  DATABASE,
  LISTENING,
  TOOLS,
  OFFER,
  COMMANDS,
]
