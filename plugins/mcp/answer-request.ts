import type { ProgressUpdate } from '../../domain/call.js'
import { renderMcpError } from '../errors/render-errors.js'
import { withApps } from './apps.js'
import { runAsking } from './ask-person.js'
import { answerKnowledge, FailedCall, KNOWLEDGE_CAPABILITIES } from './answer-knowledge.js'
import { answerLifecycle } from './answer-lifecycle.js'
import type { InnerCall, InnerResult, ReadCall } from './eras.js'
import type { Departure, RequestPorts, Said, ServerPorts } from './ports.js'
import { startProgress, type Timers } from './progress.js'
import { RPC } from './read-envelope.js'
import { invalidParams, refuseCursor, rpcFailure } from './rpc-failure.js'

/** The clock and timers of Node.js, for progress and heartbeats. */
export const systemTimers: Timers = {
  now: () => performance.now(),
  after(ms, run) {
    const timer = setTimeout(run, ms)
    return () => clearTimeout(timer)
  },
}

export const CAPABILITIES = { tools: {}, ...KNOWLEDGE_CAPABILITIES }

/**
 * The caching rule for lists of tools. A list stays the same until the server restarts, and clients are not notified of
 * a restart. The list depends on the caller's role and on request headers that caches ignore, so callers must not share
 * it.
 */
const OFFERED = { ttlMs: 300_000, cacheScope: 'private' } as const

/** Answers a request of either protocol era. Rejects with RpcFailure. */
export async function answerRequest(
  { era, call }: ReadCall,
  server: ServerPorts,
  request: RequestPorts,
): Promise<InnerResult> {
  const lifecycle = answerLifecycle(era, call, { server, request, capabilities: CAPABILITIES, cache: OFFERED })
  if (lifecycle !== null) return lifecycle
  switch (call.method) {
    case 'tools/list':
      refuseCursor(call.params)
      return { kind: 'result', result: { tools: listFor(call, server) }, cache: OFFERED }
    case 'tools/call':
      return withProgress(call, request.notify, true, (progress) => callOneTool(call, server, request, progress))
    default:
      return withProgress(call, request.notify, false, (progress) =>
        answerOther(call, server, { client: request.client, progress }),
      )
  }
}

/** Returns the list of tools, with links to pages if the client can show pages. */
function listFor({ showsApps }: InnerCall, server: ServerPorts) {
  const tools = server.listTools(server.offered)
  return (showsApps ?? server.showsApps?.() ?? false) ? withApps(tools) : tools
}

type Progress = (update: ProgressUpdate) => void
type Notify = RequestPorts['notify']

/**
 * Runs the work and, if the client asked for it, sends notifications about its progress. Nothing is sent after the work
 * has ended. If `eager` is true, a first notification is sent when the work starts (D4); otherwise, only the progress
 * that the work itself reports is sent.
 */
async function withProgress<T>(
  { progressToken }: InnerCall,
  notify: Notify,
  eager: boolean,
  work: (progress: Progress) => Promise<T>,
): Promise<T> {
  if (progressToken === undefined) return work(nothing)
  let progress: ReturnType<typeof startProgress> | null = null
  const begin = () =>
    (progress ??= startProgress(
      (update) => notify('notifications/progress', { ...update, progressToken }),
      systemTimers,
    ))
  try {
    if (eager) begin()
    return await work((update) => begin().update(update))
  } finally {
    // `begin` may have assigned `progress`, but the compiler does not see that.
    ;(progress as ReturnType<typeof startProgress> | null)?.stop()
  }
}

const nothing = () => {}

interface Running {
  client: Departure
  progress: Progress
}

/**
 * Answers tools/call. If the tool fails, the answer is a result with isError. If the tool is unknown or the params have
 * the wrong form, the answer is a JSON-RPC error (MCP tools, "Error Handling").
 */
async function callOneTool(
  call: InnerCall,
  { callTool, asking, requestId: newId }: ServerPorts,
  request: RequestPorts,
  progress: Progress,
): Promise<InnerResult> {
  const { name, arguments: given } = call.params ?? {}
  const args = given ?? {}
  if (typeof name !== 'string') throw invalidParams('params.name must be a string')
  if (!isObject(args)) throw invalidParams('params.arguments must be an object')
  const requestId = newId()
  const { confirmToken, trace, client } = call
  const { client: sender } = request
  const run = (said?: Said) =>
    callTool(
      {
        name,
        arguments: args,
        confirmToken,
        requestId,
        progress,
        trace,
        consent: said?.consent,
        declined: said?.declined,
        canAsk: said?.canAsk,
        sender,
      },
      client,
    )
  if (asking === undefined && call.requestState !== undefined)
    throw invalidParams('params.requestState is not of this server')
  const result = asking === undefined ? await run() : await runAsking(call, request, asking, run)
  if (result.ok === 'ask') return result.result
  if (result.ok) return { kind: 'value', value: result.value }
  const { error } = result
  if (error.code === 'unknown_tool') throw invalidParams(error.message, { error: error.code, request_id: requestId })
  return { kind: 'result', result: renderMcpError(error, requestId) }
}

/**
 * The time limit of a lookup for a completion, in milliseconds. It is short, because a person who is typing does not
 * wait for longer.
 */
const LOOK_UP_MS = 3000

/**
 * Resolves with the result of `work`, or with null if `work` does not finish within LOOK_UP_MS. `work` then continues,
 * so that later requests can use its result.
 */
function inTime<T>(work: Promise<T | null>, timers: Timers): Promise<T | null> {
  let cancel = () => {}
  const late = new Promise<null>((resolve) => (cancel = timers.after(LOOK_UP_MS, () => resolve(null))))
  return Promise.race([work, late]).finally(() => cancel())
}

/** Answers requests that are not about tools: documents, prompts, completions. */
async function answerOther(
  call: InnerCall,
  { knowledge, offered, callTool, orgId, charge, onFailure, timers = systemTimers, ...server }: ServerPorts,
  { client: sender, progress }: Running,
): Promise<InnerResult> {
  const requestId = server.requestId()
  const { trace, client } = call
  const answer = await answerKnowledge(call.method, call.params, {
    knowledge,
    offered,
    orgId,
    charge: (times) => charge?.(times) ?? Promise.resolve(),
    progress,
    async callTool(name, args) {
      const result = await callTool({ name, arguments: args, requestId, sender, progress: nothing, trace }, client)
      if (!result.ok) throw new FailedCall(result.error)
      return result.value
    },
    lookUp: (tool, read) => inTime(server.lookUp({ tool, requestId, signal: sender.signal }, read), timers),
    requestId,
    onFailure,
  })
  if (answer === null) throw rpcFailure(RPC.methodNotFound, 'Method not found')
  return answer
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
