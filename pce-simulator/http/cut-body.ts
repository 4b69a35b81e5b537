import { Readable } from 'node:stream'

/** Reads the whole payload into a buffer, in whichever form Fastify passes it. */
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
 * Creates a stream that sends the first half of a body and then calls `then`. If `then` is null, the stream never ends.
 */
export function halfBody(half: Buffer, then: (() => void) | null): Readable {
  let sent = false
  return new Readable({
    read() {
      if (!sent) {
        sent = true
        this.push(half)
      } else if (then) {
        // The first half needs time to be sent, because a destroyed socket discards its unsent bytes.
        setTimeout(then, 20).unref()
      }
    },
  })
}
