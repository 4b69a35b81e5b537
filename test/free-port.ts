import { once } from 'node:events'
import { createServer } from 'node:net'

/** Below those that Linux gives to connections and to listeners without a port of their own (ip_local_port_range). */
const [FIRST, LAST] = [15_000, 32_000]

/** A port of 127.0.0.1 where nobody listens, and which nobody is given who does not ask for it by its number. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = FIRST + Math.floor(Math.random() * (LAST - FIRST))
    const server = createServer().listen(port, '127.0.0.1')
    try {
      await once(server, 'listening')
    } catch {
      continue
    }
    server.close()
    await once(server, 'close')
    return port
  }
}
