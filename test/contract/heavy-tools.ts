import { isMainThread } from 'node:worker_threads'
import { Type } from '@sinclair/typebox'
import type { Test } from 'tap'
import type { ToolContext } from '../../domain/call.js'
import type { PceClient } from '../../pce-client/index.js'
import { createPceSimulator } from '../../pce-simulator/index.js'
import type { PceSimulatorOptions } from '../../pce-simulator/options.js'
import type { InsecureHttpConfig } from '../../schemas/config.js'
import { defineTool } from '../../tools/define.js'
import { openTool } from './insecure-app.js'

const tool = <P extends boolean>(
  name: string,
  facts: { requiresPce: P; effect?: 'read' | 'write' },
  run: (ctx: ToolContext<P>) => Promise<string>,
) =>
  defineTool({
    ...openTool,
    effect: 'read',
    ...facts,
    name,
    isHeavy: true,
    input: Type.Object({}, { additionalProperties: false }),
    output: Type.Object({ message: Type.String() }),
    handler: async (_args, ctx: ToolContext<P>) => ({ message: await run(ctx) }),
  })

const QUERY = {
  start_date: '2026-06-08T00:00:00Z',
  end_date: '2026-06-14T23:59:59Z',
  sources: { include: [[]], exclude: [] },
  destinations: { include: [[]], exclude: [] },
  services: { include: [], exclude: [] },
  sources_destinations_query_op: 'and' as const,
  policy_decisions: [],
  exclude_workloads_from_ip_list_query: true,
}
const plain = { requiresPce: false } as const
const writing = { requiresPce: true, effect: 'write' } as const
const abortOf = (signal: AbortSignal) =>
  new Promise<Error>((resolve) => {
    if (signal.aborted) resolve(signal.reason as Error)
    else signal.addEventListener('abort', () => resolve(signal.reason as Error))
  })

/** The number of rows, and of different ones: a row that is passed on twice is only once among the latter. */
async function countFlows(pce: PceClient, signal: AbortSignal) {
  const seen = new Set<string>()
  let flows = 0
  const onFlows = (rows: object[]) => {
    flows += rows.length
    for (const row of rows) seen.add(JSON.stringify(row))
  }
  await pce.streamTrafficFlows('q', QUERY, { onFlows, signal })
  return `${flows} (${seen.size} different)`
}

/** Heavy with some arguments only. */
const sometimes = defineTool({
  ...openTool,
  effect: 'read',
  ...plain,
  name: 'sometimes',
  isHeavy: ({ deep }) => deep === true,
  input: Type.Object({ deep: Type.Optional(Type.Boolean()) }, { additionalProperties: false }),
  output: Type.Object({ message: Type.String() }),
  handler: () => Promise.resolve({ message: isMainThread ? 'here' : 'in a thread' }),
})

/** Takes a while to find out what it would do, and none to do it. */
const confirmed = defineTool({
  ...openTool,
  effect: 'write',
  requiresPce: true,
  requiresConfirm: true,
  name: 'confirmed',
  isHeavy: true,
  input: Type.Object({}, { additionalProperties: false }),
  output: Type.Object({ message: Type.String() }),
  preview: () => Promise.resolve({ summary: 'Answers.', boundTo: 'always' }),
  async boundTo(_args, { pce, signal }) {
    await pce.streamTrafficFlows('q', QUERY, { onFlows: () => {}, signal })
    return 'always'
  },
  handler: () => Promise.resolve({ message: 'ran' }),
})

/** Heavy tools that do what no tool should. A thread finds them in `heavy-worker.ts`. */
export const heavyTools = [
  sometimes,
  confirmed,
  tool('outgrows', plain, async ({ signal }) => {
    for (let kept: object = {}, size = 0; ; size++) {
      kept = { kept, text: `${size}`.repeat(10) }
      if (size % 10_000 === 0) await new Promise((resolve) => setImmediate(resolve))
      signal.throwIfAborted()
    }
  }),
  tool('reads-too-much', { requiresPce: true }, async ({ pce }) => {
    for (const kept: unknown[] = []; ;) kept.push(await pce.workloads.getAll())
  }),
  tool('dies', plain, () => process.exit(3)),
  tool('spins', plain, async (ctx) => {
    ctx.progress({ progress: 1, message: 'Spinning.' })
    for (;;) Math.random()
  }),
  tool('throws', plain, () => Promise.reject(new TypeError('of the inside'))),
  tool('waits', plain, async (ctx) => {
    ctx.progress({ progress: 1, message: 'Waiting.' })
    throw await abortOf(ctx.signal)
  }),
  tool('reports', plain, async (ctx) => {
    for (let step = 0; step < 50; step++) ctx.progress({ progress: step, message: `Step ${step}.` })
    ctx.log.info({ step: 50 }, 'all steps done')
    return `${ctx.requestId} ${ctx.caller.mode} ${ctx.server.name}`
  }),
  tool('asks', { requiresPce: true }, async ({ pce, signal }) => {
    await pce.streamTrafficFlows('q', QUERY, { onFlows: () => {}, signal })
    return 'answered'
  }),
  tool('counts-flows', { requiresPce: true }, async ({ pce, signal }) => `${await countFlows(pce, signal)} flows`),
  tool('reads-and-waits', { requiresPce: true }, async (ctx) => {
    await countFlows(ctx.pce, ctx.signal)
    ctx.progress({ progress: 1, message: 'Waiting.' })
    throw await abortOf(ctx.signal)
  }),
  tool('counts-in-its-turn', writing, ({ pce, signal, inOrder }) =>
    inOrder('rule_sets Pay', async () => `${await countFlows(pce, signal)} flows`),
  ),
  tool('asks-and-dies', { requiresPce: true }, async ({ pce }) => {
    await pce.streamTrafficFlows('q', QUERY, { onFlows: () => {} })
    return process.exit(3)
  }),
  tool('writes-and-dies', writing, async ({ pce }) => {
    await pce.labels.create({ key: 'app', value: 'first' })
    await pce.labels.create({ key: 'app', value: 'second' })
    return process.exit(3)
  }),
  tool('dies-in-its-turn', writing, (ctx) => ctx.inOrder('rule_sets Pay', () => process.exit(3))),
  tool('takes-its-turn', writing, (ctx) => ctx.inOrder('rule_sets Pay', () => Promise.resolve('had it'))),
  tool('writes-and-waits', writing, async (ctx) => {
    const { pce, beforeWriting } = ctx
    await pce.labels.create({ key: 'app', value: 'third' })
    ctx.progress({ progress: 1, message: 'One is written.' })
    await abortOf(beforeWriting)
    await pce.labels.create({ key: 'app', value: 'fourth' })
    return 'both are written'
  }),
]

/** A simulated PCE whose jobs are done at once, and the configuration of a server for it. */
export async function startPce(t: Test, { pollsUntilDone = 1, ...more }: PceSimulatorOptions = {}) {
  // Its clock stands still, because new traffic would be a difference between two answers.
  const started = Date.now()
  const paces = { pollsUntilDone, retryAfter: 0, now: () => started }
  const simulator = await createPceSimulator({ flows: 500, ...paces, ...more })
  t.teardown(() => simulator.close())
  const { protocol, hostname, port } = new URL(await simulator.listen())
  const config: NonNullable<InsecureHttpConfig['pce']> = {
    url: `${protocol}//${hostname}`,
    port,
    orgId: String(simulator.orgId),
    apiKey: simulator.credentials.key,
    apiSecret: simulator.credentials.secret,
    tls: { verify: true },
  }
  return { simulator, config }
}
