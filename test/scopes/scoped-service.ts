/** A service whose callers have scopes, and what they can do with it. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { pino } from 'pino'
import type { Test } from 'tap'
import { composeAuthenticated } from '../../programs/composition/compose-authenticated.js'
import type { ApprovalConfig } from '../../schemas/config.js'
import {
  GROUP_OF,
  registrationFor,
  startService,
  type Json,
  type ServiceOptions,
} from '../contract/authenticated-service.js'
import type { Estate } from '../../pce-simulator/model.js'
import { catalogueOf } from '../../tools/catalogue/catalogue-of.js'
import type { PceSimulatorOptions } from '../../pce-simulator/options.js'
import type { AnyTool } from '../../tools/define.js'
import { tools } from '../../tools/index.js'

/** Calls are confirmed with tokens, or approved by a person on a page, who decides for these tools, too. */
interface Confirmed {
  approval?: ApprovalConfig
  tools?: readonly string[]
}

export const isWrite = ({ method, path: at }: { method: string; path: string }) =>
  method !== 'GET' && !/async_queries|dependencies|impact/.test(at)

interface ScopedOptions extends PceSimulatorOptions, Pick<ServiceOptions, 'isSilent' | 'mode' | 'worker'> {
  confirmed?: Confirmed
}

/** A service with these scopes, by default in shared mode, and what its callers can do. */
export async function startScoped(
  t: Test,
  groups: object,
  estate: Estate,
  offered: readonly AnyTool[] = tools,
  { confirmed = {}, mode = 'shared', worker, isSilent, now, ...pce }: ScopedOptions = {},
) {
  const folder = mkdtempSync(join(tmpdir(), 'scopes-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const path = join(folder, 'scopes.json')
  writeFileSync(path, JSON.stringify({ groups }))
  const service = await startService(t, {
    mode,
    tools: offered,
    config: {
      scopesPath: path,
      offer: { toolsets: ['all'] },
      // One thread, because each of them loads all tools.
      ...(worker && { heavy: { max: 1, perCaller: 1, queue: 4, queuePerCaller: 4, memoryMb: 512 } }),
      confirm: { hmacKey: Buffer.alloc(32, 9), ttlSeconds: 120, ...confirmed },
    },
    estate: { estate, ...pce, ...(now && { now }) },
    ...(now && { now }),
    ...(worker && { worker }),
    ...(isSilent && { isSilent }),
  })
  const tokens = new Map<string, string>()
  /** The token of an admin in this group of the file. */
  const tokenOf = async (group: string) => {
    const known = tokens.get(group)
    if (known !== undefined) return known
    const token = await service.tokenOf(group, 'admin', { groups: [GROUP_OF.admin, group] })
    if (mode === 'per_user') await service.call(token, 'register-pce-credentials', registrationFor(service.pce))
    tokens.set(group, token)
    return token
  }
  /** Another process with the same state, at whose desk people decide. */
  const desk = confirmed.approval && (await openDesk(t, service.config))
  /** Confirms a call that was asked, in the person's own client or on the page. Returns what the repeated call carries. */
  async function confirm(token: string, asked: Json, approver = 'core'): Promise<object | undefined> {
    if (desk === undefined) {
      const { confirm_token: given } = (await service.confirm(token, asked.confirm.body)).json<Json>()
      return { confirm_token: given as unknown }
    }
    const by = { iss: service.oauth.issuer, sub: approver, groups: [GROUP_OF.admin, approver], hasGroupsOverage: false }
    await desk.decide(asked.approval_id, { verdict: 'approved', by }, { requestId: 'page' })
    return undefined
  }
  /** A call, confirmed as often as that is asked for: what an earlier estate was asked about does not confirm it. */
  async function call(group: string, tool: string, args: object, approver?: string): Promise<Json> {
    const token = await tokenOf(group)
    let answer: Json = await service.call(token, tool, args)
    for (let asked = 0; asked < 2 && isAsked(answer); asked++)
      answer = await service.call(token, tool, args, await confirm(token, answer, approver))
    return answer
  }
  return {
    ...service,
    path,
    tokenOf,
    signFor: service.tokenOf,
    call,
    /** One call with a token, as it is sent. */
    sendCall: service.call,
    /** Confirms what the group asked. Returns what its repeated call has to carry. */
    confirmAs: async (group: string, asked: Json, approver?: string) => confirm(await tokenOf(group), asked, approver),
    /** What became of a call: `ok` or the error, the condition that was not met, and the number of writes sent. */
    async ask(group: string, tool: string, args: object): Promise<unknown[]> {
      service.pce.simulator.clearRequests()
      const answer = await call(group, tool, args)
      return [answer.error ?? 'ok', answer.error && answer.rule, service.pce.simulator.requests.filter(isWrite).length]
    },
  }
}

/** Whether the call waits for a confirmation, asked now or earlier. What would fail is not shown to anybody. */
export const isAsked = ({ error, confirm, approval_id: id }: Json) =>
  (error === 'confirm_required' || error === 'approval_pending') && (confirm ?? id) !== undefined

async function openDesk(t: Test, config: Awaited<ReturnType<typeof startService>>['config']) {
  const { approvals, close } = await composeAuthenticated(config, {
    tools: catalogueOf(tools),
    log: pino({ level: 'silent' }),
    auditStream: new PassThrough().resume(),
  })
  t.teardown(close)
  return approvals!.desk
}
