import type { Service } from '../../../schemas/pce/service.js'
import type { Interval } from '../classify-numbers.js'

/** The protocols that have types and codes instead of ports: ICMP and ICMPv6. */
export const ICMP = new Set([1, 58])

/** One entry of a service: some ports of a protocol and, for Windows services, possibly a program. */
export interface Entry {
  /** The protocol number; null means every protocol. */
  proto: number | null
  /**
   * The ports; null means every port. For ICMP, type and code are combined into one number: 256 times the type, plus
   * the code.
   */
  ports: Interval | null
  /**
   * In an entry of a Windows service, the program that must use the port. If absent, the entry applies to any program.
   */
  program?: { process: string | null; service: string | null }
}

/**
 * Lists the entries of a service object. The list is empty if there are no entries or if one of them cannot be read.
 */
export function entriesOf(service: Service): Entry[] {
  const listed = [
    ...(service.service_ports ?? []).map((span) => ({ span, program: undefined })),
    ...(service.windows_services ?? []).map((span) => ({
      span,
      program: { process: span.process_name ?? null, service: span.service_name ?? null },
    })),
    ...(service.windows_egress_services ?? []).map((program) => ({
      span: {},
      program: { process: program.process_name ?? null, service: program.service_name ?? null },
    })),
  ]
  const entries = listed.map(({ span, program }): Entry | null => {
    const read = readSpan(span)
    return read === null || program === undefined ? read : { ...read, program }
  })
  return entries.includes(null) ? [] : (entries as Entry[])
}

type Span = { [Field in 'proto' | 'port' | 'to_port' | 'icmp_type' | 'icmp_code']?: number | null }

const isAbsent = (value: number | null | undefined): value is null | undefined =>
  value === undefined || value === null || value < 0

/**
 * Reads the ports of a protocol, or a type and code of ICMP. Returns null for undocumented combinations, such as ICMP
 * with a port or a code without a type.
 */
export function readSpan({ proto: of, port, to_port: toPort, icmp_type: type, icmp_code: code }: Span): Entry | null {
  const proto = isAbsent(of) ? null : of
  if (proto !== null && ICMP.has(proto)) {
    if (!isAbsent(port) || (isAbsent(type) && !isAbsent(code))) return null
    if (isAbsent(type)) return { proto, ports: null }
    const from = BigInt(type) * 256n
    return {
      proto,
      ports: isAbsent(code) ? { from, to: from + 255n } : { from: from + BigInt(code), to: from + BigInt(code) },
    }
  }
  if (!isAbsent(type) || !isAbsent(code)) return null
  if (isAbsent(port)) return { proto, ports: null }
  return { proto, ports: { from: BigInt(port), to: BigInt(isAbsent(toPort) ? port : toPort) } }
}
