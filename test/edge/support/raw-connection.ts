/** A connection with bytes of the test's own on it, for what no HTTP client would send, or would not wait to read. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import type { Target } from './send-request.js'

/** In the tables of TCP connections below /proc/net. */
const ESTABLISHED = '01'

export interface RawConnection {
  socket: Socket
  /** Everything that came so far. */
  received: () => string
  /** Everything that came, once the connection is closed, by whichever side and however hard. */
  closed: Promise<string>
}

export interface RawAnswer {
  status: number
  headers: Record<string, string>
  body: string
}

/**
 * Resolves once it is connected. With `reads: false` nothing is read before `socket.resume()`; a stubborn one goes on sending after the
 * server has said that it is done.
 */
export async function openRaw({ origin }: Target, { reads = true, isStubborn = false } = {}): Promise<RawConnection> {
  const { hostname, port } = new URL(origin)
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: isStubborn })
  let text = ''
  socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')))
  if (!reads) socket.pause()
  const closed = new Promise<string>((resolve) => socket.once('close', () => resolve(text)))
  await once(socket, 'connect')
  // Whoever is thrown out learns it as an error or as an end; both are a close.
  socket.on('error', () => {})
  return { socket, received: () => text, closed }
}

/** Head of a request with these headers, ready for its body. */
export const rawHead = (method: string, path: string, headers: Record<string, string>): string =>
  [`${method} ${path} HTTP/1.1`, ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`), '', ''].join(
    '\r\n',
  )

/** The answers in what came, whole ones only; each must have a Content-Length. Throws Error for anything else. */
export function rawAnswers(text: string): RawAnswer[] {
  const answers: RawAnswer[] = []
  for (let rest = text; rest !== '';) {
    const end = rest.indexOf('\r\n\r\n')
    const [first = '', ...lines] = rest.slice(0, end === -1 ? 0 : end).split('\r\n')
    const headers = Object.fromEntries(
      lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
    )
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(first)?.[1])
    const length = Number(headers['content-length'])
    if (!(status > 0 && rest.length >= end + 4 + length)) throw new Error(`no whole answer: ${rest.slice(0, 200)}`)
    answers.push({ status, headers, body: rest.slice(end + 4, end + 4 + length) })
    rest = rest.slice(end + 4 + length)
  }
  return answers
}

/** Whether the other side has closed a connection, which whoever does not read would not hear of. By the kernel's table. */
export function isLeftByPeer({ localPort, remotePort }: Socket): boolean {
  const rows = ['tcp', 'tcp6'].flatMap((table) => readFileSync(`/proc/net/${table}`, 'utf8').split('\n').slice(1))
  const portOf = (address = '') => parseInt(address.slice(address.lastIndexOf(':') + 1), 16)
  const isOpen = rows
    .map((row) => row.trim().split(/\s+/))
    .some(([, own, other, state]) => portOf(own) === remotePort && portOf(other) === localPort && state === ESTABLISHED)
  return !isOpen
}

/** Resident memory of a process in MiB: now, and the most it ever was. */
export function memoryOf(pid: number): { now: number; most: number } {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const read = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)![1]) / 1024
  return { now: read('VmRSS'), most: read('VmHWM') }
}
