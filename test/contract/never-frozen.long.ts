/**
 * Whatever tool runs on a large policy, the server answers others at once (D233). The policy, the server and the caller
 * are three processes, so what delays an answer is the server's own work, or the machine, whose delays the caller
 * measures at itself.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { Agent, get } from 'node:http'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { createInterface } from 'node:readline'
import t, { type Test } from 'tap'
import { tools } from '../../tools/index.js'
import { bundleProgram } from '../bundle-program.js'
import { freePort } from '../free-port.js'
import { compiled } from '../suite-folder.js'
import { until } from '../until.js'
import type { PolicySize } from './huge-policy.js'

const SIZE: PolicySize = { rules: 1000, lists: 300, long: 10, changed: 300, names: 3000, workloads: 300 }
/** How long others may wait, beside what the machine delays. */
const LONGEST_MS = 100
/** How many times the machine delays an answer that passes two processes, compared with a timer of the caller. */
const DELAYS = 10
const NS_PER_MS = 1e6
const BETWEEN_MS = 10
/** A delay of the machine is rarely met twice. */
const ATTEMPTS = 3

const RULE = {
  providers: ['ams'],
  consumers: ['iplist:list-0001'],
  ingress_services: [{ port: 1, proto: 'tcp' }],
  unscoped_consumers: true,
}
const OF_RULE = { href: '/orgs/1/sec_policy/draft/rule_sets/10/sec_rules/11' }
const PAYMENTS = { app_name: 'payments', env_name: 'prod' }

/** Calls of tools that write, as dry runs, and of those that read more than their example. */
const CALLS: [tool: string, args: object][] = [
  ['create-iplist', { name: 'new', ip_ranges: [{ from_ip: '10.99.0.0/16' }] }],
  ['create-ruleset', { name: 'new', scopes: [[]], rules: [RULE] }],
  ['create-rule', { ruleset_name: 'set-1', ...RULE }],
  ['create-deny-rule', { ruleset_name: 'set-1', ...RULE }],
  ['update-ruleset', { name: 'set-1', enabled: false }],
  ['update-sec-rule', { ...OF_RULE, enabled: false }],
  ['update-iplist', { name: 'list-0001', fqdn: 'one.example.com' }],
  ['update-service', { name: 'PostgreSQL', service_ports: [{ port: 1, proto: 'tcp' }] }],
  ['update-workload', { name: 'host-1', enforcement_mode: 'full' }],
  ['delete-ruleset', { name: 'set-1' }],
  ['delete-sec-rule', OF_RULE],
  ['delete-iplist', { name: 'list-0001' }],
  ['label-workloads', { selection: { labels: 'app=payments' }, set: ['env=dev'] }],
  ['set-enforcement-mode', { ...PAYMENTS, mode: 'full' }],
  ['create-ringfence', PAYMENTS],
  ['provision-policy', { all_pending: true, change_description: 'all' }],
].map(([tool, args]) => [tool as string, { ...(args as object), dry_run: true }])
const READING = ['compare-draft-active', 'explain-flow', 'find-redundant-rules', 'find-unused', 'get-ip-list-matches']
for (const { name, example } of tools) if (READING.includes(name)) CALLS.push([name, example as object])

async function startPolicy(t: Test): Promise<{ url: URL; key: string; secret: string }> {
  const child = spawn(process.execPath, [compiled('test/contract/huge-policy.ts'), JSON.stringify(SIZE)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  t.teardown(() => child.stdin.end())
  const [line] = (await once(createInterface(child.stdout), 'line')) as [string]
  const { url, ...credentials } = JSON.parse(line) as { url: string; key: string; secret: string }
  return { url: new URL(url), ...credentials }
}

/** Starts the program, and returns its origin once it answers. */
async function startServer(t: Test): Promise<{ origin: string; ask: () => Promise<void> }> {
  const { url, key, secret } = await startPolicy(t)
  const port = await freePort()
  const child = spawn(process.execPath, [bundleProgram('http'), '--port', String(port)], {
    stdio: 'ignore',
    env: {
      PATH: process.env.PATH,
      MCP_DEV_INSECURE: '1',
      MCP_TOOLSETS: 'all',
      MCP_AUDIT_LOG_PATH: t.testdir({}) + '/audit.log',
      PCE_HOST: `http://${url.hostname}`,
      PCE_PORT: url.port,
      API_KEY: key,
      API_SECRET: secret,
    },
  })
  t.teardown(async () => {
    child.kill()
    await once(child, 'exit')
  })
  const agent = new Agent({ keepAlive: true, maxSockets: 50 })
  t.teardown(() => agent.destroy())
  const origin = `http://127.0.0.1:${port}`
  const ask = () =>
    new Promise<void>((resolve, reject) => {
      get(`${origin}/healthz`, { agent }, (response) => response.resume().on('end', resolve)).on('error', reject)
    })
  await until(() =>
    ask().then(
      () => true,
      () => false,
    ),
  )
  return { origin, ask }
}

t.test('others are answered while a tool runs', { timeout: 900_000 }, async (t) => {
  const { origin, ask } = await startServer(t)
  const own = monitorEventLoopDelay({ resolution: 5 })

  /** Calls a tool, and returns by how much the slowest but one in a hundred of others waited longer than the caller did. */
  async function measure(name: string, args: object): Promise<number> {
    const waits: Promise<number>[] = []
    own.reset()
    own.enable()
    // One is sent at each tick, whether the ones before are answered or not, so that a long wait counts for all that it holds up.
    const ticks = setInterval(() => {
      const began = performance.now()
      waits.push(ask().then(() => performance.now() - began))
    }, BETWEEN_MS)
    const response = await fetch(`${origin}/mcp`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } }),
    })
    const answer = await response.text()
    clearInterval(ticks)
    const waited = (await Promise.all(waits)).sort((a, b) => a - b)
    own.disable()
    t.match(answer, /"structuredContent"/, name)
    t.notMatch(answer, /"isError":true/, name)
    return (waited.at(Math.floor(waited.length * 0.99)) ?? 0) - (DELAYS * own.percentile(99)) / NS_PER_MS
  }

  for (const [name, args] of CALLS) {
    let least = Infinity
    for (let attempt = 0; attempt < ATTEMPTS && least > LONGEST_MS; attempt++)
      least = Math.min(least, await measure(name, args))
    t.ok(least <= LONGEST_MS, `${name}: others wait ${Math.round(least)} ms`)
  }
})
