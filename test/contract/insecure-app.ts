import { PassThrough } from 'node:stream'
import { Type } from '@sinclair/typebox'
import type { InjectOptions } from 'fastify'
import { pino } from 'pino'
import { buildApp } from '../../programs/app.js'
import type { InsecureHttpConfig } from '../../schemas/config.js'
import { ToolError } from '../../schemas/errors.js'
import { catalogueOf } from '../../tools/catalogue/catalogue-of.js'
import { defineTool, type AnyTool } from '../../tools/define.js'
import { fakeClock } from '../fake-clock.js'

export type Line = Record<string, unknown>

export const CONFIG: InsecureHttpConfig = {
  mode: 'insecure',
  logLevel: 'info',
  limits: { responseBudgetBytes: 80_000, trafficQueryTimeoutSeconds: 600, trafficMaxParts: 64 },
  heavy: { max: 2, perCaller: 2, queue: 4, queuePerCaller: 4, memoryMb: 512 },
  warnings: [],
  http: { host: '127.0.0.1', port: 0, allowedHosts: [], maxInFlight: 256 },
}

/**
 * The real app of dev-insecure around tools of the test, with its audit and its log as lists. Its timers stand still unless the test has
 * its own, so that no answer becomes a stream because the machine is slow.
 */
export async function insecureApp(
  tools: readonly AnyTool[] = testTools().tools,
  config: Partial<InsecureHttpConfig> = {},
  { timers = fakeClock(), worker }: Pick<Parameters<typeof buildApp>[1], 'timers' | 'worker'> = {},
) {
  const audit: Line[] = []
  const log: Line[] = []
  const collect = (lines: Line[]) => ({ write: (line: string) => void lines.push(JSON.parse(line)) })
  const auditStream = new PassThrough()
  auditStream.on('data', (chunk: Buffer) => {
    for (const line of chunk.toString().trim().split('\n')) audit.push(JSON.parse(line))
  })
  const lifecycle = { isDraining: false }
  const app = await buildApp(
    { ...CONFIG, ...config },
    {
      tools: catalogueOf(tools),
      log: pino({ level: 'info' }, collect(log)),
      auditStream,
      isDraining: () => lifecycle.isDraining,
      timers,
      worker,
    },
  )
  const post = (body: unknown, headers: Record<string, string> = {}, more: InjectOptions = {}) =>
    app.inject({
      method: 'POST',
      url: '/mcp',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...headers,
      },
      payload: typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body),
      ...more,
    })
  /** The message that answers; where a call takes its time, it comes at the end of a stream. */
  const call = async (name: string, args: object = {}, more: object = {}) => {
    const { body } = await post(request('tools/call', { name, arguments: args, ...more }))
    return body.startsWith('{') ? JSON.parse(body) : parseEvents(body).events.at(-1)!.data
  }
  return { app, audit, log, post, call, lifecycle }
}

export const request = (method: string, params?: object, id: unknown = 1) => ({
  jsonrpc: '2.0',
  id,
  method,
  ...(params && { params }),
})

/** The JSON in the text of a tool result. */
export const textOf = (answer: { result: { content: { text: string }[] } }) =>
  JSON.parse(answer.result.content[0]!.text)

export interface RpcMessage {
  id?: string | number
  method?: string
  params?: Line
  result?: Line
}

/** Events of a text/event-stream by the rules of WHATWG: comments are returned apart. */
export function parseEvents(stream: string): { events: { event: string; data: RpcMessage }[]; comments: string[] } {
  const comments: string[] = []
  const events: { event: string; data: RpcMessage }[] = []
  for (const block of stream.split('\n\n')) {
    const fields: Record<string, string> = {}
    for (const line of block.split('\n')) {
      if (line === '') continue
      if (line.startsWith(':')) comments.push(line.slice(1).trim())
      else fields[line.slice(0, line.indexOf(':'))] = line.slice(line.indexOf(':') + 1).replace(/^ /, '')
    }
    if (fields.data !== undefined) events.push({ event: fields.event ?? 'message', data: JSON.parse(fields.data) })
  }
  return { events, comments }
}

/** A tool that stands still until the test lets it go on. */
export function gate() {
  let open!: () => void
  let arrive!: () => void
  const opened = new Promise<void>((resolve) => (open = resolve))
  const arrived = new Promise<void>((resolve) => (arrive = resolve))
  return { open, opened, arrive, arrived }
}

/** What tools of tests have in common: for everyone, without a PCE, without a confirmation. */
export const openTool = {
  toolset: 'server',
  summary: 'A tool of the test.',
  roles: ['reader', 'operator', 'admin'],
  requiresPce: false,
  requiresConfirm: false,
  example: {},
} as const

/** Tools that echo, fail in every way and wait; `held` and `signals` let a test see and steer those that wait. */
export function testTools() {
  const read = gate()
  const write = gate()
  const seen: { read?: AbortSignal; write?: AbortSignal; writes: number } = { writes: 0 }
  const Text = Type.Object({ text: Type.String() })
  const Closed = { additionalProperties: false }
  const tools = [
    defineTool({
      ...openTool,
      name: 'echo',
      effect: 'read',
      input: Type.Object(
        { text: Type.Optional(Type.String({ default: 'nothing', description: 'What comes back.' })) },
        Closed,
      ),
      output: Text,
      handler: ({ text }) => Promise.resolve({ text: text! }),
    }),
    defineTool({
      ...openTool,
      name: 'rules',
      effect: 'write',
      input: Type.Object(
        {
          name: Type.String({ minLength: 1 }),
          mode: Type.Optional(Type.Unsafe<string>({ type: 'string', enum: ['visibility_only', 'full'] })),
          limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 10 })),
          rules: Type.Array(
            Type.Object(
              {
                providers: Type.Array(Type.String()),
                service: Type.Optional(
                  Type.Union([Type.String(), Type.Object({ port: Type.Integer(), proto: Type.String() }, Closed)]),
                ),
              },
              Closed,
            ),
          ),
        },
        Closed,
      ),
      output: Text,
      handler: () => Promise.resolve({ text: String(++seen.writes) }),
      example: { name: 'x', rules: [] },
    }),
    defineTool({
      ...openTool,
      name: 'leak',
      effect: 'read',
      input: Type.Object({}, Closed),
      output: Text,
      handler: () => Promise.reject(new Error('secret=abc at /srv/x.js')),
    }),
    defineTool({
      ...openTool,
      name: 'refuse',
      effect: 'read',
      input: Type.Object({}, Closed),
      output: Text,
      handler: () =>
        Promise.reject(
          new ToolError('label_not_found', "There is no label 'app=x'.", {
            valid: ['app=y'],
            error: 'forged',
            request_id: 'forged',
          }),
        ),
    }),
    defineTool({
      ...openTool,
      name: 'misanswer',
      effect: 'write',
      input: Type.Object({}, Closed),
      output: Text,
      handler: () => Promise.resolve({ text: 5 } as never),
    }),
    defineTool({
      ...openTool,
      name: 'needs-pce',
      effect: 'read',
      requiresPce: true,
      input: Type.Object({ x: Type.Optional(Type.String()) }, Closed),
      output: Text,
      handler: () => Promise.resolve({ text: 'never' }),
    }),
    defineTool({
      ...openTool,
      name: 'wait-read',
      effect: 'read',
      input: Type.Object({}, Closed),
      output: Text,
      async handler(_args, context) {
        const { signal } = context
        seen.read = signal
        context.progress({ progress: 1, total: 4, message: 'waiting' })
        read.arrive()
        await Promise.race([
          read.opened,
          new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error))),
        ])
        return { text: 'read' }
      },
    }),
    defineTool({
      ...openTool,
      name: 'wait-write',
      effect: 'write',
      input: Type.Object({}, Closed),
      output: Text,
      async handler(_args, { signal }) {
        seen.write = signal
        write.arrive()
        await write.opened
        return { text: 'written' }
      },
    }),
  ]
  return { tools: tools as readonly AnyTool[], read, write, seen }
}
