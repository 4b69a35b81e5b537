/** What a process in an authenticated mode needs around it: keys that sign tokens, a PCE, a folder, and its environment. */
import { randomBytes } from 'node:crypto'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Role } from '../../../schemas/caller.js'
import { claimsFor, forgeKey } from '../../identity/forge.js'
import { startKeyServer } from '../../identity/key-server.js'
import type { IdentityProvider } from '../../identity/identity-provider.js'
import type { PceSimulatorOptions } from '../../../pce-simulator/options.js'
import { startPce } from './hold-pce.js'
import { makeCertificate } from './make-certificate.js'
import { sendRequest, type Target } from './send-request.js'
import { startProgram, type Program, type StartOptions } from './start-program.js'
import { found } from './within.js'

interface Test {
  teardown(fn: () => unknown): void
}

export const GROUP_OF: Record<Role, string> = { reader: 'g-read', operator: 'g-operate', admin: 'g-admin' }

/** 32 random bytes as the configuration takes them. */
export const newKey = () => randomBytes(32).toString('base64')

/** Where a process says that it listens, as a target. */
export const targetOf = (where: string): Target =>
  where.startsWith('unix:')
    ? { origin: 'http://localhost', socketPath: where.slice(5) }
    : { origin: new URL(where).origin }

export interface WorldOptions {
  publicUrl?: string
  /** Issues the tokens, in place of keys of the test. */
  idp?: IdentityProvider
  pce?: PceSimulatorOptions
}

export type World = Awaited<ReturnType<typeof createWorld>>

export async function createWorld(t: Test, { publicUrl = 'http://127.0.0.1:1', idp, pce: estate }: WorldOptions = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'edge-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const certificate = makeCertificate(t)
  const key = forgeKey('ES256')
  const keyServer = await startKeyServer(t, key)
  const pce = await startPce(t, certificate, estate)
  const oauth = idp?.oauth({ audience: publicUrl }) ?? {
    issuer: 'https://idp.example.test/v2.0',
    jwksUrl: keyServer.url,
    audience: publicUrl,
    requiredScope: 'svc-mcp.use',
    groupsClaims: ['groups', 'roles'],
  }
  const secrets = { kek: newKey(), hmac: newKey() }
  const keystorePath = join(folder, 'keystore.db')
  const auditPath = join(folder, 'audit.log')

  /** Of a process in per_user mode that lets its users register the simulated PCE, without limits of rate. */
  const env: Record<string, string | undefined> = {
    MCP_PUBLIC_URL: publicUrl,
    MCP_OAUTH_ISSUER: oauth.issuer,
    MCP_OAUTH_JWKS_URL: oauth.jwksUrl,
    MCP_OAUTH_AUDIENCE: oauth.audience,
    MCP_ROLE_GROUPS_READER: GROUP_OF.reader,
    MCP_ROLE_GROUPS_OPERATOR: GROUP_OF.operator,
    MCP_ROLE_GROUPS_ADMIN: GROUP_OF.admin,
    MCP_KEK: secrets.kek,
    MCP_CONFIRM_HMAC_KEY: secrets.hmac,
    MCP_KEYSTORE_PATH: keystorePath,
    MCP_ALLOWED_PCE_HOSTS: '127.0.0.1',
    PCE_CA_FILE: certificate.certPath,
    MCP_RATE_LIMIT_PER_MINUTE: '0',
    MCP_CONFIRM_RATE_PER_MINUTE: '0',
    MCP_LOG_LEVEL: 'warn',
  }

  /** An access token of this person, signed by the test; a role is a group. */
  const tokenOf = (sub: string, role: Role | null = 'admin', more: Record<string, unknown> = {}) =>
    key.sign(claimsFor(oauth, { sub, groups: role === null ? [] : [GROUP_OF[role]], ...more }))

  /** Starts a process and waits until it is ready for calls. `env` is laid over the world's. */
  async function serve({ args = ['--port', '0'], env: more = {}, ...rest }: StartOptions = {}): Promise<
    Program & { target: Target }
  > {
    const program = startProgram(t, { ...rest, args, env: { ...env, ...more } })
    const target = targetOf(await program.listening)
    await untilReady(target)
    return { ...program, target }
  }

  return {
    folder,
    certificate,
    key,
    keyServer,
    pce,
    oauth,
    secrets,
    keystorePath,
    auditPath,
    env,
    tokenOf,
    serve,
    /** The entries in the audit file. Throws for a line that is no JSON. */
    auditEntries: (path = auditPath) => entriesOf(existsSync(path) ? readFileSync(path, 'utf8') : ''),
  }
}

/** The environment of a process in shared mode, with the key of the simulated PCE. */
export const sharedEnv = ({ pce, env }: World): Record<string, string | undefined> => ({
  ...env,
  MCP_PCE_MODE: 'shared',
  PCE_HOST: `https://127.0.0.1:${pce.port}`,
  PCE_PORT: String(pce.port),
  PCE_ORG_ID: String(pce.simulator.orgId),
  API_KEY: pce.simulator.credentials.key,
  API_SECRET: pce.simulator.credentials.secret,
  MCP_KEK: undefined,
})

/** The entries in the text of an audit log. Throws for a line that is no JSON. */
export const entriesOf = (text: string): Record<string, unknown>[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))

/** Waits until /readyz says yes: a process listens before it has the keys of the identity provider. */
export async function untilReady(target: Target): Promise<void> {
  await found(async () => (await sendRequest(target, { method: 'GET', path: '/readyz' })).status === 200, 'readiness')
}
