import { isMainThread } from 'node:worker_threads'
import { Type } from '@sinclair/typebox'
import type { ToolContext } from '../../domain/call.js'
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

const plain = { requiresPce: false } as const
const writing = { requiresPce: true, effect: 'write' } as const
const abortOf = (signal: AbortSignal) =>
  new Promise<Error>((resolve) => {
    if (signal.aborted) resolve(signal.reason as Error)
    else signal.addEventListener('abort', () => resolve(signal.reason as Error))
  })

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

/** Heavy tools that do what no tool should. A thread finds them in `heavy-worker.ts`. */
export const heavyTools = [
  sometimes,
  tool('outgrows', plain, async () => {
    const kept: object[] = []
    for (;;) kept.push({ text: `${kept.length}`.repeat(10) })
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
  tool('writes-and-dies', writing, async ({ pce }) => {
    await pce.labels.create({ key: 'app', value: 'first' })
    await pce.labels.create({ key: 'app', value: 'second' })
    return process.exit(3)
  }),
  tool('writes-and-waits', writing, async (ctx) => {
    const { pce, beforeWriting } = ctx
    await pce.labels.create({ key: 'app', value: 'third' })
    ctx.progress({ progress: 1, message: 'One is written.' })
    await abortOf(beforeWriting)
    await pce.labels.create({ key: 'app', value: 'fourth' })
    return 'both are written'
  }),
]
