import { makeSafe } from '../../domain/text/escape-text.js'
import { AsyncLocalStorage } from 'node:async_hooks'
import type { AuditFacts } from '../../schemas/audit.js'
import type { Limits } from '../../schemas/config.js'
import { ToolError } from '../../schemas/errors.js'
import type { TouchedGuardrail } from '../../schemas/guardrails.js'
import type { Meter } from '../../schemas/metrics.js'
import type { Tracing } from '../../schemas/tracing.js'
import type { AnyTool } from '../../tools/define.js'
import type { ToolContext } from '../../domain/call.js'
import { convert, type ServiceError } from '../errors/convert.js'
import { ERROR_TABLE } from '../errors/table.js'
import type { CallerContext, ToolCall, ServerLog } from './call.js'
import { cursorKeyOf } from './cursor-keys.js'
import type { Problem } from './find-oversized.js'
import { inOrderBy, type WriteOrder } from './write-order.js'

export type Dispatched = { ok: true; value: object } | { ok: false; error: ServiceError }

export interface HandlerPorts {
  log: ServerLog
  limits: Limits
  /**
   * The key of 32 bytes that signs cursors. If it is absent, a random key is used, and cursors become invalid when the
   * process ends (D79).
   */
  cursorKey?: Uint8Array
  callTracker: CallTracker
  server: ToolContext['server']
  /** Returns milliseconds since the epoch. */
  now: () => number
  /** The order in which calls of this process may add to the same object. If it is absent, a new one is created. */
  writeOrder?: WriteOrder
  /** The interfaces for metrics and for tracing. Each is absent if that function is switched off. */
  meter?: Meter
  tracing?: Tracing
}

/**
 * The error for an answer that does not match the tool's output schema. This is a fault of the server, so the caller
 * gets only a fixed text.
 */
class BrokenAnswerError extends Error {
  override readonly name = 'BrokenAnswerError'
  constructor(readonly problems: Problem[]) {
    super('the answer does not match the output schema')
  }
}

/**
 * Runs an admitted tool and checks its answer against the output schema. Never rejects. Errors of the handler are
 * converted. Those that the operator must act on are also logged with their details, under the request id.
 */
export async function runHandler(
  tool: AnyTool,
  { args, context }: { args: object; context: ToolContext },
  ports: HandlerPorts,
  note: (facts: AuditFacts) => void,
  findOutputProblems: (tool: AnyTool, value: unknown) => Problem[],
  mayWrite?: CallerContext['mayWrite'],
): Promise<Dispatched> {
  try {
    const run = () => tool.handler(args as never, context as never)
    // The request id is tracked only for calls that send requests to a PCE, because tracking it through every promise
    // is expensive.
    const mayAskPce = tool.requiresPce || tool.effect !== 'read'
    const may = { mayWrite, overrides: context.approved?.overrides }
    const value = await (mayAskPce ? runTracked(context.requestId, run, ports.callTracker, note, may) : run())
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

/**
 * Returns the error for an answer that does not match the schema. If the tool made a change, the error says so, because
 * the caller could otherwise assume that nothing happened.
 */
function brokenAnswer(tool: AnyTool): ServiceError {
  return convert(
    tool.effect === 'read'
      ? new ToolError('internal', ERROR_TABLE.internal.message)
      : new ToolError(
          'internal',
          'The tool finished, but its answer cannot be used.',
          {},
          { hint: ERROR_TABLE.outcome_unknown.hint },
        ),
  )
}

/** Creates the context of a call, for its handler or for a gate that looks something up. */
export function toolContextOf(
  call: ToolCall,
  callerContext: CallerContext,
  ends: CallEnds,
  ports: HandlerPorts & { cursorKey: Uint8Array; writeOrder: WriteOrder },
): ToolContext {
  const begun = ports.writeOrder.begin()
  let hasWritten = false
  const facts = { request_id: call.requestId, tool: call.name }
  const context = {
    [ENDS]: ends,
    pce: callerContext.pce,
    caller: callerContext.caller,
    credentials: callerContext.credentials,
    requestId: call.requestId,
    limits: ports.limits,
    cursorKey: () => cursorKeyOf(ports.cursorKey, callerContext),
    now: ports.now,
    inOrder: inOrderBy(async (object) => {
      const { pce } = callerContext
      const where = pce === null ? '' : `${pce.baseUrl}/orgs/${pce.orgId}`
      // After its first write, the call continues even if its client leaves.
      const signal = hasWritten ? ends.signal : ends.beforeWriting
      const turn = await ports.writeOrder.enter(`${where} ${object}`, { begun, signal })
      const leave = (written: readonly string[]) => {
        hasWritten ||= written.length > 0
        turn.leave(written)
      }
      return { ...turn, leave }
    }),
    progress: (update) => call.progress(makeSafe(update)),
    server: ports.server,
    log: {
      debug: (more, message) => ports.log.debug({ ...facts, ...more }, message),
      info: (more, message) => ports.log.info({ ...facts, ...more }, message),
      warn: (more, message) => ports.log.warn({ ...facts, ...more }, message),
    },
  } satisfies Omit<ToolContext, 'signal' | 'beforeWriting'> & WithEnds
  return Object.defineProperties(context, SIGNALS) as typeof context & ToolContext
}

const ENDS = Symbol('ends')
interface WithEnds {
  [ENDS]: CallEnds
}

/**
 * The property descriptors of a context's signals, which all contexts share. The signals are own properties, so that a
 * copy of a context has them too. Getters in an object literal would give each context its own functions, and V8 would
 * then give each context its own hidden class. Such a class would be in the old generation of the heap, and keep
 * everything to which the call refers in memory until the next major collection.
 */
const SIGNALS: PropertyDescriptorMap & ThisType<WithEnds> = {
  signal: {
    enumerable: true,
    get() {
      return this[ENDS].signal
    },
  },
  beforeWriting: {
    enumerable: true,
    get() {
      return this[ENDS].beforeWriting
    },
  },
}

/**
 * Combines everything that can end a call. If the client leaves, a call that only reads is aborted, and a call that
 * changes something is aborted only if it has not begun to write. The signals are created only when they are needed,
 * because creating them costs more than everything else in a fast call.
 */
export class CallEnds {
  #own: AbortController | null = null
  #beforeWriting: AbortSignal | null = null
  #reason: ToolError | null = null
  readonly #releases: (() => void)[] = []

  constructor(
    private readonly tool: Pick<AnyTool, 'effect'>,
    private readonly call: Pick<ToolCall, 'sender'>,
  ) {}

  /** The signal that the handler gets as `ToolContext.signal`. */
  get signal(): AbortSignal {
    return this.#controller().signal
  }

  /** The signal that the handler gets as `ToolContext.beforeWriting`. */
  get beforeWriting(): AbortSignal {
    if (this.tool.effect === 'read') return this.signal
    if (this.#beforeWriting === null) {
      const asked = new AbortController()
      this.#releases.push(abortWith(this.call.sender.signal, asked))
      this.#beforeWriting = AbortSignal.any([this.signal, asked.signal])
    }
    return this.#beforeWriting
  }

  /** Aborts the call, even if it is in the middle of a change. */
  abort(reason: ToolError): void {
    this.#reason ??= reason
    this.#own?.abort(reason)
  }

  /**
   * Stops listening to the client's signal. Must be called when the call is over, because the signal may live on for
   * other calls of the same connection.
   */
  release(): void {
    for (const release of this.#releases) release()
  }

  #controller(): AbortController {
    if (this.#own === null) {
      this.#own = new AbortController()
      if (this.#reason !== null) this.#own.abort(this.#reason)
      else if (this.tool.effect === 'read') this.#releases.push(abortWith(this.call.sender.signal, this.#own))
    }
    return this.#own
  }
}

function abortWith(signal: AbortSignal, controller: AbortController): () => void {
  const abort = () => controller.abort(new ToolError('cancelled', 'The call was cancelled.'))
  if (signal.aborted) abort()
  else signal.addEventListener('abort', abort, { once: true })
  return () => signal.removeEventListener('abort', abort)
}

/** What one part of a call may do at the PCE. */
export interface Permissions {
  /**
   * Called before each change that is sent; rejects if the change is not allowed. If callers must log in and this is
   * absent, no change can be sent.
   */
  readonly mayWrite?: CallerContext['mayWrite']
  /** The guardrails that two persons have overridden for this call. */
  readonly overrides?: readonly TouchedGuardrail[]
}

/**
 * Keeps track of the call for which the current code is running. One PCE client serves many calls, but must send the
 * request id of the right call to the PCE.
 */
export interface CallTracker {
  /** Runs a part of a call. */
  run<T>(requestId: string, work: () => T, may?: Permissions): T
  /** Calls `mayWrite` of the current call. Rejects outside a call, and if the current call has no `mayWrite`. */
  readonly requireWrite: () => Promise<void>
  /** Returns the guardrails that the current call overrides; none outside a call. */
  readonly overrides: () => readonly TouchedGuardrail[]
  /** Returns the request id of the current call; undefined outside a call. */
  readonly requestId: () => string | undefined
  /** Records the PCE's own request id from an answer. For each call, only the first ids are kept. */
  readonly noteAnswer: (answer: { status: number; requestId?: string }) => void
  /** Returns the request ids in the PCE's answers to the current call, in order. */
  readonly upstreamIds: () => readonly string[]
}

/** Maximum number of request ids of the PCE that are kept for one call. */
export const MOST_UPSTREAM_IDS = 20

/**
 * The AsyncLocalStorage for calls. There is only one, because each instance slows down every asynchronous operation of
 * the process.
 */
const storage = new AsyncLocalStorage<{
  requestId: string
  upstream: string[]
  may: Permissions
}>()

export function createCallTracker(): CallTracker {
  return {
    run: (requestId, work, may = {}) => storage.run({ requestId, upstream: [], may }, work),
    overrides: () => storage.getStore()?.may.overrides ?? [],
    async requireWrite() {
      const mayWrite = storage.getStore()?.may.mayWrite
      if (mayWrite === undefined) throw new Error('a change would be sent to the PCE outside of the handler of a call')
      await mayWrite()
    },
    requestId: () => storage.getStore()?.requestId,
    noteAnswer({ requestId: id }) {
      const { requestId, upstream } = storage.getStore() ?? {}
      // If the PCE has only copied the id from the request, it is not recorded.
      if (upstream === undefined || id === undefined || id === requestId || upstream.includes(id)) return
      if (upstream.length < MOST_UPSTREAM_IDS) upstream.push(id)
    },
    upstreamIds: () => storage.getStore()?.upstream ?? [],
  }
}

/**
 * Runs a part of a call that may send requests to the PCE. The requests carry the call's request id, and the PCE's
 * request ids are recorded for the audit entries.
 */
export function runTracked<T>(
  requestId: string,
  work: () => Promise<T>,
  callTracker: CallTracker,
  note: (facts: AuditFacts) => void,
  may?: Permissions,
): Promise<T> {
  const tracked = () =>
    work().finally(() => {
      const ids = callTracker.upstreamIds()
      if (ids.length > 0) note({ upstream_request_ids: [...ids] })
    })
  return callTracker.run(requestId, tracked, may)
}
