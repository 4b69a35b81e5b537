import { MessageChannel, type MessagePort } from 'node:worker_threads'
import type { Piscina } from 'piscina'
import type { ToolContext } from '../../../domain/call.js'
import { serveClient, type ServedClient } from '../../../pce-client/index.js'
import type { HeavyConfig } from '../../../schemas/config.js'
import { ToolError } from '../../../schemas/errors.js'
import type { AnyTool } from '../../../tools/define.js'
import { convert } from '../../errors/convert.js'
import type { ServerLog } from '../call.js'
import { HARD_LIMIT, outOfMemory } from './guard-heap.js'
import type { Act, FromThread, ThreadTask, ToThread } from './messages.js'
import { createPlaces, type Places } from './places.js'

export interface HeavyCallsOptions extends HeavyConfig {
  /** The module that a thread loads; its default export is what `createTaskRunner` makes. */
  worker: URL
  server: { name: string; version: string }
  log: ServerLog
  now: () => number
}

export interface HeavyCalls {
  /** The tools, those that are heavy with functions that run in threads. */
  tools: readonly AnyTool[]
  /** How many calls have a place now, and how many wait for one. */
  readonly figures: Places['figures']
  /** Ends the threads. */
  close(): Promise<void>
}

/** A call waits this long for a place: milliseconds. Clients give up after a minute unless they hear of progress. */
const WAIT_MS = 60_000
/** How long a call that is aborted has to end by itself, and to delete its query at the PCE, before its thread is ended: milliseconds. */
const GRACE_MS = 3000
/** A thread without work ends: it holds some 30 MiB. Milliseconds. */
const IDLE_MS = 60_000
/** Below the thread that serves everybody: where the cores are busy, that one goes first (nice, as far as the system has it for threads). */
const NICE = 10
/** Of the changes that a broken call had sent, the answer names so many. */
const MOST_WRITES_SHOWN = 50

const ACTS: readonly Act[] = ['handler', 'preview', 'boundTo']

/**
 * Runs the calls of heavy tools in worker threads, so that neither what they compute nor what a PCE makes them parse keeps other
 * callers waiting (D61). The first such call starts the first thread. A call that outgrows its memory, or whose thread dies, fails
 * alone, with `analysis_failed`, or with `outcome_unknown {writes}` once it has sent a change.
 */
export function createHeavyCalls(tools: readonly AnyTool[], options: HeavyCallsOptions): HeavyCalls {
  const places = createPlaces({ ...options, waitMs: WAIT_MS })
  let starting: Promise<Piscina> | undefined
  const startPool = () => (starting ??= createPool(options))

  const inThread =
    (tool: AnyTool, act: Act) =>
    async (args: never, context: ToolContext): Promise<never> => {
      const leave = await enter(places, context)
      try {
        return (await runInThread(await startPool(), { tool, act, args, context }, options)) as never
      } finally {
        leave()
      }
    }

  return {
    tools: tools.map((tool) => {
      const { isHeavy } = tool
      if (isHeavy === undefined) return tool
      const acts = ACTS.filter((act) => tool[act] !== undefined)
      const run = (act: Act) => async (args: never, context: ToolContext) =>
        isHeavy === true || isHeavy(args) ? inThread(tool, act)(args, context) : tool[act]!(args, context as never)
      return { ...tool, ...Object.fromEntries(acts.map((act) => [act, run(act)])) }
    }),
    figures: places.figures,
    async close() {
      await (await starting)?.destroy()
    },
  }
}

function enter(places: Places, context: ToolContext): Promise<() => void> {
  const { caller, beforeWriting, approved } = context
  const queued = (ahead: number) =>
    context.progress({
      progress: 0,
      message: ahead === 0 ? 'Waiting for a place.' : `Waiting for a place, ${ahead} ahead.`,
    })
  // A confirm token has been redeemed for this very run, and is good for no other.
  const isPromised = approved !== undefined
  return places.enter(JSON.stringify([caller.iss, caller.sub]), beforeWriting, queued, isPromised)
}

async function createPool({ worker, max, memoryMb, log }: HeavyCallsOptions): Promise<Piscina> {
  // Loaded with the first call that needs it: stdio starts often, and most of its calls are light.
  const { Piscina: Pool } = await import('piscina')
  const pool = new Pool({
    filename: worker.href,
    minThreads: 0,
    maxThreads: max,
    idleTimeout: IDLE_MS,
    // A thread that waits for its next task by blocking would not close what the last one left.
    atomics: 'disabled',
    resourceLimits: { maxOldGenerationSizeMb: memoryMb * HARD_LIMIT, maxYoungGenerationSizeMb: 32 },
    niceIncrement: NICE,
    env: {},
    execArgv: [],
  })
  pool.on('error', (err: unknown) => log.error({ err }, 'a thread without a task has failed'))
  return pool
}

interface Work {
  tool: AnyTool
  act: Act
  args: unknown
  context: ToolContext
}

/** One task in a thread of its own until it ends. Rejects with what the tool throws, and as `createHeavyCalls` says. */
async function runInThread(pool: Piscina, work: Work, options: HeavyCallsOptions): Promise<unknown> {
  const { context } = work
  const channel = new MessageChannel()
  const wire = context.pce === null ? null : new MessageChannel()
  const served = context.pce !== null && wire !== null ? serveClient(context.pce, wire.port1) : null
  const pce = served !== null && wire !== null ? { address: served.address, port: wire.port2 } : null
  const transferList = [channel.port2, ...(wire === null ? [] : [wire.port2])]
  const kill = new AbortController()
  const release = passOnAborts(work, channel.port1, kill, served)
  const task: ThreadTask = taskOf(work, options, { pce, control: channel.port2 })
  const outcome = new Promise<unknown>((resolve, reject) => {
    channel.port1.on('message', (message: FromThread) => {
      if (message.is === 'progress') context.progress(message.update)
      else if (message.is === 'log') context.log[message.level](message.facts, message.message)
      else if (message.is === 'result') resolve(message.value)
      else reject(thrownOf(message))
    })
  })
  // Where the thread dies there is none, and where the call is given up nobody asks for it.
  outcome.catch(() => {})
  try {
    await pool.run(task, { transferList, signal: kill.signal }).catch(async (error: unknown) => {
      throw await explain(error, work, served, options)
    })
    return await outcome
  } finally {
    release()
    channel.port1.close()
    served?.close()
  }
}

function taskOf(
  { tool, act, args, context }: Work,
  { server: { name, version }, memoryMb }: HeavyCallsOptions,
  ports: Pick<ThreadTask, 'pce' | 'control'>,
): ThreadTask {
  const { caller, requestId, limits, approved } = context
  return {
    tool: tool.name,
    act,
    args,
    caller,
    requestId,
    limits,
    cursorKey: context.cursorKey(),
    ...(approved !== undefined && { approved }),
    clockOffset: context.now() - Date.now(),
    server: { name, version },
    memoryMb,
    ...ports,
  }
}

/**
 * Tells the thread what is aborted, and ends it where it does not listen. A change that has begun is completed unless the server
 * stops. Returns the function that lets go of the signals.
 */
function passOnAborts(
  { context }: Work,
  control: MessagePort,
  kill: AbortController,
  served: ServedClient | null,
): () => void {
  const timers: NodeJS.Timeout[] = []
  const watch = (which: ToThread['abort'], mayKill: () => boolean) => {
    const signal = context[which]
    const pass = () => {
      control.postMessage({ abort: which, reason: convert(signal.reason) } satisfies ToThread)
      timers.push(setTimeout(() => mayKill() && kill.abort(), GRACE_MS))
    }
    if (signal.aborted) pass()
    else signal.addEventListener('abort', pass, { once: true })
    return () => signal.removeEventListener('abort', pass)
  }
  const releases = [
    watch('beforeWriting', () => served === null || served.writes.length === 0),
    watch('signal', () => true),
  ]
  return () => {
    for (const timer of timers) clearTimeout(timer)
    for (const release of releases) release()
  }
}

/** What the tool has thrown, as it would have been thrown here. */
function thrownOf({ error, stack }: FromThread & { is: 'error' }): Error {
  if (stack === undefined) return new ToolError(error.code, error.message, error.details, { hint: error.hint })
  return Object.assign(new Error(stack.split('\n', 1)[0]), { stack })
}

/** Why a thread ended before its task did, and what it had sent until then. */
async function explain(
  error: unknown,
  { tool, context }: Work,
  served: ServedClient | null,
  { memoryMb, log }: HeavyCallsOptions,
): Promise<ToolError> {
  const writes = (await served?.settleWrites()) ?? []
  const { code, name } = error as { code?: unknown; name?: unknown }
  const isAborted = name === 'AbortError'
  const isTooLarge = code === 'ERR_WORKER_OUT_OF_MEMORY'
  if (!isAborted) log.error({ request_id: context.requestId, tool: tool.name, err: error }, 'a thread has failed')
  const why = isAborted
    ? 'it was cancelled'
    : isTooLarge
      ? `it needed more than the ${memoryMb} MiB of memory that one call may use`
      : 'its thread ended unexpectedly'
  if (writes.length > 0) {
    const shown = writes.slice(0, MOST_WRITES_SHOWN).map(({ method, endpoint, outcome }) => ({
      method,
      path: endpoint,
      outcome: outcome === 'done' ? 'done' : 'unknown',
    }))
    const text = `The call broke off because ${why}, after it had sent ${writes.length} changes to the PCE.`
    return new ToolError('outcome_unknown', text, { writes: shown, writes_total: writes.length })
  }
  const { signal, beforeWriting } = context
  if (isAborted && beforeWriting.aborted) return (signal.aborted ? signal.reason : beforeWriting.reason) as ToolError
  if (isTooLarge) return outOfMemory(memoryMb)
  return new ToolError('analysis_failed', `The call broke off because ${why}. Nothing was changed.`, {
    reason: 'thread_ended',
  })
}
