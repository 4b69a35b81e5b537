import { ToolError } from '../../schemas/errors.js'
import type { TrafficServiceFilter } from '../../schemas/pce/traffic.js'
import { parseProtocol, TCP, UDP } from '../inventory/protocols.js'

/** A service filter as callers write it: ports, a protocol, or part of a process path or Windows service name. */
export interface TrafficServiceArgument {
  port?: number
  to_port?: number
  proto?: string | number
  process_name?: string
  windows_service_name?: string
}

/** The caller's service filters as the PCE takes them. Throws invalid_argument naming the entry. */
export function parseTrafficServices(
  argument: 'include_services' | 'exclude_services',
  entries: readonly TrafficServiceArgument[] | undefined,
): TrafficServiceFilter[] {
  return (entries ?? []).map((entry, index) => {
    const problem = findProblem(entry)
    if (problem !== null)
      throw new ToolError('invalid_argument', `${argument}[${index}]: ${problem}`, { argument, index })
    const { proto, ...rest } = entry
    return proto === undefined ? rest : { ...rest, proto: parseProtocol(proto) as number }
  })
}

function findProblem({
  port,
  to_port: toPort,
  proto,
  process_name: process,
  windows_service_name: service,
}: TrafficServiceArgument) {
  if ([port, proto, process, service].every((field) => field === undefined))
    return 'name a port, proto, process or Windows service.'
  if ([process, service].some((name) => name?.trim() === '')) return 'an empty name would match everything.'
  if ([port, toPort].some((number) => number !== undefined && (number < 0 || number > 65_535)))
    return 'ports are 0 to 65535.'
  const number = proto === undefined ? undefined : parseProtocol(proto)
  if (number === null) return `proto "${proto}" is no protocol name or number.`
  if (port !== undefined && number !== undefined && number !== TCP && number !== UDP)
    return 'only tcp and udp have ports.'
  if (toPort !== undefined && (port === undefined || toPort < port)) return 'to_port needs a port that is not above it.'
  return null
}
