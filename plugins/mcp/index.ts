import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest, HTTPMethods } from 'fastify'
import { ToolError } from '../../schemas/errors.js'
import type { Knowledge } from '../../knowledge/index.js'
import type { Offer } from '../../schemas/offer.js'
import type { ListedTool } from '../../tools/listed-tool.js'
import { systemTimers } from './answer-request.js'
import { answerMessage } from './answer-message.js'
import { acceptsStreams, answerRpcError, checkHeaders } from './check-headers.js'
import { HttpExchange } from './http-exchange.js'
import { listTool } from './list-tools.js'
import { createOfferedTools } from './offered-tools.js'
import type { Asking, ServerPorts } from './ports.js'
import type { Timers } from './progress.js'
import { type Envelope, readEnvelope } from './read-envelope.js'
import { BATCH_VERSION } from './versions.js'

type CallerContext = Parameters<FastifyInstance['dispatcher']['dispatch']>[1] & { offer: Offer }

export interface McpOptions {
  info: { name: string; version: string }
  /** All tools of the server, from which each caller's offer is chosen. */
  tools: readonly ListedTool[]
  knowledge: Knowledge
  /** Returns the caller of a request, and the tools that are offered to this caller. */
  contextOf: (request: FastifyRequest) => CallerContext
  /** The functions for asking the caller's user; absent if calls never wait for a person. */
  asking?: Omit<Asking, 'owner'>
  /**
   * Counts `times` additional requests towards the caller's limit, such as all requests of a batch except the first.
   * Rejects if there are too many.
   */
  charge?: (request: FastifyRequest, times: number) => Promise<void>
  /** The timers for heartbeats and time limits; by default, the timers of Node.js. */
  timers?: Timers
}

/** The paths of the endpoint. Some people and clients end every URL with a slash. */
const ENDPOINTS = ['/mcp', '/mcp/']
const LARGEST_BODY = 1024 * 1024
const OTHER_METHODS: HTTPMethods[] = ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

const JSON_TYPE = 'application/json; charset=utf-8'
// The headers of a stream. Each event must reach the client at once, even through proxies that buffer (S17).
const STREAM_HEADERS = { 'content-type': 'text/event-stream; charset=utf-8', 'x-accel-buffering': 'no' }
// The headers for JSON text that comes late, after whitespace has shown proxies that the call is alive.
const LATE_JSON_HEADERS = { 'content-type': JSON_TYPE, 'x-accel-buffering': 'no' }

/**
 * Serves `POST /mcp` (and `POST /mcp/`): Streamable HTTP without MCP sessions, so that any replica can serve any request. Errors from any
 * hook on this route are sent as JSON-RPC. Requires the `dispatcher` decorator.
 */
export default function mcp(app: FastifyInstance, options: McpOptions, done: () => void): void {
  const listTools = createOfferedTools(options.tools.map(listTool))

  app.setErrorHandler(sendRpcError)
  app.removeAllContentTypeParsers()
  app.addContentTypeParser(
    'application/json',
    { parseAs: 'buffer', bodyLimit: LARGEST_BODY },
    (_request, body, parsed) => parsed(null, body),
  )

  for (const url of ENDPOINTS) {
    app.post(
      url,
      {
        onRequest(request, _reply, next) {
          checkHeaders(request.headers)
          next()
        },
      },
      answerPost,
    )
    app.route({
      method: OTHER_METHODS,
      url,
      onRequest(_request, reply) {
        reply.header('allow', 'POST')
        throw new ToolError(
          'method_not_allowed',
          'This endpoint only accepts POST: there are no sessions and no server-initiated streams.',
        )
      },
      handler: (_request, reply) => reply,
    })
  }

  async function answerPost(request: FastifyRequest, reply: FastifyReply) {
    const envelope = readEnvelope(bodyOf(request), versionOf(request))
    if (envelope.messages.length > 1) await options.charge?.(request, envelope.messages.length - 1)
    // Notifications and responses are accepted, but have no effect: without MCP sessions, nothing is waiting for them.
    if (!envelope.messages.some((message) => message.kind === 'request')) return reply.code(202).send()
    const answer = await serve(envelope, request, reply)
    if (answer === null) return reply.hijack()
    if ('text' in answer) return reply.code(answer.status).header('content-type', JSON_TYPE).send(answer.text)
    return reply.headers(acceptsStreams(request.headers) ? STREAM_HEADERS : LATE_JSON_HEADERS).send(answer)
  }

  async function serve({ messages, batch }: Envelope, request: FastifyRequest, reply: FastifyReply) {
    const requests = messages.flatMap((message) => (message.kind === 'request' ? [message.request] : []))
    const callerContext = options.contextOf(request)
    const exchange = new HttpExchange(requests, batch, options.timers ?? systemTimers, acceptsStreams(request.headers))
    reply.raw.once('close', () => exchange.close())
    // The client may have left while `callerContext` was created.
    if (reply.raw.destroyed) return null
    const server: ServerPorts = {
      info: options.info,
      listTools,
      offered: callerContext.offer.listed,
      // Before revision 2026-07-28, a client says only in `initialize` whether it can show pages, and that is not
      // remembered (D6). Links to pages are therefore always sent; clients that do not know them ignore them.
      showsApps: () => true,
      knowledge: options.knowledge,
      orgId: callerContext.pce?.orgId,
      lookUp: (question, read) => app.dispatcher.lookUp(question, callerContext, (context) => read(context as never)),
      timers: options.timers,
      charge: (times) => options.charge?.(request, times) ?? Promise.resolve(),
      asking: options.asking && { ...options.asking, owner: ownerOf(callerContext) },
      onFailure: (err) => request.log.error({ err }, 'request failed'),
      requestId: () => request.id,
      callTool(call, client) {
        // If the request itself names the client, that name replaces the one in the User-Agent header.
        const work = app.dispatcher.dispatch(call, client ? { ...callerContext, client } : callerContext)
        // A call that changes something is completed even if its client has left. Until then, the request counts as in
        // flight.
        request.heldPlaces?.keepUntil(work)
        return work
      },
    }
    // The dispatcher counts as busy until the whole batch is answered, even between two of its calls.
    if (requests.length > 1) app.dispatcher.expectUntil(exchange.ended)
    void exchange.run((one, ports) => answerMessage(one, server, ports, request.headers))
    return exchange.answer
  }

  done()
}

/**
 * Returns the body of a request. The result is empty for a POST without a body, for which Fastify does not call the
 * parser.
 */
const bodyOf = (request: FastifyRequest) => (Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0))

const ownerOf = ({ caller: { iss, sub } }: CallerContext) => (iss === null || sub === null ? null : { iss, sub })

/**
 * Returns the protocol version in the header `MCP-Protocol-Version`, or the version that is assumed without this
 * header. If the header occurs twice, the result is not a valid version.
 */
function versionOf({ headers }: FastifyRequest): string {
  const version = headers['mcp-protocol-version'] ?? BATCH_VERSION
  return typeof version === 'string' ? version : version.join()
}

function sendRpcError(thrown: FastifyError, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const { status, retryAfter, body } = answerRpcError(thrown, request.id, request.headers)
  if (status === 500) request.log.error({ err: thrown }, 'request failed')
  if (retryAfter !== undefined) reply.header('retry-after', retryAfter)
  return reply.code(status).send(body)
}
