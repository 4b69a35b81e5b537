import type { RequestFacts, RequestState } from '../../schemas/approvals.js'
import { ToolError } from '../../schemas/errors.js'
import { convert, type ServiceError } from '../errors/convert.js'
import type { InnerCall, InnerResult } from './eras.js'
import type { Asking, CalledTool, Elicit, RequestPorts, Said } from './ports.js'
import { invalidParams } from './rpc-failure.js'

/** A function that runs the tool once. `said` contains what the person has answered so far. */
type Run = (said: Said) => Promise<CalledTool>

/** The tool's answer, or a question that the client must ask the person before the tool can run. */
export type Outcome = CalledTool | { ok: 'ask'; result: InnerResult & { kind: 'input' } }

/** The key of this server's question in `inputRequests`. There is never more than one question. */
const QUESTION = 'approval'
/** The name of the only field in the form that the person fills in. */
const FIELD = 'confirm'
/**
 * Maximum number of questions for one call. It stops an endless exchange with a client that never gives a clear answer.
 */
const MOST_ROUNDS = 5
/**
 * Maximum time, in milliseconds, for which a repeated call waits for the person's decision on the approval page. It is
 * shorter than a minute, after which common clients give up.
 */
const WAIT_MS = 45_000

/**
 * Runs a tool and, if the confirmation gate requires it, asks the person at the client (D157). If this person must
 * agree, the question is a form; otherwise, it is the address of the approval page. A client of 2026-07-28 receives the
 * question as the result, and repeats the call with the answer. A client with a connection (stdio) is asked while the
 * call waits. For a client that supports neither, the gate's refusal says what to do. If the person says no, the
 * dispatcher refuses the call and records that the person declined (D172).
 *
 * Rejects with RpcFailure -32602 for a `requestState` that belongs to another call, has expired or has been used.
 */
export async function runAsking(
  call: InnerCall,
  { elicit, client }: RequestPorts,
  asking: Asking,
  run: Run,
): Promise<Outcome> {
  const canAsk = call.canAsk.form || elicit !== undefined
  let earlier: RequestState | null
  try {
    earlier = call.requestState === undefined ? null : await resume(call, call.requestState, asking)
  } catch (thrown) {
    if (!(thrown instanceof ToolError)) throw thrown
    return { ok: false, error: convert(thrown) }
  }
  const round = (earlier?.round ?? -1) + 1
  const read = earlier?.boundTo === undefined ? readAnswer : readForm
  const answer = earlier === null ? null : read(call.inputResponses?.[QUESTION])
  if (answer === 'no') {
    const { paramsHash, approvalId } = earlier!
    return run({ declined: { paramsHash, ...(approvalId !== undefined && { approvalId }) } })
  }
  if (answer === 'yes' && earlier?.approvalId !== undefined) {
    await awaitDecision(earlier.approvalId, asking, client.signal)
  }
  const boundTo = answer === 'yes' ? earlier?.boundTo : undefined
  const result = await run({ canAsk, ...(boundTo !== undefined && { consent: { boundTo } }) })
  if (result.ok || round >= MOST_ROUNDS) return result
  const { error } = result
  if (error.ask !== undefined && elicit !== undefined) return askNow(error, { elicit, run, rounds: MOST_ROUNDS })
  // The person was already sent to the approval page but has not decided yet, so the question is not sent again.
  if (answer === 'yes' && error.code === 'approval_pending') return result
  const question = questionOf(error, call)
  if (question === null) return result
  const facts = { ...factsOf(call, String(error.details['params_hash']), asking), round, ...question.state }
  const requestState = await asking.states.seal(facts)
  return { ok: 'ask', result: { kind: 'input', inputRequests: { [QUESTION]: question.request }, requestState } }
}

/**
 * Waits for the person's decision on the approval page, but at most WAIT_MS. The timer is set here instead of using
 * `AbortSignal.timeout`: in Node.js 20, `AbortSignal.any` refers to the signal of `AbortSignal.timeout` only weakly, so
 * that signal could be garbage-collected before it fires.
 */
async function awaitDecision(id: string, { watch }: Asking, signal: AbortSignal): Promise<void> {
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(), WAIT_MS)
  try {
    await watch?.awaitDecision(id, AbortSignal.any([signal, late.signal]))
  } finally {
    clearTimeout(timer)
  }
}

async function resume(call: InnerCall, sealed: string, asking: Asking): Promise<RequestState> {
  const args = (call.params?.arguments ?? {}) as Record<string, unknown>
  // Some clients send a confirm token in the `_meta` of the arguments. `_meta` is removed, because the hash of the
  // arguments does not include it (D19).
  const { _meta: _token, ...own } = args
  const state = await asking.states.open(
    sealed,
    factsOf(call, await asking.hash(String(call.params?.name), own), asking),
  )
  if (state !== null) return state
  throw invalidParams('params.requestState is not of this call, has expired or was used: call again without it')
}

const factsOf = (call: InnerCall, paramsHash: string, { owner }: Asking): RequestFacts => ({
  owner,
  method: call.method,
  name: String(call.params?.name),
  paramsHash,
})

/**
 * Reads the client's answer to the question. Returns null if the answer is malformed, so that the question is asked
 * again (MCP multi round-trip requests, "Error Handling").
 */
function readAnswer(response: unknown): 'yes' | 'no' | null {
  const { action, content } = (response ?? {}) as { action?: unknown; content?: unknown }
  if (action === 'decline' || action === 'cancel') return 'no'
  if (action !== 'accept') return null
  // An accepted link to a page has no content. A submitted form has content, and its field can contain a "no".
  const said = (content as Record<string, unknown> | undefined)?.[FIELD]
  return said === undefined || said === true ? 'yes' : 'no'
}

interface Question {
  request: object
  state: { boundTo?: string; approvalId?: string }
}

/**
 * Builds the question for the person from the gate's refusal. Returns null if the refusal asks for no answer, or if
 * this client cannot ask the question.
 */
function questionOf({ ask, details }: ServiceError, { canAsk }: InnerCall): Question | null {
  if (ask !== undefined && canAsk.form)
    return {
      request: { method: 'elicitation/create', params: { mode: 'form', ...formOf(ask.message) } },
      state: { boundTo: ask.boundTo },
    }
  const { approval_url: url, approval_id: approvalId, summary } = details
  if (typeof url !== 'string' || typeof approvalId !== 'string' || !canAsk.url) return null
  const message = `Open this page to approve or deny the call${typeof summary === 'string' ? `: ${summary}` : '.'}`
  return { request: { method: 'elicitation/create', params: { mode: 'url', message, url } }, state: { approvalId } }
}

const formOf = (message: string) => ({
  message,
  requestedSchema: {
    type: 'object',
    properties: { [FIELD]: { type: 'boolean', title: 'Run it', default: false } },
    required: [FIELD],
  },
})

/** Asks the person while the call waits. Asks again if what the call would do has changed in the meantime. */
async function askNow(
  refusal: ServiceError,
  { elicit, run, rounds }: { elicit: Elicit; run: Run; rounds: number },
): Promise<CalledTool> {
  let error = refusal
  for (let round = 0; round < rounds && error.ask !== undefined; round++) {
    const { ask } = error
    const answer = readForm(await elicit(formOf(ask.message)))
    if (answer === null) return { ok: false, error: unasked(error) }
    if (answer === 'no') return run({ declined: { paramsHash: String(error.details['params_hash']) } })
    const result = await run({ canAsk: true, consent: { boundTo: ask.boundTo } })
    if (result.ok) return result
    ;({ error } = result)
  }
  return { ok: false, error }
}

/** Reads the answer to a form. Only an explicit true in the field counts as a yes. */
function readForm(response: unknown): 'yes' | 'no' | null {
  const answer = readAnswer(response)
  const { content } = (response ?? {}) as { content?: Record<string, unknown> }
  return answer === 'yes' && content?.[FIELD] !== true ? 'no' : answer
}

/** Builds the refusal for a client that can ask its user but did not do so for this call. */
const unasked = ({ ask: _ask, ...error }: ServiceError): ServiceError => ({
  ...error,
  hint: 'The client has not asked its user. Call again once they are ready to be asked.',
})
