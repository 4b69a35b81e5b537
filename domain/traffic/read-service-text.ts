import { parseProtocol } from '../inventory/protocols.js'

/** A service written as a string: a port or a port range, a protocol, or both. */
export interface ServiceOfText {
  port?: number
  to_port?: number
  proto?: string
}

/**
 * Reads a service in the form that answers show: `443/tcp`, `8000-8010/udp`, a port alone, or a protocol alone. The
 * name of the protocol may also come first, as in `tcp/443`. Returns null for any other string. It is not checked
 * whether the protocol has ports.
 */
export function readServiceText(text: string): ServiceOfText | null {
  const [first = '', second, ...more] = text.split('/').map((part) => part.trim())
  if (more.length > 0) return null
  const ports = readPorts(first)
  if (ports === null) {
    if (!isProtocol(first)) return null
    if (second === undefined) return { proto: first }
    const after = readPorts(second)
    return after && { ...after, proto: first }
  }
  if (second === undefined) return ports
  return isProtocol(second) ? { ...ports, proto: second } : null
}

function readPorts(text: string): { port: number; to_port?: number } | null {
  const [, from, to] = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(text) ?? []
  if (from === undefined) return null
  return to === undefined ? { port: Number(from) } : { port: Number(from), to_port: Number(to) }
}

const isProtocol = (text: string): boolean => parseProtocol(text) !== null
