import type { IngressService } from '../../schemas/pce/rule-set.js'
import type { Reference } from '../../schemas/pce/reference.js'
import type { Service } from '../../schemas/pce/service.js'
import type { Observation } from './resolve-observations.js'

export type OsType = 'windows' | 'linux' | 'unknown'

/** The service of one observation, and what is known about the processes at its source and destination. */
export interface ServiceFacts {
  proto: number | null
  port: number | null
  icmpType: number | null
  icmpCode: number | null
  /** The listening process, which only the destination's own VEN reports (inbound rows). */
  provider: ProcessFacts
  /** The connecting process, which only the source's own VEN reports (outbound rows). */
  consumer: ProcessFacts
}

interface ProcessFacts {
  os: OsType
  /** True if the VEN of this host reported the observation. No other VEN can see the host's processes. */
  seen: boolean
  processName: string | null
  serviceName: string | null
}

type ServiceTest = (facts: ServiceFacts) => boolean

interface PortSpan {
  port?: number | null
  to_port?: number | null
  proto?: number | null
  icmp_type?: number | null
  icmp_code?: number | null
}

export function describeService(observation: Observation, sourceOs: OsType, destinationOs: OsType): ServiceFacts {
  const { service, flowDirection } = observation
  const reported = { processName: service.process_name ?? null, serviceName: service.windows_service_name ?? null }
  const unseen = { processName: null, serviceName: null }
  const inbound = flowDirection === 'inbound'
  return {
    proto: service.proto ?? null,
    port: service.port ?? null,
    icmpType: observation.icmpType ?? null,
    icmpCode: observation.icmpCode ?? null,
    provider: { os: destinationOs, seen: inbound, ...(inbound ? reported : unseen) },
    consumer: { os: sourceOs, seen: !inbound, ...(inbound ? unseen : reported) },
  }
}

/**
 * Builds a test for the services of a rule. `ingress` entries are combined with OR; `egress` entries (processes of
 * Windows clients) additionally restrict the consumer. The process of a provider or consumer is only compared if the
 * observation includes it; otherwise only the port counts. Inbound services with a process apply only to Windows
 * providers. An egress process has no effect on consumers that do not run Windows: for such consumers, the rule applies
 * to all its ports (as documented for windows_egress_services).
 */
export function compileServices(
  ingress: readonly IngressService[],
  egress: readonly Reference[],
  findService: (href: string) => Service | undefined,
): ServiceTest {
  const ports: PortSpan[] = []
  const listeners: ServiceTest[] = []
  for (const entry of ingress) {
    if (!('href' in entry)) {
      ports.push(entry)
      continue
    }
    const service = findService(entry.href)
    ports.push(...(service?.service_ports ?? []))
    for (const windows of service?.windows_services ?? []) {
      listeners.push(
        (facts) =>
          facts.provider.os !== 'linux' && matchesPort(windows, facts) && matchesProcess(windows, facts.provider),
      )
    }
  }
  const clients = egress.flatMap(({ href }) => findService(href)?.windows_egress_services ?? [])
  const matchesIngress: ServiceTest = (facts) =>
    ports.some((span) => matchesPort(span, facts)) || listeners.some((matches) => matches(facts))
  const matchesEgress: ServiceTest = ({ consumer }) =>
    egress.length === 0 || consumer.os !== 'windows' || clients.some((client) => matchesProcess(client, consumer))
  return (facts) => matchesIngress(facts) && matchesEgress(facts)
}

/**
 * Returns true if an entry of a service matches the port and protocol. A missing protocol or -1 (All Services) means
 * any protocol, and a missing port or -1 means every port. ICMP fields are compared if the entry has them.
 */
function matchesPort(span: PortSpan, facts: ServiceFacts): boolean {
  if (span.proto != null && span.proto !== -1 && span.proto !== facts.proto) return false
  if (span.icmp_type != null && span.icmp_type !== facts.icmpType) return false
  if (span.icmp_code != null && span.icmp_code !== facts.icmpCode) return false
  if (span.port == null || span.port === -1) return true
  return facts.port !== null && span.port <= facts.port && facts.port <= (span.to_port ?? span.port)
}

function matchesProcess(
  qualifier: { process_name?: string | null; service_name?: string | null },
  facts: ProcessFacts,
): boolean {
  if (!facts.seen) return true
  if (qualifier.service_name != null && qualifier.service_name.toLowerCase() !== facts.serviceName?.toLowerCase())
    return false
  if (qualifier.process_name == null) return true
  const wanted = expandWindowsPath(qualifier.process_name)
  const seen = facts.processName?.toLowerCase()
  return seen === wanted || (!wanted.includes('\\') && seen?.split('\\').at(-1) === wanted)
}

/**
 * Expands the variables of the Windows shell in the paths of services, because observations contain the actual paths.
 */
const expandWindowsPath = (path: string) =>
  path.toLowerCase().replace('%systemroot%', 'c:\\windows').replace('%programfiles%', 'c:\\program files')
