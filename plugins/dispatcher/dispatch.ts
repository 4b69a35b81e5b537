import { randomBytes } from 'node:crypto'
import { makeSafe } from '../../domain/text/escape-text.js'
import type { ToolContext } from '../../domain/call.js'
import type { DeclinedCall } from '../../schemas/approvals.js'
import { ToolError } from '../../schemas/errors.js'
import type { Offer } from '../../schemas/offer.js'
import { inStage, type Tracing } from '../../schemas/tracing.js'
import type { AnyTool } from '../../tools/define.js'
import { convert } from '../errors/convert.js'
import { ERROR_TABLE } from '../errors/table.js'
import { admitCall, type Admitted, type Gate, RefusedCall, refuseUnknown } from './admit-call.js'
import type { AuditLog } from './audit-log.js'
import type { CallerContext, Sender, ToolCall } from './call.js'
import { leaveOutHidden } from './offered-hints.js'
import { type CallRecord, recordCall } from './record-call.js'
import { CallEnds, toolContextOf, type Dispatched, type HandlerPorts, runHandler, runTracked } from './run-handler.js'

export interface DispatcherOptions extends HandlerPorts {
  tools: readonly AnyTool[]
  gates: readonly Gate[]
  /** Null where the operator asked for none (stdio without MCP_AUDIT_LOG_PATH). */
  audit: AuditLog | null
}

export interface Dispatcher {
  /**
   * Runs one call to its end. Never rejects. The name of an unknown tool, or of one that the caller is not offered, is the error
   * `unknown_tool`.
   */
  dispatch(call: ToolCall, callerContext: CallerContext): Promise<Dispatched>
  /**
   * Reads something for a caller who may call this tool, as them: the same offer and gates, without arguments. It is no tool call, so it is
   * not audited. Null where a gate refuses it or the read fails. Never rejects, and no end of the
   * process waits for it.
   */
  lookUp<T>(
    question: LookUp,
    callerContext: CallerContext,
    read: (context: ToolContext) => Promise<T>,
  ): Promise<T | null>
  /** Aborts every running call, mutating ones too, and refuses those that come later: the process is about to end. */
  abortAll(): void
  /**
   * Answers every call that still runs, and lets none that was allowed begin: their outcomes are written in the next turns of the event loop,
   * because the process ends without waiting for the calls.
   */
  abandonAll(): void
  /** Resolves when no call is running, and none is announced. */
  idle(): Promise<void>
  /** Announces calls: more may come until then, such as the next ones of a batch. */
  expectUntil(over: Promise<unknown>): void
  /** Where it writes its decisions, for rotation and closing. */
  readonly audit: AuditLog | null
}

/** What is looked up for whom; `tool` reads. */
export type LookUp = Pick<ToolCall, 'requestId'> & Pick<Sender, 'signal'> & { tool: string }

interface Run {
  /** Null until it is known what is called. */
  ends: CallEnds | null
  /** Ends the call while its handler still runs; does nothing before it was allowed to. */
  abandon: () => void
  /** Its place among those that run. */
  at: number
}

/**
 * The calls that run, in no order. Not in a Set: whenever one is emptied it makes a new table, and the old ones, once they are in the old
 * generation, keep all calls after them alive until that is swept.
 */
function createRunning() {
  const runs: Run[] = []
  return {
    runs: runs as readonly Run[],
    add(run: Run): void {
      run.at = runs.push(run) - 1
    },
    remove(run: Run): void {
      const last = runs.pop()!
      if (last === run) return
      runs[run.at] = last
      last.at = run.at
    },
  }
}

/**
 * The path of every tool call, over every transport: find the tool among those that are offered, ask the gates, check the arguments, ask
 * the gates that need them, write the decision to the audit log, run the handler, write its outcome (docs/architecture.md).
 *
 * A client that cancels or leaves aborts a reading tool, and a mutating one only as long as that has not begun to write (it says
 * so by reading under `beforeWriting`): half a change to policy is worse than a complete one whose client is gone.
 */
export function createDispatcher(options: DispatcherOptions): Dispatcher {
  const { audit, log, tracing, cursorKey = randomBytes(32) } = options
  const ports = { ...options, cursorKey }
  const tools = new Map(options.tools.map((tool) => [tool.name, tool]))
  const names: ReadonlySet<string> = new Set(tools.keys())
  const whole: Offer = { listed: names, callable: names }
  const running = createRunning()
  let announced = 0
  let isEnding = false
  let isAbandoned = false
  let waiting: (() => void)[] = []
  // The schema compiler is loaded with the first call: start-up over stdio is something people wait for.
  const loadValidation = () => import('./validate-arguments.js')
  let validation: ReturnType<typeof loadValidation> | undefined

  async function dispatch(call: ToolCall, callerContext: CallerContext): Promise<Dispatched> {
    const run: Run = { ends: null, abandon: nothing, at: -1 }
    running.add(run)
    try {
      const work = () => decideAndRun(call, callerContext, run)
      const result = await (tracing === undefined
        ? work()
        : traceCall(tracing, toolOf(call, callerContext)?.name, work, call.trace))
      return makeSafe(result.ok ? result : { ok: false, error: leaveOutHidden(result.error, hiddenIn(callerContext)) })
    } finally {
      run.ends?.release()
      running.remove(run)
      noteEnd()
    }
  }

  async function lookUp<T>(
    { tool: name, requestId, signal }: LookUp,
    callerContext: CallerContext,
    read: (context: ToolContext) => Promise<T>,
  ): Promise<T | null> {
    const tool = (callerContext.offer ?? whole).callable.has(name) ? tools.get(name) : undefined
    if (tool === undefined || isEnding) return null
    const call: ToolCall = { requestId, sender: { signal }, name, arguments: {}, progress: nothing }
    const ends = new CallEnds(tool, call)
    try {
      const { validateArguments } = await (validation ??= loadValidation())
      const context = toolContextOf(call, callerContext, ends, ports)
      const subject = { tool, call, callerContext, note: () => {} }
      const admitted = await admitCall(subject, context, options.gates, validateArguments)
      return await options.callTracker.run(call.requestId, () => read(admitted.context))
    } catch (thrown) {
      const cause = thrown instanceof RefusedCall ? thrown.thrown : thrown
      log.debug({ request_id: requestId, tool: name, error: convert(cause).code }, 'look-up refused')
      return null
    } finally {
      ends.release()
    }
  }

  function toolOf({ name }: Pick<ToolCall, 'name'>, { offer = whole }: CallerContext): AnyTool | undefined {
    return offer.callable.has(name) ? tools.get(name) : undefined
  }

  function hiddenIn({ offer: { listed } = whole }: CallerContext): string[] {
    return listed.size === tools.size ? [] : [...names].filter((name) => !listed.has(name))
  }

  const isIdle = () => running.runs.length === 0 && announced === 0

  function noteEnd(): void {
    if (!isIdle()) return
    for (const resolve of waiting) resolve()
    waiting = []
  }

  async function decideAndRun(sent: ToolCall, callerContext: CallerContext, run: Run): Promise<Dispatched> {
    const tool = toolOf(sent, callerContext)
    const call = tool?.requiresConfirm === true ? takeConfirmToken(sent) : sent
    const record = recordCall(call, callerContext, tool, options)
    const { validateArguments, findOutputProblems } = await (validation ??= loadValidation())
    if (tool === undefined) {
      const { listed } = callerContext.offer ?? whole
      return refuse(refuseUnknown(call.name, [...listed]), call, record)
    }
    if (call.declined !== undefined) return refuse(declinedBy(call.declined, record), call, record)
    if (isEnding) return refuse(shuttingDown(), call, record)
    let admitted: Admitted
    try {
      run.ends = new CallEnds(tool, call)
      const context = toolContextOf(call, callerContext, run.ends, ports)
      const { note } = record
      const admit = () => admitCall({ tool, call, callerContext, note }, context, options.gates, validateArguments)
      // Only what is shown before a confirmation is looked up at the PCE.
      admitted = await inStage(tracing, 'gates', () =>
        tool.requiresConfirm ? runTracked(call.requestId, admit, options.callTracker, note) : admit(),
      )
    } catch (thrown) {
      return refuse(thrown, call, record)
    }
    const spent = admitted.context.approved === undefined ? '' : spentWith(call)
    const unaudited = await auditAllowed(tool, record, spent)
    if (unaudited !== null) return unaudited
    if (isAbandoned) return end({ ok: false, error: convert(shuttingDown()) }, call, record)

    const handle = () => runHandler(tool, admitted, options, record.note, findOutputProblems)
    const result = await new Promise<Dispatched>((resolve, reject) => {
      run.abandon = () => resolve({ ok: false, error: convert(writtenOff(tool)) })
      inStage(tracing, 'handler', handle).then(resolve, reject)
    })
    return end(result, call, record)
  }

  async function end(result: Dispatched, { sender }: ToolCall, record: CallRecord): Promise<Dispatched> {
    const code = result.ok ? null : result.error.code
    await attempt(() => record.conclude(code, sender.hasLeft?.() ?? sender.signal.aborted))
    record.log(code === null ? 'success' : 'error', 'handler', code)
    return result
  }

  async function refuse(thrown: unknown, call: ToolCall, record: CallRecord): Promise<Dispatched> {
    const refusal = thrown instanceof RefusedCall ? thrown : new RefusedCall('dispatcher', thrown)
    const error = convert(refusal.thrown)
    if (ERROR_TABLE[error.code].level === 'error')
      log.error({ request_id: call.requestId, err: refusal.thrown }, 'a gate failed')
    // A gate that says no denies; a call that names no tool or breaks its schema is an error of the call.
    const isError = refusal.gate === 'lookup' || refusal.gate === 'arguments' || error.code === 'internal'
    const decision = isError ? 'error' : 'denied'
    await attempt(() => record.decide(decision, error.code))
    record.log(decision, refusal.gate, error.code)
    return { ok: false, error }
  }

  /** Writes that the call may run. Null when it may still: what cannot be audited must not change anything. */
  async function auditAllowed(tool: AnyTool, record: CallRecord, spent: string): Promise<Dispatched | null> {
    try {
      await record.decide('allowed')
      if (tool.effect !== 'read') await audit?.sync()
      return null
    } catch (err) {
      log.error({ err }, 'the audit log cannot be written')
      if (tool.effect === 'read') return null
      const { message, hint } = ERROR_TABLE.audit_unavailable
      const error = convert(new ToolError('audit_unavailable', message, {}, { hint: `${hint}${spent}` }))
      await attempt(() => record.conclude(error.code, false))
      record.log('error', 'audit', error.code)
      return { ok: false, error }
    }
  }

  async function attempt(write: () => Promise<void>): Promise<void> {
    try {
      await write()
    } catch (err) {
      log.error({ err }, 'the audit log cannot be written')
    }
  }

  return {
    audit,
    dispatch,
    lookUp,
    abortAll() {
      isEnding = true
      for (const { ends } of running.runs) ends?.abort(shuttingDown())
    },
    abandonAll() {
      isAbandoned = true
      for (const { abandon } of running.runs) abandon()
    },
    idle: () => (isIdle() ? Promise.resolve() : new Promise((resolve) => waiting.push(resolve))),
    expectUntil(over) {
      announced++
      void over.finally(() => {
        announced--
        noteEnd()
      })
    },
  }
}

/** A span for a call, in an error where the caller is told one. A name that nothing has is the client's, and stays out. */
const traceCall = (
  tracing: Tracing,
  tool = 'unknown',
  work: () => Promise<Dispatched>,
  from: ToolCall['trace'],
): Promise<Dispatched> =>
  tracing.span(
    `tools/call ${tool}`,
    { 'mcp.method.name': 'tools/call', 'gen_ai.tool.name': tool },
    async (span) => {
      const result = await work()
      if (!result.ok) span.fail(result.error.code)
      return result
    },
    from,
  )

/** What the caller has to do anew, where the call was let run and then did not. */
const spentWith = ({ confirmToken, consent }: ToolCall): string => {
  if (confirmToken !== undefined) return ' The confirm token is spent: mint a new one.'
  return consent === undefined ? ' The approval is used up: call again, and it is asked anew.' : ''
}

const nothing = () => {}

const shuttingDown = () => new ToolError('cancelled', 'The server is shutting down.')

/** The refusal after a no, which is an entry of its own: the gates have asked the question and were not told the answer (D172). */
function declinedBy({ paramsHash, approvalId }: DeclinedCall, { note }: CallRecord): RefusedCall {
  note({ params_hash: paramsHash, ...(approvalId !== undefined && { approval_id: approvalId }) })
  const message = 'The person declined in the client. Nothing was changed.'
  return new RefusedCall('confirm', new ToolError('person_declined', message, { params_hash: paramsHash }))
}

/** An abandoned change may have been made, an abandoned question has no answer. */
const writtenOff = ({ effect }: AnyTool) =>
  effect === 'read'
    ? shuttingDown()
    : new ToolError('outcome_unknown', 'The server is shutting down, and the PCE has not answered yet.')

/**
 * The call without a `_meta` among its arguments, where clients that cannot set `params._meta` put the confirm token (D19): it is
 * not an argument of the tool, and no part of the params_hash. The token in `params._meta` wins.
 */
function takeConfirmToken(call: ToolCall): ToolCall {
  if (!Object.hasOwn(call.arguments, '_meta')) return call
  const { _meta: meta, ...args } = call.arguments
  const inside = typeof meta === 'object' && meta !== null ? (meta as Record<string, unknown>).confirm_token : undefined
  return { ...call, arguments: args, confirmToken: call.confirmToken ?? inside }
}
