/** The whole authenticated service over inject, with tokens of the test, a real keystore file and simulated PCEs that speak https. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { InjectOptions } from 'fastify'
import { pino } from 'pino'
import { buildApp } from '../../programs/app.js'
import type { PceClientOptions } from '../../pce-client/index.js'
import type { Role } from '../../schemas/caller.js'
import { readDatabase } from '../../config/read-state-url.js'
import type { DatabaseConfig, PceBounds, PerUserConfig, SharedConfig } from '../../schemas/config.js'
import { catalogueOf } from '../../tools/catalogue/catalogue-of.js'
import { tools as allTools } from '../../tools/index.js'
import { parseEvents } from './insecure-app.js'
import type { AnyTool } from '../../tools/define.js'
import { claimsFor, forgeKey } from '../identity/forge.js'
import { startKeyServer } from '../identity/key-server.js'
import { createPceSimulator, type PceSimulator } from '../../pce-simulator/index.js'
import type { PceSimulatorOptions } from '../../pce-simulator/options.js'
import { sharedPostgres } from '../postgres/start-postgres.js'

export type Line = Record<string, unknown>
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- answers are read as they come off the wire
export type Json = any

interface Test {
  teardown(fn: () => unknown): void
}

export const PUBLIC_URL = 'https://mcp.example.test'
/** What `people` carry in their tokens. */
export const GROUP_OF: Record<Role, string> = { reader: 'g-read', operator: 'g-operate', admin: 'g-admin' }
const KEY = (fill: number) => Buffer.alloc(32, fill)

export interface ServiceOptions {
  mode?: 'per_user' | 'shared'
  tools?: readonly AnyTool[]
  /** Laid over the configuration. */
  config?: Partial<PerUserConfig> | Partial<SharedConfig>
  rates?: Partial<PerUserConfig['rates']>
  maxInFlight?: number
  bounds?: PceBounds
  /** Of the PCE of shared mode, and the first one of per_user mode. */
  estate?: PceSimulatorOptions
  folder?: string
  now?: () => number
  /** The identity provider's keys are not to be had. */
  keysAreDown?: boolean
  /** What worker threads load; without one heavy tools run in the main thread. */
  worker?: URL
  /** Keeps no log, which has each request to the PCE. */
  isSilent?: true
  /** The waits of the PCE clients; by default they are over at once. */
  pceTimers?: PceClientOptions['timers']
}

/** Waits that are over at once, for tests that are not about time: polls of traffic queries follow each other. */
export const NO_WAITS: NonNullable<PceClientOptions['timers']> = {
  now: Date.now,
  random: () => 0.5,
  sleep: (_ms, signal) => nextTurn(undefined, { signal }),
}

/** A certificate for 127.0.0.1 and its key, made once for the file that asks. */
const pki = (() => {
  let made: { cert: string; key: string; path: string } | undefined
  return () => {
    if (made === undefined) {
      const folder = mkdtempSync(join(tmpdir(), 'pki-'))
      process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
      const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
      const subject = ['-subj', '/CN=pce', '-addext', 'subjectAltName=IP:127.0.0.1,DNS:localhost']
      const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2']
      execFileSync('openssl', ['req', '-x509', ...kind, ...subject, '-keyout', key, '-out', cert], { stdio: 'pipe' })
      made = { cert: readFileSync(cert, 'utf8'), key: readFileSync(key, 'utf8'), path: cert }
    }
    return made
  }
})()

/** A simulated PCE on loopback. It speaks https; with the option `tls: undefined` http, which takes less time. */
export async function startPce(t: Test, options: PceSimulatorOptions = {}) {
  const { cert, key } = pki()
  const open = () => createPceSimulator({ seed: 1, workloads: 20, flows: 50, tls: { cert, key }, ...options })
  let simulator = await open()
  const port = Number(new URL(await simulator.listen({ port: 0 })).port)
  t.teardown(() => simulator.close())
  return {
    get simulator() {
      return simulator
    },
    port,
    /** Puts a PCE with the estate of the beginning in the place of this one. A service goes on with it, which takes less than another start. */
    async renew() {
      await simulator.close()
      simulator = await open()
      await simulator.listen({ port })
    },
  }
}

/** What register-pce-credentials takes for this PCE. */
export const registrationFor = ({ simulator, port }: { simulator: PceSimulator; port: number }) => ({
  pce_host: '127.0.0.1',
  pce_port: port,
  pce_org_id: Number(simulator.orgId),
  api_key: simulator.credentials.key,
  api_secret: simulator.credentials.secret,
})

const ON_POSTGRES = process.env.SERVICE_STATE === 'postgres'
/** Options of a test that reaches into the file of the state, which there may not be. */
export const ON_FILE_ONLY = ON_POSTGRES ? { skip: 'the state is in PostgreSQL' } : {}

const databases = new Map<string, Promise<DatabaseConfig>>()

/** `SERVICE_STATE=postgres` runs the suites of this service on PostgreSQL: a database for each folder, which would have the file. */
async function databaseOf(folder: string): Promise<DatabaseConfig | undefined> {
  if (!ON_POSTGRES) return undefined
  const known = databases.get(folder)
  if (known !== undefined) return known
  const making = sharedPostgres()
    .then((postgres) => postgres.makeDatabase())
    .then(({ url }) => readDatabase({ env: { MCP_STATE_URL: url }, faults: [], warnings: [] })!)
  databases.set(folder, making)
  return making
}

export async function startService(t: Test, options: ServiceOptions = {}) {
  const { mode = 'per_user', tools = allTools, bounds } = options
  // A user can only register a PCE that speaks https. The operator's may speak http, which takes half the time.
  const pce = await startPce(t, { ...(mode === 'shared' && { tls: undefined }), ...options.estate })
  const key = forgeKey('ES256')
  const keys = await startKeyServer(t, key)
  if (options.keysAreDown === true) keys.fault = 'error'
  const folder = options.folder ?? mkdtempSync(join(tmpdir(), 'service-'))
  if (options.folder === undefined) t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const oauth = {
    issuer: 'https://idp.example.test/',
    jwksUrl: keys.url,
    audience: PUBLIC_URL,
    requiredScope: 'svc-mcp.use',
    groupsClaims: ['groups', 'roles'],
  }
  const common = {
    logLevel: 'trace',
    limits: { responseBudgetBytes: 80_000, trafficQueryTimeoutSeconds: 600, trafficMaxParts: 64 },
    heavy: { max: 2, perCaller: 2, queue: 4, queuePerCaller: 4, memoryMb: 512 },
    warnings: [],
    http: {
      host: '127.0.0.1',
      port: 0,
      publicUrl: PUBLIC_URL,
      allowedHosts: [],
      maxInFlight: options.maxInFlight ?? 256,
    },
    oauth,
    roles: {
      groups: { reader: [GROUP_OF.reader], operator: [GROUP_OF.operator], admin: [GROUP_OF.admin] },
      otherwise: null,
    },
    confirm: { hmacKey: KEY(9), ttlSeconds: 120 },
    rates: { inFlightPerCaller: 0, perCaller: 0, confirmPerCaller: 0, refusedTokensPerAddress: 0, ...options.rates },
  }
  const config: PerUserConfig | SharedConfig =
    mode === 'per_user'
      ? {
          mode,
          ...common,
          keystore: { path: join(folder, 'keystore.db'), kek: KEY(7) },
          userPce: {
            allowedHosts: ['127.0.0.1'],
            allowInsecureTls: false,
            tls: { verify: true, caFile: pki().path },
            bounds,
          },
          ...(options.config as Partial<PerUserConfig>),
        }
      : {
          mode,
          ...common,
          statePath: join(folder, 'state.db'),
          pce: {
            url: pce.simulator.url,
            port: String(pce.port),
            orgId: String(pce.simulator.orgId),
            apiKey: pce.simulator.credentials.key,
            apiSecret: pce.simulator.credentials.secret,
            tls: { verify: true, caFile: pki().path },
            bounds,
          },
          ...(options.config as Partial<SharedConfig>),
        }
  const database = config.database ?? (await databaseOf(folder))
  if (database !== undefined) config.database = database
  const audit: Line[] = []
  const log: Line[] = []
  const auditStream = new PassThrough()
  auditStream.on('data', (chunk: Buffer) => {
    for (const line of chunk.toString().trim().split('\n')) audit.push(JSON.parse(line))
  })
  const lifecycle = { isDraining: false }
  const app = await buildApp(config, {
    tools: catalogueOf(tools),
    log: pino(
      { level: options.isSilent ? 'silent' : 'trace' },
      { write: (line: string) => void log.push(JSON.parse(line)) },
    ),
    auditStream,
    isDraining: () => lifecycle.isDraining,
    ...(options.now && { now: options.now }),
    ...(options.worker && { worker: options.worker }),
    pceTimers: options.pceTimers ?? NO_WAITS,
  })
  t.teardown(() => app.close())
  await app.ready()
  if (options.keysAreDown !== true) while (!app.areKeysLoaded()) await new Promise((done) => setImmediate(done))

  /** An access token of this person; a role is a group. */
  const tokenOf = (sub: string, role: Role | null = 'admin', more: Line = {}) =>
    key.sign(claimsFor(oauth, { sub, groups: role === null ? [] : [GROUP_OF[role]], ...more }, options.now?.()))
  const send = (token: string | null, body: unknown, more: InjectOptions = {}) =>
    app.inject({
      method: 'POST',
      url: '/mcp',
      payload: typeof body === 'string' ? body : JSON.stringify(body),
      ...more,
      headers: {
        host: new URL(PUBLIC_URL).host,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...(token !== null && { authorization: `Bearer ${token}` }),
        ...more.headers,
      },
    })
  /** The structured answer of a tool, or its error body. */
  const call = async (token: string, name: string, args: object = {}, meta?: object): Promise<Json> => {
    const params = { name, arguments: args, ...(meta && { _meta: meta }) }
    const { payload } = await send(token, { jsonrpc: '2.0', id: 1, method: 'tools/call', params })
    // An answer that takes its time is a stream of events.
    const answer: Json = payload.startsWith('{') ? JSON.parse(payload) : parseEvents(payload).events.at(-1)!.data
    return answer.result?.structuredContent ?? JSON.parse(answer.result?.content[0].text ?? JSON.stringify(answer))
  }
  const confirm = (token: string | null, body: unknown, headers: Record<string, string> = {}) =>
    send(token, body, { url: '/confirm', headers })
  return { app, config, pce, keys, key, oauth, audit, log, lifecycle, folder, tokenOf, send, call, confirm }
}
