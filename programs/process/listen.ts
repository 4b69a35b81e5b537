import { accessSync, constants, statSync } from 'node:fs'
import { link, lstat, rm, stat } from 'node:fs/promises'
import type { Server as HttpServer, IncomingMessage } from 'node:http'
import { type AddressInfo, connect, type Server, type Socket } from 'node:net'
import { dirname } from 'node:path'
import { type Fault, type HttpListen, inWords, StartupError } from '../../schemas/config.js'

interface Listener {
  server: Server
  listen(where: { host: string; port: number } | { path: string }): Promise<string>
}

export interface Listening {
  /** The address as shown to people: a URL with the actual port, or the path of the socket. */
  where: string
  /**
   * Removes the name of the Unix socket if it still belongs to this process. New connections then reach the next
   * process that listens at this name, while existing connections are still served. For a port, nothing is done: if it
   * were closed early, connections that arrive before the next process listens would be lost.
   */
  withdraw: () => Promise<void>
}

/**
 * Listens on the Unix socket if one is configured, otherwise on host and port. Rejects with StartupError if the address
 * is already in use, is not permitted, or does not belong to this machine.
 *
 * @param said the path that the result's `where` contains, and the setting of the port, for messages.
 */
export async function listen(
  app: Listener,
  { host, port, socket }: HttpListen,
  said = { path: '/mcp', portIn: '--port' },
): Promise<Listening> {
  try {
    if (socket !== undefined) return await listenOnSocket(app, socket)
    await app.listen({ host, port })
    const shown = host.includes(':') ? `[${host}]` : host
    const where = `http://${shown}:${(app.server.address() as AddressInfo).port}${said.path}`
    return { where, withdraw: () => Promise.resolve() }
  } catch (error) {
    const remedy =
      socket === undefined ? remedyOfPort(error, { host, port, portIn: said.portIn }) : remedyOfSocket(error, socket)
    throw new StartupError({ problem: `Cannot listen on ${socket ?? `${host}:${port}`}: ${inWords(error)}`, remedy })
  }
}

function remedyOfPort(error: unknown, { host, port, portIn }: { host: string; port: number; portIn: string }): string {
  switch ((error as NodeJS.ErrnoException).code) {
    case 'EADDRINUSE':
      return `Use another port with ${portIn}, or stop the program that uses ${port}${portIn === '--port' ? '; --port 0 uses any free one' : ''}.`
    case 'EACCES':
    case 'EPERM':
      return `Ports below 1024 are reserved for privileged users. Use a higher one with ${portIn}.`
    default:
      return `Use an address of this machine with --host, such as 127.0.0.1, instead of '${host}'.`
  }
}

function remedyOfSocket(error: unknown, socket: string): string {
  switch ((error as NodeJS.ErrnoException).code) {
    case 'EADDRINUSE':
      return 'It is probably used by an earlier server. Stop that, or use another --socket.'
    default:
      return remedyOfFolder(error, dirname(socket))
  }
}

function describeFolder(error: unknown, folder: string): string {
  const { code } = error as NodeJS.ErrnoException
  if (code === 'ENOENT') return `there is no folder '${folder}' (ENOENT)`
  if (code === 'ENOTDIR') return `'${folder}' is not a folder (ENOTDIR)`
  return `${inWords(error)} on the folder '${folder}'`
}

function remedyOfFolder(error: unknown, folder: string): string {
  switch ((error as NodeJS.ErrnoException).code) {
    case 'ENOENT':
      return `Create the folder '${folder}' with write access for the user of this server, or use another --socket.`
    case 'ENOTDIR':
      return 'Use a --socket in an existing folder.'
    default:
      return `Give the user of this server write access to the folder '${folder}', or use another --socket.`
  }
}

/** Maximum length of a Unix socket's path in bytes (unix(7), sun_path; it is shorter on the BSDs). */
const LONGEST_SOCKET = process.platform === 'linux' ? 107 : 103

/**
 * Returns a fault that would prevent listening on the Unix socket, as far as this can be known in advance, so that it
 * is reported together with other faults. Returns undefined if there is none.
 */
export function findSocketFault(socket: string): Fault | undefined {
  const longest = LONGEST_SOCKET - ownName('').length
  const remedy = `Use a --socket path of at most ${longest} bytes.`
  if (socket === '') return { problem: '--socket is empty', remedy }
  if (Buffer.byteLength(socket) > longest)
    return { problem: `Cannot listen on ${socket}: the path is too long for a socket`, remedy }
  const folder = dirname(socket)
  try {
    if (!statSync(folder).isDirectory()) throw Object.assign(new Error('no folder'), { code: 'ENOTDIR' })
    accessSync(folder, constants.W_OK | constants.X_OK)
    if (statSync(socket, { throwIfNoEntry: false })?.isSocket() !== false) return undefined
    return {
      problem: `Cannot listen on ${socket}: what has that name is not a socket`,
      remedy: 'Move it away, or use another --socket.',
    }
  } catch (error) {
    return {
      problem: `Cannot listen on ${socket}: ${describeFolder(error, folder)}`,
      remedy: remedyOfFolder(error, folder),
    }
  }
}

/**
 * Listens on a socket whose file name only this process uses, and then links the real name to this socket. When a
 * server stops, Node.js removes the name on which it listens, even if the next process already uses this name. With a
 * separate name, a process removes only its own.
 */
async function listenOnSocket(app: Listener, socket: string): Promise<Listening> {
  await removeStaleSocket(socket)
  const own = ownName(socket)
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

/**
 * Returns the file name of the socket that only this process uses. The process id in the name is padded, so that the
 * length of the path, which is limited, does not depend on it.
 */
const ownName = (socket: string) => `${socket}.${String(process.pid).padStart(7, '0')}`

/**
 * Removes the socket file of a killed process. If something answers on the socket, it is in use, and the file stays.
 */
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
 * Tracks connections that have not sent a request yet. When the server is closed, Node.js counts such connections as
 * busy and would wait until their headers time out. Returns a function that closes them.
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
