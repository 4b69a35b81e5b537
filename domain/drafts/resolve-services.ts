import { ToolError, type ErrorCode, type ErrorDetails } from '../../schemas/errors.js'
import type { IngressService } from '../../schemas/pce/rule-set.js'
import type { Service } from '../../schemas/pce/service.js'
import { explainPending } from './pending-deletion.js'
import { ruleIndexOf } from './resolve-actors.js'
import type { PolicyLookups } from '../inventory/find-object.js'
import { toDraftHref } from '../inventory/parse-href.js'
import { TCP, UDP, parseProtocol } from '../inventory/protocols.js'
import { quote, trimBlanks } from '../text/escape-text.js'
import { readServiceText } from '../traffic/read-service-text.js'

/**
 * A service as callers name it (T5): a name, ports as answers show them (`443/tcp`), or an object in exactly one of
 * three forms.
 */
export type ServiceReference = string | ServiceEntry
interface ServiceEntry {
  port?: number
  to_port?: number
  proto?: string | number
  href?: string
  service?: string
}
/** A list of services, or a single service without a list. */
export type ServiceReferences = ServiceReference | readonly ServiceReference[]

/** A service in a rule: a PCE service object, or ports written directly into the rule. */
export type ResolvedService = { service: Service } | { ports: PortRange }

/** The fields that a service reference may have, and their types. The input schemas do not check them. */
const FIELD_TYPES: Partial<Record<string, readonly string[]>> = {
  port: ['number'],
  to_port: ['number'],
  proto: ['number', 'string'],
  href: ['string'],
  service: ['string'],
}
const ONE_FORM = 'Each service is exactly one of {port, proto, to_port?}, {href} and {service: "exact name"}.'

export interface RuleContext {
  /** Index of the rule if the call has several rules; absent if there is only one. */
  ruleIndex?: number
  deny: boolean
  /** The argument that names the services, for messages; absent if the services belong to a rule. */
  argument?: string
}

/**
 * Looks up the ingress services of a rule. Throws invalid_ingress_services {rule_index, message} for services that are
 * malformed or unknown, ambiguous_name, and egress_service_in_ingress or process_qualified_deny_unsupported for Windows
 * services that are not allowed as ingress services of this rule.
 */
export async function resolveIngressServices(
  lookups: PolicyLookups,
  references: ServiceReferences,
  rule: RuleContext,
): Promise<ResolvedService[]> {
  const fail = failure('invalid_ingress_services', rule)
  const list = toList(references)
  if (list.length === 0) throw fail('a rule needs at least one service; {service: "All Services"} covers everything.')
  const resolved = []
  for (const reference of list) resolved.push(refusePending(await resolveOne(lookups, reference, fail), fail))
  refuseMisplaced(resolved.flatMap(serviceOf), rule)
  return resolved
}

/**
 * Looks up the egress services of a rule, which name the Windows process that opens the connection. Throws
 * invalid_egress_services and ambiguous_name and, for a deny rule, process_qualified_deny_unsupported.
 */
export async function resolveEgressServices(
  lookups: PolicyLookups,
  references: ServiceReferences | undefined,
  rule: RuleContext,
): Promise<Service[]> {
  const fail = failure('invalid_egress_services', rule)
  const services = []
  for (const reference of toList(references ?? [])) {
    const resolved = refusePending(await resolveOne(lookups, reference, fail), fail)
    if (!('service' in resolved)) throw fail('egress services are service objects; ports belong in ingress_services.')
    if (!isEgressService(resolved.service)) {
      throw fail(`service ${quote(resolved.service.name)} names no outbound Windows process (windows_egress_services).`)
    }
    services.push(resolved.service)
  }
  if (rule.deny && services.length > 0) throw unsupportedInDeny(services, rule)
  return services
}

/**
 * Looks up the service in a search for rules that use it. Throws invalid_argument {argument} for a service that is
 * malformed or unknown, and ambiguous_name {argument}.
 */
export function resolveService(
  lookups: PolicyLookups,
  reference: ServiceReference,
  argument: string,
): Promise<ResolvedService> {
  return resolveOne(
    lookups,
    reference,
    (message, details = {}) => new ToolError('invalid_argument', `${argument}: ${message}`, { argument, ...details }),
  )
}

/** Returns the given service or ports unchanged. Throws if it is a service that is pending deletion. */
function refusePending(resolved: ResolvedService, fail: Fail): ResolvedService {
  const pending = 'service' in resolved ? explainPending('services', resolved.service) : undefined
  if (pending !== undefined) throw fail(pending.why, pending.details)
  return resolved
}

function refuseMisplaced(services: readonly Service[], rule: RuleContext): void {
  const qualified = services.filter(hasWindowsQualifier)
  if (rule.deny && qualified.length > 0) throw unsupportedInDeny(qualified, rule)
  const outbound = services.filter(isEgressService)
  if (outbound.length > 0) {
    throw new ToolError(
      'egress_service_in_ingress',
      `${nameRule(rule, 'The rule')} puts ${names(outbound)} into ingress_services, but it matches the process that opens a connection.`,
      { ...ruleIndexOf(rule), services: outbound.map(toNamed) },
      { hint: 'Move it to egress_services and give the port in ingress_services.' },
    )
  }
}

function unsupportedInDeny(services: readonly Service[], rule: RuleContext): ToolError {
  return new ToolError(
    'process_qualified_deny_unsupported',
    `${nameRule(rule, 'The deny rule')} uses ${names(services)}; a deny rule cannot tell Windows processes apart.`,
    { ...ruleIndexOf(rule), services: services.map(toNamed) },
    { hint: 'Deny the port, and allow the process in an allow rule.' },
  )
}

async function resolveOne(lookups: PolicyLookups, reference: ServiceReference, fail: Fail): Promise<ResolvedService> {
  const entry: ServiceEntry = typeof reference === 'string' ? { service: reference } : reference
  const bad = Object.entries(entry).find(([field, value]) => FIELD_TYPES[field]?.includes(typeof value) !== true)
  if (bad !== undefined) throw fail(`${quote(bad[0])} is not a field of a service, or has the wrong type. ${ONE_FORM}`)
  const forms = [
    entry.href !== undefined,
    entry.service !== undefined,
    entry.port !== undefined || entry.to_port !== undefined || entry.proto !== undefined,
  ].filter(Boolean).length
  // Callers may send both the href and the name back, because answers show them together.
  const isEcho = entry.href !== undefined && entry.service !== undefined && forms === 2
  if (forms !== 1 && !isEcho) throw fail(ONE_FORM)
  if (isEcho) {
    const { service } = (await resolveOne(lookups, { href: entry.href }, fail)) as { service: Service }
    if (service.name === entry.service) return { service }
    throw fail(
      `${quote(String(entry.href))} is ${quote(service.name)}, not ${quote(String(entry.service))}. ${ONE_FORM}`,
    )
  }
  try {
    if (entry.href !== undefined) return { service: (await lookups.byHref('services', entry.href)) as Service }
    if (entry.service !== undefined) return { service: await byName(lookups, trimBlanks(entry.service)) }
  } catch (error) {
    if (!(error instanceof ToolError)) throw error
    // Answers show ports as `443/tcp`, and callers send that back.
    const ports = error.code === 'not_found' ? readServiceText(entry.service ?? '') : null
    if (ports?.port !== undefined && ports.proto !== undefined) return { ports: requirePorts(ports, fail) }
    const advice = ports?.port === undefined ? '' : ` A port has a protocol: "${(entry.service ?? '').trim()}/tcp".`
    if (error.code !== 'ambiguous_name')
      throw fail(`${error.message}${advice}`, { ...error.details, reason: error.code })
    const { message, details } = fail(error.message, error.details)
    throw new ToolError(error.code, message, details, { cause: error, hint: error.hint })
  }
  return { ports: requirePorts(entry, fail) }
}

function requirePorts(entry: ServiceEntry, fail: Fail): PortRange {
  const range = checkPortRange(entry)
  if (typeof range === 'string') throw fail(range)
  if (range.proto !== TCP && range.proto !== UDP)
    throw fail('ports in a rule are tcp or udp; for others name a service object.')
  return range
}

async function byName(lookups: PolicyLookups, name: string): Promise<Service> {
  // Callers often send a bare href where a name is expected.
  return (
    name.startsWith('/orgs/') ? lookups.byHref('services', name) : lookups.byName('services', name)
  ) as Promise<Service>
}

type Fail = (message: string, details?: ErrorDetails) => ToolError

function failure(code: ErrorCode, rule: RuleContext): Fail {
  const field = rule.argument ?? (code === 'invalid_egress_services' ? 'egress_services' : 'ingress_services')
  return (message, details = {}) =>
    new ToolError(code, `${nameRule(rule, field)}: ${message}`, { ...ruleIndexOf(rule), ...details })
}

function nameRule({ ruleIndex }: RuleContext, alone: string): string {
  return ruleIndex === undefined ? alone : `Rule ${ruleIndex}`
}

function toList(references: ServiceReferences): ServiceReference[] {
  return Array.isArray(references) ? [...(references as ServiceReference[])] : [references as ServiceReference]
}

const serviceOf = (resolved: ResolvedService) => ('service' in resolved ? [resolved.service] : [])
const toNamed = ({ href, name }: Service) => ({ href: toDraftHref(href), name })
const names = (services: readonly Service[]) => services.map(({ name }) => quote(name)).join(', ')

/** Converts services to the form in which they are sent: draft hrefs, or ports. */
export function toWireServices(resolved: readonly ResolvedService[]): IngressService[] {
  return resolved.map((entry) => ('service' in entry ? { href: toDraftHref(entry.service.href) } : entry.ports))
}

/** A port or port range with its protocol, after validation. */
export interface PortRange {
  port: number
  to_port?: number
  proto: number
}

const isPort = (port: number) => Number.isInteger(port) && port >= 0 && port <= 65_535

/**
 * Checks ports and protocol as the PCE would: ports are 0..65535, to_port is not below port, and the protocol is
 * required. Returns the range with a numeric protocol, or a sentence that says what is wrong.
 */
function checkPortRange(entry: { port?: number; to_port?: number; proto?: string | number }): PortRange | string {
  const { port, to_port: toPort, proto } = entry
  if (port === undefined) return 'port is missing.'
  if (proto === undefined) return `port ${port} needs a proto (tcp or udp).`
  const number = parseProtocol(proto)
  if (number === null) return `proto ${quote(String(proto))} is not a protocol name or number.`
  if (!isPort(port) || (toPort !== undefined && !isPort(toPort))) return 'ports are whole numbers from 0 to 65535.'
  if (toPort !== undefined && toPort < port) return `to_port ${toPort} is below port ${port}.`
  if (port === 0 && toPort === undefined) return 'port 0 is not "all ports"; use {service: "All Services"}.'
  return { port, ...(toPort === undefined || toPort === port ? {} : { to_port: toPort }), proto: number }
}

/**
 * Returns true for a service that names the Windows process or Windows service that opens a connection. Egress services
 * must be of this type.
 */
function isEgressService(service: Service): boolean {
  return (service.windows_egress_services?.length ?? 0) > 0
}

/**
 * Returns true for a service that matches by Windows process or service name at the source or destination. Deny rules
 * cannot use such a service (P21).
 */
function hasWindowsQualifier(service: Service): boolean {
  return (
    isEgressService(service) ||
    Boolean(service.process_name) ||
    (service.windows_services ?? []).some((entry) => Boolean(entry.process_name || entry.service_name))
  )
}
