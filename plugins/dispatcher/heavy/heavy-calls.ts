import type { MessagePort } from 'node:worker_threads'
import type { Piscina } from 'piscina'
import type { ToolContext } from '../../../domain/call.js'
import { serveClient, type ServedClient } from '../../../pce-client/index.js'
import type { HeavyConfig } from '../../../schemas/config.js'
import { ToolError } from '../../../schemas/errors.js'
import type { Act, AnyTool } from '../../../tools/define.js'
import { changeTool, type ListedTool } from '../../../tools/listed-tool.js'
import { convert } from '../../errors/convert.js'
import type { ServerLog } from '../call.js'
import { HARD_LIMIT, outOfMemory } from './guard-heap.js'
import { createLargeReading, type BeginReading } from './large-reading.js'
import type { FromThread, ThreadTask, ToThread } from './messages.js'
import { createPlaces, type Places } from './places.js'

export interface HeavyCallsOptions extends HeavyConfig {
  /** The module that each thread loads; its default export is what `createTaskRunner` returns. */
  worker: URL
  server: { name: string; version: string }
  log: ServerLog
  now: () => number
}

export interface HeavyCalls {
  /** All tools. Only the functions of the heavy ones run in threads. */
  tools: readonly ListedTool[]
  /** Returns how many calls hold a worker place, and how many wait for one. */
  readonly figures: Places['figures']
  /** Ends all worker threads. */
  close(): Promise<void>
}

/**
 * Maximum time, in milliseconds, for which a call waits for a worker place. Clients give up after a minute unless they
 * see progress.
 */
const WAIT_MS = 60_000
/**
 * The time, in milliseconds, that an aborted call has to end by itself and to delete its query at the PCE. After that,
 * its thread is terminated.
 */
const GRACE_MS = 3000
/**
 * The default of `HeavyConfig.silentMs`: the time, in milliseconds, after which a thread that gives no sign of life is
 * terminated. No tool should compute nearly as long without a pause. Without this limit, such a tool would occupy its
 * worker place for as long as its client waits.
 */
const SILENT_MS = 120_000
/** The time, in milliseconds, after which an idle thread is ended, because it holds about 30 MiB. */
const IDLE_MS = 60_000
/**
 * The nice value of the threads. It gives them a lower priority than the main thread, which serves all callers and must
 * run first if all cores are busy. It takes effect on systems where threads have priorities of their own.
 */
const NICE = 10
/** Maximum number of changes listed in the error of a failed call. */
const MOST_WRITES_SHOWN = 50

/** The reason with which a task is aborted if no thread could start it. */
const NO_THREAD = Symbol('no thread')
/** The reason with which a task is aborted if its thread has computed for too long without a pause. */
const SILENT = Symbol('silent')

const ACTS: readonly Act[] = ['handler', 'preview', 'boundTo', 'plan']

/**
 * Makes heavy tools run in worker threads, so that neither their computations nor the parsing of the PCE's answers
 * delays other callers (D61). The first heavy call starts the first thread. If a call exceeds its memory limit or its
 * thread dies, the call fails without affecting other calls: with `outcome_unknown {writes}` if it has already sent a
 * change, and otherwise with `analysis_failed`.
 */
export function createHeavyCalls(tools: readonly ListedTool[], options: HeavyCallsOptions): HeavyCalls {
  const places = createPlaces({ ...options, waitMs: WAIT_MS })
  const beginReading = createLargeReading(options)
  let starting: Promise<Pool> | undefined
  const startPool = () => (starting ??= createPool(options))

  const inThread =
    (tool: AnyTool, act: Act) =>
    async (args: never, context: ToolContext): Promise<never> => {
      const leave = await enter(places, context)
      try {
        return (await runInThread(await startPool(), { tool, act, args, context }, options, beginReading)) as never
      } finally {
        leave()
      }
    }

  const inThreads = (tool: AnyTool): AnyTool => {
    const { isHeavy } = tool
    if (isHeavy === undefined) return tool
    const acts = ACTS.filter((act) => tool[act] !== undefined)
    const run = (act: Act) => async (args: never, context: ToolContext) =>
      isHeavy === true || (context.isBindingOnly !== true && isHeavy(args, act))
        ? inThread(tool, act)(args, context)
        : tool[act]!(args, context as never)
    return { ...tool, ...Object.fromEntries(acts.map((act) => [act, run(act)])) }
  }

  return {
    tools: tools.map((tool) => changeTool(tool, {}, inThreads)),
    figures: places.figures,
    async close() {
      await (await starting)?.threads.destroy()
    },
  }
}

function enter(places: Places, context: ToolContext): Promise<() => void> {
  const { beforeWriting, approved } = context
  const queued = (ahead: number) =>
    context.progress({
      progress: 0,
      message: ahead === 0 ? 'Waiting for a place.' : `Waiting for a place, ${ahead} ahead.`,
    })
  // If an approval was used up for this call, it must not fail as `busy`, because repeating it would require a new
  // approval.
  const isPromised = approved !== undefined
  return places.enter(nameOf(context), beforeWriting, queued, isPromised)
}

/** Returns a text that identifies the caller. */
const nameOf = ({ caller }: ToolContext) => JSON.stringify([caller.iss, caller.sub])

interface Pool {
  threads: Piscina
  /**
   * For each task that no thread has started yet, the function that gives up the task. All of them are called if the
   * threads cannot load their module.
   */
  unbegun: Set<() => void>
}

async function createPool({ worker, max, memoryMb, log }: HeavyCallsOptions): Promise<Pool> {
  // The library is loaded with the first heavy call, because stdio servers start often and most of their calls are not
  // heavy.
  const { Piscina: Threads } = await import('piscina')
  const unbegun = new Set<() => void>()
  const threads = new Threads({
    filename: worker.href,
    minThreads: 0,
    maxThreads: max,
    idleTimeout: IDLE_MS,
    // With `atomics`, a thread would block while it waits for its next task, and could not close what the previous task
    // left open.
    atomics: 'disabled',
    // A young generation twice as large made each thread larger, but shortened the processor time of no call (D261).
    resourceLimits: { maxOldGenerationSizeMb: memoryMb * HARD_LIMIT, maxYoungGenerationSizeMb: 16 },
    niceIncrement: NICE,
    env: {},
    execArgv: [],
  })
  // An error outside of a task means that a thread could not load its module. The next thread would fail in the same
  // way, so all tasks that no thread has started are given up.
  threads.on('error', (err: unknown) => {
    log.error({ err, module: worker.href }, 'a worker thread cannot start; build or install this server again')
    for (const giveUp of unbegun) giveUp()
  })
  return { threads, unbegun }
}

interface Work {
  tool: AnyTool
  act: Act
  args: unknown
  context: ToolContext
}

/**
 * Runs one task alone in a thread until it ends. Rejects with the tool's error, or with one of the errors described at
 * `createHeavyCalls`.
 */
async function runInThread(
  { threads, unbegun }: Pool,
  work: Work,
  options: HeavyCallsOptions,
  beginReading: BeginReading,
): Promise<unknown> {
  const { context } = work
  // The global class is the one of node:worker_threads, and loads it only now instead of at every start.
  const channel = new MessageChannel()
  const wire = context.pce === null ? null : new MessageChannel()
  const mayWait = () => !turns.isInTurn() && served?.writes.length === 0
  const reading = beginReading(nameOf(context), context, mayWait)
  const served = context.pce !== null && wire !== null ? serveClient(context.pce, wire.port1, reading.admit) : null
  const pce = served !== null && wire !== null ? { address: served.address, port: wire.port2 } : null
  const transferList = [channel.port2, ...(wire === null ? [] : [wire.port2])]
  const kill = new AbortController()
  const release = passOnAborts(work, channel.port1, kill, served)
  const task: ThreadTask = taskOf(work, options, { pce, control: channel.port2 })
  const giveUp = () => kill.abort(NO_THREAD)
  unbegun.add(giveUp)
  const turns = giveTurns(context, channel.port1)
  // The watchdog is started by the thread's first message, because a thread must load its module before it can send
  // one.
  const silence = createSilence(options.silentMs ?? SILENT_MS, () => kill.abort(SILENT))
  const outcome = new Promise<unknown>((resolve, reject) => {
    channel.port1.on('message', (message: FromThread) => {
      silence.broken()
      if (message.is === 'alive') return
      if (message.is === 'begun') unbegun.delete(giveUp)
      else if (message.is === 'progress') context.progress(message.update)
      else if (message.is === 'log') context.log[message.level](message.facts, message.message)
      else if (message.is === 'enter') turns.enter(message)
      else if (message.is === 'leave') turns.leave(message)
      else if (message.is === 'result') resolve(message.value)
      else reject(thrownOf(message))
    })
  })
  // If the thread has died or the call was given up, nobody awaits this promise, and its rejection would be reported as
  // unhandled.
  outcome.catch(() => {})
  try {
    await threads.run(task, { transferList, signal: kill.signal }).catch(async (error: unknown) => {
      throw await explain(error, work, served, options)
    })
    return await outcome
  } finally {
    unbegun.delete(giveUp)
    silence.end()
    release()
    turns.endAll()
    channel.port1.close()
    served?.close()
    reading.end()
  }
}

/**
 * Creates a watchdog for a thread's messages. The first call of `broken` starts it, and each further call restarts it.
 * If `ms` milliseconds pass without another call, it calls `isTooLong`.
 */
function createSilence(ms: number, isTooLong: () => void) {
  let timer: NodeJS.Timeout | undefined
  return {
    broken(): void {
      if (timer === undefined) timer = setTimeout(isTooLong, ms).unref()
      else timer.refresh()
    },
    end: () => clearTimeout(timer),
  }
}

/**
 * Creates the functions with which a thread requests and ends its turns to add something to an object. The main thread
 * keeps the order of turns for the whole process. `isInTurn` returns true while the thread has a turn. `endAll` ends
 * all turns that the thread has or waits for; it is always called when the task has ended.
 */
function giveTurns({ inOrder }: ToolContext, control: MessagePort) {
  const leaving = new Map<number, (written: readonly string[]) => void>()
  let isOver = false
  const post = (message: ToThread) => control.postMessage(message)
  return {
    enter({ turn, object }: FromThread & { is: 'enter' }): void {
      inOrder(object, async ({ others, note }) => {
        if (isOver) return
        const left = new Promise<readonly string[]>((resolve) => leaving.set(turn, resolve))
        post({ turn, others: [...others] })
        for (const href of await left) note(href)
      }).catch((error: unknown) => post({ turn, refusal: convert(error) }))
    },
    leave({ turn, written }: FromThread & { is: 'leave' }): void {
      leaving.get(turn)?.(written)
      leaving.delete(turn)
    },
    isInTurn: () => leaving.size > 0,
    endAll(): void {
      isOver = true
      for (const leave of leaving.values()) leave([])
      leaving.clear()
    },
  }
}

function taskOf(
  { tool, act, args, context }: Work,
  { server: { name, version }, memoryMb }: HeavyCallsOptions,
  ports: Pick<ThreadTask, 'pce' | 'control'>,
): ThreadTask {
  const { caller, requestId, limits, approved, isBindingOnly, isForPage } = context
  return {
    tool: tool.name,
    act,
    args,
    caller,
    requestId,
    limits,
    cursorKey: context.cursorKey(),
    ...(approved !== undefined && { approved }),
    ...(isBindingOnly === true && { isBindingOnly }),
    ...(isForPage === true && { isForPage }),
    clockOffset: context.now() - Date.now(),
    server: { name, version },
    memoryMb,
    ...ports,
  }
}

/**
 * Tells the thread which signals are aborted, and terminates the thread if it does not react in time. A change that has
 * begun is completed unless the server stops. Returns a function that removes the listeners from the signals.
 */
function passOnAborts(
  { context }: Work,
  control: MessagePort,
  kill: AbortController,
  served: ServedClient | null,
): () => void {
  const timers: NodeJS.Timeout[] = []
  const watch = (which: 'signal' | 'beforeWriting', mayKill: () => boolean) => {
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

/** Converts the message of a thread back to the error that the tool threw. */
function thrownOf({ error, stack }: FromThread & { is: 'error' }): Error {
  if (stack === undefined) return new ToolError(error.code, error.message, error.details, { hint: error.hint })
  return Object.assign(new Error(stack.split('\n', 1)[0]), { stack })
}

/**
 * Builds the error for a task whose thread ended before the task did. It says why, and which changes the task had sent
 * by then.
 */
async function explain(
  error: unknown,
  { tool, context }: Work,
  served: ServedClient | null,
  { memoryMb, log }: HeavyCallsOptions,
): Promise<ToolError> {
  const writes = (await served?.settleWrites()) ?? []
  const { code, name, cause } = error as { code?: unknown; name?: unknown; cause?: unknown }
  if (cause === NO_THREAD)
    return new ToolError('analysis_failed', 'The call broke off because no thread can start. Nothing was changed.', {
      reason: 'thread_not_started',
    })
  const isSilent = cause === SILENT
  const isAborted = name === 'AbortError' && !isSilent
  const isTooLarge = code === 'ERR_WORKER_OUT_OF_MEMORY'
  if (!isAborted) log.error({ request_id: context.requestId, tool: tool.name, err: error }, 'a thread has failed')
  const why = isSilent
    ? 'it computed for too long without a pause'
    : isAborted
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
    reason: isSilent ? 'thread_silent' : 'thread_ended',
  })
}
