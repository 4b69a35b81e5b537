import type { IngressService } from '../../schemas/pce/rule-set.js'
import { namePorts } from '../inventory/name-ports.js'
import { joinIntervals, type Interval } from '../policy/classify-numbers.js'
import type { PolicyCatalog } from '../policy/load-snapshot.js'
import { entriesOf, ICMP, readSpan, type Entry } from '../policy/rule-boxes/read-services.js'
import { quote } from '../text/escape-text.js'

/** The ports of a rule in the form `443/tcp`; `all` stands for every protocol and port. */
export interface PortsOfRule {
  services: readonly string[]
  /** A condition for these ports that cannot be written as a port, such as a program; null if there is none. */
  only: string | null
}

const ALL = 'all'

/**
 * Lists the ports of a rule: first those without a condition, and then the ports for each program of a Windows service.
 * A service that could not be read, or that names no ports, stands for all ports under a condition, because it may
 * cover any port.
 */
export function readRulePorts(
  services: readonly IngressService[],
  { serviceOf, isAllServices }: Pick<PolicyCatalog, 'serviceOf' | 'isAllServices'>,
): PortsOfRule[] {
  const plain: Entry[] = []
  const conditional = new Map<string, Entry[]>()
  const under = (condition: string, entry: Entry) =>
    conditional.set(condition, [...(conditional.get(condition) ?? []), entry])
  for (const service of services) {
    if (!('href' in service)) {
      const entry = readSpan(service)
      if (entry === null) under('a service entry of a form that is not known', EVERYTHING)
      else plain.push(entry)
      continue
    }
    const object = isAllServices(service.href) ? undefined : serviceOf(service.href)
    if (isAllServices(service.href)) plain.push(EVERYTHING)
    else if (object === undefined) under(`service ${service.href}, which could not be read`, EVERYTHING)
    else {
      const entries = entriesOf({ ...object, windows_egress_services: null })
      if (entries.length === 0) under(`service ${quote(object.name)}, whose ports are not known`, EVERYTHING)
      for (const entry of entries)
        if (entry.program === undefined) plain.push(entry)
        else under(`the program ${nameProgram(entry.program)}`, entry)
    }
  }
  return [
    ...(plain.length > 0 ? [{ services: nameEntries(plain), only: null }] : []),
    ...[...conditional].map(([only, entries]) => ({ services: nameEntries(entries), only })),
  ]
}

const EVERYTHING: Entry = { proto: null, ports: null }

const nameProgram = ({ process, service }: NonNullable<Entry['program']>): string =>
  [process, service]
    .filter((one) => one !== null)
    .map(quote)
    .join(' of ')

/** Writes entries as texts; ports of one protocol that overlap or touch become one range. */
function nameEntries(entries: readonly Entry[]): string[] {
  if (entries.some(({ proto, ports }) => proto === null && ports === null)) return [ALL]
  const byProtocol = new Map<number | null, (Interval | null)[]>()
  for (const { proto, ports } of entries) byProtocol.set(proto, [...(byProtocol.get(proto) ?? []), ports])
  return [...byProtocol].flatMap(([proto, listed]) => {
    if (proto !== null && listed.includes(null)) return [namePorts({ proto })]
    const ranges = joinIntervals(listed.filter((one) => one !== null))
    return ranges.map((range) => nameRange(proto, Number(range.from), Number(range.to)))
  })
}

function nameRange(proto: number | null, from: number, to: number): string {
  if (proto === null) return from === to ? `${from}/any` : `${from}-${to}/any`
  if (!ICMP.has(proto)) return namePorts({ proto, port: from, to_port: to })
  const [first, last] = [Math.floor(from / 256), Math.floor(to / 256)]
  if (from === to) return namePorts({ proto, icmp_type: first, icmp_code: from % 256 })
  if (first === last && from % 256 === 0 && to % 256 === 255) return namePorts({ proto, icmp_type: first })
  return `${namePorts({ proto })} types ${first}.${from % 256}-${last}.${to % 256}`
}
