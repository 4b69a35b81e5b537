import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import http from 'node:http'
import https from 'node:https'
import net, { isIP, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import type { Test } from 'tap'
import type { AttemptTime } from '../../plugins/context/prove-pce.js'
import { createUserPces, type UserPcesParts } from '../../plugins/context/user-pces.js'
import { userPceGate } from '../../programs/composition/compose-authenticated.js'
import { openKeystoreState } from '../../storage/keystore/open-keystore.js'
import { createContextOpener } from '../../plugins/context/open-context.js'
import { createStreamAudit } from '../../plugins/dispatcher/audit-log.js'
import { createCallTracker } from '../../plugins/dispatcher/run-handler.js'
import { createDispatcher } from '../../plugins/dispatcher/dispatch.js'
import { provenGate, roleGate } from '../../plugins/dispatcher/admit-call.js'
import { renderError } from '../../plugins/errors/render-errors.js'
import type { Identity } from '../../schemas/caller.js'
import type { RoleMapping, UserPceConfig } from '../../schemas/config.js'
import { catalogueOf } from '../../tools/catalogue/catalogue-of.js'
import type { AnyTool } from '../../tools/define.js'
import { tools } from '../../tools/index.js'
import { createPceSimulator, type PceSimulator } from '../../pce-simulator/index.js'
import type { PceSimulatorOptions } from '../../pce-simulator/options.js'
import { makePki } from '../pce-client/contract/transport/make-pki.js'

// eslint-disable-next-line @typescript-eslint/no-explicit-any -- answers are read as they come off the wire
export type Json = any

export const PUBLIC_URL = 'https://mcp.example.com'
export const REGISTER = 'register-pce-credentials'
export const DELETE = 'delete-pce-credentials'
export const STATUS = 'check-pce-credentials-status'
export const ROLES: RoleMapping = {
  groups: { reader: ['readers'], operator: ['operators'], admin: ['admins'] },
  otherwise: null,
}

/** Someone with a checked token. */
export const person = (sub: string, groups: string[] = ['operators'], iss = 'https://id.example'): Identity => ({
  iss,
  sub,
  groups,
  hasGroupsOverage: false,
})

export type Pki = ReturnType<typeof makePki>

/** The arguments of a registration with the PCE at a local port. */
export const registration = (port: number, key: string, secret: string, more: object = {}) => ({
  pce_host: 'localhost',
  pce_port: port,
  pce_org_id: 1,
  api_key: key,
  api_secret: secret,
  ...more,
})

export interface UserServiceOptions extends Partial<Omit<UserPcesParts, 'callTracker' | 'log' | 'now' | 'keystore'>> {
  pki?: Pki
  userPce?: Partial<UserPceConfig>
  /** The keystore file of another service, as a second process would have it. */
  file?: string
  kek?: Buffer
  wrapKeystore?: (keystore: UserPcesParts['keystore']) => UserPcesParts['keystore']
  tools?: readonly AnyTool[]
  /** The client of the login of /setup; null where nobody can log in there. */
  login?: { clientId: string } | null
}

/** The time of an attempt to reach a PCE: it is up when the attempt has failed and waits for it, or when the test says so. */
interface Attempt extends AttemptTime {
  readonly ms: number
  /** The attempt has failed, and waited for its time to be up. */
  hasRested: boolean
  isOver: boolean
  readonly end: () => void
}

function createAttempt(ms: number): Attempt {
  const timeUp = new AbortController()
  return {
    ms,
    hasRested: false,
    isOver: false,
    isUp: timeUp.signal,
    async rest() {
      this.hasRested = true
    },
    stop() {
      this.isOver = true
    },
    end: () => timeUp.abort(),
  }
}

/**
 * The per_user service behind the authentication: real keystore on a real file, real host guard and pool, real dispatcher with the
 * gates of the mode; only name service, clock, and the time of an attempt to reach a PCE are the test's.
 */
export async function startUserService(t: Test, options: UserServiceOptions = {}) {
  const {
    pki,
    userPce,
    kek = Buffer.alloc(32, 7),
    wrapKeystore = (keystore) => keystore,
    login = { clientId: 'setup' },
  } = options
  const folder = mkdtempSync(join(tmpdir(), 'user-pces-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const path = options.file ?? join(folder, 'keystore.db')
  let time = Date.parse('2026-06-15T12:00:00Z')
  const now = () => time
  const file = await openKeystoreState({ path, kek }, { now })
  const log: string[] = []
  const note = (level: string) => (facts: object, message: string) => {
    const err = (facts as { err?: Error }).err
    const cause = err === undefined ? {} : { stack: err.stack, cause: String(err.cause) }
    log.push(JSON.stringify({ level, message, ...facts, ...cause }))
  }
  const serviceLog = { debug: note('debug'), info: note('info'), warn: note('warn'), error: note('error') }
  const attempts: Attempt[] = []
  const callTracker = createCallTracker()
  const keystore = wrapKeystore(file.keystore)
  const pces = createUserPces(
    {
      http: { publicUrl: PUBLIC_URL },
      ...(login && { login }),
      userPce: {
        allowedHosts: ['localhost'],
        allowInsecureTls: false,
        tls: { verify: true, ...(pki && { caFile: pki.path('ca.pem') }) },
        ...userPce,
      },
    },
    {
      keystore,
      lastChecks: file.lastChecks,
      callTracker,
      log: serviceLog,
      now,
      resolve: () => Promise.resolve([{ address: '127.0.0.1', family: 4 }]),
      startAttempt(ms) {
        const attempt = createAttempt(ms)
        attempts.push(attempt)
        return attempt
      },
      ...options,
    },
  )
  const audit: Json[] = []
  const stream = new PassThrough()
  stream.on('data', (chunk: Buffer) => {
    for (const line of chunk.toString().trim().split('\n')) audit.push(JSON.parse(line))
  })
  const dispatcher = createDispatcher({
    tools: catalogueOf(options.tools ?? tools),
    gates: [roleGate, userPceGate(login === null ? null : `${PUBLIC_URL}/setup`), provenGate],
    audit: createStreamAudit(stream),
    log: serviceLog,
    limits: { responseBudgetBytes: 80_000, trafficQueryTimeoutSeconds: 600, trafficMaxParts: 64 },
    callTracker,
    server: { name: 'svc-mcp', version: '0.1.0', changelog: async () => '# Changelog\n' },
    now,
  })
  t.teardown(async () => {
    await dispatcher.idle()
    pces.close()
    file.state.close()
  })

  const openContext = createContextOpener('per_user', ROLES, pces.find)
  let requests = 0
  async function call(identity: Identity, name: string, args: object = {}): Promise<Json> {
    const requestId = `r${++requests}`
    const callerContext = await openContext(identity)
    const signal = new AbortController().signal
    const result = await dispatcher.dispatch(
      { name, arguments: structuredClone(args) as Json, requestId, sender: { signal }, progress: () => {} },
      callerContext,
    )
    return result.ok ? result.value : renderError(result.error, requestId)
  }
  return {
    call,
    openContext,
    pces,
    keystore,
    state: file.state,
    path,
    log,
    audit,
    attempts,
    advance: (ms: number) => (time += ms),
    /** Everything on the disk, as text. */
    disk: () => readdirSync(folder).map((name) => readFileSync(join(folder, name), 'latin1')),
  }
}

/** A simulated PCE over TLS at `localhost`. */
export async function startPce(
  t: Test,
  pki: Pki,
  options: PceSimulatorOptions = {},
): Promise<PceSimulator & { port: number }> {
  const simulator = await createPceSimulator({
    workloads: 20,
    flows: 20,
    ...options,
    tls: { cert: pki.read('server.pem'), key: pki.read('server.key') },
  })
  t.teardown(() => simulator.close())
  return Object.assign(simulator, { port: Number(new URL(await simulator.listen()).port) })
}

/** A PCE whose only label is named after whose key asks: what anyone sees of it is their own, or a leak. */
export async function startEchoPce(t: Test, pki: Pki) {
  const state = {
    port: 0,
    connections: 0,
    open: 0,
    requests: 0,
    release: undefined as (() => void) | undefined,
    held: 0,
  }
  const waiting: (() => void)[] = []
  let isHolding = false
  const server = https.createServer(
    { cert: pki.read('server.pem'), key: pki.read('server.key') },
    (request, response) => {
      state.requests += 1
      const [key] = Buffer.from(String(request.headers.authorization).replace('Basic ', ''), 'base64')
        .toString()
        .split(':')
      const answer = () => {
        const label = {
          href: '/orgs/1/labels/1',
          key: 'app',
          value: `canary-of-${key}`,
          deleted: false,
        }
        const body = request.url?.includes('/labels') ? [label] : {}
        response.writeHead(200, {
          'content-type': 'application/json',
          'x-total-count': '1',
          'x-request-id': `pce-${key}`,
        })
        response.end(JSON.stringify(body))
      }
      if (isHolding) state.held = waiting.push(answer)
      else answer()
    },
  )
  server.on('secureConnection', (socket) => {
    state.connections += 1
    state.open += 1
    socket.on('close', () => (state.open -= 1))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  state.port = (server.address() as AddressInfo).port
  return Object.assign(state, {
    hold: () => (isHolding = true),
    letGo: () => {
      isHolding = false
      for (const answer of waiting.splice(0)) answer()
    },
  })
}

/** Someone at a port who is no PCE; counts who comes. */
export async function startStranger(t: Test, behaviour: 'silent' | 'plain http' | 'ssh') {
  const state = { port: 0, connections: 0 }
  const server =
    behaviour === 'plain http'
      ? http.createServer((_request, response) => void response.end('hello'))
      : net.createServer((socket) => {
          socket.on('error', () => {})
          if (behaviour === 'ssh') socket.end('SSH-2.0-OpenSSH\r\n')
        })
  const sockets = new Set<net.Socket>()
  server.on('connection', (socket: net.Socket) => {
    state.connections += 1
    sockets.add(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  state.port = (server.address() as AddressInfo).port
  return state
}

/** A name service by table; what is not in it does not exist. Lists are taken in turn, the last one stays. */
export function nameService(table: Record<string, string[][]>) {
  const asked: string[] = []
  const turns = new Map<string, number>()
  const resolve = (hostname: string) => {
    asked.push(hostname)
    const answers = table[hostname]
    if (answers === undefined) return Promise.reject(Object.assign(new Error('no such name'), { code: 'ENOTFOUND' }))
    const turn = turns.get(hostname) ?? 0
    turns.set(hostname, turn + 1)
    const addresses = answers[Math.min(turn, answers.length - 1)]!
    return Promise.resolve(addresses.map((address) => ({ address, family: isIP(address) })))
  }
  return { resolve, asked }
}

export { makePki }

/** The values of the labels that get-labels answered; any other answer as it is, so that a comparison shows it. */
export const valuesOf = (answer: Json) => answer.labels?.map(({ value }: { value: string }) => value) ?? answer
