import { randomBytes } from 'node:crypto'
import { makeSafe } from '../../domain/text/escape-text.js'
import { loadHttp } from '../../pce-client/index.js'
import type { ToolContext } from '../../domain/call.js'
import type { DeclinedCall } from '../../schemas/approvals.js'
import { ToolError } from '../../schemas/errors.js'
import type { Offer } from '../../schemas/offer.js'
import { inStage, type Tracing } from '../../schemas/tracing.js'
import type { AnyTool } from '../../tools/define.js'
import type { ListedTool } from '../../tools/listed-tool.js'
import { convert } from '../errors/convert.js'
import { ERROR_TABLE } from '../errors/table.js'
import { admitCall, type Admitted, type Gate, RefusedCall, refuseUnknown } from './admit-call.js'
import type { AuditLog } from './audit-log.js'
import type { CallerContext, Sender, ToolCall } from './call.js'
import { leaveOutNulls } from './leave-out-nulls.js'
import { leaveOutHidden } from './offered-hints.js'
import { type CallRecord, recordCall } from './record-call.js'
import type * as Validation from './validate-arguments.js'
import { createWriteOrder } from './write-order.js'
import { CallEnds, toolContextOf, type Dispatched, type HandlerPorts, runHandler, runTracked } from './run-handler.js'

export interface DispatcherOptions extends HandlerPorts {
  tools: readonly ListedTool[]
  gates: readonly Gate[]
  /** The audit log; null if the operator wants none (stdio without MCP_AUDIT_LOG_PATH). */
  audit: AuditLog | null
}

export interface Dispatcher {
  /**
   * Runs one call from the first gate to the recorded outcome. Never rejects. If the tool is unknown, or not offered to
   * the caller, the result is the error `unknown_tool`.
   */
  dispatch(call: ToolCall, callerContext: CallerContext): Promise<Dispatched>
  /**
   * Reads something for a caller who may call the tool `question.tool`. The offer and the gates are applied as for a
   * call of that tool without arguments. The read itself is not a tool call, so it is not audited. Resolves with null
   * if a gate refuses or the read fails. Never rejects. A process that is about to end does not wait for the read.
   */
  lookUp<T>(
    question: LookUp,
    callerContext: CallerContext,
    read: (context: ToolContext) => Promise<T>,
  ): Promise<T | null>
  /**
   * Loads the code that the first calls of these tools will need: the schema compiler, the HTTP library of the PCE
   * client, and the tools themselves (D253). The parts are loaded one after the other, so that a call that arrives
   * meanwhile waits for at most one of them. Never rejects: what could not be loaded is loaded again by the call that
   * needs it.
   */
  warmUp(names: Iterable<string>): Promise<void>
  /** Aborts every running call, including changes, and refuses all later calls, because the process is about to end. */
  abortAll(): void
  /**
   * Answers every running call with an error. Calls that were admitted but have not started no longer start. The
   * process then ends without waiting for the calls, so their audit entries are written in the next turns of the event
   * loop.
   */
  abandonAll(): void
  /** Resolves when no call is running and `expectUntil` expects no further calls. */
  idle(): Promise<void>
  /** Announces that more calls may come until `over` settles, such as the remaining calls of a batch. */
  expectUntil(over: Promise<unknown>): void
  /** The audit log, so that it can be rotated and closed. */
  readonly audit: AuditLog | null
}

/**
 * What `lookUp` needs to know. `tool` is the name of a tool that reads the same data, so that the same callers may read
 * it.
 */
export type LookUp = Pick<ToolCall, 'requestId'> & Pick<Sender, 'signal'> & { tool: string }

/**
 * The code that a call of a tool needs. It is loaded with the first call and not before, because a user waits while a
 * stdio server starts.
 */
interface Code extends Pick<typeof Validation, 'validateArguments' | 'findOutputProblems'> {
  tool: AnyTool
}

interface Run {
  /** Aborts this running call; null until its tool is known. */
  ends: CallEnds | null
  /** Answers the call without waiting for its handler. Has no effect before the call has been allowed to run. */
  abandon: () => void
  /** The index of the call in the list of running calls. */
  at: number
}

/**
 * Creates the list of running calls, whose order does not matter. It is not a Set, because a Set creates a new internal
 * table whenever it becomes empty. Once such a table is in the old generation of the heap, it keeps all later calls in
 * memory until that generation is collected.
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
 * Creates the dispatcher, which every tool call over every transport passes through: it finds the tool among the
 * offered ones, runs the gates, checks the arguments, runs the gates that need the arguments, writes the decision to
 * the audit log, runs the handler, and writes the outcome to the audit log (docs/architecture.md).
 *
 * A client that cancels or disconnects aborts a tool that reads. It aborts a tool that changes something only before
 * the first write, while the tool reads under the signal `beforeWriting`: half of a policy change is worse than a
 * complete change whose client has left.
 */
export function createDispatcher(options: DispatcherOptions): Dispatcher {
  const { audit, log, tracing, cursorKey = randomBytes(32), writeOrder = createWriteOrder() } = options
  const ports = { ...options, cursorKey, writeOrder }
  const tools = new Map(options.tools.map((tool) => [tool.name, tool]))
  const names: ReadonlySet<string> = new Set(tools.keys())
  const codes = new Map<string, Code>()
  const whole: Offer = { listed: names, callable: names }
  const running = createRunning()
  let announced = 0
  let isEnding = false
  let isAbandoned = false
  let waiting: (() => void)[] = []

  async function dispatch(call: ToolCall, callerContext: CallerContext): Promise<Dispatched> {
    const run: Run = { ends: null, abandon: nothing, at: -1 }
    running.add(run)
    try {
      const work = () => decideAndRun(call, callerContext, run)
      const result = await (tracing === undefined
        ? work()
        : traceCall(tracing, toolOf(call, callerContext)?.name, work, call.trace))
      const limit = limitOf(toolOf(call, callerContext), callerContext)
      if (result.ok) return makeSafe(limit === undefined ? result : { ok: true, value: { ...result.value, ...limit } })
      const error = leaveOutHidden(result.error, hiddenIn(callerContext))
      return makeSafe({ ok: false, error: { ...error, details: { ...error.details, ...limit } } })
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
    const listed = toolOf({ name }, callerContext)
    if (listed === undefined || isEnding) return null
    const call: ToolCall = { requestId, sender: { signal }, name, arguments: {}, progress: nothing }
    const ends = new CallEnds(listed, call)
    try {
      const { tool, validateArguments } = await codeOf(listed)
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

  function toolOf({ name }: Pick<ToolCall, 'name'>, { offer = whole }: CallerContext): ListedTool | undefined {
    return offer.callable.has(name) ? tools.get(name) : undefined
  }

  /**
   * Loads the code for calls of a tool, with the schema compiler. If the code is already loaded, it is returned
   * directly and not as a promise, because every call needs it.
   */
  function codeOf(tool: ListedTool): Code | Promise<Code> {
    return codes.get(tool.name) ?? loadCode(tool)
  }

  async function loadCode(listed: ListedTool): Promise<Code> {
    const [tool, { validateArguments, findOutputProblems }] = await Promise.all([
      listed.load(),
      import('./validate-arguments.js'),
    ]).catch((cause: unknown) => {
      throw new ToolError('internal', unloadable(listed.name), {}, { cause })
    })
    const code = { tool, validateArguments, findOutputProblems }
    codes.set(listed.name, code)
    return code
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
    const listed = toolOf(sent, callerContext)
    const record = recordCall(sent, callerContext, listed, options)
    if (listed === undefined)
      return refuse(refuseUnknown(sent.name, [...(callerContext.offer ?? whole).listed]), sent, record)
    let code: Code | Promise<Code>
    try {
      code = codeOf(listed)
      if (code instanceof Promise) code = await code
    } catch (thrown) {
      return refuse(new RefusedCall('load', thrown), sent, record)
    }
    const { tool, validateArguments, findOutputProblems } = code
    const call = readCall(sent, tool)
    if (call.declined !== undefined) return refuse(declinedBy(call.declined, record), call, record)
    if (isEnding) return refuse(shuttingDown(), call, record)
    let admitted: Admitted
    try {
      run.ends = new CallEnds(tool, call)
      const context = toolContextOf(call, callerContext, run.ends, ports)
      const { note } = record
      const admit = () => admitCall({ tool, call, callerContext, note }, context, options.gates, validateArguments)
      // While the gates run, requests to the PCE are tracked only for tools that need confirmation, because only for
      // these does a gate send such requests, for the preview.
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

    const { mayWrite } = callerContext
    const handle = () => runHandler(tool, admitted, options, record.note, findOutputProblems, mayWrite)
    const result = await new Promise<Dispatched>((resolve, reject) => {
      run.abandon = () => resolve({ ok: false, error: convert(writtenOff(tool)) })
      inStage(tracing, 'handler', handle).then(resolve, reject)
    })
    return end(withGuardrails(result, admitted), call, record)
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
    // The audit log records a refusal by a gate as `denied`, and an unknown tool or invalid arguments as `error`.
    const isError = refusal.gate === 'lookup' || refusal.gate === 'arguments' || error.code === 'internal'
    const decision = isError ? 'error' : 'denied'
    await attempt(() => record.decide(decision, error.code))
    record.log(decision, refusal.gate, error.code)
    return { ok: false, error }
  }

  /**
   * Writes to the audit log that the call may run. Returns null if the call may proceed. If the entry of a changing
   * tool cannot be written, returns the error for the caller, because nothing may be changed without an audit entry.
   */
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
    async warmUp(wanted) {
      await loadHttp().catch(nothing)
      for (const name of wanted) {
        const tool = tools.get(name)
        if (tool === undefined || isEnding) continue
        await Promise.resolve(codeOf(tool)).catch(nothing)
      }
    },
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

/**
 * Returns the scopes inside which the caller reads, for callers with limited reading. They are added here to every
 * answer about a PCE and to the details of every error, so that no tool can forget them.
 */
function limitOf(
  tool: ListedTool | undefined,
  { caller: { scopes } }: CallerContext,
): { reads_limited_to: string[] } | undefined {
  const readsOnly = tool?.requiresPce === true ? scopes?.readsOnly : undefined
  return readsOnly && { reads_limited_to: [...readsOnly] }
}

const unloadable = (tool: string) =>
  `The code of ${tool} cannot be loaded, so nothing was done. The log has the reason: install this server again, and restart it.`

/**
 * Runs a call within a tracing span, and marks the span as failed if the call fails. Unknown tool names are not
 * recorded, because clients can invent them.
 */
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

/**
 * Returns a sentence that says how to get a new confirmation, for a call that has used up its confirmation without
 * running.
 */
const spentWith = ({ confirmToken, consent }: ToolCall): string => {
  if (confirmToken !== undefined) return ' The confirm token is spent: mint a new one.'
  return consent === undefined ? ' The approval is used up: call again, and it is asked anew.' : ''
}

/** Adds the guardrails that a call would touch to the answer of its dry run. */
function withGuardrails(result: Dispatched, { args, guardrails }: Admitted): Dispatched {
  if (!result.ok || args['dry_run'] !== true || guardrails.length === 0) return result
  return { ok: true, value: { ...result.value, guardrails } }
}

const nothing = () => {}

const shuttingDown = () => new ToolError('cancelled', 'The server is shutting down.')

/**
 * Builds the refusal of a call that a person declined in the client. It gets an audit entry of its own, because the
 * gate that asked the question does not learn the answer (D172).
 */
function declinedBy({ paramsHash, approvalId }: DeclinedCall, { note }: CallRecord): RefusedCall {
  note({ params_hash: paramsHash, ...(approvalId !== undefined && { approval_id: approvalId }) })
  const message = 'The person declined in the client. Nothing was changed.'
  return new RefusedCall('confirm', new ToolError('person_declined', message, { params_hash: paramsHash }))
}

/**
 * Returns the error for an abandoned call. If the tool changes something, the error says that the change may have been
 * made.
 */
const writtenOff = ({ effect }: AnyTool) =>
  effect === 'read'
    ? shuttingDown()
    : new ToolError('outcome_unknown', 'The server is shutting down, and the PCE has not answered yet.')

/**
 * Normalises a call before anything else sees it, even before its arguments are hashed (`params_hash`): a call with
 * nulls that mean nothing counts as the same call as one without them.
 */
function readCall(sent: ToolCall, tool: AnyTool): ToolCall {
  const call = tool.requiresConfirm ? takeConfirmToken(sent) : sent
  const args = leaveOutNulls(call.arguments, tool.input)
  return args === call.arguments ? call : { ...call, arguments: args }
}

/**
 * Moves the confirm token out of the arguments. Clients that cannot set `params._meta` send the token in a `_meta`
 * inside the arguments (D19). This `_meta` is not an argument of the tool, and the hash of the arguments
 * (`params_hash`) does not include it. If there is also a token in `params._meta`, that token is used.
 */
function takeConfirmToken(call: ToolCall): ToolCall {
  if (!Object.hasOwn(call.arguments, '_meta')) return call
  const { _meta: meta, ...args } = call.arguments
  const inside = typeof meta === 'object' && meta !== null ? (meta as Record<string, unknown>).confirm_token : undefined
  return { ...call, arguments: args, confirmToken: call.confirmToken ?? inside }
}
