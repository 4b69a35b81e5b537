import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { constants, createGzip } from 'node:zlib'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { PceErrorItem } from '../refusal.js'
import type { Answer } from './route.js'

const CHUNK_CHARACTERS = 64 * 1024

/** Sends an answer as the PCE does: exactly `application/json`, no charset; no body at all for 202 and 204 (P6). */
export function sendAnswer(request: FastifyRequest, reply: FastifyReply, answer: Answer): FastifyReply {
  void reply.code(answer.status)
  for (const [name, value] of Object.entries(answer.headers ?? {})) void reply.header(name, value)
  if (answer.rows) return sendRows(request, reply, answer.rows)
  if (answer.file) return reply.header('content-type', answer.file.type).send(answer.file.content)
  if (answer.json === undefined) return reply.send()
  // Hashing bytes is several times cheaper than hashing a string of the same length.
  const bytes = Buffer.from(JSON.stringify(answer.json))
  if (request.method === 'GET') void reply.header('etag', `W/"${createHash('sha1').update(bytes).digest('hex')}"`)
  return reply.header('content-type', 'application/json').send(bytes)
}

export function sendErrors(reply: FastifyReply, status: number, errors: readonly PceErrorItem[]): FastifyReply {
  return reply.code(status).header('content-type', 'application/json').send(JSON.stringify(errors))
}

/** A result of 200,000 flows is some 200 MB of text: it never exists as one string. */
function sendRows(request: FastifyRequest, reply: FastifyReply, rows: Iterable<unknown>): FastifyReply {
  void reply.header('content-type', 'application/json')
  const body = Readable.from(serialiseRows(rows), { objectMode: false, highWaterMark: CHUNK_CHARACTERS })
  if (!/\bgzip\b/.test(String(request.headers['accept-encoding'] ?? ''))) return reply.send(body)
  void reply.header('content-encoding', 'gzip')
  const gzip = createGzip({ level: constants.Z_BEST_SPEED })
  body.once('error', (error) => gzip.destroy(error))
  gzip.once('close', () => body.destroy())
  return reply.send(body.pipe(gzip))
}

function* serialiseRows(rows: Iterable<unknown>): Generator<string> {
  let chunk = '['
  let separator = ''
  for (const row of rows) {
    chunk += separator + JSON.stringify(row)
    separator = ','
    if (chunk.length >= CHUNK_CHARACTERS) {
      yield chunk
      chunk = ''
    }
  }
  yield `${chunk}]`
}
