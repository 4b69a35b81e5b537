import { Readable } from 'node:stream'

/** Reads the whole payload of a Fastify answer, which may be a stream, a buffer or a string, into a buffer. */
export async function readWhole(payload: unknown): Promise<Buffer> {
  if (payload instanceof Readable) {
    const chunks: Buffer[] = []
    for await (const chunk of payload) chunks.push(Buffer.from(chunk as Buffer | string))
    return Buffer.concat(chunks)
  }
  if (Buffer.isBuffer(payload)) return payload
  return Buffer.from(typeof payload === 'string' ? payload : '')
}

/**
 * Creates a stream that sends the given half of a body and then calls `then`. If `then` is null, the stream never ends.
 */
export function halfBody(half: Buffer, then: (() => void) | null): Readable {
  let sent = false
  return new Readable({
    read() {
      if (!sent) {
        sent = true
        this.push(half)
      } else if (then) {
        // `then` may destroy the socket, which would discard unsent bytes. The delay gives the first half time to be
        // sent.
        setTimeout(then, 20).unref()
      }
    },
  })
}
