import type { Workload } from '../../schemas/pce/workload.js'
import type { Conversation, Endpoint } from '../model.js'
import { parseAddress, type Address } from './match-addresses.js'

/**
 * The source or destination of a connection, as the PCE knows it now. If two connections have the same source or
 * destination, they share one such object, so that it is processed only once.
 */
export interface End {
  /** A small number that no other source or destination of the same resolver has. */
  id: number
  ip: string
  address: Address | null
  fqdn: string | null
  workload: Workload | null
}

/** The parts of an observed connection on which verdicts depend. */
export type Observation = Pick<Conversation, 'src' | 'dst' | 'service' | 'flowDirection' | 'icmpType' | 'icmpCode'>

/**
 * An observation with its source and destination looked up and its properties numbered, so that equal observations are
 * found quickly.
 */
export interface Resolved {
  src: End
  dst: End
  /**
   * A number that depends on everything except source and destination that rules can look at. Two observations with
   * equal numbers and equal sources and destinations get the same verdict.
   */
  kind: number
  /**
   * A number that depends on everything except source and destination that distinguishes rows. Two observations with
   * equal numbers and equal sources and destinations become one row.
   */
  row: number
}

export type Resolver = (observation: Observation & Pick<Conversation, 'transmission'>) => Resolved

/** Maximum number of combinations of ICMP type, ICMP code and transmission that are numbered for each service. */
const VARIANTS = 2 ** 20

/**
 * Creates a resolver, which gives equal observations equal numbers. Each shared service object is examined only once.
 */
export function createResolver(workloads: ReadonlyMap<string, Workload>): Resolver {
  const resolveEnd = createEndResolver(workloads)
  const services = new Map<Conversation['service'], { kind: number; row: number }>()
  const [numberKind, numberRow, numberVariant] = [createNumbering(), createNumbering(), createNumbering()]

  const numberService = (service: Conversation['service']) => {
    let numbers = services.get(service)
    if (numbers === undefined) {
      const { proto, port, process_name, windows_service_name, user_name } = service
      const kind = numberKind(`${proto} ${port} ${process_name}\n${windows_service_name}`)
      numbers = { kind, row: numberRow(`${kind} ${user_name}`) }
      services.set(service, numbers)
    }
    return numbers
  }

  return ({ src, dst, service, flowDirection, icmpType, icmpCode, transmission }) => {
    const { kind, row } = numberService(service)
    const icmp = icmpType === undefined && icmpCode === undefined ? 0 : 1 + numberVariant(`${icmpType} ${icmpCode}`)
    const variant = (icmp * 4 + TRANSMISSIONS.indexOf(transmission)) * 2 + (flowDirection === 'inbound' ? 1 : 0)
    return {
      src: resolveEnd(src),
      dst: resolveEnd(dst),
      kind: kind * VARIANTS + variant,
      row: row * VARIANTS + variant,
    }
  }
}

const TRANSMISSIONS: Conversation['transmission'][] = [undefined, 'unicast', 'broadcast', 'multicast']

function createNumbering(): (text: string) => number {
  const numbers = new Map<string, number>()
  return (text) => {
    let number = numbers.get(text)
    if (number === undefined) numbers.set(text, (number = numbers.size))
    return number
  }
}

/**
 * Creates a function that looks up the source or destination of a conversation in the current inventory. A workload
 * that was deleted becomes an address again, and an address that now belongs to a workload's interface becomes that
 * workload.
 */
function createEndResolver(workloads: ReadonlyMap<string, Workload>): (endpoint: Endpoint) => End {
  const byAddress = new Map<string, Workload>()
  for (const workload of workloads.values()) {
    if (workload.deleted === true) continue
    for (const { address } of workload.interfaces ?? []) {
      if (address !== undefined && !byAddress.has(address)) byAddress.set(address, workload)
    }
  }
  const byObject = new Map<Endpoint, End>()
  const byContent = new Map<string, End>()

  const resolve = (endpoint: Endpoint): End => {
    const named = 'workload' in endpoint ? workloads.get(endpoint.workload) : undefined
    const workload = (named?.deleted === true ? undefined : named) ?? byAddress.get(endpoint.ip) ?? null
    const fqdn = workload === null && 'fqdn' in endpoint ? (endpoint.fqdn ?? null) : null
    const key = `${endpoint.ip} ${workload?.href ?? ''} ${fqdn ?? ''}`
    let end = byContent.get(key)
    if (end === undefined) {
      end = { id: byContent.size, ip: endpoint.ip, address: parseAddress(endpoint.ip), fqdn, workload }
      byContent.set(key, end)
    }
    return end
  }

  return (endpoint) => {
    let end = byObject.get(endpoint)
    if (end === undefined) byObject.set(endpoint, (end = resolve(endpoint)))
    return end
  }
}

/** Returns true if the source or destination runs a VEN, which enforces policy on it and reports its connections. */
export const isManaged = (end: End): end is End & { workload: Workload } =>
  end.workload !== null && end.workload.managed !== false

export function osType(workload: Workload): 'windows' | 'linux' | 'unknown' {
  if (workload.os_id == null || workload.os_id === '') return 'unknown'
  return /^win/i.test(workload.os_id) ? 'windows' : 'linux'
}
