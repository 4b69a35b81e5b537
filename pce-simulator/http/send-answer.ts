import { hash } from 'node:crypto'
import { Readable } from 'node:stream'
import { constants, createGzip, gzipSync } from 'node:zlib'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { PceErrorItem } from '../refusal.js'
import type { Answer } from './route.js'

const CHUNK_CHARACTERS = 64 * 1024
const FASTEST = { level: constants.Z_BEST_SPEED }

/**
 * Sends an answer as the PCE does: as `application/json` without a charset, and without a body for 202 and 204 (P6).
 */
export function sendAnswer(request: FastifyRequest, reply: FastifyReply, answer: Answer): FastifyReply {
  void reply.code(answer.status)
  for (const [name, value] of Object.entries(answer.headers ?? {})) void reply.header(name, value)
  const { isPacked = false } = answer
  if (answer.rows) return sendPieces(request, reply, 'application/json', serialiseRows(answer.rows), isPacked)
  if (answer.lines) return sendPieces(request, reply, answer.lines.type, answer.lines.of, isPacked)
  if (answer.file) return reply.header('content-type', answer.file.type).send(answer.file.content)
  if (answer.json === undefined) return reply.send()
  // Hashing bytes is several times faster than hashing a string of the same length.
  const bytes = Buffer.from(JSON.stringify(answer.json))
  if (request.method === 'GET') void reply.header('etag', `W/"${hash('sha1', bytes)}"`)
  return reply.header('content-type', 'application/json').send(bytes)
}

export function sendErrors(reply: FastifyReply, status: number, errors: readonly PceErrorItem[]): FastifyReply {
  return reply.code(status).header('content-type', 'application/json').send(JSON.stringify(errors))
}

/**
 * Sends a body in pieces, because a result of 200,000 flows is about 200 MB of text and must never be a single string.
 * If a compressed body fits into a single chunk, it is compressed in one call, which takes a fraction of the time that
 * streams take.
 */
function sendPieces(
  request: FastifyRequest,
  reply: FastifyReply,
  type: string,
  pieces: Iterable<string>,
  isPacked: boolean,
): FastifyReply {
  void reply.header('content-type', type)
  const chunks = inChunks(pieces)
  if (!isPacked && !/\bgzip\b/.test(String(request.headers['accept-encoding'] ?? '')))
    return reply.send(readableOf(chunks))
  if (!isPacked) void reply.header('content-encoding', 'gzip')
  const first = chunks.next().value ?? ''
  if (first.length < CHUNK_CHARACTERS) return reply.send(gzipSync(first, FASTEST))
  const body = readableOf(prepend(first, chunks))
  const gzip = createGzip(FASTEST)
  body.once('error', (error) => gzip.destroy(error))
  gzip.once('close', () => body.destroy())
  return reply.send(body.pipe(gzip))
}

const readableOf = (chunks: Iterable<string>) =>
  Readable.from(chunks, { objectMode: false, highWaterMark: CHUNK_CHARACTERS })

function* prepend(first: string, chunks: Iterable<string>): Generator<string> {
  yield first
  yield* chunks
}

function* serialiseRows(rows: Iterable<unknown>): Generator<string> {
  let before = '['
  for (const row of rows) {
    yield before + JSON.stringify(row)
    before = ','
  }
  yield before === '[' ? '[]' : ']'
}

/** Joins pieces into chunks of at least CHUNK_CHARACTERS characters. Only the last chunk may be shorter. */
function* inChunks(pieces: Iterable<string>): Generator<string, undefined> {
  let chunk = ''
  for (const piece of pieces) {
    chunk += piece
    if (chunk.length >= CHUNK_CHARACTERS) {
      yield chunk
      chunk = ''
    }
  }
  if (chunk !== '') yield chunk
}
