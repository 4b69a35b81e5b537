import { parseProtocol } from './protocols.js'

/** A port or range of ports with its protocol, checked. */
export interface PortRange {
  port: number
  to_port?: number
  proto: number
}

const isPort = (port: number) => Number.isInteger(port) && port >= 0 && port <= 65_535

/**
 * Checks ports and protocol as the PCE would (0..65535, to_port not below port, protocol required). Returns the range with
 * a numeric protocol, or the sentence that says what is wrong.
 */
export function checkPortRange(entry: {
  port?: number
  to_port?: number
  proto?: string | number
}): PortRange | string {
  const { port, to_port: toPort, proto } = entry
  if (port === undefined) return 'port is missing.'
  if (proto === undefined) return `port ${port} needs a proto (tcp or udp).`
  const number = parseProtocol(proto)
  if (number === null) return `proto "${proto}" is no protocol name or number.`
  if (!isPort(port) || (toPort !== undefined && !isPort(toPort))) return 'ports are whole numbers from 0 to 65535.'
  if (toPort !== undefined && toPort < port) return `to_port ${toPort} is below port ${port}.`
  if (port === 0 && toPort === undefined) return 'port 0 is not "all ports"; use {service: "All Services"}.'
  return { port, ...(toPort === undefined || toPort === port ? {} : { to_port: toPort }), proto: number }
}
