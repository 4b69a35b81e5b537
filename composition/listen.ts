import { rm, stat } from 'node:fs/promises'
import { connect, type AddressInfo, type Server } from 'node:net'
import { StartupError, type HttpListen } from '../schemas/config.js'

interface Listener {
  server: Server
  listen(where: { host: string; port: number } | { path: string }): Promise<string>
}

/**
 * Listens on the Unix socket, else on host and port, and returns where, for people: a URL with the port that was really taken, or
 * the path of the socket. Throws StartupError when the address is taken or not ours.
 */
export async function listen(app: Listener, { host, port, socket }: HttpListen): Promise<string> {
  try {
    if (socket !== undefined) {
      await removeStaleSocket(socket)
      await app.listen({ path: socket })
      return `unix:${socket}`
    }
    await app.listen({ host, port })
    const shown = host.includes(':') ? `[${host}]` : host
    return `http://${shown}:${(app.server.address() as AddressInfo).port}/mcp`
  } catch (error) {
    throw new StartupError(
      `Cannot listen on ${socket ?? `${host}:${port}`}: ${(error as NodeJS.ErrnoException).code ?? 'failed'}`,
    )
  }
}

/** A process that was killed leaves its socket file behind; one that answers is somebody's and stays. */
async function removeStaleSocket(path: string): Promise<void> {
  const file = await stat(path).catch(() => null)
  if (file?.isSocket() !== true) return
  const isAnswered = await new Promise<boolean>((resolve) => {
    const probe = connect(path, () => resolve(true)).on('error', () => resolve(false))
    probe.on('connect', () => probe.destroy())
  })
  if (!isAnswered) await rm(path)
}
