import type { IngressService } from '../../schemas/pce/rule-set.js'
import type { Service } from '../../schemas/pce/service.js'
import { portName } from './protocols.js'

type Ports = Exclude<IngressService, { href: string }>

/**
 * Formats ports as `443/tcp`, `8000-8010/udp` or `icmp type 8`. If all ports of a protocol are meant, only the protocol
 * is written.
 */
export function namePorts({ port, to_port: toPort, proto, icmp_type: type, icmp_code: code }: Partial<Ports>): string {
  if (proto === -1) return 'every port and protocol'
  const protocol = proto ?? null
  if (type != null)
    return `${portName({ port: null, proto: protocol })} type ${type}${code != null ? ` code ${code}` : ''}`
  const isRange = toPort != null && toPort !== port
  return isRange
    ? `${port}-${portName({ port: toPort, proto: protocol })}`
    : portName({ port: port ?? null, proto: protocol })
}

/**
 * Maximum length of the description of a service's ports. Only a first entry that is longer by itself may exceed it.
 */
const MOST_CHARACTERS = 300

/**
 * Describes what a service covers: its ports, with the programs that it requires. If the description would become too
 * long, it ends with the number of entries left out. Returns an empty string if the PCE does not say what the service
 * covers.
 */
export function nameCoverage({
  process_name: process,
  service_ports: ports,
  windows_services: windows,
  windows_egress_services: egress,
}: Service): string {
  const own = [...(ports ?? []), ...(windows ?? [])].map((entry) => {
    const of = programOf({ process_name: process, ...dropNulls(entry) })
    const where = entry.proto == null ? 'every port' : namePorts(dropNulls(entry))
    return of === '' ? where : `${where} (${of})`
  })
  const all = [...own, ...(egress ?? []).map((entry) => `connections of ${programOf(entry)}`)]
  let left = MOST_CHARACTERS
  const end = all.findIndex((one, at) => (left -= one.length) < 0 && at > 0)
  return end === -1 ? all.join(', ') : `${all.slice(0, end).join(', ')} and ${all.length - end} more`
}

const programOf = (entry: object): string => {
  const { process_name: process, service_name: service } = entry as Record<string, string | null | undefined>
  return [process, service].filter(Boolean).join(', ')
}

const dropNulls = <T extends object>(entry: T): Partial<Ports> =>
  Object.fromEntries(Object.entries(entry).filter(([, value]) => value != null))
