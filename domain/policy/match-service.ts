import type { IngressService } from '../../schemas/pce/rule-set.js'
import type { Service } from '../../schemas/pce/service.js'
import { toDraftHref } from '../inventory/parse-href.js'
import { anyOf, type Answer } from './answers.js'

/** Ports of one protocol as a rule or a service object names them; no port is every port, protocol -1 every protocol. */
interface Span {
  proto: number
  port?: number | null | undefined
  to_port?: number | null | undefined
  icmp_type?: number | null | undefined
}

/** Whether the services of a rule cover a port and protocol that were observed. */
export type ServiceMatch = (port: number | null, proto: number | null) => Answer

/**
 * The services of a rule as a test of what was observed. `find` gives the object of an href, or undefined where it is not known.
 * A service that names processes, an ICMP type and a missing protocol cannot be told from a row's port: maybe.
 */
export function matchServices(
  services: readonly IngressService[],
  find: (href: string) => Service | undefined,
): ServiceMatch {
  const spans = services.flatMap((service): (Span | null)[] => {
    if (!('href' in service)) return [service]
    const listed = find(service.href)?.service_ports
    return listed === undefined || listed === null || listed.length === 0 ? [null] : listed
  })
  return (port, proto) => {
    return anyOf(spans.map((span) => (span === null ? 'maybe' : matchSpan(span, port, proto))))
  }
}

function matchSpan(
  { proto, port, to_port: toPort, icmp_type: icmpType }: Span,
  seen: number | null,
  of: number | null,
) {
  if (proto === -1) return 'yes'
  if (of === null) return 'maybe'
  if (proto !== of) return 'no'
  // The PCE may spell out what an entry without ports has (P18).
  if (isAbsent(port)) return isAbsent(icmpType) ? 'yes' : 'maybe'
  if (seen === null) return 'maybe'
  return seen >= port && seen <= (isAbsent(toPort) ? port : toPort) ? 'yes' : 'no'
}

const isAbsent = (value: number | null | undefined): value is null | undefined =>
  value === undefined || value === null || value < 0

/** Whether a rule for `wide` covers everything that `narrow` names. `all` is the href of All Services. */
export function coversServices(
  wide: readonly IngressService[],
  narrow: readonly IngressService[],
  all: string,
): boolean {
  const has = (service: IngressService) =>
    wide.some((other) =>
      'href' in service || 'href' in other
        ? 'href' in other && 'href' in service && sameObject(other.href, service.href)
        : other.proto === service.proto &&
          other.port <= service.port &&
          (other.to_port ?? other.port) >= (service.to_port ?? service.port),
    )
  return wide.some((service) => 'href' in service && sameObject(service.href, all)) || narrow.every(has)
}

/** The same object, in whichever version of the policy. */
const sameObject = (a: string, b: string) => toDraftHref(a) === toDraftHref(b)
