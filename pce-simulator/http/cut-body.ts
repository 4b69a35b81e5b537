import { Readable } from 'node:stream'

/** All bytes of a payload, whatever form Fastify has it in. */
export async function readWhole(payload: unknown): Promise<Buffer> {
  if (payload instanceof Readable) {
    const chunks: Buffer[] = []
    for await (const chunk of payload) chunks.push(Buffer.from(chunk as Buffer | string))
    return Buffer.concat(chunks)
  }
  if (Buffer.isBuffer(payload)) return payload
  return Buffer.from(typeof payload === 'string' ? payload : '')
}

/** Sends `half`, then calls `then`, or stays silent for ever when there is none. */
export function halfBody(half: Buffer, then: (() => void) | null): Readable {
  let sent = false
  return new Readable({
    read() {
      if (!sent) {
        sent = true
        this.push(half)
      } else if (then) {
        // Time for the first half to leave: a destroyed socket throws away what it still holds.
        setTimeout(then, 20).unref()
      }
    },
  })
}
