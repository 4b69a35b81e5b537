/** A service in shared mode whose callers have scopes, and what they can do with it. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { GROUP_OF, startService, type Json } from '../contract/authenticated-service.js'
import type { Estate } from '../../pce-simulator/model.js'
import type { AnyTool } from '../../tools/define.js'
import { tools } from '../../tools/index.js'

/** A service in shared mode with these scopes, and what its callers can do. */
export async function startScoped(t: Test, groups: object, estate: Estate, offered: readonly AnyTool[] = tools) {
  const folder = mkdtempSync(join(tmpdir(), 'scopes-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const path = join(folder, 'scopes.json')
  writeFileSync(path, JSON.stringify({ groups }))
  const service = await startService(t, {
    mode: 'shared',
    tools: offered,
    config: { scopesPath: path, offer: { toolsets: ['all'] } },
    estate: { estate },
  })
  const { simulator } = service.pce
  const isWrite = ({ method, path: at }: { method: string; path: string }) =>
    method !== 'GET' && !/async_queries|dependencies|impact/.test(at)
  const tokens = new Map<string, string>()
  /** The token of an admin in this group of the file. */
  const tokenOf = async (group: string) => {
    const token = tokens.get(group) ?? (await service.tokenOf(group, 'admin', { groups: [GROUP_OF.admin, group] }))
    tokens.set(group, token)
    return token
  }
  /** A call with a confirm token if one is asked for. */
  async function call(group: string, tool: string, args: object): Promise<Json> {
    const token = await tokenOf(group)
    const answer: Json = await service.call(token, tool, args)
    if (answer.error !== 'confirm_required') return answer
    const minted = (await service.confirm(token, answer.confirm.body)).json()
    return service.call(token, tool, args, { confirm_token: minted.confirm_token })
  }
  return {
    ...service,
    path,
    tokenOf,
    call,
    /** What became of a call: `ok` or the error, the condition that was not met, and the number of writes sent. */
    async ask(group: string, tool: string, args: object): Promise<unknown[]> {
      simulator.clearRequests()
      const answer = await call(group, tool, args)
      return [answer.error ?? 'ok', answer.error && answer.rule, simulator.requests.filter(isWrite).length]
    },
  }
}
