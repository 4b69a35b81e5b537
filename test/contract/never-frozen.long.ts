/**
 * The tools of weight, on a large policy that they judge whole: the main thread computes only in short turns, so that
 * the server answers others at once (D233). Without confirmation, all of them are called as dry runs.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import t, { type Test } from 'tap'
import { tools } from '../../tools/index.js'
import { bundleProgram } from '../bundle-program.js'
import { freePort } from '../free-port.js'
import { compiled } from '../suite-folder.js'
import { until } from '../until.js'
import type { PolicySize } from './huge-policy.js'
import { MOST_UNITS, readTurns, watchedAt } from './read-turns.js'

const SIZE: PolicySize = { rules: 1000, lists: 300, long: 10, changed: 300, names: 3000, workloads: 300 }

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
  ['plan-port-closure', { services: ['PostgreSQL'], lookback_days: 7 }],
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

/** Starts the program; returns its origin once it answers, and a function that asks for its turns since the last question. */
async function startServer(t: Test) {
  const { url, key, secret } = await startPolicy(t)
  const port = await freePort()
  const folder = t.testdir({})
  const socketPath = join(folder, 'turns')
  const child = spawn(process.execPath, [bundleProgram('http'), '--port', String(port)], {
    stdio: 'ignore',
    env: {
      PATH: process.env.PATH,
      MCP_DEV_INSECURE: '1',
      MCP_TOOLSETS: 'all',
      MCP_AUDIT_LOG_PATH: join(folder, 'audit.log'),
      PCE_HOST: `http://${url.hostname}`,
      PCE_PORT: url.port,
      API_KEY: key,
      API_SECRET: secret,
      ...watchedAt(socketPath),
    },
  })
  t.teardown(async () => {
    child.kill()
    await once(child, 'exit')
  })
  const origin = `http://127.0.0.1:${port}`
  await until(() =>
    fetch(`${origin}/healthz`).then(
      ({ ok }) => ok,
      () => false,
    ),
  )
  return { origin, turnsSince: readTurns(t, socketPath) }
}

t.test('others are answered while a tool runs', { timeout: 900_000 }, async (t) => {
  const { origin, turnsSince } = await startServer(t)

  async function measure(name: string, args: object): Promise<number> {
    await turnsSince()
    const response = await fetch(`${origin}/mcp`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } }),
    })
    const answer = await response.text()
    const { longest, unit } = await turnsSince()
    t.match(answer, /"structuredContent"/, name)
    t.notMatch(answer, /"isError":true/, name)
    return (longest[0] ?? 0) / unit
  }

  for (const [name, args] of CALLS) {
    const units = await measure(name, args)
    t.ok(units <= MOST_UNITS, `${name}: a turn of ${units.toFixed(1)} units`)
  }
})
