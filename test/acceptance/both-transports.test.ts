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
import { bundleProgram } from '../bundle-program.js'
import { createPceSimulator, type PceSimulator } from '../../pce-simulator/index.js'
import { listeningOn } from '../log-lines.js'
import { DEFAULT_NAMES } from '../surface/contract.js'
import { BAD_CALLS, EXAMPLE_CALLS, GOOD_CALLS, PLACE_OF_CALLS, type Answers, type Args } from './calls.js'
import { sharedValidators } from '../shared-validators.js'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const NOW = Date.parse('2026-06-15T12:00:00Z')

interface Seat {
  client: Client
  simulator: PceSimulator
}

const simulate = async () => {
  const simulator = await createPceSimulator({
    seed: 3,
    workloads: 120,
    flows: 2000,
    now: () => NOW,
    pollsUntilDone: 1,
  })
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
  const client = new Client({ name: 'acceptance', version: '1' }, { jsonSchemaValidator: sharedValidators })
  await client.connect(
    new StdioClientTransport({
      command: process.execPath,
      args: [bundleProgram('stdio')],
      cwd: ROOT,
      env,
      stderr: 'ignore',
    }),
  )
  return { simulator, client }
}

async function overHttp(children: ChildProcess[]): Promise<Seat> {
  const { simulator, env } = await simulate()
  const child = spawn(process.execPath, [bundleProgram('http'), '--port', '0'], {
    cwd: ROOT,
    env: { ...env, MCP_DEV_INSECURE: '1' },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  children.push(child)
  const url = await new Promise<string>((resolve, reject) => {
    let log = ''
    child.stderr.on('data', (chunk: Buffer) => {
      log += chunk.toString()
      const listening = listeningOn(log)
      if (listening !== undefined) resolve(listening)
    })
    child.once('exit', () => reject(new Error(`the server ended: ${log}`)))
  })
  const client = new Client({ name: 'acceptance', version: '1' }, { jsonSchemaValidator: sharedValidators })
  await client.connect(new StreamableHTTPClientTransport(new URL(url)))
  return { simulator, client }
}

/** The parts of an answer that are allowed to differ between two runs. */
const stable = (value: unknown) =>
  JSON.parse(
    JSON.stringify(value, (key, part: unknown) =>
      ['latency_ms', 'request_id', 'pce_host', 'pce_port'].includes(key) || isOfTransport(key, part) ? undefined : part,
    ),
  )

/** The mode in the credential status. */
const isOfTransport = (key: string, part: unknown) => key === 'mode' && ['stdio', 'insecure'].includes(String(part))

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
  // Over HTTP nobody remembers whether this client shows Apps, so each is told of them (D196).
  const plain = listed.http.tools.map(({ _meta: _apps, ...tool }) => tool)
  t.same(listed.stdio.tools, plain, 'tools/list is the same but for the Apps')
  const apps = listed.http.tools.flatMap(({ name, _meta: apps }) => (apps === undefined ? [] : [{ name, apps }]))
  t.same(
    apps.map(({ name }) => name),
    ['compare-draft-active', 'create-ringfence', 'detect-lateral-movement-paths', 'get-traffic-flows-summary'],
  )
  t.ok(JSON.stringify(apps.map(({ apps: _meta }) => ({ _meta }))).length <= 1024, 'and these cost little')
  t.same(listed.stdio.tools.map((tool) => tool.name).sort(), DEFAULT_NAMES, 'the tools are those of the contract')

  for (const [name, args, code] of BAD_CALLS) {
    await t.test(`${name} refuses ${JSON.stringify(args)} with ${code}`, async (t) => {
      for (const [transport, { client, simulator }] of Object.entries(seats)) {
        simulator.clearRequests()
        const result = await client.callTool({ name, arguments: args })
        const { error, message, request_id } = errorOf(result)
        const writes = simulator.requests.filter(
          ({ method, path }) => method !== 'GET' && !path.includes('async_queries'),
        )
        t.same(
          {
            isError: result.isError,
            structured: result.structuredContent,
            error,
            saysSomething: message.length > 10,
            hasRequestId: Boolean(request_id),
            writes,
          },
          { isError: true, structured: undefined, error: code, saysSomething: true, hasRequestId: true, writes: [] },
          `${transport}: ${message}`,
        )
      }
    })
  }

  const seen: Record<string, Answers> = { stdio: {}, http: {} }
  for (const [name, given] of [...GOOD_CALLS, ...EXAMPLE_CALLS]) {
    await t.test(
      `${name} answers ${typeof given === 'function' ? String(given) : JSON.stringify(given)}`,
      async (t) => {
        const answers: Record<string, unknown> = {}
        const sit = async ([transport, { client }]: [string, Seat]) => {
          const args = typeof given === 'function' ? given(seen[transport]!) : given
          const result = await client.callTool({ name, arguments: args })
          const text = JSON.stringify(result.content).slice(0, 300)
          t.not(result.isError, true, `${transport}: ${text} (the calls are at ${PLACE_OF_CALLS})`)
          t.same(
            JSON.parse((result.content as { text: string }[])[0]!.text),
            result.structuredContent,
            `${transport}: the text is the same JSON`,
          )
          seen[transport]![name] = result.structuredContent
          answers[transport] = stable(result.structuredContent)
        }
        // A traffic query is waited for; both seats wait at once.
        await Promise.all(Object.entries(seats).map(sit))
        t.same(answers.stdio, answers.http, 'both transports answer alike')
      },
    )
  }

  await t.test('a list has the fields that were asked for, and no others', async (t) => {
    const args = { key: 'env', max_results: 2 }
    for (const [transport, { client }] of Object.entries(seats)) {
      const rowsOf = async (given: Args) =>
        ((await client.callTool({ name: 'get-labels', arguments: given })).structuredContent as { labels: Args[] })
          .labels
      const whole = await rowsOf(args)
      t.same(
        await rowsOf({ ...args, fields: ['value'] }),
        whole.map(({ value }) => ({ value })),
        transport,
      )
      const refused = await client.callTool({ name: 'get-labels', arguments: { ...args, fields: ['colour'] } })
      t.equal(errorOf(refused).error, 'invalid_argument', transport)
    }
  })

  await t.test('every document can be read, and one that does not exist cannot', async (t) => {
    const pages: Record<string, unknown[]> = {}
    for (const [transport, { client }] of Object.entries(seats)) {
      t.same(client.getServerCapabilities()?.resources, {}, `${transport}: no subscriptions, no changes of the list`)
      const { resources } = await client.listResources()
      t.equal(resources.length, 22, transport)
      pages[transport] = []
      for (const { uri } of resources) {
        const { contents } = await client.readResource({ uri })
        t.equal(contents[0]?.uri, uri, `${transport}: ${uri}`)
        pages[transport].push(contents)
      }
      await t.rejects(client.readResource({ uri: 'illumio://concepts/nothing' }), { code: -32002 })
      await t.rejects(client.subscribeResource({ uri: 'illumio://changelog' }))
    }
    t.same(pages.stdio, pages.http, 'both transports answer alike')
  })

  await t.test('every resource template makes a page, for good values only', async (t) => {
    const pages: Record<string, unknown[]> = {}
    const visit = async ([transport, { client }]: [string, Seat]) => {
      const { resourceTemplates } = await client.listResourceTemplates()
      t.same(
        resourceTemplates.map(({ uriTemplate }) => uriTemplate),
        ['illumio://ruleset/{id}', 'illumio://application/{app}/{env}'],
        transport,
      )
      pages[transport] = []
      for (const uri of ['illumio://ruleset/1', 'illumio://application/payments/prod']) {
        const [content] = (await client.readResource({ uri })).contents
        const { as_of: asOf, ...page } = JSON.parse((content as { text: string }).text)
        t.match(asOf, /^\d{4}-/, `${transport}: ${uri}`)
        pages[transport].push(stable(page))
      }
      for (const uri of ['illumio://ruleset/999999', 'illumio://application/nothing/prod'])
        await t.rejects(client.readResource({ uri }), { code: -32002 })
      await t.rejects(client.readResource({ uri: 'illumio://application/%zz/prod' }), { code: -32602 })
    }
    await Promise.all(Object.entries(seats).map(visit))
    t.same(pages.stdio, pages.http, 'both transports answer alike')
  })

  await t.test('every prompt can be had, and only with its arguments', async (t) => {
    const texts: Record<string, unknown[]> = {}
    for (const [transport, { client }] of Object.entries(seats)) {
      t.same(client.getServerCapabilities()?.prompts, {}, `${transport}: no changes of the list`)
      const { prompts } = await client.listPrompts()
      t.equal(prompts.length, 8, transport)
      texts[transport] = []
      for (const { name, arguments: known = [] } of prompts) {
        const values = known.map((one) => [one.name, one.name === 'framework' ? 'dora' : 'payments'])
        const { messages } = await client.getPrompt({ name, arguments: Object.fromEntries(values) })
        t.equal(messages.length, 1, `${transport}: ${name}`)
        texts[transport].push(messages)
        if (known.some(({ required }) => required)) await t.rejects(client.getPrompt({ name }), { code: -32602 })
        await t.rejects(client.getPrompt({ name, arguments: { app: 'payments' } }), { code: -32602 })
      }
      await t.rejects(client.getPrompt({ name: 'isolate-everything' }), { code: -32602 })
    }
    t.same(texts.stdio, texts.http, 'both transports answer alike')
  })

  await t.test('every argument of prompts and templates can be completed', async (t) => {
    const values: Record<string, unknown[]> = {}
    for (const [transport, { client }] of Object.entries(seats)) {
      const { prompts } = await client.listPrompts()
      const ofPrompts = prompts.flatMap(({ name, arguments: known = [] }) =>
        known.map((one) => ({ ref: { type: 'ref/prompt' as const, name }, argument: one.name })),
      )
      const application = { type: 'ref/resource' as const, uri: 'illumio://application/{app}/{env}' }
      const ruleSet = { type: 'ref/resource' as const, uri: 'illumio://ruleset/{id}' }
      const all = [
        ...ofPrompts,
        { ref: application, argument: 'app' },
        { ref: application, argument: 'env' },
        { ref: ruleSet, argument: 'id' },
      ]
      values[transport] = []
      for (const { ref, argument } of all) {
        const { completion } = await client.complete({ ref, argument: { name: argument, value: 'p' } })
        t.equal(completion.values.length > 0, argument !== 'id', `${transport}: ${JSON.stringify(ref)} ${argument}`)
        values[transport].push(completion)
        await t.rejects(client.complete({ ref, argument: { name: 'nope', value: '' } }), { code: -32602 })
      }
    }
    t.same(values.stdio, values.http, 'both transports answer alike')
  })

  await t.test('an unknown tool is a JSON-RPC error, not a result', async (t) => {
    for (const { client } of Object.values(seats)) {
      await t.rejects(client.callTool({ name: 'get-everything' }), { code: -32602 })
    }
  })
})
