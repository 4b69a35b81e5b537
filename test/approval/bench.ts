/** The whole service with approvals by people: asked over MCP, decided at the desk of another process with the same state. */
import { PassThrough } from 'node:stream'
import { pino } from 'pino'
import type { Test } from 'tap'
import { composeAuthenticated } from '../../programs/composition/compose-authenticated.js'
import type { DecisionOrigin } from '../../schemas/approvals.js'
import type { Identity, Role } from '../../schemas/caller.js'
import type { ApprovalConfig, DatabaseConfig, RoleMapping, SharedConfig } from '../../schemas/config.js'
import { catalogueOf } from '../../tools/catalogue/catalogue-of.js'
import type { GuardrailsConfig } from '../../schemas/guardrails.js'
import type { AnyTool } from '../../tools/define.js'
import { tools } from '../../tools/index.js'
import {
  GROUP_OF,
  type Json,
  type Line,
  NO_WAITS,
  startService,
  type ServiceOptions,
} from '../contract/authenticated-service.js'

export { GROUP_OF, type Json }

export interface BenchOptions {
  method?: ApprovalConfig['method']
  /** Of an earlier bench: the service after a restart, or another replica. */
  after?: Earlier
  roles?: RoleMapping
  confirm?: Partial<SharedConfig['confirm']>
  /** Where the state is; by default where the suite has it. */
  database?: DatabaseConfig
  estate?: ServiceOptions['estate']
  /** Guardrails, and all tools. */
  guardrails?: GuardrailsConfig
  tools?: readonly AnyTool[]
  limits?: SharedConfig['limits']
  /** Worker threads with so many places, and all tools; by default everything runs in the main thread. */
  threads?: { worker: URL; heavy: SharedConfig['heavy'] }
}

interface Earlier {
  method: ApprovalConfig['method']
  clock: { now: number }
  service: Awaited<ReturnType<typeof startService>>
}

export const FROM: DecisionOrigin = { requestId: 'page-1', client: 'browser/1', clientAddress: '192.0.2.7' }
export const ALL = 'provision-policy'

export async function startApproving(t: Test, options: BenchOptions = {}) {
  const { after, method = after?.method ?? 'page' } = options
  const clock = after?.clock ?? { now: Date.now() }
  const approval: ApprovalConfig = { method, ttlSeconds: 900, maxAgeSeconds: 0 }
  const earlier = after?.service.config as SharedConfig | undefined
  const service = await startService(t, {
    mode: 'shared',
    now: () => clock.now,
    ...(after && { folder: after.service.folder }),
    // The page of a provisioning reads traffic, so queries are done at once.
    estate: { pollsUntilDone: 1, retryAfter: 0, ...options.estate },
    ...(options.tools && { tools: options.tools }),
    ...(options.threads && { worker: options.threads.worker }),
    config: {
      ...(options.threads && { heavy: options.threads.heavy, offer: { toolsets: ['all'] } }),
      ...(options.guardrails && { guardrails: options.guardrails, offer: { toolsets: ['all'] } }),
      ...(options.limits && { limits: options.limits }),
      confirm: { hmacKey: Buffer.alloc(32, 9), ttlSeconds: 120, approval, ...options.confirm },
      ...(options.roles && { roles: options.roles }),
      ...(options.database && { database: options.database }),
      ...(earlier && {
        pce: earlier.pce,
        oauth: earlier.oauth,
        ...(earlier.database && { database: earlier.database }),
      }),
    },
  })
  const first = after ?? { service }
  const audit: Line[] = []
  const auditStream = new PassThrough()
  auditStream.on('data', (chunk: Buffer) => {
    for (const line of chunk.toString().trim().split('\n')) audit.push(JSON.parse(line) as Line)
  })
  const composed = await composeAuthenticated(service.config, {
    tools: catalogueOf(tools),
    log: pino({ level: 'silent' }),
    auditStream,
    now: () => clock.now,
    pceTimers: NO_WAITS,
  })
  t.teardown(() => composed.close())
  const desk = composed.approvals?.desk
  const { issuer } = (first.service.config as SharedConfig).oauth
  const person = (sub: string, role: Role | null = 'admin'): Identity => ({
    iss: issuer,
    sub,
    groups: role === null ? [] : [GROUP_OF[role]],
    hasGroupsOverage: false,
  })
  const simulator = first.service.pce.simulator
  return {
    service,
    method,
    clock,
    composed,
    desk: desk!,
    sweep: () => composed.approvals!.sweep(),
    rows: composed.state.approvals,
    /** Of the desk's process. */
    audit,
    auditStream,
    simulator,
    person,
    call: (sub: string, name: string, args: object = {}, meta?: object, role: Role = 'admin') =>
      first.service.tokenOf(sub, role).then((token) => service.call(token, name, args, meta)),
    /** A draft of ann's, of another second than what was before. */
    async draft(name: string): Promise<string> {
      clock.now += 1000
      const args = {
        name,
        scopes: [['app=payments', 'env=prod']],
        rules: [{ providers: ['ams'], consumers: ['ams'], ingress_services: [{ port: 443, proto: 'tcp' }] }],
      }
      const answer = await service.call(await first.service.tokenOf('ann'), 'create-ruleset', args)
      const href: unknown = answer.ruleset?.href
      if (typeof href !== 'string') throw new Error(`no draft: ${JSON.stringify(answer)}`)
      return href
    },
    decide: (id: string, verdict: 'approved' | 'denied', by: Identity, note?: string) =>
      desk!.decide(id, { verdict, by, ...(note !== undefined && { note }) }, FROM),
    /** How often policy was made active. */
    provisioned: () =>
      simulator.requests.filter(({ method: verb, path }) => verb === 'POST' && /\/sec_policy$/.test(path)).length,
    /** Entries of approvals that both processes have written, by what they say has happened. */
    entries: (id: string): Json[] => [...service.audit, ...audit].filter((line) => line['approval_id'] === id),
  }
}
