import { ToolError, type ErrorDetails } from '../../schemas/errors.js'
import type { Service } from '../../schemas/pce/service.js'
import { SERVICE_LISTS, type ServiceList } from '../../schemas/pce/words.js'
import { parseProtocol } from '../inventory/protocols.js'
import type { Difference } from '../policy/compare-stored.js'
import { quote } from '../text/escape-text.js'

type Entry = Record<string, unknown>
type ServiceArguments = Partial<Record<ServiceList, readonly object[]>>

/** The fields that the entries of each list of a service may have. */
const FIELDS: Record<ServiceList, readonly string[]> = {
  service_ports: ['port', 'to_port', 'proto', 'icmp_type', 'icmp_code'],
  windows_services: ['process_name', 'service_name', 'port', 'to_port', 'proto'],
  windows_egress_services: ['process_name', 'service_name'],
}
const GUIDANCE: Record<ServiceList, string> = {
  service_ports: 'ports and protocols, on any operating system',
  windows_services: 'the Windows program or service that listens, for ingress_services of a rule',
  windows_egress_services: 'the Windows program or service that connects, for egress_services of a rule',
}
const ICMP = new Set([1, 58])
const PORTED = new Set([6, 17])

/**
 * Returns the list of entries that the caller gave, in the form that the PCE accepts; undefined if there is none. Only
 * one list may be given, because the PCE would keep one of several lists and silently drop the others (P18). Throws
 * conflicting_service_definition for several lists, empty_service for a list without entries, and
 * invalid_service_definition with the wrong entry.
 */
export function planService(given: ServiceArguments): { list: ServiceList; entries: Entry[] } | undefined {
  const supplied = SERVICE_LISTS.filter((list) => given[list] !== undefined)
  const filled = supplied.filter((list) => (given[list] ?? []).length > 0)
  if (filled.length > 1) throw conflict('A service has one kind: give only one of the lists.', { supplied: filled })
  const [list] = filled
  if (list === undefined) {
    if (supplied.length === 0) return undefined
    throw new ToolError('empty_service', `No entries in ${supplied.join(' and ')}; a service needs at least one.`, {
      supplied,
    })
  }
  const entries = (given[list] ?? []).map((entry, index) => planEntry(list, entry as Entry, `${list}[${index}]`))
  return { list, entries }
}

/**
 * Throws conflicting_service_definition if an existing service would change from one type of list to another, which a
 * PCE does not support (P18).
 */
export function refuseOtherKind(current: Service, list: ServiceList): void {
  const own = SERVICE_LISTS.find((candidate) => (current[candidate]?.length ?? 0) > 0)
  if (own === undefined || own === list) return
  const text = `The service has ${own}; a service cannot change its kind. Create another one for ${list}.`
  throw conflict(text, { supplied: [list], current: own })
}

function planEntry(list: ServiceList, entry: Entry, at: string): Entry {
  const unknown = Object.keys(entry).filter((field) => !FIELDS[list].includes(field))
  if (unknown.length > 0) {
    const why = list === 'windows_egress_services' ? ' A connecting program has no port to match.' : ''
    throw invalid(at, `${unknown.map(quote).join(', ')} is not a field of ${list} (${FIELDS[list].join(', ')}).${why}`)
  }
  const { port, to_port: toPort, proto, ...rest } = entry
  const number = proto === undefined ? undefined : parseProtocol(proto as string | number)
  if (number === null) throw invalid(at, `proto ${quote(String(proto))} is not a protocol name or number.`)
  const all = port === undefined || port === -1
  checkNumbers(at, { port: all ? undefined : port, toPort, number, rest })
  if (list === 'service_ports' && number === undefined) throw invalid(at, 'proto is missing.')
  const named = [rest.process_name, rest.service_name].some((name) => typeof name === 'string' && name !== '')
  if (list === 'windows_egress_services' && !named) throw invalid(at, 'give process_name or service_name.')
  if (list === 'windows_services' && !named && all) throw invalid(at, 'give a port, process_name or service_name.')
  return {
    // Program names are passed on unchanged, because the VEN compares them byte by byte.
    ...rest,
    ...(!all && { port }),
    ...(toPort !== undefined && toPort !== port && { to_port: toPort }),
    ...(number !== undefined && { proto: number }),
  }
}

function checkNumbers(
  at: string,
  { port, toPort, number, rest }: { port: unknown; toPort: unknown; number: number | undefined; rest: Entry },
): void {
  for (const [field, value] of Object.entries({ port, to_port: toPort })) {
    if (value !== undefined && !isIn(value, 65_535)) throw invalid(at, `${field} is a whole number from 0 to 65535.`)
  }
  if (toPort !== undefined && (port === undefined || (toPort as number) < (port as number))) {
    throw invalid(at, 'to_port is the end of a range that begins with port.')
  }
  if (port === 0 && toPort === undefined) throw invalid(at, 'port 0 is not "all ports"; leave port out for that.')
  if (port !== undefined && number === undefined) throw invalid(at, 'a port needs a proto (tcp or udp).')
  if (port !== undefined && !PORTED.has(number ?? 0)) throw invalid(at, 'only tcp and udp have ports.')
  for (const field of ['icmp_type', 'icmp_code']) {
    if (rest[field] === undefined) continue
    if (!ICMP.has(number ?? 0)) throw invalid(at, `${field} is only for icmp or icmpv6.`)
    if (!isIn(rest[field], 255)) throw invalid(at, `${field} is a whole number from 0 to 255.`)
  }
}

function isIn(value: unknown, most: number): boolean {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= most
}

function conflict(message: string, details: ErrorDetails): ToolError {
  return new ToolError('conflicting_service_definition', message, { ...details, guidance: GUIDANCE })
}

function invalid(at: string, why: string): ToolError {
  return new ToolError('invalid_service_definition', `${at}: ${why}`, { argument: at })
}

/**
 * Returns the names of the lists that were sent but are missing in the stored service. The PCE reports success even if
 * it drops a list (P18).
 */
export function showDiscarded(differences: readonly Difference[]): { discarded_fields?: string[] } {
  const lists: readonly string[] = SERVICE_LISTS
  const discarded = differences.filter(({ field, stored }) => lists.includes(field) && isEmpty(stored))
  return discarded.length === 0 ? {} : { discarded_fields: discarded.map(({ field }) => field) }
}

function isEmpty(stored: unknown): boolean {
  return stored === null || (Array.isArray(stored) && stored.length === 0)
}

/**
 * Returns a note if the entries of a service are in `windows_egress_services`. They name the program that opens a
 * connection, but outside Windows only the port is checked.
 */
export function noteEgress(list: string | undefined): { note?: string } {
  if (list !== 'windows_egress_services') return {}
  return {
    note: 'Consumers without a Windows VEN ignore the program: a rule then admits anything that connects to its port.',
  }
}
