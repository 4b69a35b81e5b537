/** A service in shared mode with guardrails over a small estate, and what became of calls there. */
import type { Test } from 'tap'
import { readFreezes } from '../../config/read-freezes.js'
import type { GuardrailsConfig } from '../../schemas/guardrails.js'
import type { AnyTool } from '../../tools/define.js'
import { tools } from '../../tools/index.js'
import { startService, type Json, type ServiceOptions } from '../contract/authenticated-service.js'
import { handMade } from '../tools/hand-made.js'

export const estate = () =>
  handMade({
    hosts: {
      dc1: { ip: '10.0.0.1', labels: 'role=dc app=ad env=prod' },
      web1: { ip: '10.0.0.2', labels: 'role=web app=shop env=prod' },
      web2: { ip: '10.0.0.3', labels: 'role=web app=shop env=prod' },
      bare: { ip: '10.0.0.4', managed: false },
    },
    ipLists: { office: ['192.0.2.0/24'], branch: ['198.51.100.0/24'] },
    ruleSets: [
      { name: 'AD', scope: 'app=ad env=prod', allow: [{ from: 'ams', to: 'ams' }] },
      { name: 'Shop', scope: 'app=shop env=prod', allow: [{ from: 'ams', to: 'ams' }] },
      { name: 'Core', scope: '', allow: [{ from: 'iplist:office', to: 'role=dc' }] },
      { name: 'Branch', scope: 'env=prod', allow: [{ from: 'iplist:branch', to: 'role=web' }] },
    ],
    labels: ['env=dev', 'role=db'],
    flows: [],
  })

export const PROTECTED = { protectedLabels: [{ key: 'role', value: 'dc' }] }

/** A service in shared mode with these guardrails. */
export async function startGuarded(
  t: Test,
  guardrails: GuardrailsConfig,
  { now, offered = tools, of = estate() }: { now?: () => number; offered?: readonly AnyTool[]; of?: object } = {},
) {
  const service = await startService(t, {
    mode: 'shared',
    tools: offered,
    config: { guardrails, offer: { toolsets: ['all'] } },
    estate: { estate: of } as ServiceOptions['estate'],
    ...(now && { now }),
  })
  const { simulator } = service.pce
  const isWrite = ({ method, path }: { method: string; path: string }) =>
    method !== 'GET' && !/async_queries|dependencies|impact/.test(path)
  /** A call with a confirm token if one is asked for; `meanwhile` happens between the two. */
  async function call(tool: string, args: object, meanwhile: () => unknown = () => {}): Promise<Json> {
    const token = await service.tokenOf('ann')
    const answer: Json = await service.call(token, tool, args)
    if (answer.error !== 'confirm_required') return answer
    const minted = (await service.confirm(token, answer.confirm.body)).json()
    await meanwhile()
    return service.call(await service.tokenOf('ann'), tool, args, { confirm_token: minted.confirm_token })
  }
  return {
    ...service,
    call,
    /** What became of a call: `ok` or the error, the condition that was not met, and the number of writes sent. */
    async ask(tool: string, args: object): Promise<unknown[]> {
      simulator.clearRequests()
      const answer = await call(tool, args)
      return [answer.error ?? 'ok', answer.error && answer.rule, simulator.requests.filter(isWrite).length]
    },
  }
}

/** Reads freeze windows as MCP_FREEZE_WINDOWS has them. */
export const windows = (text: string) => readFreezes({ env: { MCP_FREEZE_WINDOWS: text }, faults: [], warnings: [] })!
