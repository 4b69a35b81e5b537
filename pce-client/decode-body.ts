import { Readable } from 'node:stream'
import { promisify } from 'node:util'
import { createGunzip, gunzip } from 'node:zlib'
import { type AnswerBounds, JsonMeter, tooManyBytes } from './bound-answers.js'
import { PceError } from './errors.js'
import { inLargePlace, LARGE_BODY, nextTurn, shareTurn } from './take-turns.js'

const SLICE_BYTES = 256 * 1024
/** The first bytes of every gzip file (RFC 1952). JSON, CSV and PDF files begin differently. */
const GZIP_MARK = Buffer.from([0x1f, 0x8b])

/** The limits for the body of one answer. */
type Bounds = AnswerBounds['body']

/**
 * Decompresses a response body and returns its text, within the limits. got leaves bodies compressed (`decompress:
 * false`), because only here can the decompressed size be limited. A body is decompressed if its first bytes are those
 * of a gzip file, because a PCE may send such a file without `Content-Encoding` (P11).
 *
 * @throws {PceError} `body_too_large`, naming the limit; `invalid_response` for damaged data or an encoding that was
 *   not requested.
 */
export async function decodeBody(body: Buffer, encoding: string | undefined, bounds: Bounds): Promise<string> {
  refuseForeignEncoding(encoding)
  const isPacked = isGzip(body)
  const small = isPacked ? await unpackSmall(body) : body.length <= LARGE_BODY ? body : undefined
  if (small === undefined) return inLargePlace(() => (isPacked ? unpackLarge(body, bounds) : readLarge(body, bounds)))
  if (small.length > bounds.bytes) throw tooManyBytes(bounds.bytes)
  new JsonMeter(bounds.elements).take(small)
  return small.toString('utf8')
}

/**
 * Decompresses a body that has arrived in pieces, and returns the pieces of the result. Neither puts them together nor
 * counts their elements, because another thread does so.
 *
 * @throws {PceError} like `decodeBody`.
 */
export async function unpackPieces(
  pieces: Buffer[],
  encoding: string | undefined,
  mostBytes: number,
): Promise<Buffer[]> {
  refuseForeignEncoding(encoding)
  const [first, ...more] = pieces
  if (first === undefined || !isGzip(first)) return pieces
  const small = more.length === 0 ? await unpackSmall(first) : undefined
  if (small === undefined) return inLargePlace(() => unpackAll(pieces, mostBytes))
  if (small.length > mostBytes) throw tooManyBytes(mostBytes)
  return [small]
}

async function unpackAll(pieces: Buffer[], mostBytes: number): Promise<Buffer[]> {
  const unpacked: Buffer[] = []
  let bytes = 0
  for await (const piece of decodePieces(Readable.from(pieces), undefined)) {
    bytes += piece.length
    if (bytes > mostBytes) throw tooManyBytes(mostBytes)
    unpacked.push(piece)
  }
  return unpacked
}

/**
 * Decompresses the pieces of a body as they arrive if the body begins like a gzip file, and passes any other body on
 * unchanged.
 *
 * @throws {PceError} like `decodeBody`; errors that `pieces` throws are passed on unchanged.
 */
export async function* decodePieces(
  pieces: AsyncIterable<Buffer>,
  encoding: string | undefined,
): AsyncGenerator<Buffer> {
  refuseForeignEncoding(encoding)
  const iterator = pieces[Symbol.asyncIterator]()
  let head: Buffer = Buffer.alloc(0)
  while (head.length < GZIP_MARK.length) {
    const piece = await iterator.next()
    if (piece.done === true) break
    head = head.length === 0 ? piece.value : Buffer.concat([head, piece.value])
  }
  async function* whole() {
    if (head.length > 0) yield head
    yield* { [Symbol.asyncIterator]: () => iterator }
  }
  if (!isGzip(head)) return yield* whole()
  const stream = createGunzip({ chunkSize: SLICE_BYTES })
  const source = Readable.from(whole())
  source.once('error', (error) => stream.destroy(error))
  source.pipe(stream)
  try {
    for await (const piece of stream as AsyncIterable<Buffer>) yield piece
  } catch (error) {
    throw isZlibError(error) ? damaged() : error
  } finally {
    source.destroy()
  }
}

function isGzip(body: Buffer): boolean {
  return body.subarray(0, GZIP_MARK.length).equals(GZIP_MARK)
}

function refuseForeignEncoding(encoding: string | undefined): void {
  if (encoding === undefined || /^(?:identity|(?:x-)?gzip)$/i.test(encoding)) return
  throw new PceError('invalid_response', 'the answer has a content encoding that was not asked for')
}

function isZlibError(error: unknown): boolean {
  return String((error as NodeJS.ErrnoException).code).startsWith('Z_')
}

/** Decompresses a body, but returns undefined if the result would be larger than `LARGE_BODY`. */
async function unpackSmall(body: Buffer): Promise<Buffer | undefined> {
  try {
    return await promisify(gunzip)(body, { maxOutputLength: LARGE_BODY })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') return undefined
    throw damaged()
  }
}

/**
 * Decompresses a large body and counts its bytes and elements on the way, so that a decompression bomb is stopped long
 * before it reaches its full size.
 */
async function unpackLarge(body: Buffer, bounds: Bounds): Promise<string> {
  const stream = createGunzip({ chunkSize: SLICE_BYTES })
  stream.end(body)
  const meter = new JsonMeter(bounds.elements)
  const pieces: Buffer[] = []
  let bytes = 0
  try {
    for await (const piece of stream as AsyncIterable<Buffer>) {
      bytes += piece.length
      if (bytes > bounds.bytes) throw tooManyBytes(bounds.bytes)
      meter.take(piece)
      pieces.push(piece)
    }
  } catch (error) {
    throw error instanceof PceError ? error : damaged()
  }
  await nextTurn()
  const whole = Buffer.concat(pieces)
  await nextTurn()
  return whole.toString('utf8')
}

async function readLarge(body: Buffer, bounds: Bounds): Promise<string> {
  if (body.length > bounds.bytes) throw tooManyBytes(bounds.bytes)
  const meter = new JsonMeter(bounds.elements)
  for (let at = 0; at < body.length; at += SLICE_BYTES) {
    await shareTurn()
    meter.take(body.subarray(at, at + SLICE_BYTES))
  }
  await nextTurn()
  return body.toString('utf8')
}

function damaged(): PceError {
  return new PceError('invalid_response', 'the compressed answer is damaged')
}
