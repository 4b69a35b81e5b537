/**
 * Splits one client over two threads: the computing thread parses the answers, and the thread that holds the
 * connections makes the requests. Credentials, address checks, pacing and retries stay in the thread that holds the
 * connections. Parsing never slows this thread, which serves all callers.
 */
import { AsyncResource } from 'node:async_hooks'
import type { MessagePort } from 'node:worker_threads'
import { JsonMeter, type AnswerSizes } from './bound-answers.js'
import { assembleClient, partsOf, type PceClient } from './client.js'
import { collectParcel } from './collect-parcel.js'
import { PceApiError, PceError, PceIntegerError, type PceErrorCode } from './errors.js'
import { classifyRequest } from './retry-policy.js'
import { readSettings } from './settings.js'
import { LARGE_BODY, nextTurn } from './take-turns.js'
import {
  createResponse,
  type BodySink,
  type Http,
  type SendOptions,
  type StreamHead,
  type TracedResponse,
} from './transport.js'

/** The address of a remote client's PCE, and the size limits for the PCE's answers. No field is secret. */
export interface RemoteAddress extends AnswerSizes {
  origin: string
  version: string
  orgId: string
  /** The user name of the credentials, so that both threads know whose API key is used. The secret is not passed on. */
  userName?: string | undefined
}

/** A request that may have changed something at the PCE, and its outcome. */
export interface SentWrite {
  method: string
  /** The path of the request below `/api/<version>`, as it was requested. */
  endpoint: string
  /** `done` if the request succeeded, the error's code if it failed, undefined while it is running. */
  outcome: 'done' | PceErrorCode | undefined
}

/** The part of a remote client that makes its requests, in the thread that holds the connections. */
export interface ServedClient {
  address: RemoteAddress
  /** The writes that the computing thread has requested, in order. */
  writes: readonly SentWrite[]
  /** Stops accepting requests, waits until every write has an outcome, and returns the writes. */
  settleWrites(): Promise<readonly SentWrite[]>
  /** Cancels the running requests and closes the port. */
  close(): void
}

/**
 * A request that the computing thread has made and that is still running. `taken` is called when the computing thread
 * has processed one parcel (a group of pieces) of the body.
 */
interface Running {
  controller: AbortController
  readonly taken: () => void
}

type PlainAnswer = Omit<TracedResponse, 'json'>
type PlainOptions = Omit<SendOptions, 'signal'>

/** Messages to the thread that holds the connections. `id` identifies a request. */
type Request =
  | { id: number; act: 'send'; method: string; endpoint: string; options: PlainOptions }
  | { id: number; act: 'stream'; endpoint: string; options: PlainOptions }
  | { id: number; act: 'abort' }
  | { id: number; act: 'taken' }

/** Messages from the thread that holds the connections to the computing thread. */
type Reply =
  | { id: number; is: 'answer'; answer: PlainAnswer }
  | { id: number; is: 'begin'; head: StreamHead }
  | { id: number; is: 'end' }
  | { id: number; is: 'piece'; piece: Uint8Array }
  | { id: number; is: 'error'; error: PlainError }

/**
 * Returns true if a request changes something at the PCE, apart from the queries and jobs that the client itself starts
 * and deletes.
 */
export const isChange = (method: string, endpoint: string) =>
  classifyRequest(method, endpoint).writes && !/\/(?:async_queries|jobs)(?:\/|$)/.test(endpoint)

/** Maximum number of parcels in transit at a time, so that a slow receiver slows the download. */
const MOST_UNDER_WAY = 4

/**
 * Asks whether so many bytes of answers may be passed on to the computing thread. Returns undefined if they may, or
 * otherwise a promise that resolves when they may.
 */
export type Admission = (bytes: number) => Promise<void> | undefined

/** Breaks off a download whose next piece may not be passed on yet. `admitted` resolves when it may. */
class NoRoom extends Error {
  constructor(readonly admitted: Promise<void>) {
    super()
  }
}

/**
 * Serves the remote client at the other end of the port (see `connectRemoteClient`): makes its requests with `client`,
 * in the async context of this function's caller.
 *
 * @param admit is asked before each answer, and before each piece of a streamed answer. While an answer may not be
 *   passed on, it stays in this thread. A stream is broken off, and begins again when it may be passed on: neither does
 *   it keep a connection to the PCE waiting, nor does the wait count as a delay of the PCE.
 */
export function serveClient(client: PceClient, port: MessagePort, admit: Admission = () => undefined): ServedClient {
  const { http, settings } = partsOf(client)
  const { origin, version, orgId } = settings.address
  const running = new Map<number, Running>()
  const writes: SentWrite[] = []
  const sending = new Set<Promise<unknown>>()
  const reply = (message: Reply, transfer: ArrayBuffer[] = []) => port.postMessage(message, transfer)

  async function answer(request: Request): Promise<void> {
    const { id } = request
    if (request.act === 'abort') return running.get(id)?.controller.abort(new Error('given up by the other thread'))
    if (request.act === 'taken') return running.get(id)?.taken()
    const controller = new AbortController()
    running.set(id, { controller, taken: () => {} })
    const options = { ...request.options, signal: controller.signal }
    try {
      if (request.act === 'send') {
        const answered = await send(request.method, request.endpoint, { ...options, asBytes: true })
        const { status, headers, text, repeated, bytes = [] } = answered
        const admitted = admit(bytes.reduce((sum, { length }) => sum + length, text.length))
        if (admitted !== undefined) await untilAborted(admitted, controller.signal)
        // A text is copied to the other thread at once, which takes as long as reading it from the body did.
        if (text.length > LARGE_BODY) await nextTurn()
        const transfer = bytes.map(({ buffer }) => buffer)
        reply({ id, is: 'answer', answer: { status, headers, text, repeated, bytes } }, transfer)
      } else {
        const { signal } = controller
        const sink = createParcels((message, transfer) => reply({ id, ...message }, transfer), signal, admit)
        running.set(id, { controller, taken: () => sink.taken() })
        for (let isOver = false; !isOver;) {
          try {
            await http.stream(request.endpoint, options, sink)
            await sink.flush()
            isOver = true
          } catch (error) {
            if (!(error instanceof NoRoom)) throw error
            await untilAborted(error.admitted, signal)
          }
        }
        reply({ id, is: 'end' })
      }
    } catch (error) {
      reply({ id, is: 'error', error: toPlain(error) })
    } finally {
      running.delete(id)
    }
  }

  async function send(method: string, endpoint: string, options: SendOptions): Promise<TracedResponse> {
    const answering = http.send(method, endpoint, options)
    if (!isChange(method, endpoint)) return answering
    const write: SentWrite = { method, endpoint, outcome: undefined }
    writes.push(write)
    const settled = answering.then(
      () => (write.outcome = 'done'),
      (error: unknown) => (write.outcome = error instanceof PceError ? error.code : 'outcome_unknown'),
    )
    sending.add(settled)
    void settled.finally(() => sending.delete(settled))
    return answering
  }

  // Messages arrive outside of any call, so the handler is bound to the async context in which it is registered.
  // Otherwise, the requests would not be attributed to the caller.
  port.on(
    'message',
    AsyncResource.bind((request: Request) => void answer(request)),
  )
  return {
    address: { origin, version, orgId, userName: settings.userName, ...settings.sizes },
    writes,
    async settleWrites() {
      port.close()
      await Promise.all([...sending])
      return writes
    },
    close() {
      port.close()
      for (const { controller } of running.values()) controller.abort(new Error('the other thread has ended'))
    },
  }
}

/** Waits for a promise. @throws {PceError} `aborted` when the signal aborts before. */
async function untilAborted(promise: Promise<void>, signal: AbortSignal): Promise<void> {
  let abort = () => {}
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(new PceError('aborted', 'the call was cancelled', { cause: signal.reason }))
    if (signal.aborted) abort()
    else signal.addEventListener('abort', abort, { once: true })
  })
  await Promise.race([promise, aborted]).finally(() => signal.removeEventListener('abort', abort))
}

type Parcel = { is: 'begin'; head: StreamHead } | { is: 'piece'; piece: Uint8Array }

/**
 * Creates a sink that collects a body into parcels, and waits while too many of them are in transit. It throws `NoRoom`
 * instead of sending a parcel that `admit` does not let pass at once.
 */
function createParcels(
  post: (parcel: Parcel, transfer?: ArrayBuffer[]) => void,
  signal: AbortSignal,
  admit: Admission,
): BodySink & { readonly flush: () => Promise<void>; readonly taken: () => void } {
  let collector = collectParcel()
  let underWay = 0
  let goOn: (() => void) | undefined
  const resume = () => {
    goOn?.()
    goOn = undefined
  }
  signal.addEventListener('abort', resume, { once: true })

  async function send(piece: Buffer<ArrayBuffer> | undefined): Promise<void> {
    if (piece === undefined) return
    const admitted = admit(piece.length)
    if (admitted !== undefined) throw new NoRoom(admitted)
    underWay += 1
    post({ is: 'piece', piece }, [piece.buffer])
    while (underWay >= MOST_UNDER_WAY && !signal.aborted) await new Promise<void>((resolve) => (goOn = resolve))
  }

  return {
    begin(head) {
      collector = collectParcel()
      post({ is: 'begin', head })
    },
    take: (piece) => send(collector.take(piece)),
    flush: () => send(collector.end()),
    taken: () => {
      underWay -= 1
      resume()
    },
  }
}

/**
 * Creates a client whose requests are made at the other end of the port (see `serveClient`). It has no credentials, so
 * its setters have no effect. Throws like `createPceClient` for an invalid address.
 *
 * @param arrived called with the size of each answer, or of each piece of a streamed answer, before the answer or piece
 *   is passed on. If `arrived` throws, the request fails with the error that it throws. It is no longer called after
 *   the client has requested a change at the PCE, because that change must be completed.
 */
export function connectRemoteClient(
  { origin, version, orgId, userName, maxAnswerMib, maxListMib }: RemoteAddress,
  port: MessagePort,
  arrived: (bytes: number) => void = () => {},
): PceClient {
  const { port: given, protocol } = new URL(origin)
  const settings = readSettings({
    url: origin,
    // A URL omits the port if it is the default port of the scheme.
    port: given === '' ? (protocol === 'http:' ? 80 : 443) : given,
    version,
    orgId,
    maxAnswerMib,
    maxListMib,
  })
  settings.userName = userName
  return assembleClient(createRemoteHttp(port, settings.bounds.body.elements, arrived), settings)
}

interface Pending {
  method: string
  path: string
  sink?: BodySink
  /** Resolves when all earlier pieces have been processed, so that pieces are processed one after the other. */
  turn: Promise<void>
  resolve(answer: TracedResponse | undefined): void
  reject(error: Error): void
}

function createRemoteHttp(port: MessagePort, mostElements: number, arrived: (bytes: number) => void): Http {
  const pending = new Map<number, Pending>()
  let last = 0
  let hasChanged = false
  const post = (request: Request) => port.postMessage(request)
  const look = (bytes: number) => {
    if (!hasChanged) arrived(bytes)
  }

  /** Puts the pieces of a body together and reads its text, within the limits. @throws {PceError} `body_too_large` */
  function readAnswer({ bytes = [], ...answer }: PlainAnswer): PlainAnswer {
    const pieces = bytes.map(({ buffer }) => Buffer.from(buffer))
    const meter = new JsonMeter(mostElements)
    for (const piece of pieces) meter.take(piece)
    look(pieces.reduce((sum, { length }) => sum + length, answer.text.length))
    return pieces.length === 0 ? answer : { ...answer, text: Buffer.concat(pieces).toString('utf8') }
  }

  port.on('message', (reply: Reply) => {
    const { id } = reply
    const one = pending.get(id)
    if (one === undefined) return
    const { sink } = one
    if (reply.is === 'answer') {
      try {
        one.resolve(createResponse(readAnswer(reply.answer), one))
      } catch (error) {
        one.reject(error as Error)
      }
    } else if (reply.is === 'error') one.reject(fromPlain(reply.error))
    else {
      const step = () => {
        if (reply.is === 'begin') return sink?.begin(reply.head)
        if (reply.is === 'end') return one.resolve(undefined)
        look(reply.piece.length)
        return sink?.take(Buffer.from(reply.piece.buffer))
      }
      one.turn = one.turn.then(step).then(() => {
        if (reply.is === 'piece' && pending.has(id)) post({ id, act: 'taken' })
      })
      one.turn.catch((error: Error) => {
        // An error of the sink ends the download and is passed to the caller unchanged.
        if (pending.has(id)) post({ id, act: 'abort' })
        one.reject(error)
      })
    }
  })

  function ask(
    { signal, json, ...options }: SendOptions,
    request: { act: 'send'; method: string; endpoint: string } | { act: 'stream'; endpoint: string },
    sink?: BodySink,
  ): Promise<TracedResponse | undefined> {
    const id = ++last
    const method = request.act === 'send' ? request.method : 'GET'
    hasChanged ||= isChange(method, request.endpoint)
    // The body is serialised in this thread, so that the other thread only has to send it.
    const text = json === undefined ? options.text : JSON.stringify(json)
    return new Promise<TracedResponse | undefined>((resolve, reject) => {
      if (signal?.aborted === true)
        return reject(new PceError('aborted', 'the call was cancelled', { cause: signal.reason }))
      // Only the thread that holds the connections can tell what happened to a running request, so its answer is
      // awaited even after a cancellation.
      const cancel = () => post({ id, act: 'abort' })
      signal?.addEventListener('abort', cancel, { once: true })
      const end = () => {
        signal?.removeEventListener('abort', cancel)
        pending.delete(id)
      }
      pending.set(id, {
        method,
        path: request.endpoint,
        sink,
        turn: Promise.resolve(),
        resolve(answer) {
          end()
          resolve(answer)
        },
        reject(error) {
          end()
          reject(error)
        },
      })
      post({ id, ...request, options: { ...options, ...(text !== undefined && { text }) } })
    })
  }

  return {
    send: async (method, endpoint, options = {}) => (await ask(options, { act: 'send', method, endpoint }))!,
    stream: async (endpoint, options, sink) => void (await ask(options, { act: 'stream', endpoint }, sink)),
    closeIdle: () => {},
  }
}

/** An error of this client as plain data, which can cross the thread boundary. */
interface PlainError {
  is: 'PceApiError' | 'PceIntegerError' | 'PceError'
  code: PceErrorCode
  message: string
  reason?: string
  hrefs?: readonly string[]
  completed?: PceError['completed']
  status?: number
  method?: string
  path?: string
  errors?: PceApiError['errors']
  retryAfter?: number | null
  requestId?: string
}

function toPlain(error: unknown): PlainError {
  if (!(error instanceof PceError)) return { is: 'PceError', code: 'unreachable', message: 'the request failed' }
  const { code, message, reason, hrefs, completed } = error
  const base = { code, message, reason, hrefs, completed }
  if (error instanceof PceIntegerError) return { ...base, is: 'PceIntegerError' }
  if (!(error instanceof PceApiError)) return { ...base, is: 'PceError' }
  const { status, method, path, errors, retryAfter, requestId } = error
  return { ...base, is: 'PceApiError', status, method, path, errors, retryAfter, requestId }
}

function fromPlain(plain: PlainError): PceError {
  const { code, message, reason, hrefs, completed, status = 0, method = '', path = '' } = plain
  const { errors, retryAfter, requestId } = plain
  const facts = { reason, hrefs }
  const error =
    plain.is === 'PceIntegerError'
      ? new PceIntegerError(message)
      : plain.is === 'PceApiError'
        ? new PceApiError(message, { status, method, path, errors, retryAfter, requestId, code }, facts)
        : new PceError(code, message, facts)
  error.completed = completed
  return error
}
