import type { IngressService } from '../../schemas/pce/rule-set.js'
import type { Service, WindowsService } from '../../schemas/pce/service.js'
import { toDraftHref } from '../inventory/parse-href.js'
import { anyOf, both, unknown, type Answer } from './three-valued.js'

/** The functions with which service matching looks up services. */
export interface ServiceObjects {
  readonly serviceOf: (href: string) => Service | undefined
  /** Returns true for the built-in service that covers every port and protocol. */
  readonly isAllServices: (href: string) => boolean
  /**
   * Returns whether the program named in a Windows service is the one that uses the observed port. The function is
   * absent if nothing is known about programs.
   */
  readonly runs?: (program: Pick<WindowsService, 'process_name' | 'service_name'>) => Answer
}

/**
 * A range of ports of one protocol in a rule or service. Without a port, the span covers every port. Protocol -1 stands
 * for every protocol.
 */
interface Span {
  proto: number
  port?: number | null | undefined
  to_port?: number | null | undefined
  icmp_type?: number | null | undefined
  icmp_code?: number | null | undefined
  /** Whether this entry's conditions other than its ports, such as a program, are met. */
  condition: Answer
}

/**
 * A function that returns whether services cover an observed port and protocol. A port or protocol that was not
 * observed is null.
 */
export type ServiceMatch = (port: number | null, proto: number | null) => Answer

/**
 * Compiles the services of a rule into a test for observed ports. If the ports match but the service also requires a
 * process or an ICMP type, the answer is undecided, because a flow row shows neither.
 */
export function compileServices(services: readonly IngressService[], objects: ServiceObjects): ServiceMatch {
  const spans = services.flatMap((service) => spansOf(service, objects))
  return (port, proto) => anyOf(spans.map((span) => matchSpan(span, port, proto)))
}

/** A range of ports. `port: null` stands for every port, `proto: null` for every protocol. */
export interface PortRange {
  proto: number | null
  port: number | null
  to_port: number | null
}

/**
 * Lists the ports of services, ignoring all other conditions. If the ports of a service are not known, it counts as
 * every port of every protocol.
 */
export const portsOf = (services: readonly IngressService[], objects: ServiceObjects): PortRange[] =>
  services
    .flatMap((service) => spansOf(service, objects))
    .map(({ proto, port, to_port: toPort }) => ({
      proto: isAbsent(proto) ? null : proto,
      port: isAbsent(port) ? null : port,
      to_port: isAbsent(port) || isAbsent(toPort) ? null : toPort,
    }))

/** Returns true if any of the ranges `some` has a port in common with any of the ranges `others`. */
export const sharePorts = (some: readonly PortRange[], others: readonly PortRange[]): boolean =>
  some.some((one) => others.some((other) => isProtocolShared(one, other) && isRangeShared(one, other)))

const isProtocolShared = (one: PortRange, other: PortRange): boolean =>
  one.proto === null || other.proto === null || one.proto === other.proto

const isRangeShared = (one: PortRange, other: PortRange): boolean =>
  one.port === null ||
  other.port === null ||
  (one.port <= (other.to_port ?? other.port) && other.port <= (one.to_port ?? one.port))

/** The span that covers every port of every protocol. */
const EVERYTHING: Span = { proto: -1, condition: 'yes' }

function spansOf(service: IngressService, { serviceOf, isAllServices, runs }: ServiceObjects): Span[] {
  if (!('href' in service)) return [{ ...service, condition: 'yes' }]
  if (isAllServices(service.href)) return [EVERYTHING]
  const object = serviceOf(service.href)
  if (object === undefined) return [{ ...EVERYTHING, condition: unknown('service') }]
  const ports = (object.service_ports ?? []).map((span): Span => ({ ...span, condition: 'yes' }))
  // These entries require a Windows process or service in addition. An entry without a protocol covers all protocols.
  const processes = (object.windows_services ?? []).map((span): Span => ({
    ...span,
    proto: span.proto ?? -1,
    condition: runs?.(span) ?? unknown('process'),
  }))
  const spans = [...ports, ...processes]
  return spans.length > 0 ? spans : [{ ...EVERYTHING, condition: unknown('empty_service') }]
}

function matchSpan({ condition, ...span }: Span, port: number | null, proto: number | null): Answer {
  return both(matchPorts(span, port, proto), condition)
}

function matchPorts(span: Omit<Span, 'condition'>, seen: number | null, of: number | null): Answer {
  const { proto, port, to_port: toPort } = span
  if (proto === -1 && isAbsent(port)) return 'yes'
  if (of === null) return unknown('port')
  if (proto !== -1 && proto !== of) return 'no'
  // The PCE may write the entry for every port either without a port or with the port -1.
  if (isAbsent(port)) return isAbsent(span.icmp_type) && isAbsent(span.icmp_code) ? 'yes' : unknown('icmp_type')
  if (seen === null) return unknown('port')
  return seen >= port && seen <= (isAbsent(toPort) ? port : toPort) ? 'yes' : 'no'
}

const isAbsent = (value: number | null | undefined): value is null | undefined =>
  value === undefined || value === null || value < 0

/**
 * Returns whether the services `wide` cover all of the services `narrow`. All TCP and UDP ports together do not cover
 * every service, because there are other protocols.
 */
export function coversServices(
  wide: readonly IngressService[],
  narrow: readonly IngressService[],
  objects: ServiceObjects,
): Answer {
  const spans = wide.flatMap((service) => spansOf(service, objects))
  return narrow.map((service) => coversService(wide, spans, service, objects)).reduce(both, 'yes')
}

/** Returns whether services cover every port of every protocol. */
export function coversEveryService(services: readonly IngressService[], objects: ServiceObjects): Answer {
  return coverSpan(
    services.flatMap((service) => spansOf(service, objects)),
    EVERYTHING,
  )
}

function coversService(
  wide: readonly IngressService[],
  spans: readonly Span[],
  service: IngressService,
  objects: ServiceObjects,
): Answer {
  const isNamed =
    'href' in service && wide.some((other) => 'href' in other && toDraftHref(other.href) === toDraftHref(service.href))
  if (isNamed) return 'yes'
  return spansOf(service, objects)
    .map((span) => both(coverSpan(spans, span), span.condition === 'yes' ? 'yes' : isAll(spans)))
    .reduce(both, 'yes')
}

/** If the wide services cover everything, the unknown details of the narrow service do not matter. */
const isAll = (spans: readonly Span[]): Answer => (coverSpan(spans, EVERYTHING) === 'yes' ? 'yes' : unknown('service'))

function coverSpan(spans: readonly Span[], wanted: Span): Answer {
  const relevant = spans.filter(({ proto }) => proto === -1 || proto === wanted.proto || wanted.proto === -1)
  const certain = relevant.filter((span) => span.condition === 'yes' && isAbsent(span.icmp_type))
  const doubts = relevant.filter((span) => span.condition !== 'yes').map(({ condition }) => condition)
  return isCovered(certain, wanted) ? 'yes' : anyOf(doubts)
}

/** Returns true if the spans together cover the whole port range of another span. */
function isCovered(spans: readonly Span[], { proto, port, to_port: toPort }: Span): boolean {
  if (spans.some((span) => isAbsent(span.port) && (span.proto === -1 || span.proto === proto))) return true
  if (proto === -1 || isAbsent(port)) return false
  const last = isAbsent(toPort) ? port : toPort
  let next = port
  const sorted = spans
    .flatMap((span) =>
      isAbsent(span.port) ? [] : [{ from: span.port, to: isAbsent(span.to_port) ? span.port : span.to_port }],
    )
    .sort((a, b) => a.from - b.from)
  for (const { from, to } of sorted) if (from <= next) next = Math.max(next, to + 1)
  return next > last
}
