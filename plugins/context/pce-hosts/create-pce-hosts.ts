import type { LookupAddress, LookupAllOptions } from 'node:dns'
import { isIP, isIPv6, type LookupFunction } from 'node:net'
import { type Fault, StartupError } from '../../../schemas/config.js'
import { ToolError } from '../../../schemas/errors.js'
import { boundLookups, type Patience, type Resolve, TIME_UP } from './bound-lookups.js'
import { canonicalAddress, checkAddress } from './check-address.js'
import { parsePceHost, type HostProblem } from './parse-pce-host.js'

export interface PceHostsOptions {
  /**
   * MCP_ALLOWED_PCE_HOSTS: hosts, with or without a port. If empty, all hosts that the guard does not refuse are
   * permitted.
   */
  allowed: readonly string[]
  /**
   * Returns the address at which this server itself listens, or null before it listens. No PCE may be at this address.
   */
  own?: () => { address: string; port: number } | null
  resolve: Resolve
  /** How long to wait for the name service, in milliseconds. Default 5000. */
  patienceMs?: number
  /** If true, connections go through a proxy, which resolves names itself. */
  isProxied?: boolean
}

/** The location of a PCE, with the host in the spelling that `admit` returns. */
interface Target {
  host: string
  port: number
}

export interface PceHosts {
  /** Returns the host in its canonical spelling, or why no PCE may be there. Makes no lookup. */
  readonly admit: (host: string, port: number) => { host: string } | HostProblem
  /**
   * Returns why the addresses of the name are refused now, or null if they are not refused. Also returns null if the
   * name cannot be resolved, because the connection will then fail anyway. Makes no connection. If a proxy resolves
   * names, hosts named in MCP_ALLOWED_PCE_HOSTS are not looked up, because only the proxy may know them.
   *
   * @param patienceMs how long to wait for the name service; the general limit by default.
   * @throws {ToolError} (rejects) `pce_unreachable` if a proxy connects and the time is up, since nothing else would
   *   check the addresses.
   */
  readonly inspect: (host: string, port: number, patienceMs?: number) => Promise<string | null>
  /**
   * Guards the connections to an admitted host. The lookup checks every address at each new connection, so that a name
   * that has come to resolve to forbidden addresses (DNS rebinding) is refused. The peer's address is checked again
   * after connecting.
   */
  readonly guard: (host: string, port: number) => { lookup: LookupFunction; checkPeer: (address: string) => void }
}

/** An entry of MCP_ALLOWED_PCE_HOSTS. */
interface Entry {
  host: string
  /** The port; null means every port. */
  port: number | null
}

const MOST_SHOWN = 5
const HTTPS_PORT = 443
/**
 * The lowest port that a PCE may have, apart from 443 and ports in MCP_ALLOWED_PCE_HOSTS. Lower ports belong to system
 * services (RFC 6335, 6), such as SSH and mail.
 */
const FIRST_USER_PORT = 1024
/**
 * Maximum age, in milliseconds, of addresses that a new connection may use while its lookup waits. Such addresses are
 * checked like new ones.
 */
const OLDEST_ADDRESSES_MS = 10 * 60_000

/**
 * Creates the guard that decides where users' PCEs may be (D18, D47). If MCP_ALLOWED_PCE_HOSTS has entries, only those
 * hosts are permitted. Loopback addresses are permitted only for an entry that itself names a loopback host. If there
 * is a proxy, the proxy resolves the names: `guard` then has no effect, `inspect` only sees what the name means on this
 * machine, and the proxy's own rules must protect the network.
 */
export function createPceHosts(options: PceHostsOptions): PceHosts {
  const { allowed, own = () => null, patienceMs = 5000, isProxied = false } = options
  const resolve = boundLookups(options.resolve, patienceMs)
  const entries = readAllowed(allowed)

  function entryFor({ host, port }: Target): Entry | undefined {
    const ofHost = entries.filter((entry) => entry.host === host)
    return ofHost.find((entry) => entry.port === port) ?? ofHost.find((entry) => entry.port === null)
  }

  /** Returns why an address of the target is refused, or null if it is not. */
  function problemOf(target: Target, address: string): string | null {
    const kind = checkAddress(address)
    if (kind === 'a loopback address' && isLoopback(target.host) && entryFor(target) !== undefined) {
      return isOwn(target.port, address) ? 'this server itself' : null
    }
    return kind ?? (isOwn(target.port, address) ? 'this server itself' : null)
  }

  function isOwn(port: number, address: string): boolean {
    const mine = own()
    return mine !== null && mine.port === port && canonicalAddress(mine.address) === canonicalAddress(address)
  }

  function admit(text: string, port: number): { host: string } | HostProblem {
    const parsed = parsePceHost(text, port)
    if ('problem' in parsed) return parsed
    const target = { host: parsed.host, port }
    const entry = entryFor(target)
    if (allowed.length > 0 && entry === undefined) return { problem: notAllowed(entries) }
    if (port > 0 && port < FIRST_USER_PORT && port !== HTTPS_PORT && entry?.port !== port) {
      const named = `${isIPv6(target.host) ? `[${target.host}]` : target.host}:${port}`
      const unless = entry === undefined ? '' : `, unless MCP_ALLOWED_PCE_HOSTS has ${named}`
      return {
        problem: `port ${port} is not allowed for a PCE: use ${HTTPS_PORT}, or ${FIRST_USER_PORT} and above${unless}`,
      }
    }
    const kind = parsed.isAddress ? problemOf(target, target.host) : refusedName(target)
    return kind === null ? { host: target.host } : { problem: `${kind} is not allowed for a PCE` }
  }

  /**
   * Returns why a name is refused, or null. A name that by definition means this machine (RFC 6761, 6.3) is refused
   * whatever a name service says, unless it is an entry of MCP_ALLOWED_PCE_HOSTS.
   */
  function refusedName(target: Target): string | null {
    return isLoopback(target.host) && entryFor(target) === undefined ? 'this machine' : null
  }

  async function addressesOf(target: Target, options: LookupAllOptions, patience: Patience): Promise<LookupAddress[]> {
    const addresses = [...(await resolve(target.host, options, patience))]
    for (const { address } of addresses) {
      const kind = problemOf(target, address)
      if (kind !== null) throw new RefusedAddress(kind)
    }
    return addresses
  }

  return {
    admit,
    async inspect(host, port, patienceMs) {
      if (isIP(host) !== 0 || (isProxied && entryFor({ host, port }) !== undefined)) return null
      try {
        await addressesOf({ host, port }, { all: true }, { patienceMs })
      } catch (error) {
        if (error instanceof RefusedAddress) return error.message
        if (isProxied && (error as NodeJS.ErrnoException).code === TIME_UP) throw notLookedUp()
      }
      return null
    },
    guard(host, port) {
      const target = { host, port }
      return {
        lookup: (hostname, options, callback) => {
          const place = { ...target, host: hostname }
          const found = addressesOf(place, { ...options, all: true }, { oldestMs: OLDEST_ADDRESSES_MS })
          found.then(
            (addresses) => answer(addresses, options.all === true, hostname, callback),
            (error: unknown) => callback(error as NodeJS.ErrnoException, []),
          )
        },
        checkPeer(address) {
          const kind = address === '' ? 'an unknown address' : problemOf(target, address)
          if (kind !== null) throw new RefusedAddress(kind)
        },
      }
    },
  }
}

/** The error for a refused address. It has no `code`, because a `code` marks errors of the name service. */
class RefusedAddress extends Error {
  override readonly name = 'RefusedAddress'
  constructor(kind: string) {
    super(`the name of the PCE resolves to ${kind}, which is not allowed for a PCE`)
  }
}

function notLookedUp(): ToolError {
  const message = 'The name of the PCE could not be resolved in time, so its address is unknown.'
  return new ToolError('pce_unreachable', message, {}, { hint: 'Nothing was changed. Repeat the call shortly.' })
}

function answer(
  addresses: LookupAddress[],
  wantsAll: boolean,
  hostname: string,
  callback: Parameters<LookupFunction>[2],
): void {
  const [first] = addresses
  if (first === undefined) callback(Object.assign(new Error(`no address for ${hostname}`), { code: 'ENOTFOUND' }), [])
  else if (wantsAll) callback(null, addresses)
  else callback(null, first.address, first.family)
}

/**
 * Parses the entries of MCP_ALLOWED_PCE_HOSTS into their canonical spelling, in the same order. Throws a StartupError
 * that lists every invalid entry.
 */
export function readAllowed(allowed: readonly string[]): readonly Entry[] {
  const read = allowed.map(readEntry)
  const faults = read.filter((entry) => 'problem' in entry)
  if (faults.length > 0) throw new StartupError(...faults)
  return read.filter((entry) => 'host' in entry)
}

/**
 * Parses `host`, `host:port`, or an IPv6 address with or without brackets. Anything else is a fault, in particular a
 * pattern: an entry that can never match must not look like a rule.
 */
function readEntry(text: string): Entry | Fault {
  const [, port] = /^(?:[^:]*|\[.*\]):(\d+)$/.exec(text) ?? []
  const parsed = parsePceHost(text, Number(port ?? 0))
  if ('problem' in parsed)
    return {
      problem: `MCP_ALLOWED_PCE_HOSTS: '${text}' is not a host`,
      remedy:
        'Write whole host names or addresses, each with or without a port; patterns and networks are not supported.',
    }
  return { host: parsed.host, port: port === undefined ? null : Number(port) }
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host.endsWith('.localhost') || checkAddress(host) === 'a loopback address'
}

function notAllowed(entries: readonly Entry[]): string {
  const shown = entries.slice(0, MOST_SHOWN).map(({ host, port }) => (port === null ? host : `${host} at port ${port}`))
  const more = entries.length > MOST_SHOWN ? ' and others' : ''
  return `this server only accepts ${shown.join(', ')}${more}`
}
