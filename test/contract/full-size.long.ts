/**
 * Whatever role asks, on an estate of 5,000 rules and 2,000 lists of 5,000 names and networks each,
 * the main thread computes only in short turns (D233). A turn is compared with a piece of work in the same thread, and
 * counts the processor time of that thread alone, so that a slow or busy machine changes nothing.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import t, { type Test } from 'tap'
import type { Role } from '../../schemas/caller.js'
import { createWorld, sharedEnv, type World } from '../edge/support/authenticated-world.js'
import { callTool, confirm, type Json } from '../edge/support/call-tool.js'
import { compiled } from '../suite-folder.js'
import type { PolicySize } from './huge-policy.js'
import type { Turns } from './watch-turns.js'

const SIZE: PolicySize = {
  rules: 5000,
  lists: 2000,
  long: 2000,
  changed: 3,
  names: 5000,
  workloads: 300,
  isQuiet: true,
}
/** The longest turn, in units of work: 100 ms where a unit takes four. */
const MOST_UNITS = 25
/** A collection of garbage is rarely met twice at the same place. */
const ATTEMPTS = 2
const CONFIRMED = ['create-rule', 'create-iplist']

const ENDS = { providers: ['ams'], ingress_services: [{ port: 1, proto: 'tcp' }], unscoped_consumers: true }
const CALLS: [name: string, args: object, roles: Role[]][] = [
  ['get-iplists', {}, ['reader', 'operator', 'admin']],
  ['get-rulesets', {}, ['reader']],
  ['find-rules', { rule_type: 'allow' }, ['reader']],
  ['find-redundant-rules', {}, ['operator']],
  ['create-iplist', { name: 'new', ip_ranges: [{ from_ip: '10.99.0.0/16' }] }, ['operator']],
  ['create-rule', { ruleset_name: 'set-1', ...ENDS, consumers: ['iplist:list-0001'] }, ['operator']],
]

async function startPolicy(t: Test, world: World): Promise<Record<string, string>> {
  const { certPath, cert, key } = world.certificate
  const size = JSON.stringify({ ...SIZE, tls: { cert, key } })
  const child = spawn(process.execPath, [compiled('test/contract/huge-policy.ts'), size], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...process.env, NODE_EXTRA_CA_CERTS: certPath },
  })
  t.teardown(() => child.stdin.end())
  const [line] = (await once(createInterface(child.stdout), 'line')) as [string]
  const pce = JSON.parse(line) as { url: string; key: string; secret: string }
  const { port } = new URL(pce.url)
  return { PCE_HOST: `https://127.0.0.1:${port}`, PCE_PORT: port, API_KEY: pce.key, API_SECRET: pce.secret }
}

t.test('the main thread computes in short turns', { timeout: 600_000 }, async (t) => {
  const world = await createWorld(t)
  const socketPath = join(world.folder, 'turns')
  const { target } = await world.serve({
    env: {
      ...sharedEnv(world),
      ...(await startPolicy(t, world)),
      PCE_ORG_ID: '1',
      MCP_STATE_PATH: join(world.folder, 'state.db'),
      MCP_KEYSTORE_PATH: undefined,
      MCP_ALLOWED_PCE_HOSTS: undefined,
      MCP_AUDIT_LOG_PATH: world.auditPath,
      MCP_TOOLSETS: 'all',
      MCP_CONFIRM_TOOLS: CONFIRMED.join(','),
      NODE_OPTIONS: `--import ${compiled('test/contract/watch-turns.ts')}`,
      WATCH_TURNS: socketPath,
    },
  })
  const socket = connect(socketPath)
  t.teardown(() => socket.destroy())
  const lines = createInterface(socket)[Symbol.asyncIterator]()
  const look = async (): Promise<Turns> => {
    socket.write('\n')
    return JSON.parse((await lines.next()).value as string) as Turns
  }

  /** Calls the tool, as a person does who confirms, and returns the longest turn meanwhile in units of work. */
  async function measure(role: Role, name: string, args: object): Promise<number> {
    const token = await world.tokenOf(role, role)
    await look()
    const answer: Json = await callTool(target, token, name, args)
    if (answer.error === 'confirm_required') {
      const { json } = await confirm(target, token, answer.confirm.body)
      await callTool(target, token, name, args, { meta: { confirm_token: json.confirm_token } })
    }
    const { longest, computed, unit } = await look()
    const [most = 0] = longest
    const shown = `${Math.round(most)} of ${Math.round(computed)} ms, unit ${unit.toFixed(1)} ms`
    t.comment(`${name} (${role}): ${answer.error ?? 'answered'}, longest turn ${shown}`)
    return most / unit
  }

  for (const [name, args, roles] of CALLS)
    for (const role of roles) {
      let least = Infinity
      for (let attempt = 0; attempt < ATTEMPTS && least > MOST_UNITS; attempt++)
        least = Math.min(least, await measure(role, name, args))
      t.ok(least <= MOST_UNITS, `${name} (${role}): a turn of ${least.toFixed(1)} units`)
    }
})
