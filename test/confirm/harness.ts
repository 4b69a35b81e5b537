import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { fastify, type FastifyRequest, type InjectOptions } from 'fastify'
import { pino } from 'pino'
import type { Test } from 'tap'
import type { PceClient } from '../../pce-client/index.js'
import { byToken } from '../../plugins/confirm/by-token.js'
import { confirmCall } from '../../plugins/confirm/life.js'
import { createTokens } from '../../plugins/confirm/tokens.js'
import { createKnowledge } from '../../knowledge/index.js'
import confirm from '../../plugins/confirm/index.js'
import { createRouteAudit } from '../../plugins/dispatcher/record-call.js'
import { createCallTracker } from '../../plugins/dispatcher/run-handler.js'
import { confirmGate } from '../../plugins/dispatcher/confirm-gate.js'
import { pceGate, roleGate } from '../../plugins/dispatcher/admit-call.js'
import dispatcher from '../../plugins/dispatcher/index.js'
import type { OfferedContext } from '../../plugins/dispatcher/call.js'
import errors from '../../plugins/errors/index.js'
import mcp from '../../plugins/mcp/index.js'
import { offerWhole } from '../../plugins/offer/choose-tools.js'
import requestId, { requestIdOf } from '../../plugins/request-id/index.js'
import { openState } from '../../storage/state/open-state.js'
import type { AuditEntry } from '../../schemas/audit.js'
import type { Caller, Role } from '../../schemas/caller.js'
import type { ConfirmConfig } from '../../schemas/config.js'
import { ToolError } from '../../schemas/errors.js'
import type { Challenges, UsedTokens } from '../../schemas/state.js'
import { catalogueOf } from '../../tools/catalogue/catalogue-of.js'
import type { AnyTool } from '../../tools/define.js'
import { tools as realTools } from '../../tools/index.js'
import { createPceSimulator, type PceSimulator } from '../../pce-simulator/index.js'
import type { PceSimulatorOptions } from '../../pce-simulator/options.js'
import { parseEvents } from '../contract/insecure-app.js'
import { connect, noCredentials, NOW, type Json } from '../tools/harness.js'

export const PUBLIC_URL = 'https://mcp.example.test'
const ISS = 'https://id.example.test'

interface Person extends Pick<OfferedContext, 'roleProblem' | 'pceProblem'> {
  role: Role | null
  iss?: string
  sub?: string
  hasPce?: boolean
}

/** Who may send a request: named by the header x-user, in the place of a login. */
const PEOPLE: Record<string, Person> = {
  ann: { role: 'admin' },
  bob: { role: 'admin' },
  'ann elsewhere': { role: 'admin', iss: 'https://other.example.test', sub: 'ann' },
  olga: { role: 'operator' },
  rita: { role: 'reader' },
  nora: { role: null },
  newcomer: { role: 'admin', hasPce: false },
  overloaded: { role: null, roleProblem: new ToolError('forbidden_no_role', 'Your token names no groups.') },
  unreadable: {
    role: 'admin',
    hasPce: false,
    pceProblem: new ToolError('credentials_unreadable', 'They cannot be read.'),
  },
}

export interface Options extends PceSimulatorOptions {
  config?: Partial<ConfirmConfig>
  /** Of an earlier bench: the service after a restart, with the same PCE. */
  after?: Earlier
  /** In front of the state file. */
  ports?: (state: { usedTokens: UsedTokens; challenges: Challenges }) => typeof state
  tools?: readonly AnyTool[]
}

interface Earlier {
  clock: { now: number }
  simulator: PceSimulator
  directory: string
}

export type Bench = Awaited<ReturnType<typeof startConfirming>>

interface CallOptions {
  as?: string
  token?: unknown
  /** Where the token goes; default params._meta. */
  inside?: boolean
}

/**
 * The service with roles and confirmations, in front of a simulated PCE: the real gates, dispatcher, /mcp, /confirm and state file.
 * Only the login is played.
 */
/** The answer, also of a call that took so long that it became a stream of events. */
const lastMessage = (payload: string): Json =>
  payload.startsWith('{') ? JSON.parse(payload) : parseEvents(payload).events.at(-1)!.data

export async function startConfirming(t: Test, options: Options = {}) {
  const { after, config } = options
  const clock = after?.clock ?? { now: NOW }
  const now = () => clock.now
  const simulator =
    after?.simulator ??
    (await createPceSimulator({ seed: 3, workloads: 120, flows: 400, totalCount: 'all', now, ...options }))
  const directory = after?.directory ?? mkdtempSync(join(tmpdir(), 'confirm-'))
  if (after === undefined) {
    await simulator.listen()
    t.teardown(() => simulator.close())
    t.teardown(() => rmSync(directory, { recursive: true, force: true }))
  }
  const pce = connect(simulator, simulator.url)
  t.teardown(() => pce.close())
  const state = openState(join(directory, 'state.db'), { now, variable: 'MCP_STATE_PATH' })
  t.teardown(() => state.close())
  const ports = options.ports?.(state) ?? state
  const confirmations = createTokens({
    config: { hmacKey: Buffer.alloc(32, 7), ttlSeconds: 120, ...config },
    audience: PUBLIC_URL,
    usedTokens: ports.usedTokens,
    challenges: ports.challenges,
    now,
  })

  const audit: AuditEntry[] = []
  const auditing = { isFull: false, isStuck: false }
  const write = (entry: AuditEntry) => {
    if (auditing.isFull) throw new Error('ENOSPC')
    audit.push(entry)
  }
  const sync = async () => {
    if (auditing.isStuck) throw new Error('EIO')
  }
  const auditLog = {
    write,
    async writeInTurn(entry: AuditEntry) {
      await nextTurn()
      write(entry)
    },
    flush() {},
    sync,
    check() {},
    reopen() {},
    close() {},
  }
  const lines: string[] = []
  const callTracker = createCallTracker()
  const tools = catalogueOf(options.tools ?? realTools)
  const contextFor = (name: string): OfferedContext => {
    const { role, iss = ISS, sub = name, hasPce = true, ...problems } = PEOPLE[name]!
    const caller: Caller = { mode: 'per_user', role, iss, sub }
    return {
      caller,
      transport: 'http',
      offer: offerWhole(tools),
      pce: hasPce ? pce : null,
      credentials: noCredentials,
      client: 'test/1',
      ...problems,
    }
  }
  const presence = pceGate('Register at /setup.', { setup_path: '/setup' })
  const nameOf = (request: FastifyRequest) => String(request.headers['x-user'])
  const known = new WeakMap<FastifyRequest, OfferedContext>()

  const app = fastify({
    genReqId: requestIdOf,
    loggerInstance: pino({ level: 'trace' }, { write: (line: string) => void lines.push(line) }),
  })
  await app.register(requestId)
  await app.register(errors)
  await app.register(dispatcher, {
    tools,
    gates: [
      roleGate,
      presence,
      confirmGate({ admit: (call) => confirmCall(call, byToken(confirmations, `${PUBLIC_URL}/confirm`)) }),
    ],
    audit: auditLog,
    log: app.log,
    limits: { responseBudgetBytes: 80_000, trafficQueryTimeoutSeconds: 600, trafficMaxParts: 64 },
    callTracker,
    server: { name: 'svc-mcp', version: '0.1.0', changelog: async () => null },
    now,
  })
  await app.register(async (secured) => {
    secured.addHook('preHandler', async (request) => void known.set(request, contextFor(nameOf(request))))
    await secured.register(mcp, {
      info: { name: 'svc-mcp', version: '0.1.0' },
      tools,
      knowledge: createKnowledge({
        tools,
        server: { changelog: async () => null },
        limits: { responseBudgetBytes: 80_000 },
        now: Date.now,
      }),
      contextOf: (request) => known.get(request)!,
    })
    await secured.register(confirm, {
      tokens: confirmations,
      tools,
      contextOf: (request) => known.get(request) ?? null,
      ownerOf: (request) => {
        const { iss, sub } = contextFor(nameOf(request)).caller
        return { iss: iss!, sub: sub! }
      },
      checkCall(tool, request) {
        const callerContext = known.get(request)!
        roleGate.check({ tool, callerContext })
        presence.check({ tool, callerContext })
      },
      audit: createRouteAudit(auditLog),
      now,
    })
  })
  t.teardown(() => app.close())

  const post = (payload: unknown, as = 'ann', more: InjectOptions = {}) =>
    app.inject({
      method: 'POST',
      url: '/mcp',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', 'x-user': as },
      payload: JSON.stringify(payload),
      ...more,
    })
  const confirming = (payload: unknown, as = 'ann', more: InjectOptions = {}) =>
    app.inject({
      method: 'POST',
      url: '/confirm',
      headers: { 'content-type': 'application/json', 'x-user': as },
      payload: typeof payload === 'string' ? payload : JSON.stringify(payload),
      ...more,
    })
  const callOf = (
    name: string,
    args: object | undefined,
    { token, inside = false }: CallOptions = {},
    id: unknown = 1,
  ) => ({
    jsonrpc: '2.0',
    id,
    method: 'tools/call',
    params: {
      name,
      ...(args !== undefined && { arguments: inside ? { ...args, _meta: { confirm_token: token } } : args }),
      ...(token !== undefined && !inside && { _meta: { confirm_token: token } }),
    },
  })
  const read = (answer: Json): Json =>
    answer.result === undefined
      ? answer.error
      : { ...JSON.parse(answer.result.content[0].text), ok: !answer.result.isError }

  return {
    app,
    clock,
    directory,
    simulator,
    pce,
    state,
    confirmations,
    audit,
    auditing,
    lines,
    callTracker,
    contextFor,
    post,
    confirming,
    callOf,
    read,
    /** The body of one tool call, result or error; `ok` tells which. */
    async call(name: string, args?: object, more: CallOptions = {}): Promise<Json> {
      return read(lastMessage((await post(callOf(name, args, more), more.as)).payload))
    },
    /** Sends what the question says is to be sent. */
    async confirm(asked: Json, as = 'ann'): Promise<Json> {
      return (await confirming(asked.confirm.body, as)).json()
    },
    /** A token for a hash, or the error body. */
    async mint(tool: string, hash: string, as = 'ann'): Promise<Json> {
      return (await confirming({ tool, params_hash: hash }, as)).json()
    },
    /** Asks as a client does, and has the token minted: what is to be sent with the second call. */
    async tokenFor(name: string, args: object, as = 'ann'): Promise<string> {
      const asked = await this.call(name, args, { as })
      if (asked.error !== 'confirm_required') throw new Error(`not asked: ${JSON.stringify(asked)}`)
      return (await this.confirm(asked, as)).confirm_token
    },
    /** Requests that changed the PCE, since the last question. */
    writes() {
      const reading = /\/(?:async_queries|dependencies|impact)(?:\/|$)/
      const found = simulator.requests.filter(({ method, path }) => method !== 'GET' && !reading.test(path))
      simulator.clearRequests()
      return found
    },
    /** A rule set in draft, a millisecond later than whatever was before. */
    async draft(name: string): Promise<{ href: string; rule: string }> {
      clock.now += 1
      const scopes = [[{ label: { href: await labelOf(pce, 'payments') } }]]
      const { href } = await pce.ruleSets.create({ name, scopes })
      const rule = await pce.rules.create(RULE, href)
      return { href, rule: rule.href }
    },
    close: async () => {
      await app.close()
      state.close()
    },
  }
}

const RULE = {
  enabled: true,
  providers: [{ actors: 'ams' }],
  consumers: [{ actors: 'ams' }],
  ingress_services: [{ port: 443, proto: 6 }],
  resolve_labels_as: { providers: ['workloads'], consumers: ['workloads'] },
} as Json

async function labelOf(pce: PceClient, value: string): Promise<string> {
  return (await pce.labels.get('draft', null, { params: { key: 'app', value } }))[0]!.href
}
