/**
 * The main job from the outside: the SDK's client lists the tools and calls each with good and with bad input, over stdio and over
 * HTTP, each against a simulated PCE of its own with the same seed and clock. Both must give the same answers.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import t from 'tap'
import { createPceSimulator, type PceSimulator } from '../pce-simulator/index.js'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const NOW = Date.parse('2026-06-15T12:00:00Z')
const WEEK = { start_date: '2026-06-08', end_date: '2026-06-14' }

/** In the order of an operator's day: what is created first is found by what comes later. */
const GOOD_CALLS: [string, Record<string, unknown>][] = [
  ['check-pce-connection', {}],
  ['get-server-changelog', {}],
  ['get-labels', { key: 'env' }],
  ['create-label', { key: 'app', value: 'fraud-check' }],
  ['get-workloads', { labels: ['app=payments', 'env=prod'] }],
  ['create-workload', { name: 'hsm-01', ip_addresses: ['10.250.0.1'], labels: [{ key: 'app', value: 'fraud-check' }] }],
  [
    'create-ruleset',
    {
      name: 'fraud-check | prod',
      scopes: [['app=fraud-check', 'env=prod']],
      rules: [
        { providers: ['ams'], consumers: ['ams'], ingress_services: [{ service: 'All Services' }] },
        {
          providers: ['ams'],
          consumers: ['app=payments', 'env=prod'],
          ingress_services: [{ port: 8443, proto: 'tcp' }],
          unscoped_consumers: true,
        },
        {
          providers: ['ams'],
          consumers: ['iplist:Any (0.0.0.0/0 and ::/0)'],
          ingress_services: [{ port: 23, proto: 'tcp' }],
          unscoped_consumers: true,
          rule_type: 'deny',
        },
      ],
    },
  ],
  ['get-rulesets', { name: 'fraud-check | prod' }],
  ['get-traffic-flows-summary', { ...WEEK, include_destinations: ['app=payments', 'env=prod'] }],
  ['provision-policy', { change_description: 'let fraud-check in' }],
]

const BAD_CALLS: [string, Record<string, unknown>, string][] = [
  ['check-pce-connection', { host: 'x' }, 'invalid_argument'],
  ['get-server-changelog', { since: 1 }, 'invalid_argument'],
  ['get-labels', { max_results: 0 }, 'invalid_argument'],
  ['create-label', { key: 'app' }, 'invalid_argument'],
  ['create-label', { key: 'app', value: 'payments' }, 'already_exists'],
  ['get-workloads', { labels: ['app=payment'] }, 'unresolved_label_filter'],
  ['create-workload', { name: 'w', ip_addresses: ['10.0.0.999'] }, 'invalid_argument'],
  ['create-ruleset', { name: 'x', scopes: [['app=payment']] }, 'label_not_found'],
  [
    'create-ruleset',
    {
      name: 'x',
      scopes: [[]],
      rules: [{ providers: ['nobody'], consumers: ['ams'], ingress_services: [{ port: 1, proto: 'tcp' }] }],
    },
    'invalid_actor',
  ],
  ['get-rulesets', { labels: 'app=payment' }, 'unresolved_label_filter'],
  ['get-traffic-flows-summary', { start_date: '2026-06-31', end_date: '2026-07-01' }, 'invalid_window'],
  ['get-traffic-flows-summary', { start_date: '2026-06-14', end_date: '2026-06-08' }, 'invalid_window'],
  ['provision-policy', { hrefs: ['/orgs/1/labels/1'] }, 'invalid_argument'],
]

interface Seat {
  client: Client
  simulator: PceSimulator
}

const simulate = async () => {
  const simulator = await createPceSimulator({ seed: 3, workloads: 120, flows: 2000, now: () => NOW })
  const url = new URL(await simulator.listen({ port: 0 }))
  const env = {
    PATH: process.env.PATH ?? '',
    PCE_HOST: `${url.protocol}//${url.hostname}`,
    PCE_PORT: url.port,
    PCE_ORG_ID: String(simulator.orgId),
    API_KEY: simulator.credentials.key,
    API_SECRET: simulator.credentials.secret,
    MCP_LOG_LEVEL: 'warn',
  }
  return { simulator, env }
}

async function overStdio(): Promise<Seat> {
  const { simulator, env } = await simulate()
  const client = new Client({ name: 'acceptance', version: '1' })
  await client.connect(
    new StdioClientTransport({
      command: process.execPath,
      args: ['--import', 'tsx', 'stdio.ts'],
      cwd: ROOT,
      env,
      stderr: 'ignore',
    }),
  )
  return { simulator, client }
}

async function overHttp(children: ChildProcess[]): Promise<Seat> {
  const { simulator, env } = await simulate()
  const child = spawn(process.execPath, ['--import', 'tsx', 'http.ts', '--port', '0'], {
    cwd: ROOT,
    env: { ...env, MCP_DEV_INSECURE: '1' },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  children.push(child)
  const url = await new Promise<string>((resolve, reject) => {
    let log = ''
    child.stderr.on('data', (chunk: Buffer) => {
      log += chunk.toString()
      const [listening] = /http:\/\/\S+\/mcp/.exec(log) ?? []
      if (listening !== undefined) resolve(listening)
    })
    child.once('exit', () => reject(new Error(`the server ended: ${log}`)))
  })
  const client = new Client({ name: 'acceptance', version: '1' })
  await client.connect(new StreamableHTTPClientTransport(new URL(url)))
  return { simulator, client }
}

/** The parts of an answer that are allowed to differ between two runs. */
const stable = (value: unknown) =>
  JSON.parse(
    JSON.stringify(value, (key, part: unknown) =>
      ['latency_ms', 'request_id', 'pce_host', 'pce_port'].includes(key) ? undefined : part,
    ),
  )

const errorOf = (result: Awaited<ReturnType<Client['callTool']>>) =>
  JSON.parse((result.content as { text: string }[])[0]!.text) as { error: string; message: string; request_id: string }

t.test('an MCP client does the same work over both transports', async (t) => {
  const children: ChildProcess[] = []
  const seats = { stdio: await overStdio(), http: await overHttp(children) }
  t.teardown(async () => {
    for (const { client, simulator } of Object.values(seats)) {
      await client.close()
      await simulator.close()
    }
    for (const child of children) child.kill()
  })

  // The SDK's client checks every later result against the output schemas it has listed.
  const listed = { stdio: await seats.stdio.client.listTools(), http: await seats.http.client.listTools() }
  t.same(listed.stdio.tools, listed.http.tools, 'tools/list is the same')
  t.same(
    [...new Set(GOOD_CALLS.map(([name]) => name))].sort(),
    listed.stdio.tools.map((tool) => tool.name).sort(),
    'every tool is called below',
  )

  for (const [name, args, code] of BAD_CALLS) {
    await t.test(`${name} refuses ${JSON.stringify(args)} with ${code}`, async (t) => {
      for (const [transport, { client, simulator }] of Object.entries(seats)) {
        simulator.clearRequests()
        const result = await client.callTool({ name, arguments: args })
        t.equal(result.isError, true, `${transport}: isError`)
        t.equal(result.structuredContent, undefined, `${transport}: an error has no structured content`)
        const { error, message, request_id } = errorOf(result)
        t.equal(error, code, `${transport}: ${message}`)
        t.ok(message.length > 10, `${transport}: the message says something`)
        t.ok(request_id, `${transport}: request_id`)
        const writes = simulator.requests.filter(
          ({ method, path }) => method !== 'GET' && !path.includes('async_queries'),
        )
        t.same(writes, [], `${transport}: nothing was written`)
      }
    })
  }

  for (const [name, args] of GOOD_CALLS) {
    await t.test(`${name} answers ${JSON.stringify(args)}`, async (t) => {
      const answers: Record<string, unknown> = {}
      for (const [transport, { client }] of Object.entries(seats)) {
        const result = await client.callTool({ name, arguments: args })
        t.not(result.isError, true, `${transport}: ${JSON.stringify(result.content).slice(0, 300)}`)
        t.same(
          JSON.parse((result.content as { text: string }[])[0]!.text),
          result.structuredContent,
          `${transport}: the text is the same JSON`,
        )
        answers[transport] = stable(result.structuredContent)
      }
      t.same(answers.stdio, answers.http, 'both transports answer alike')
    })
  }

  await t.test('an unknown tool is a JSON-RPC error, not a result', async (t) => {
    for (const { client } of Object.values(seats)) {
      await t.rejects(client.callTool({ name: 'get-everything' }), { code: -32602 })
    }
  })
})
