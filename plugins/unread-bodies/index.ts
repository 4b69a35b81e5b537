import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'

/** Maximum number of bytes that are read from a connection and discarded after the answer. */
const MOST_DROPPED = 4 * 1024 * 1024
/** The time, in milliseconds, after which a connection is closed whatever the client does. */
const LONGEST_MS = 30_000
/** The time, in milliseconds, after which a connection is closed if the client neither sends anything nor closes it. */
const SILENCE_MS = 5000

/** The connections on which an answer with `Connection: close` was sent before the body of its request had arrived. */
const ending = new WeakSet<Socket>()

/**
 * Adds `Connection: close` to every answer that is sent before the body of its request has arrived (D248). A proxy that
 * reuses connections could otherwise send the next request, perhaps another caller's, after a body that is still on its
 * way. Further requests on such a connection are ignored (RFC 9112, 9.6).
 */
export default fp(
  (app, _options, done) => {
    app.addHook('onRequest', (request, reply, next) => {
      if (!ending.has(request.raw.socket)) return next()
      reply.hijack()
    })
    app.addHook('onSend', (request, reply, payload, next) => closeIfUnread(request, reply, () => next(null, payload)))
    done()
  },
  { name: 'unread-bodies' },
)

/**
 * Makes the connection close after the answer if the request's body has not arrived completely, and then calls `next`.
 * If the body arrived together with the headers, the connection stays open.
 */
export function closeIfUnread({ raw }: FastifyRequest, reply: FastifyReply, next: () => void): void {
  // Fastify adds `Connection: close` after every body that it cannot parse, even if the whole body has arrived. The
  // header is then removed.
  if (raw.complete && !ending.has(raw.socket) && reply.hasHeader('connection')) reply.removeHeader('connection')
  if (raw.complete !== false || !hasBody(raw)) return next()
  // Node.js parses the bytes that arrived together with the headers only after the hooks that refuse a request.
  queueMicrotask(() => {
    if (!raw.complete) {
      reply.header('connection', 'close')
      lingerAfter(raw)
    }
    next()
  })
}

const hasBody = ({ headers }: IncomingMessage) =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0

/**
 * Makes the connection of a request end gradually after the answer. If it were closed while the client is still
 * sending, the operating system would reset it, and the client could lose the answer. Therefore only the sending side
 * is closed, and everything that arrives is discarded, until the client closes the connection too, sends nothing for
 * 5 s or sends more than 4 MiB, but for at most 30 s.
 */
function lingerAfter({ socket }: IncomingMessage): void {
  const mostRead = socket.bytesRead + MOST_DROPPED
  ending.add(socket)
  // Node.js calls `destroySoon` after it has sent an answer with `Connection: close`.
  socket.destroySoon = () => {
    // The event `data` feeds Node's HTTP parser. Without the parser, further requests cost nothing.
    socket.removeAllListeners('data')
    socket.on('data', () => {
      if (socket.bytesRead > mostRead) socket.destroy()
    })
    socket.resume()
    socket.setTimeout(SILENCE_MS)
    const deadline = setTimeout(() => socket.destroy(), LONGEST_MS).unref()
    socket.once('close', () => clearTimeout(deadline))
    socket.end()
  }
}
