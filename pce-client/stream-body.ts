import type { ClientRequest } from 'node:http'
import type { Got, Request, Response } from 'got'
import type { Agents } from './connect.js'
import { tooManyBytes } from './bound-answers.js'
import { watchAttempt, type CallState } from './call-state.js'
import { decodePieces } from './decode-body.js'
import { PceError } from './errors.js'
import { refuseForeignAnswer, refuseProxyAnswer, waitForRetry, type PceHooks } from './hooks.js'
import { asError, toPceError, type ErrorAnswer, type Failure } from './map-failure.js'
import type { ClientSettings } from './settings.js'
import type { BodySink } from './transport.js'

/** Maximum number of bytes that are read from an error answer. */
const MAX_ERROR_BYTES = 64 * 1024

export interface StreamedRequest {
  client: Got
  url: string
  connect: Agents['connect']
  hooks: PceHooks
  headers: Record<string, string>
  settings: ClientSettings
  state: CallState
  /** Maximum size of the body, after decompression unless `isPacked` is true. */
  maxBytes: number
  /** If true, a compressed body is passed on as it arrives. */
  isPacked?: boolean
}

/** Wraps an error of the sink, to distinguish it from a failure of the download. */
class SinkError extends Error {
  constructor(readonly thrown: unknown) {
    super()
  }
}

async function handTo(act: () => void | Promise<void>): Promise<void> {
  try {
    await act()
  } catch (error) {
    throw new SinkError(error)
  }
}

/**
 * Makes a GET and passes the body on as it arrives. got itself retries only until the headers have arrived, so the
 * retry policy is applied here to the whole download: one that breaks off starts again from the beginning, and the
 * sink's `begin` is called again.
 *
 * @throws {PceError} like every call; errors of the sink are passed on unchanged.
 */
export async function streamBody(request: StreamedRequest, sink: BodySink): Promise<void> {
  const { hooks, settings, state } = request
  for (;;) {
    let failure: Failure
    try {
      if (state.isOver) throw asError(state.reason)
      const refused = await attempt(request, sink)
      if (refused === undefined) return
      failure = refused
    } catch (error) {
      if (error instanceof SinkError) throw error.thrown
      failure = asError(error)
    }
    if (!(await hooks.decide(failure, state))) throw toPceError(failure, state)
    try {
      await waitForRetry(settings, state, failure)
    } catch (error) {
      throw toPceError(asError(error), state)
    }
  }
}

/** Makes one attempt, and returns the PCE's error answer if there was one. */
async function attempt(request: StreamedRequest, sink: BodySink): Promise<Failure | undefined> {
  const { hooks, settings, state } = request
  const stream = request.client.stream(request.url, {
    ...request.connect,
    headers: request.headers,
    signal: state.signal,
    context: { call: state },
    throwHttpErrors: false,
    retry: { limit: 0 },
  })
  try {
    const response = await headersOf(stream, request)
    refuseProxyAnswer(response.statusCode, state)
    if (response.statusCode >= 400) {
      const refusal = await readRefusal(stream, response, settings, state)
      hooks.noteAnswer(refusal.status, refusal.body, state)
      return refusal
    }
    refuseForeignAnswer(response.statusCode, response.headers['content-type'])
    hooks.noteAnswer(response.statusCode, '', state)
    const { statusCode: status, headers } = response
    await handTo(() => sink.begin({ status, headers }))
    const arriving = piecesOf(stream, settings, state)
    const pieces = request.isPacked === true ? arriving : decodePieces(arriving, headers['content-encoding'])
    let bytes = 0
    for await (const chunk of pieces) {
      bytes += chunk.length
      if (bytes > request.maxBytes) {
        state.ended ??= { error: tooManyBytes(request.maxBytes), retry: false }
        throw state.ended.error
      }
      await handTo(() => sink.take(chunk))
    }
    return undefined
  } finally {
    stream.destroy()
  }
}

function headersOf(stream: Request, { settings, state, maxBytes }: StreamedRequest): Promise<Response> {
  return new Promise((resolve, reject) => {
    stream.on('request', (wire: ClientRequest) => {
      watchAttempt(wire, state, { headersMs: settings.requestTimeoutMs, idleMs: Infinity, maxBytes })
    })
    stream.once('response', resolve)
    // This listener stays attached after the headers have arrived. A later error reaches the reader through the
    // iterator, but if no listener were attached, Node.js would also report it as unhandled.
    stream.on('error', reject)
  })
}

/**
 * Yields the pieces of the body. The idle time-out runs only while the next piece is awaited, so that a slow consumer
 * is not mistaken for a slow PCE.
 */
async function* piecesOf(stream: Request, settings: ClientSettings, state: CallState): AsyncGenerator<Buffer> {
  const iterator = stream[Symbol.asyncIterator]() as AsyncIterator<Buffer>
  for (;;) {
    const timer = setTimeout(() => {
      const text = `the answer stalled for ${settings.idleTimeoutMs / 1000} s`
      state.ended ??= { error: new PceError('unreachable', text, { reason: 'ETIMEDOUT' }), retry: true }
      stream.destroy(state.ended.error)
    }, settings.idleTimeoutMs)
    const piece = await iterator.next().finally(() => clearTimeout(timer))
    if (piece.done === true) return
    yield piece.value
  }
}

async function readRefusal(
  stream: Request,
  { statusCode, statusMessage, headers }: Response,
  settings: ClientSettings,
  state: CallState,
): Promise<ErrorAnswer> {
  const pieces: Buffer[] = []
  let size = 0
  try {
    for await (const piece of decodePieces(piecesOf(stream, settings, state), headers['content-encoding'])) {
      size += piece.length
      if (size > MAX_ERROR_BYTES) break
      pieces.push(piece)
    }
  } catch {
    // The body of the error answer cannot be read. This is ignored, because the answer's status tells the caller more.
  }
  const body = size > MAX_ERROR_BYTES ? '' : Buffer.concat(pieces).toString('utf8')
  return { status: statusCode, statusText: statusMessage ?? '', headers, body }
}
