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

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const NOW = Date.parse('2026-06-15T12:00:00Z')
const WEEK = { start_date: '2026-06-08', end_date: '2026-06-14' }

type Args = Record<string, unknown>
/** What each tool last answered at this seat, for the calls that go on with an href from there. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- the shapes are what the client checks against the output schemas
type Answers = Record<string, any>

const RULE_SET = 'fraud-check | prod'
const DENY_TELNET = {
  providers: ['ams'],
  consumers: ['iplist:Any (0.0.0.0/0 and ::/0)'],
  ingress_services: [{ port: 23, proto: 'tcp' }],
  unscoped_consumers: true,
}

/** In the order of an operator's day: what is created first is found by what comes later, and undone at the end. */
const GOOD_CALLS: [string, Args | ((answers: Answers) => Args)][] = [
  ['check-pce-connection', {}],
  ['check-pce-credentials-status', {}],
  ['get-server-changelog', {}],
  ['get-events', { max_results: 3 }],
  ['get-pairing-profiles', {}],
  ['get-workload-enforcement-status', { env_name: 'prod' }],
  ['get-labels', { key: 'env' }],
  ['create-label', { key: 'app', value: 'fraud' }],
  ['update-label', { key: 'app', value: 'fraud', new_value: 'fraud-check' }],
  ['get-workloads', { labels: ['app=payments', 'env=prod'] }],
  ['create-workload', { name: 'hsm-01', ip_addresses: ['10.250.0.1'], labels: [{ key: 'app', value: 'fraud-check' }] }],
  ['update-workload', { name: 'hsm-01', description: 'key store', labels: [{ key: 'env', value: 'prod' }] }],
  ['create-iplist', { name: 'card scheme', ip_ranges: [{ from_ip: '198.51.100.0/24' }] }],
  ['update-iplist', { name: 'card scheme', fqdn: 'api.scheme.example' }],
  ['get-iplists', { name: 'card' }],
  ['create-service', { name: 'scoring', service_ports: [{ port: 8443, proto: 'tcp' }] }],
  ['update-service', { name: 'scoring', description: 'score a payment' }],
  ['get-services', { port: 8443, proto: 'tcp' }],
  [
    'create-ruleset',
    {
      name: RULE_SET,
      scopes: [['app=fraud-check', 'env=prod']],
      rules: [
        { providers: ['ams'], consumers: ['ams'], ingress_services: [{ service: 'All Services' }] },
        {
          providers: ['ams'],
          consumers: ['app=payments', 'env=prod'],
          ingress_services: [{ service: 'scoring' }],
          unscoped_consumers: true,
        },
        { ...DENY_TELNET, rule_type: 'deny' },
      ],
    },
  ],
  ['update-ruleset', { name: RULE_SET, description: 'who may score a payment' }],
  ['create-deny-rule', { ruleset_name: RULE_SET, ...DENY_TELNET, ingress_services: [{ port: 21, proto: 'tcp' }] }],
  ['get-rulesets', { name: RULE_SET }],
  ['update-deny-rule', ({ 'create-deny-rule': created }) => ({ href: created.rule.href, enabled: false })],
  ['update-sec-rule', ({ 'get-rulesets': list }) => ({ href: list.rulesets[0].rules[1].href, description: 'scoring' })],
  ['compare-draft-active', {}],
  ['get-traffic-flows-summary', { ...WEEK, include_destinations: ['app=payments', 'env=prod'] }],
  [
    'get-traffic-flows',
    { ...WEEK, include_destinations: ['app=payments'], group_by: ['source_app', 'port', 'policy'] },
  ],
  ['find-unmanaged-traffic', { lookback_days: 7, direction: 'inbound' }],
  ['discover-process-egress', { lookback_days: 7, process: ['curl'], include_sources: ['env=prod'] }],
  ['identify-infrastructure-services', { lookback_days: 7, top_n: 3 }],
  ['detect-lateral-movement-paths', { app_name: 'payments', env_name: 'prod', lookback_days: 7, max_hops: 2 }],
  ['compliance-check', { framework: 'pci-dss', app_name: 'payments', env_name: 'prod', lookback_days: 7 }],
  ['enforcement-readiness', { app_name: 'payments', env_name: 'prod', lookback_days: 7 }],
  ['get-policy-coverage-report', { app_name: 'payments', env_name: 'prod', lookback_days: 7 }],
  ['create-ringfence', { app_name: 'payments', env_name: 'prod', lookback_days: 7, selective: true }],
  [
    'ringfence-batch',
    { apps: [{ app_name: 'payments', env_name: 'prod', selective: true }], lookback_days: 7, dry_run: true },
  ],
  ['delete-ruleset', ({ 'create-ringfence': ringfence }) => ({ href: ringfence.ruleset.href })],
  ['provision-policy', { change_description: 'let fraud-check in' }],
  ['get-container-clusters', {}],
  [
    'get-container-workload-profiles',
    ({ 'get-container-clusters': list }) => ({ cluster_href: list.container_clusters[0].href }),
  ],
  [
    'update-container-workload-profile',
    ({ 'get-container-workload-profiles': list }) => ({
      profile_href: list.profiles.find((profile: { is_default?: boolean }) => profile.is_default !== true).href,
      managed: true,
      enforcement_mode: 'visibility_only',
    }),
  ],
  ['get-kubernetes-workloads', {}],
  ['delete-deny-rule', ({ 'create-deny-rule': created }) => ({ href: created.rule.href })],
  ['delete-sec-rule', ({ 'get-rulesets': list }) => ({ href: list.rulesets[0].rules[0].href })],
  ['delete-ruleset', { name: RULE_SET }],
  ['provision-policy', { change_description: 'take it back' }],
  ['delete-service', { name: 'scoring' }],
  ['delete-iplist', { name: 'card scheme' }],
  ['delete-workload', { name: 'hsm-01' }],
  ['delete-label', { key: 'app', value: 'fraud-check', dry_run: true }],
]

const REGISTRATION = { pce_host: 'pce.example.com', pce_port: 443, pce_org_id: 1, api_key: 'k', api_secret: 's' }

/** Where nobody logs in there are no credentials of one's own (D9). */
const REFUSED_CALLS: [string, Args, string][] = [
  ['register-pce-credentials', REGISTRATION, 'keystore_unavailable'],
  ['delete-pce-credentials', {}, 'keystore_unavailable'],
]

const BAD_CALLS: [string, Args, string][] = [
  ...REFUSED_CALLS,
  ['register-pce-credentials', { ...REGISTRATION, pce_port: '443' }, 'invalid_argument'],
  ['delete-pce-credentials', { sub: 'somebody' }, 'invalid_argument'],
  ['check-pce-credentials-status', { sub: 'somebody' }, 'invalid_argument'],
  ['check-pce-connection', { host: 'x' }, 'invalid_argument'],
  ['get-server-changelog', { since: 1 }, 'invalid_argument'],
  ['get-labels', { max_results: 0 }, 'invalid_argument'],
  ['get-traffic-flows', { ...WEEK, group_by: ['colour'] }, 'unknown_group_by'],
  ['get-traffic-flows-summary', { start_date: '2026-02-30', end_date: '2026-03-01' }, 'invalid_window'],
  ['find-unmanaged-traffic', { direction: 'sideways' }, 'invalid_argument'],
  ['discover-process-egress', { include_sources: ['app=payment'] }, 'unresolved_label_filter'],
  ['identify-infrastructure-services', { top_n: 0 }, 'invalid_argument'],
  ['detect-lateral-movement-paths', { app_name: 'payment' }, 'not_found'],
  ['compliance-check', { framework: 'pci', app_name: 'payments' }, 'invalid_argument'],
  ['enforcement-readiness', { app_name: 'payment', env_name: 'prod' }, 'not_found'],
  ['get-policy-coverage-report', { app_name: 'payments', env_name: 'production' }, 'not_found'],
  [
    'create-ringfence',
    { app_name: 'payments', env_name: 'prod', selective: true, deny_service: [{ service: 'no such service' }] },
    'invalid_deny_service',
  ],
  ['ringfence-batch', { apps: [] }, 'invalid_argument'],
  ['create-label', { key: 'app' }, 'invalid_argument'],
  ['create-label', { key: 'app', value: 'payments' }, 'already_exists'],
  ['update-label', { key: 'app', value: 'payment', new_value: 'x' }, 'not_found'],
  ['delete-label', { key: 'app', value: 'payment' }, 'not_found'],
  ['get-workloads', { labels: ['app=payment'] }, 'unresolved_label_filter'],
  ['create-workload', { name: 'w', ip_addresses: ['10.0.0.999'] }, 'invalid_argument'],
  ['update-workload', { name: 'nobody', description: 'x' }, 'not_found'],
  ['update-workload', { href: '/orgs/1/labels/1', description: 'x' }, 'invalid_href'],
  ['delete-workload', { name: 'nobody' }, 'not_found'],
  ['get-workload-enforcement-status', { app_name: 'payment' }, 'not_found'],
  ['get-container-clusters', { max_results: 0 }, 'invalid_argument'],
  ['get-container-workload-profiles', { cluster_href: '/orgs/1/labels/1' }, 'invalid_href'],
  ['update-container-workload-profile', { profile_href: '/orgs/1/labels/1', enforcement_mode: 'full' }, 'invalid_href'],
  ['get-kubernetes-workloads', { cluster_href: '/orgs/1/labels/1' }, 'invalid_href'],
  ['get-iplists', { name: '' }, 'invalid_argument'],
  ['create-iplist', { name: 'x', ip_ranges: [{ from_ip: '10.0.0.9', to_ip: '10.0.0.1' }] }, 'invalid_argument'],
  ['update-iplist', { name: 'nothing', description: 'x' }, 'not_found'],
  ['delete-iplist', { name: 'Any' }, 'not_found'],
  ['get-services', { port: 70_000 }, 'invalid_argument'],
  ['create-service', { name: 'x', service_ports: [{ port: 70_000, proto: 'tcp' }] }, 'invalid_service_definition'],
  ['update-service', { name: 'nothing', description: 'x' }, 'not_found'],
  ['delete-service', { name: 'All' }, 'not_found'],
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
  ['update-ruleset', { name: 'payments', description: 'x' }, 'not_found'],
  ['delete-ruleset', { name: 'payments' }, 'not_found'],
  ['create-deny-rule', { ruleset_name: 'payments', ...DENY_TELNET }, 'not_found'],
  ['update-deny-rule', { href: '/orgs/1/sec_policy/draft/rule_sets/1/deny_rules/0', enabled: false }, 'not_found'],
  ['delete-deny-rule', { href: '/orgs/1/labels/1' }, 'invalid_href'],
  ['update-sec-rule', { href: '/orgs/1/sec_policy/draft/rule_sets/1/sec_rules/0', enabled: false }, 'not_found'],
  ['delete-sec-rule', { href: '/orgs/1/labels/1' }, 'invalid_href'],
  ['get-rulesets', { labels: 'app=payment' }, 'unresolved_label_filter'],
  ['compare-draft-active', { resource_type: 'workloads' }, 'invalid_argument'],
  ['get-traffic-flows-summary', { start_date: '2026-06-31', end_date: '2026-07-01' }, 'invalid_window'],
  ['get-traffic-flows-summary', { start_date: '2026-06-14', end_date: '2026-06-08' }, 'invalid_window'],
  ['get-events', { timestamp_gte: 'yesterday' }, 'invalid_argument'],
  ['get-pairing-profiles', { max_results: 0 }, 'invalid_argument'],
  ['provision-policy', { hrefs: ['/orgs/1/labels/1'] }, 'invalid_argument'],
]

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
  const client = new Client({ name: 'acceptance', version: '1' })
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
  const client = new Client({ name: 'acceptance', version: '1' })
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
  t.same(
    [...new Set([...GOOD_CALLS, ...REFUSED_CALLS].map(([name]) => name))].sort(),
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

  const seen: Record<string, Answers> = { stdio: {}, http: {} }
  for (const [name, given] of GOOD_CALLS) {
    await t.test(
      `${name} answers ${typeof given === 'function' ? String(given) : JSON.stringify(given)}`,
      async (t) => {
        const answers: Record<string, unknown> = {}
        const sit = async ([transport, { client }]: [string, Seat]) => {
          const args = typeof given === 'function' ? given(seen[transport]!) : given
          const result = await client.callTool({ name, arguments: args })
          t.not(result.isError, true, `${transport}: ${JSON.stringify(result.content).slice(0, 300)}`)
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
      t.equal(resources.length, 21, transport)
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
      t.equal(prompts.length, 7, transport)
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
