import type { IpListOut, IpListWrittenOut } from '../../schemas/ip-list-shapes.js'
import type { IpList } from '../../schemas/pce/ip-list.js'
import type { Service } from '../../schemas/pce/service.js'
import type { ServiceOut } from '../../schemas/service-shapes.js'

/** Converts an IP list to its output form. The PCE may return null for an empty list (P17). */
export function showIpList(list: IpList): IpListOut {
  return {
    href: list.href,
    name: list.name,
    description: list.description ?? null,
    ip_ranges: (list.ip_ranges ?? []).map(({ from_ip: from, to_ip: to, exclusion, description }) => ({
      ...(from != null && { from_ip: from }),
      ...(to != null && { to_ip: to }),
      exclusion: exclusion === true,
      ...(description != null && description !== '' && { description }),
    })),
    fqdns: (list.fqdns ?? []).map(({ fqdn, description }) => ({
      ...(fqdn != null && { fqdn }),
      ...(description != null && description !== '' && { description }),
    })),
    ...(list.update_type != null && { update_type: list.update_type }),
    ...(list.created_at !== undefined && { created_at: list.created_at }),
    ...(list.updated_at !== undefined && { updated_at: list.updated_at }),
  }
}

/**
 * Converts an IP list that was just written to its output form. Left out are dates, an empty list of domain names, and
 * `exclusion` in ranges that are not exclusions.
 */
export function showWrittenIpList(list: IpList): IpListWrittenOut {
  const { ip_ranges: ranges, fqdns, created_at: _created, updated_at: _updated, ...shown } = showIpList(list)
  return {
    ...shown,
    ip_ranges: ranges.map(({ exclusion, ...range }) => ({ ...range, ...(exclusion && { exclusion }) })),
    ...(fqdns.length > 0 && { fqdns }),
  }
}

/**
 * Converts a service to its output form. A service may have three lists (ports, Windows services, Windows egress
 * services); those that the PCE does not return are left out.
 */
export function showService(service: Service): ServiceOut {
  const { service_ports: ports, windows_services: windows, windows_egress_services: egress } = service
  const process = service.process_name
  return {
    href: service.href,
    name: service.name,
    description: service.description ?? null,
    ...(typeof process === 'string' && process !== '' && { process_name: process }),
    ...(ports != null && { service_ports: ports.map(withoutNulls) }),
    ...(windows != null && { windows_services: windows.map(withoutNulls) }),
    ...(egress != null && { windows_egress_services: egress.map(withoutNulls) }),
    ...(service.update_type != null && { update_type: service.update_type }),
  }
}

/** Returns an entry of a service without fields that are null, and with numbers in place of numeric strings. */
export function withoutNulls<T extends object>(entry: T): { [K in keyof T]?: NonNullable<T[K]> } {
  const told = Object.entries(entry).flatMap(([name, value]) => {
    if (value === null || value === undefined) return []
    const isNumber = NUMBERS.has(name) && typeof value === 'string' && /^-?\d+$/u.test(value)
    return [[name, isNumber ? Number(value) : value] as const]
  })
  return Object.fromEntries(told) as { [K in keyof T]?: NonNullable<T[K]> }
}

const NUMBERS: ReadonlySet<string> = new Set(['port', 'to_port', 'proto', 'icmp_type', 'icmp_code'])
