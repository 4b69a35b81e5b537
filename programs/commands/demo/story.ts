import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { tellWhyBlocked } from './blocked-story.js'
import { answered, asked, blankLine, chapter, say, table, tell } from './print.js'
import type { PceEnvironment } from './start-programs.js'

const APP = 'payments'
const ENV = 'prod'
const NEW_APP = 'fraud-check'
const CALLERS = ['ordering', 'web-shop', NEW_APP]

/** The traffic from one source (an application in an environment), with the policy decision about this traffic. */
interface Source {
  app: string
  env: string
  decision: string
  connections: number
}

interface Flows {
  columns: string[]
  data: (string | number | null)[][]
  truncated: boolean
}

interface Plan {
  message: string
  changes: { href: string; type: string; name?: string; update_type?: string }[]
  impact?: { num_managed_workloads?: number }
}

/** The addresses and functions that the story needs. */
export interface Stage {
  url: string
  stdioProgram: string
  /** The working directory of the stdio program; it contains no .env file. */
  folder: string
  pce: PceEnvironment
  /** Draws the application map, and resolves with the path of the drawing. */
  draw: () => Promise<string>
}

/** Performs the conversation. Throws Error if a call fails, because a demonstration must not hide a failure. */
export async function tellStory(stage: Stage): Promise<void> {
  tell('→ is a call that an assistant makes, ← what it gets back.')
  const client = new Client({ name: 'svc-mcp-demo', version: '1' })
  await client.connect(new StreamableHTTPClientTransport(new URL(stage.url)))

  chapter(1, 'Connect', 'An MCP client opens the server over HTTP and asks whether the PCE behind it answers.')
  const connection = await call<{ org_id: string; version?: string; latency_ms: number }>(
    client,
    'check-pce-connection',
    {},
  )
  answered(`PCE ${connection.version ?? ''}, organisation ${connection.org_id}, answers in ${connection.latency_ms} ms`)
  const { tools } = await client.listTools()
  answered(countByEffect(tools))

  chapter(
    2,
    `Who talks to ${APP}?`,
    `The traffic of the last week to the application ${APP} (label app=${APP}) in production (label env=${ENV}), by the labels of its source, with what the active policy decides about it.`,
  )
  const before = await whoTalksTo(client)
  table(
    ['source app', 'source env', 'policy decision', '#connections'],
    before.map(({ app, env, decision, connections }) => [app, env, decision, connections.toLocaleString('en')]),
  )
  say(
    `A dash: the source has no such label. potentially_blocked: no rule allows it; it still flows, and will be cut once ${APP} is enforced.`,
  )

  chapter(
    3,
    'Write the policy, as a draft',
    `A new application, ${NEW_APP}, is about to call ${APP}. It gets a label. Then a rule set lets it, ordering and web-shop in, and lets the workloads of ${APP} ("ams", all of its scope) talk to each other. Everything is resolved before anything is written.`,
  )
  await call(client, 'create-label', { key: 'app', value: NEW_APP })
  answered(`The label app=${NEW_APP} exists. Labels take effect at once.`)
  const created = await call<{ ruleset: { href: string; name: string; rules: unknown[] } }>(client, 'create-ruleset', {
    name: `${APP} | ${ENV}`,
    scopes: [[`app=${APP}`, `env=${ENV}`]],
    rules: [
      { providers: ['ams'], consumers: ['ams'], ingress_services: ['All Services'] },
      {
        providers: ['ams'],
        consumers: [...CALLERS.map((app) => `app=${app}`), `env=${ENV}`],
        unscoped_consumers: true,
        ingress_services: ['All Services'],
      },
    ],
  })
  answered(
    `The rule set "${created.ruleset.name}" with ${created.ruleset.rules.length} rules is a draft. Nothing is enforced yet.`,
  )

  chapter(
    4,
    'What is pending?',
    'A dry run of provisioning says what would take effect, and on how many workloads. It changes nothing.',
  )
  const plan = await call<Plan>(client, 'provision-policy', { dry_run: true })
  const pending = plan.changes.map(({ type, name, href, update_type }) => `${update_type} ${type} "${name ?? href}"`)
  answered(`Pending: ${pending.join(', ')}. ${plan.impact?.num_managed_workloads ?? 0} workloads would get new rules.`)

  chapter(
    5,
    'Provision',
    'The draft becomes active policy. Where people log in (authenticated HTTP), this call needs a single-use confirm token.',
  )
  const provisioned = await call<{ version: number; workloads_affected: number | null }>(client, 'provision-policy', {
    hrefs: [created.ruleset.href],
    change_description: `Who may reach ${APP} in ${ENV}`,
  })
  answered(
    `Policy version ${provisioned.version} is active; ${provisioned.workloads_affected ?? 0} workloads have new rules.`,
  )

  chapter(6, 'The same question again', 'The same flows, decided by the policy that is active now. What has changed:')
  const after = await whoTalksTo(client)
  const opened = showChange(before, after)
  const flow = await findBlocked(client)
  const verdict = await tellWhyBlocked((name, args) => call(client, name, args), 7, flow)
  await client.close()

  chapter(8, 'The same over stdio', 'A desktop client starts the server as a subprocess: no port, no login.')
  answered(await askOverStdio(stage))
  say(`The application map of all this, from svc-mcp draw map: ${await stage.draw()}`)

  blankLine()
  tell(
    `Shown: who talks to ${APP} in ${ENV}; a rule set written as a draft, previewed and provisioned; the same traffic decided anew, with ${opened.length} more sources allowed (${opened.join(', ')}); and why a flow is ${verdict}, in ten lines. Over HTTP and over stdio.`,
  )
}

/**
 * Starts a server of its own over stdio, as a desktop client does, and returns a description of the rule set as this
 * server shows it.
 */
async function askOverStdio({ stdioProgram, folder, pce }: Stage): Promise<string> {
  const desktop = new Client({ name: 'svc-mcp-demo-desktop', version: '1' })
  try {
    await desktop.connect(
      new StdioClientTransport({
        command: process.execPath,
        args: [stdioProgram],
        cwd: folder,
        env: { ...pce },
        stderr: 'ignore',
      }),
    )
    const { rulesets } = await call<{ rulesets: { name: string; rules: unknown[] }[] }>(desktop, 'get-rulesets', {
      name: `${APP} | ${ENV}`,
      exact: true,
    })
    return `"${rulesets[0]?.name}" with ${rulesets[0]?.rules.length} rules: both transports see one PCE.`
  } finally {
    // Closing the client ends its child process, which would otherwise continue to run if the story is interrupted.
    await desktop.close()
  }
}

/** Lists the sources of traffic to the application, busiest first. */
async function whoTalksTo(client: Client): Promise<Source[]> {
  const day = (offset: number) => new Date(Date.now() - offset * 86_400_000).toISOString().slice(0, 10)
  const { columns, data, truncated } = await call<Flows>(client, 'get-traffic-flows', {
    start_date: day(7),
    end_date: day(0),
    include_destinations: [`app=${APP}`, `env=${ENV}`],
    group_by: ['src_app', 'src_env', 'policy_decision'],
  })
  const cell = (row: Flows['data'][number], name: string) => row[columns.indexOf(name)]
  const sources = data.map((row) => ({
    app: String(cell(row, 'src_app')),
    env: String(cell(row, 'src_env')),
    decision: String(cell(row, 'policy_decision')),
    connections: Number(cell(row, 'num_connections')),
  }))
  const total = sources.reduce((sum, { connections }) => sum + connections, 0).toLocaleString('en')
  answered(`${total} connections from ${sources.length} sources, ${truncated ? 'cut at a limit' : 'none left out'}`)
  return sources
}

/** Finds the busiest flow to the application among the flows that the policy blocks or would block. */
async function findBlocked(client: Client) {
  const day = (offset: number) => new Date(Date.now() - offset * 86_400_000).toISOString().slice(0, 10)
  const { columns, data } = (
    await client.callTool({
      name: 'get-traffic-flows',
      arguments: {
        start_date: day(7),
        end_date: day(0),
        include_destinations: [`app=${APP}`, `env=${ENV}`],
        policy_decisions: ['blocked', 'potentially_blocked'],
        group_by: ['src_hostname', 'dst_hostname', 'port', 'proto'],
      },
    })
  ).structuredContent as Flows
  const cell = (row: Flows['data'][number], name: string) => row[columns.indexOf(name)]
  const isHost = (name: unknown) => /^[a-z][a-z0-9-]*$/.test(String(name))
  const row = data.find(
    (one) => isHost(cell(one, 'src_hostname')) && isHost(cell(one, 'dst_hostname')) && Number(cell(one, 'port')) > 0,
  )
  if (row === undefined) throw new Error('nothing is blocked')
  return {
    source: String(cell(row, 'src_hostname')),
    destination: String(cell(row, 'dst_hostname')),
    port: Number(cell(row, 'port')),
    proto: String(cell(row, 'proto')),
  }
}

/**
 * Prints the sources whose policy decision has changed, then the number of sources without a change. Returns the
 * applications whose decision has changed.
 */
function showChange(before: readonly Source[], after: readonly Source[]): string[] {
  const now = new Map(after.map((source) => [`${source.app} ${source.env}`, source.decision]))
  const rows = before.map((source) => ({ ...source, now: now.get(`${source.app} ${source.env}`) ?? 'gone' }))
  const changed = rows.filter((row) => row.decision !== row.now)
  table(
    ['source app', 'source env', 'before', 'now'],
    changed.map((row) => [row.app, row.env, row.decision, row.now]),
  )
  const same = rows.filter((row) => row.decision === row.now)
  const kept = same.filter((row) => row.now === 'allowed').length
  say(
    `As before: ${kept} sources that other rules allow, and ${same.length - kept} that no rule allows. ${NEW_APP} has not called yet.`,
  )
  return changed.map((row) => row.app)
}

async function call<T>(client: Client, name: string, args: Record<string, unknown>): Promise<T> {
  asked(name, args)
  const result = await client.callTool({ name, arguments: args })
  if (result.isError === true) throw new Error(`${name} failed: ${JSON.stringify(result.content)}`)
  return result.structuredContent as T
}

function countByEffect(tools: { annotations?: { readOnlyHint?: boolean; destructiveHint?: boolean } }[]): string {
  const reading = tools.filter(({ annotations }) => annotations?.readOnlyHint === true).length
  const destructive = tools.filter(({ annotations }) => annotations?.destructiveHint === true).length
  const rest = tools.length - reading - destructive
  return `${tools.length} tools, each marked for its effect: ${reading} read, ${rest} write, ${destructive} delete or change what is enforced`
}
