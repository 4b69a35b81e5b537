import { connectRemoteClient } from '../../../pce-client/index.js'
import type { ToolContext } from '../../../domain/call.js'
import { ToolError } from '../../../schemas/errors.js'
import type { ListedTool } from '../../../tools/listed-tool.js'
import { convert, type ServiceError } from '../../errors/convert.js'
import { collectGarbage, createHeapGuard } from './guard-heap.js'
import { inOrderBy, type Turn } from '../write-order.js'
import { FREE_BYTES, type FromThread, type ThreadTask, type ToThread } from './messages.js'

/** Interval, in milliseconds, at which the heap is checked even if no answers arrive. */
const LOOK_EVERY_MS = 100
/** Interval, in milliseconds, of the messages that show that the thread's event loop is running. */
const SIGN_EVERY_MS = 1000

/**
 * Creates the function with which a thread runs a task, the call of one function of one tool. The interfaces in the
 * task's context lead back to the main thread over message ports. Messages on the control port report that the task has
 * begun, then its progress, and finally its outcome. Never rejects. The main thread closes the ports.
 */
export function createTaskRunner(tools: readonly ListedTool[]): (task: ThreadTask) => Promise<void> {
  const byName = new Map(tools.map((tool) => [tool.name, tool]))
  return async (task) => {
    const { control, args } = task
    const post = (message: FromThread) => control.postMessage(message)
    post({ is: 'begun' })
    const guard = createHeapGuard(task.memoryMb)
    let received = 0
    const arrived = (bytes: number) => {
      received += bytes
      guard(bytes)
    }
    const { context, abort } = contextOf(task, post, arrived)
    let outgrown: unknown
    const timer = setInterval(() => {
      try {
        guard(0)
      } catch (error) {
        outgrown = error
        abort(error)
      }
    }, LOOK_EVERY_MS)
    const signs = setInterval(() => post({ is: 'alive' }), SIGN_EVERY_MS)
    // The heap is not checked periodically for a changing tool, because a change that has begun must be completed.
    if (byName.get(task.tool)?.effect !== 'read') clearInterval(timer)
    try {
      const tool = await byName.get(task.tool)?.load()
      if (tool?.[task.act] === undefined) throw new Error(`${task.tool} has no ${task.act}`)
      post({ is: 'result', value: await tool[task.act]!(args as never, context as never) })
    } catch (caught) {
      const thrown = outgrown ?? caught
      const error = convert(thrown)
      const stack = error.code === 'internal' ? String((thrown as Error | null)?.stack ?? thrown) : undefined
      post({ is: 'error', error, ...(stack !== undefined && { stack }) })
    } finally {
      clearInterval(timer)
      clearInterval(signs)
      // The thread may be idle from now on, and would keep all this until its next call.
      if (received > FREE_BYTES) collectGarbage()
    }
  }
}

const errorOf = ({ code, message, details, hint }: ServiceError): ToolError =>
  new ToolError(code, message, details, { hint })

function contextOf(
  task: ThreadTask,
  post: (message: FromThread) => void,
  arrived: (bytes: number) => void,
): { context: ToolContext; abort: (reason: unknown) => void } {
  const { control, pce, caller, requestId, limits, cursorKey, clockOffset, server } = task
  const { approved, isBindingOnly, isForPage } = task
  const controllers = { signal: new AbortController(), beforeWriting: new AbortController() }
  const turns = new Map<number, { resolve: (turn: Turn) => void; reject: (error: ToolError) => void }>()
  let asked = 0
  control.on('message', (message: ToThread) => {
    if ('abort' in message) return controllers[message.abort].abort(errorOf(message.reason))
    const { turn } = message
    if ('refusal' in message) turns.get(turn)?.reject(errorOf(message.refusal))
    else {
      const leave = (written: readonly string[]) => post({ is: 'leave', turn, written })
      turns.get(turn)?.resolve({ others: message.others, leave })
    }
    turns.delete(turn)
  })
  const enter = (object: string) =>
    new Promise<Turn>((resolve, reject) => {
      asked += 1
      turns.set(asked, { resolve, reject })
      post({ is: 'enter', turn: asked, object })
    })
  const log = (level: keyof ToolContext['log']) => (facts: object, message: string) =>
    post({ is: 'log', level, facts, message })
  const refuse = () => Promise.reject(new Error('credentials are not managed in a thread'))
  const context: ToolContext = {
    pce: pce === null ? null : connectRemoteClient(pce.address, pce.port, arrived),
    caller,
    requestId,
    limits,
    cursorKey: () => cursorKey,
    ...(approved !== undefined && { approved }),
    ...(isBindingOnly === true && { isBindingOnly }),
    ...(isForPage === true && { isForPage }),
    signal: controllers.signal.signal,
    beforeWriting: controllers.beforeWriting.signal,
    log: { debug: log('debug'), info: log('info'), warn: log('warn') },
    now: () => Date.now() + clockOffset,
    inOrder: inOrderBy(enter),
    progress: (update) => post({ is: 'progress', update }),
    credentials: { status: refuse, register: refuse, noteCheck: refuse, remove: refuse },
    server: { ...server, changelog: () => Promise.resolve(null) },
  }
  const abort = (reason: unknown) => {
    for (const controller of Object.values(controllers)) controller.abort(reason)
  }
  return { context, abort }
}
