import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { answered, asked, chapter, say, table } from './print.js'
import type { PceEnvironment } from './start-server.js'

const APP = 'payments'
const ENV = 'prod'
const NEW_APP = 'fraud-check'
const CONSUMERS = ['ordering', 'web-shop', NEW_APP]

interface Edge {
  from: string
  to: string
  policy: string
  connections: number
}

interface Summary {
  totals: { rows: number; connections: number; truncated: boolean }
  app_to_app: Edge[]
  window: { start: string; end: string }
}

interface Plan {
  message: string
  changes: { href: string; type: string; name?: string; update_type?: string }[]
  impact?: { num_managed_workloads?: number }
}

/** Plays the conversation; throws Error when a call of it fails, since a demonstration must not hide that. */
export async function tellStory(stage: { url: string; stdioProgram: string; pce: PceEnvironment }): Promise<void> {
  const client = new Client({ name: 'svc-mcp-demo', version: '1' })
  await client.connect(new StreamableHTTPClientTransport(new URL(stage.url)))

  chapter(
    1,
    'Connect',
    'An MCP client opens the server over Streamable HTTP and asks whether the PCE behind it answers.',
  )
  const server = client.getServerVersion()
  answered(`${server?.name} ${server?.version} at ${stage.url}`)
  const connection = await call<{ pce_host: string; org_id: string; version?: string; latency_ms: number }>(
    client,
    'check-pce-connection',
    {},
  )
  answered(
    `PCE ${connection.version ?? ''} on ${connection.pce_host}, organisation ${connection.org_id}: connected in ${connection.latency_ms} ms`,
  )

  chapter(2, 'What can it do?', 'Every tool says whether it only reads, writes, or is destructive.')
  const { tools } = await client.listTools()
  table(
    ['tool', 'effect', 'title'],
    tools.map((tool) => [tool.name, effectOf(tool.annotations), tool.annotations?.title ?? '']),
  )

  chapter(
    3,
    `Who talks to ${APP}?`,
    'The flows of the last week, from application to application, with what the active policy decides about each.',
  )
  const before = await whoTalksTo(client)
  showEdges(before)

  chapter(
    4,
    'Write the policy, as a draft',
    `A new service, ${NEW_APP}, is about to call ${APP}. It gets a label; then a rule set lets it, ordering and web-shop in, and lets ${APP} talk to itself. Names resolve exactly, everything resolves before anything is written.`,
  )
  const label = await call<{ label: { href: string } }>(client, 'create-label', { key: 'app', value: NEW_APP })
  answered(`label app=${NEW_APP} is ${label.label.href}`)
  const created = await call<{ ruleset: { href: string; name: string; rules: unknown[] } }>(client, 'create-ruleset', {
    name: `${APP} | ${ENV}`,
    description: `Who may reach ${APP} in ${ENV}`,
    scopes: [[`app=${APP}`, `env=${ENV}`]],
    rules: [
      { providers: ['ams'], consumers: ['ams'], ingress_services: [{ service: 'All Services' }] },
      ...CONSUMERS.map((app) => ({
        providers: ['ams'],
        consumers: [`app=${app}`, `env=${ENV}`],
        ingress_services: [{ service: 'All Services' }],
        unscoped_consumers: true,
      })),
    ],
  })
  answered(
    `rule set "${created.ruleset.name}" with ${created.ruleset.rules.length} rules is ${created.ruleset.href}, in draft`,
  )

  chapter(
    5,
    'What is pending?',
    'A dry run of provisioning shows what would take effect and how many workloads it affects. It changes nothing.',
  )
  const plan = await call<Plan>(client, 'provision-policy', { dry_run: true })
  answered(plan.message)
  table(
    ['pending', 'change', 'name'],
    plan.changes.map((change) => [change.type, change.update_type ?? '', change.name ?? change.href]),
  )
  say(`${plan.impact?.num_managed_workloads ?? 0} managed workloads would get new rules.`)

  chapter(
    6,
    'Provision',
    'The draft becomes active policy. Over authenticated HTTP this step needs a single-use confirm token.',
  )
  const provisioned = await call<{ version: number; workloads_affected: number | null; message: string }>(
    client,
    'provision-policy',
    {
      hrefs: [created.ruleset.href],
      change_description: `Ringfence ${APP} in ${ENV}`,
    },
  )
  answered(`policy version ${provisioned.version} is active, ${provisioned.workloads_affected ?? 0} workloads affected`)

  chapter(
    7,
    'The same question again',
    'The same week and the same flows, decided by the policy that is active now. What has changed:',
  )
  const after = await whoTalksTo(client)
  showChange(before, after)
  await client.close()

  chapter(8, 'And over stdio', 'The same server as a subprocess, the way a desktop client runs it.')
  const desktop = new Client({ name: 'svc-mcp-demo-desktop', version: '1' })
  await desktop.connect(
    new StdioClientTransport({
      command: process.execPath,
      args: [stage.stdioProgram],
      env: { ...stage.pce },
      stderr: 'ignore',
    }),
  )
  const rulesets = await call<{ rulesets: { name: string; rules: unknown[] }[]; total_count: number }>(
    desktop,
    'get-rulesets',
    { name: `${APP} | ${ENV}` },
  )
  answered(`${rulesets.total_count} rule set of that name, with ${rulesets.rulesets[0]?.rules.length} rules`)
  await desktop.close()
}

async function whoTalksTo(client: Client): Promise<Summary> {
  const day = (offset: number) => new Date(Date.now() - offset * 86_400_000).toISOString().slice(0, 10)
  const summary = await call<Summary>(client, 'get-traffic-flows-summary', {
    start_date: day(7),
    end_date: day(0),
    include_destinations: [`app=${APP}`, `env=${ENV}`],
  })
  answered(
    `${summary.totals.connections} connections in ${summary.totals.rows} flows, ${summary.totals.truncated ? 'cut at the PCE limit' : 'none left out'}`,
  )
  return summary
}

function showEdges(summary: Summary): void {
  table(
    ['from', 'policy decision', '#connections'],
    summary.app_to_app.map((edge) => [edge.from, edge.policy, String(edge.connections)]),
  )
}

/** Sources whose verdict the policy has changed, then how many it has left alone. */
function showChange(before: Summary, after: Summary): void {
  const decisions = (summary: Summary, from: string) =>
    [...new Set(summary.app_to_app.filter((edge) => edge.from === from).map((edge) => edge.policy))].sort().join(', ')
  const sources = [...new Set(before.app_to_app.map((edge) => edge.from))]
  const rows = sources.map((from) => [from, decisions(before, from), decisions(after, from)] as const)
  const changed = rows.filter(([, was, is]) => was !== is)
  table(
    ['from', 'before', 'now'],
    changed.map((row) => [...row]),
  )
  const same = rows.filter(([, was, is]) => was === is)
  const kept = same.filter(([, , is]) => is === 'allowed').length
  say(
    `${kept} more were allowed before and still are; ${same.length - kept} that nobody asked for stay potentially blocked.`,
  )
}

async function call<T>(client: Client, name: string, args: Record<string, unknown>): Promise<T> {
  asked(name, args)
  const result = await client.callTool({ name, arguments: args })
  if (result.isError === true) throw new Error(`${name} failed: ${JSON.stringify(result.content)}`)
  return result.structuredContent as T
}

function effectOf(annotations: { readOnlyHint?: boolean; destructiveHint?: boolean } | undefined): string {
  if (annotations?.readOnlyHint === true) return 'reads'
  return annotations?.destructiveHint === true ? 'destructive' : 'writes'
}
