import { makeSafe } from '../../domain/text/escape-text.js'
import type { AuditFacts } from '../../schemas/audit.js'
import type { Limits } from '../../schemas/config.js'
import { ToolError } from '../../schemas/errors.js'
import type { AnyTool } from '../../tools/define.js'
import type { ToolContext } from '../../domain/call.js'
import { convert, type ServiceError } from '../errors/convert.js'
import { ERROR_TABLE } from '../errors/table.js'
import type { CallScope } from './call-scope.js'
import type { CallSignals } from './call-signals.js'
import type { Problem } from './describe-problems.js'
import type { ServiceLog } from './record-call.js'
import { runInScope } from './run-in-scope.js'
import type { Session, ToolCall } from './session.js'

export type Dispatched = { ok: true; value: object } | { ok: false; error: ServiceError }

export interface HandlerPorts {
  log: ServiceLog
  limits: Limits
  scope: CallScope
  server: ToolContext['server']
  /** Milliseconds since the epoch. */
  now: () => number
}

/** What a tool answered is not what its output schema promises: our own mistake, so the caller gets fixed text. */
class BrokenAnswerError extends Error {
  override readonly name = 'BrokenAnswerError'
  constructor(readonly problems: Problem[]) {
    super('the answer breaks the output schema')
  }
}

/**
 * Runs a tool that has been admitted and checks its answer against its output schema. Never rejects: whatever the handler throws
 * is converted, and what nobody expected is logged with its details under the request id.
 */
export async function runHandler(
  tool: AnyTool,
  { args, context }: { args: object; context: ToolContext },
  ports: HandlerPorts & { note: (facts: AuditFacts) => void },
  findOutputProblems: (tool: AnyTool, value: unknown) => Problem[],
): Promise<Dispatched> {
  try {
    const run = () => tool.handler(args as never, context as never)
    // Where no PCE is asked there is nobody to name the request to, and following it through every promise has its price.
    const mayAskPce = tool.requiresPce || tool.effect !== 'read'
    const value = await (mayAskPce ? runInScope(context.requestId, run, ports) : run())
    const problems = findOutputProblems(tool, value)
    if (problems.length > 0) throw new BrokenAnswerError(problems)
    return { ok: true, value: value as object }
  } catch (thrown) {
    const error = convert(thrown)
    if (ERROR_TABLE[error.code].level === 'error') {
      ports.log.error({ request_id: context.requestId, tool: tool.name, err: thrown }, 'tool failed')
    }
    return { ok: false, error: thrown instanceof BrokenAnswerError ? brokenAnswer(tool) : error }
  }
}

/** A change that was made stays made, whatever became of its answer: the caller must not take the error for "nothing happened". */
function brokenAnswer(tool: AnyTool): ServiceError {
  return convert(
    tool.effect === 'read'
      ? new ToolError('internal', ERROR_TABLE.internal.message)
      : new ToolError(
          'internal',
          'The tool ran to its end, but its answer cannot be used.',
          {},
          { hint: ERROR_TABLE.outcome_unknown.hint },
        ),
  )
}

/** What the handler of a call, and a gate that looks something up for it, may touch. */
export function contextOf(call: ToolCall, session: Session, signals: CallSignals, ports: HandlerPorts): ToolContext {
  const facts = { request_id: call.requestId, tool: call.name }
  return {
    pce: session.pce,
    caller: session.caller,
    credentials: session.credentials,
    requestId: call.requestId,
    ...signals,
    limits: ports.limits,
    now: ports.now,
    progress: (update) => call.progress(makeSafe(update)),
    server: ports.server,
    log: {
      debug: (more, message) => ports.log.debug({ ...facts, ...more }, message),
      info: (more, message) => ports.log.info({ ...facts, ...more }, message),
      warn: (more, message) => ports.log.warn({ ...facts, ...more }, message),
    },
  }
}
