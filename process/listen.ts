import { link, lstat, rm, stat } from 'node:fs/promises'
import type { Server as HttpServer, IncomingMessage } from 'node:http'
import { type AddressInfo, connect, type Server, type Socket } from 'node:net'
import { type HttpListen, StartupError } from '../schemas/config.js'

interface Listener {
  server: Server
  listen(where: { host: string; port: number } | { path: string }): Promise<string>
}

export interface Listening {
  /** For people: a URL with the port that was really taken, or the path of the socket. */
  where: string
  /**
   * Takes the name of the Unix socket away, where it is still ours: from now on a proxy goes to the next process at once, and what has
   * connected before is still served. A port has nothing like it: what arrives in the moment when it closes is lost.
   */
  withdraw: () => Promise<void>
}

/** Listens on the Unix socket, otherwise on host and port. Throws StartupError when the address is taken or not ours. */
export async function listen(app: Listener, { host, port, socket }: HttpListen): Promise<Listening> {
  try {
    if (socket !== undefined) return await listenOnSocket(app, socket)
    await app.listen({ host, port })
    const shown = host.includes(':') ? `[${host}]` : host
    const where = `http://${shown}:${(app.server.address() as AddressInfo).port}/mcp`
    return { where, withdraw: () => Promise.resolve() }
  } catch (error) {
    throw new StartupError(
      `Cannot listen on ${socket ?? `${host}:${port}`}: ${(error as NodeJS.ErrnoException).code ?? 'failed'}`,
    )
  }
}

/**
 * Under its own name first: when it stops, Node.js removes the name it listens on, even if that already belongs to the next
 * process. So it gets its own name to remove.
 */
async function listenOnSocket(app: Listener, socket: string): Promise<Listening> {
  await removeStaleSocket(socket)
  const own = `${socket}.${process.pid}`
  await rm(own, { force: true })
  await app.listen({ path: own })
  try {
    await link(own, socket)
  } catch (error) {
    const isTaken = (error as NodeJS.ErrnoException).code === 'EEXIST'
    throw isTaken ? Object.assign(new Error('taken'), { code: 'EADDRINUSE' }) : error
  } finally {
    await rm(own, { force: true })
  }
  const { dev, ino } = await lstat(socket)
  return {
    where: `unix:${socket}`,
    async withdraw() {
      const there = await lstat(socket).catch(() => null)
      if (there?.dev === dev && there.ino === ino) await rm(socket, { force: true })
    },
  }
}

/** A process that was killed leaves its socket file behind; one that answers is in use and stays. */
async function removeStaleSocket(path: string): Promise<void> {
  const file = await stat(path).catch(() => null)
  if (file?.isSocket() !== true) return
  const isAnswered = await new Promise<boolean>((resolve) => {
    const probe = connect(path, () => resolve(true)).on('error', () => resolve(false))
    probe.on('connect', () => probe.destroy())
  })
  if (!isAnswered) await rm(path)
}

/**
 * Keeps track of the connections on which no request has come yet: Node counts them as busy, so that closing the server would wait
 * for them until their headers time out. Returns what closes them.
 */
export function trackSilentConnections(server: HttpServer): () => void {
  const silent = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    silent.add(socket)
    socket.once('close', () => silent.delete(socket))
  })
  server.on('request', ({ socket }: IncomingMessage) => silent.delete(socket))
  return () => {
    for (const socket of silent) socket.destroy()
  }
}
