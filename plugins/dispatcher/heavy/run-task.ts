import { connectRemoteClient } from '../../../pce-client/index.js'
import type { ToolContext } from '../../../domain/call.js'
import { ToolError } from '../../../schemas/errors.js'
import type { AnyTool } from '../../../tools/define.js'
import { convert } from '../../errors/convert.js'
import { createHeapGuard } from './guard-heap.js'
import type { FromThread, ThreadTask, ToThread } from './messages.js'

/**
 * What a thread runs for each task: one function of one tool, with a context whose ports lead back to the thread that serves the
 * callers. The outcome goes there over the control port, after every report of progress. Never rejects; the other side closes the
 * ports.
 */
export function createTaskRunner(tools: readonly AnyTool[]): (task: ThreadTask) => Promise<void> {
  const byName = new Map(tools.map((tool) => [tool.name, tool]))
  return async (task) => {
    const { control, args } = task
    const post = (message: FromThread) => control.postMessage(message)
    try {
      const tool = byName.get(task.tool)
      if (tool?.[task.act] === undefined) throw new Error(`${task.tool} has no ${task.act}`)
      post({ is: 'result', value: await tool[task.act]!(args as never, contextOf(task, post) as never) })
    } catch (thrown) {
      const error = convert(thrown)
      const stack = error.code === 'internal' ? String((thrown as Error | null)?.stack ?? thrown) : undefined
      post({ is: 'error', error, ...(stack !== undefined && { stack }) })
    }
  }
}

function contextOf(task: ThreadTask, post: (message: FromThread) => void): ToolContext {
  const { control, pce, caller, requestId, limits, approved, cursorKey, clockOffset, server, memoryMb } = task
  const controllers = { signal: new AbortController(), beforeWriting: new AbortController() }
  control.on('message', ({ abort, reason }: ToThread) => {
    const { code, message, details, hint } = reason
    controllers[abort].abort(new ToolError(code, message, details, { hint }))
  })
  const log = (level: keyof ToolContext['log']) => (facts: object, message: string) =>
    post({ is: 'log', level, facts, message })
  const refuse = () => Promise.reject(new Error('credentials are not managed in a thread'))
  return {
    pce: pce === null ? null : connectRemoteClient(pce.address, pce.port, createHeapGuard(memoryMb)),
    caller,
    requestId,
    limits,
    cursorKey,
    ...(approved !== undefined && { approved }),
    signal: controllers.signal.signal,
    beforeWriting: controllers.beforeWriting.signal,
    log: { debug: log('debug'), info: log('info'), warn: log('warn') },
    now: () => Date.now() + clockOffset,
    progress: (update) => post({ is: 'progress', update }),
    credentials: { status: refuse, register: refuse, remove: refuse },
    server: { ...server, changelog: () => Promise.resolve(null) },
  }
}
