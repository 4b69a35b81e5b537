/**
 * The commands that compose.yaml runs beside the server so that it can be tried out: `prepare`, `identity-provider` and
 * `welcome`. They must never be used in production.
 */
import { execFileSync } from 'node:child_process'
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { existsSync, renameSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { env } from 'node:process'

/** The people who can log in, with any password. */
const PEOPLE = {
  alice: { group: 'trial-admins', may: 'read, change and provision' },
  oscar: { group: 'trial-operators', may: 'read and change' },
  rita: { group: 'trial-readers', may: 'read' },
}

const command = process.argv[2]
if (command === 'prepare') prepare(env.TRIAL_FILES)
else if (command === 'identity-provider')
  await identify(env.TRIAL_ISSUER, env.TRIAL_PUBLIC_URL, Number(env.TRIAL_LISTEN_PORT))
else if (command === 'welcome') welcome(env.TRIAL_PUBLIC_URL)
else throw new Error(`There is no command '${command}': prepare, identity-provider or welcome.`)

/**
 * Creates keys, passwords and a certificate for localhost, unless they exist. Containers that run as other users must
 * be able to read them.
 */
function prepare(folder) {
  if (existsSync(join(folder, 'state-url'))) return
  const password = randomBytes(24).toString('base64url')
  const [cert, key] = [join(folder, 'tls.pem'), join(folder, 'tls.key')]
  const names = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1']
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '90']
  execFileSync('openssl', ['req', '-x509', ...kind, ...names, '-keyout', `${key}.new`, '-out', cert], { stdio: 'pipe' })
  renameSync(`${key}.new`, key)
  execFileSync('chmod', ['0644', key])
  for (const [name, text] of [
    ['kek', randomBytes(32).toString('base64')],
    ['confirm-key', randomBytes(32).toString('base64')],
    ['postgres-password', password],
    // This file is written last, because its existence means that all files exist.
    ['state-url', `postgres://svc_mcp:${password}@127.0.0.1:5432/svc_mcp`],
  ])
    writeFileSync(join(folder, name), text)
}

/** Runs an OpenID provider at which everybody in PEOPLE can log in and every MCP client can register. */
async function identify(issuer, publicUrl, port) {
  const { Provider } = await import('oidc-provider')
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const scope = 'svc-mcp.use'
  const provider = new Provider(issuer, {
    jwks: {
      keys: [
        { ...privateKey.export({ format: 'jwk' }), kid: randomBytes(8).toString('hex'), alg: 'RS256', use: 'sig' },
      ],
    },
    cookies: { keys: [randomBytes(32).toString('hex')] },
    scopes: ['openid', 'offline_access', scope],
    claims: { openid: ['sub'], profile: ['name'] },
    clients: [
      {
        client_id: 'setup',
        token_endpoint_auth_method: 'none',
        grant_types: ['authorization_code'],
        response_types: ['code'],
        redirect_uris: [`${publicUrl}/setup/callback`],
      },
    ],
    clientBasedCORS: () => true,
    pkce: { required: () => true },
    findAccount: (_context, login) =>
      login in PEOPLE ? { accountId: login, claims: () => ({ sub: login, name: login }) } : undefined,
    ttl: { AccessToken: 3600, AuthorizationCode: 60, Grant: 86_400, IdToken: 600, Interaction: 600, Session: 86_400 },
    features: {
      devInteractions: { enabled: true },
      registration: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => publicUrl,
        useGrantedResource: () => true,
        getResourceServerInfo: () => ({ scope, audience: publicUrl, accessTokenFormat: 'jwt' }),
      },
    },
    formats: {
      customizers: {
        jwt(_context, token, parts) {
          parts.payload.groups = [PEOPLE[token.accountId]?.group].filter(Boolean)
        },
      },
    },
  })
  const handle = provider.callback()
  createServer((request, response) => void handle(request, response)).listen(port, '127.0.0.1')
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(0))
}

function welcome(publicUrl) {
  const people = Object.entries(PEOPLE).map(([name, { may }]) => `    ${name.padEnd(6)} may ${may}`)
  process.stdout.write(`
svc-mcp is up.

  MCP client   ${publicUrl}/mcp
  PCE key      ${publicUrl}/setup, once for each person:
                 PCE https://localhost:9443, organization 1, key api_trial, secret trial
  Log in as    (any password)
${people.join('\n')}

The certificate is of this trial's own. For a client that runs on Node.js:
  docker compose --file deploy/compose/compose.yaml cp proxy:/trial/tls.pem trial.pem
  export NODE_EXTRA_CA_CERTS=$PWD/trial.pem
`)
}
