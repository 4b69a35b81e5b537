/**
 * Whatever tool runs, on a policy of full size, the main thread computes only in short turns (D233). A turn is compared
 * with a piece of work in the same thread, and counts the processor time of that thread alone, so that a slow or busy
 * machine changes nothing.
 *
 * The role decides at the gate whether a call runs, and no tool reads it; so the weakest role that may call a tool calls
 * it on one estate, and the strongest on the other. With `FULL_SIZE=all`, every role that may call a tool that only
 * reads calls it, and the costly tools are called too, which takes many minutes; how long /healthz took meanwhile, and
 * the processor time, are printed: `FULL_SIZE=all npm test -- --timeout=3600 test/contract/full-size.long.ts`.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import t, { type Test } from 'tap'
import type { Role } from '../../schemas/caller.js'
import { createWorld, type World } from '../edge/support/authenticated-world.js'
import { callTool, confirm, type Json } from '../edge/support/call-tool.js'
import { compiled } from '../suite-folder.js'
import { CONTRACT, NAMES, namesOf } from '../surface/contract.js'
import type { Waits } from './ask-health.js'
import { CALLS, ESTATES, NOT_GROWING, type Estate } from './full-size-calls.js'
import type { PolicySize } from './huge-policy.js'
import { askOf, MOST_UNITS, readTurns, watchedAt } from './read-turns.js'

const IS_ALL = process.env.FULL_SIZE === 'all'

/** Processor time of a process so far, in seconds. */
function processorTime(pid: number): number {
  const [, rest = ''] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')
  const [user, system] = rest.split(' ').slice(11)
  return (Number(user) + Number(system)) / 100
}

/** Starts a PCE in a process of its own, and returns what its callers register. */
async function startPolicy(t: Test, { certificate }: World, size: PolicySize) {
  const { certPath, cert, key } = certificate
  const options = JSON.stringify({ ...size, tls: { cert, key } })
  const child = spawn(process.execPath, [compiled('test/contract/huge-policy.ts'), options], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...process.env, NODE_EXTRA_CA_CERTS: certPath },
  })
  t.teardown(() => child.stdin.end())
  const [line] = (await once(createInterface(child.stdout), 'line')) as [string]
  const pce = JSON.parse(line) as { url: string; key: string; secret: string }
  const address = { pce_host: '127.0.0.1', pce_port: Number(new URL(pce.url).port), pce_org_id: 1 }
  return { pid: child.pid!, registration: { ...address, api_key: pce.key, api_secret: pce.secret } }
}

t.test('every tool is called, or a reason is given', (t) => {
  const named = [...CALLS.map(({ tool }) => tool), ...Object.keys(NOT_GROWING)]
  t.same(named.sort(), NAMES)
  t.end()
})

/** Starts a process that asks for /healthz all the time; returns a function that asks for its waits since the last question. */
function askHealth(t: Test, origin: string): () => Promise<Waits> {
  const asker = spawn(process.execPath, [compiled('test/contract/ask-health.ts'), origin], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  t.teardown(() => asker.kill())
  return askOf<Waits>(asker.stdin, asker.stdout)
}

t.test('the main thread computes in short turns', { timeout: 3_600_000 }, async (t) => {
  const world = await createWorld(t)
  const socketPath = join(world.folder, 'turns')
  const { target, pid } = await world.serve({
    env: {
      ...world.env,
      MCP_AUDIT_LOG_PATH: world.auditPath,
      MCP_TOOLSETS: 'all',
      MCP_CONFIRM_TOOLS: namesOf(({ mutating, toolset }) => mutating && toolset !== 'credentials').join(','),
      ...watchedAt(socketPath),
    },
  })
  const turnsSince = readTurns(t, socketPath)
  const waitsSince = IS_ALL ? askHealth(t, target.origin) : async () => null

  /** Calls the tool, as a person does who confirms what is asked. */
  async function call(token: string, tool: string, args: object): Promise<Json> {
    const answer: Json = await callTool(target, token, tool, args)
    // If the preview failed, there is nothing to confirm.
    if (answer.error !== 'confirm_required' || answer.preview_error !== undefined) return answer
    const { json } = await confirm(target, token, answer.confirm.body)
    return callTool(target, token, tool, args, { meta: { confirm_token: json.confirm_token } })
  }

  for (const [estate, size] of Object.entries(ESTATES) as [Estate, PolicySize][])
    await t.test(estate, async (t) => {
      const pce = await startPolicy(t, world, size)
      // A token of its own for each call, because they expire.
      const tokenOf = (role: Role) => world.tokenOf(`${role} of ${estate}`, role)
      for (const role of ['reader', 'operator', 'admin'] as const) {
        const answer: Json = await callTool(target, await tokenOf(role), 'register-pce-credentials', pce.registration)
        t.equal(answer.error, undefined, `register-pce-credentials (${role}): ${answer.message}`)
      }
      // The reporter leaves comments out, and the figures are what such a run is for.
      const say = (text: string) => (IS_ALL ? process.stderr.write(`${text}\n`) : t.comment(text))
      const measure = async (tool: string, role: Role, args: object) => {
        const usedBefore = [pid, pce.pid].map(processorTime)
        await turnsSince()
        await waitsSince()
        const answer = await call(await tokenOf(role), tool, args)
        const waits = await waitsSince()
        const { longest, computed, unit } = await turnsSince()
        const [most = 0] = longest
        const [own, others] = [pid, pce.pid].map((one, at) => (processorTime(one) - usedBefore[at]!).toFixed(1))
        const units = most / unit
        const health = waits === null ? '' : ` /healthz ${waits.p50}, ${waits.p99}, ${waits.max} ms;`
        say(
          `${tool} (${role}): ${units.toFixed(1)} units, ${most.toFixed(0)} of ${computed.toFixed(0)} ms;${health} ${own} s, PCE ${others} s`,
        )
        return { answer, units }
      }
      const answers: Record<string, Json> = {}
      for (const { tool, args, costly = false, only = estate, [estate]: expected } of CALLS) {
        if (only !== estate || (costly && !IS_ALL)) continue
        for (const role of rolesFor(tool, estate)) {
          const { answer, units } = await measure(tool, role, typeof args === 'function' ? args(answers) : args)
          answers[tool] = answer
          t.equal(answer.error, expected?.error, `${tool} (${role}): ${answer.preview_error ?? answer.message}`)
          if (expected !== undefined) t.ok(expected.says.test(JSON.stringify(answer)), `${tool} says ${expected.says}`)
          t.ok(units <= MOST_UNITS, `${tool} (${role}): a turn of ${units.toFixed(1)} units`)
        }
      }
    })
})

/** A tool that writes is called by one role, because its call changes what the next one finds. */
function rolesFor(tool: string, estate: Estate): readonly Role[] {
  const { mutating, ...contract } = CONTRACT[tool]!
  const roles = contract.roles as Role[]
  if (IS_ALL && !mutating) return roles
  return [roles.at(estate === 'fits' ? 0 : -1)!]
}
