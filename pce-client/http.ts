import type { ClientRequest } from 'node:http'
import got, { type Got } from 'got'
import { tooManyBytes } from './bound-answers.js'
import { watchAttempt, openCall, type CallState } from './call-state.js'
import { collectParcel } from './collect-parcel.js'
import { createAgents, type Agents } from './connect.js'
import { resolveEndpoint } from './endpoint.js'
import { PceApiError, PceError } from './errors.js'
import { unpackPieces } from './decode-body.js'
import { createHooks } from './hooks.js'
import { asError, toPceError } from './map-failure.js'
import { parseInTurns } from './parse-in-turns.js'
import type { ClientSettings } from './settings.js'
import { streamBody, type StreamedRequest } from './stream-body.js'
import { inLargePlace, LARGE_BODY } from './take-turns.js'
import { createResponse, type Http, type SendOptions, type StreamHead, type TracedResponse } from './transport.js'

/**
 * Creates the part of a client that makes its HTTP requests with got. Agents are recreated when proxies or TLS settings
 * change; credentials and time-outs are read from the settings for every request.
 *
 * Redirects are never followed: the API does not use them, and the credentials would be sent to another host. Errors of
 * got never leave this file.
 */
export function createHttp(settings: ClientSettings): Http {
  const hooks = createHooks(settings)
  const streaming: Got = got.extend({
    followRedirect: false,
    decompress: false,
    headers: { accept: 'application/json', 'accept-encoding': 'gzip', 'user-agent': 'svc-mcp pce-client' },
    hooks: { beforeRequest: [hooks.beforeRequest] },
  })
  const buffering = streaming.extend({
    responseType: 'buffer',
    retry: { limit: settings.retryCount, calculateDelay: hooks.calculateDelay },
    hooks: {
      beforeRetry: [hooks.beforeRetry],
      afterResponse: [hooks.afterResponse],
      beforeError: [hooks.beforeError],
    },
  })
  let agents: Promise<Agents> | undefined
  let madeFor: [unknown, unknown] = [undefined, undefined]

  function currentAgents(): Promise<Agents> {
    if (agents === undefined || madeFor[0] !== settings.tls || madeFor[1] !== settings.proxies) {
      void agents?.then((old) => old.closeIdle())
      madeFor = [settings.tls, settings.proxies]
      agents = createAgents(settings)
    }
    return agents
  }

  async function begin(method: string, endpoint: string, options: SendOptions) {
    const { url, path } = resolveEndpoint(settings.address, endpoint, options.includeOrg ?? true, options.params)
    const { connect, via } = await currentAgents()
    const call = openCall(settings, { method, path, via }, options)
    return { url, connect, call }
  }

  async function send(method: string, endpoint: string, options: SendOptions = {}): Promise<TracedResponse> {
    if (options.asBytes === true && method === 'GET') return receive(endpoint, options)
    const body = method === 'GET' || method === 'DELETE' ? {} : { body: bodyOf(options) }
    const headers = requestHeaders(method, options, settings)
    const { url, connect, call } = await begin(method, endpoint, options)
    const { state } = call
    let failed: PceError | undefined
    try {
      if (state.isOver) throw asError(state.reason)
      const request = buffering(url, {
        method: method as 'GET',
        ...connect,
        headers: { ...headers, ...state.watched?.headers },
        ...body,
        context: { call: state },
      })
      state.stop = () => request.cancel()
      const limits = { idleMs: settings.idleTimeoutMs, maxBytes: state.maxBytes }
      let wire: ClientRequest | undefined
      void request.on('request', (current: ClientRequest) => {
        wire = current
        watchAttempt(current, state, { headersMs: settings.requestTimeoutMs, ...limits })
      })
      void request.on('downloadProgress', ({ transferred }) => {
        if (transferred <= limits.maxBytes) return
        state.ended ??= { error: tooManyBytes(limits.maxBytes), retry: false }
        wire?.destroy()
      })
      const response = await request
      const { statusCode: status, headers: given } = response
      // The body has already been decoded by the `afterResponse` hook.
      const text = response.body
      // The JSON of a large list is parsed later, by `listOf`.
      const isLarge = options.asBytes !== true && text.length > LARGE_BODY && !/^\s*\[/.test(text)
      const parsed = isLarge ? await inLargePlace(() => parseInTurns(text)) : undefined
      return createResponse({ status, headers: given, text, repeated: state.mayHaveHappened }, state, parsed)
    } catch (failure) {
      const error = failure instanceof PceError ? failure : toPceError(asError(failure), state)
      if (isDoneAlready(error, state))
        return createResponse({ status: 204, headers: {}, text: '', repeated: state.mayHaveHappened }, state)
      failed = error
      throw error
    } finally {
      call.close(failed)
    }
  }

  /** Makes a GET whose body is read by `read`, which passes it on to its sink. */
  async function get<T>(
    endpoint: string,
    options: SendOptions,
    read: (request: StreamedRequest) => Promise<T>,
  ): Promise<T> {
    const headers = requestHeaders('GET', options, settings)
    const { url, connect, call } = await begin('GET', endpoint, options)
    const { state } = call
    let failed: PceError | undefined
    try {
      const sent = { ...headers, ...state.watched?.headers }
      const { maxBytes = Infinity } = options
      return await read({ client: streaming, url, connect, hooks, settings, state, headers: sent, maxBytes })
    } catch (error) {
      // An error that is not a PceError was thrown by the caller's sink, so the request itself did not fail.
      if (error instanceof PceError) failed = error
      throw error
    } finally {
      call.close(failed)
    }
  }

  /** Makes a GET whose body is not put together in this thread, because that takes long for a large one. */
  const receive = (endpoint: string, options: SendOptions): Promise<TracedResponse> =>
    get(endpoint, options, async (request) => {
      const { state } = request
      let head: StreamHead = { status: 0, headers: {} }
      let collector = collectParcel()
      let packed: Buffer[] = []
      const keep = (parcel: Buffer | undefined) => {
        if (parcel !== undefined) packed.push(parcel)
      }
      await streamBody(
        { ...request, maxBytes: state.maxBytes, isPacked: true },
        {
          begin(arrived) {
            head = arrived
            collector = collectParcel()
            packed = []
          },
          take: (piece) => keep(collector.take(piece)),
        },
      )
      keep(collector.end())
      const pieces = await unpackPieces(packed, head.headers['content-encoding'] as string | undefined, state.maxBytes)
      return createResponse({ ...head, text: '', bytes: pieces.map(inOwnBuffer), repeated: false }, state)
    })

  return {
    send,
    stream: (endpoint, options, sink) => get(endpoint, options, (request) => streamBody(request, sink)),
    closeIdle: () => void agents?.then((current) => current.closeIdle()),
  }
}

/**
 * Returns the request body as text.
 *
 * @throws {PceError} `invalid_argument` for values that JSON cannot express: a BigInt, a circular object.
 */
function bodyOf({ text, json }: SendOptions): string {
  if (text !== undefined) return text
  try {
    return JSON.stringify(json ?? {})
  } catch (cause) {
    throw new PceError('invalid_argument', 'the body cannot be written as JSON', { cause })
  }
}

function requestHeaders(method: string, options: SendOptions, settings: ClientSettings): Record<string, string> {
  const requestId = options.requestId ?? settings.requestId?.()
  const own: Record<string, string> = {}
  if (requestId !== undefined) own['x-request-id'] = requestId
  if (method === 'POST' || method === 'PUT') own['content-type'] = 'application/json'
  for (const [name, value] of Object.entries(options.headers ?? {})) own[name.toLowerCase()] = value
  return own
}

/** Returns a piece that is alone in its buffer, which can then be transferred; any other piece is copied. */
const inOwnBuffer = (piece: Buffer): Uint8Array<ArrayBuffer> =>
  piece.length === piece.buffer.byteLength ? (piece as Buffer<ArrayBuffer>) : new Uint8Array(piece)

/**
 * Returns true if a repeated DELETE found nothing because an earlier attempt has probably deleted the object (D23).
 * This is not assumed if the earlier attempt was refused with 429, which means that it was not processed.
 */
function isDoneAlready(error: PceError, state: CallState): boolean {
  return state.method === 'DELETE' && state.mayHaveHappened && error instanceof PceApiError && error.isGone
}
