import type { LookupAddress, LookupAllOptions } from 'node:dns'
import { isIP, isIPv6, type LookupFunction } from 'node:net'
import { type Fault, StartupError } from '../../../schemas/config.js'
import { ToolError } from '../../../schemas/errors.js'
import { boundLookups, type Patience, type Resolve, TIME_UP } from './bound-lookups.js'
import { canonicalAddress, checkAddress } from './check-address.js'
import { parsePceHost, type HostProblem } from './parse-pce-host.js'

export interface PceHostsOptions {
  /**
   * The permitted hosts from MCP_ALLOWED_PCE_HOSTS, with or without a port. If the list is empty, any host is permitted
   * unless the guard refuses it.
   */
  allowed: readonly string[]
  /**
   * Returns the address at which this server listens, or null if it does not listen yet. No PCE may be at this address.
   */
  own?: () => { address: string; port: number } | null
  resolve: Resolve
  /** Maximum time to wait for the name service, in milliseconds. The default is 5000. */
  patienceMs?: number
  /** The word for the host in messages; `PCE` if absent. */
  what?: string
  /** If true, connections go through a proxy, which resolves names itself. */
  isProxied?: boolean
}

/** The address of a PCE. The host is in the canonical form that `admit` returns. */
interface Target {
  host: string
  port: number
}

export interface PceHosts {
  /** Returns the host in its canonical form, or the reason why no PCE may be there. The name is not looked up. */
  readonly admit: (host: string, port: number) => { host: string } | HostProblem
  /**
   * Looks the name up, without connecting. Returns why its current addresses are refused, or null if they are not
   * refused. Also returns null if the name cannot be resolved, because the connection will then fail anyway. If a proxy
   * resolves names, hosts in MCP_ALLOWED_PCE_HOSTS are not looked up, because possibly only the proxy knows them.
   *
   * @param patienceMs the maximum time to wait for the name service; the general limit by default.
   * @throws {ToolError} (rejects) `pce_unreachable` if connections go through a proxy and the name service does not
   * answer within `patienceMs`, because nothing else would check the addresses.
   */
  readonly inspect: (host: string, port: number, patienceMs?: number) => Promise<string | null>
  /**
   * Returns the functions that guard connections to an admitted host. `lookup` checks all addresses for every new
   * connection, so that a name is refused once it resolves to forbidden addresses (DNS rebinding). `checkPeer` checks
   * the address of the peer again after connecting.
   */
  readonly guard: (host: string, port: number) => { lookup: LookupFunction; checkPeer: (address: string) => void }
}

/** An entry of MCP_ALLOWED_PCE_HOSTS. */
interface Entry {
  host: string
  /** The permitted port of the host; null if every port is permitted. */
  port: number | null
}

const MOST_SHOWN = 5
const HTTPS_PORT = 443
/**
 * The lowest port at which a PCE may be, except for 443 and the ports in MCP_ALLOWED_PCE_HOSTS. Lower ports belong to
 * system services (RFC 6335, 6), such as SSH and mail.
 */
const FIRST_USER_PORT = 1024
/**
 * Maximum age, in milliseconds, of a name's previous addresses. While the lookup for a new connection waits, the
 * connection may use them; they are checked in the same way as new addresses.
 */
const OLDEST_ADDRESSES_MS = 10 * 60_000

/**
 * Creates the guard that decides which hosts users may register as PCEs (D18, D47). If MCP_ALLOWED_PCE_HOSTS has
 * entries, only these hosts are permitted. A loopback address is permitted only for an entry that itself names a
 * loopback host. If there is a proxy, the proxy resolves the names. Then `guard` has no effect, `inspect` sees only the
 * addresses that this machine finds for a name, and the proxy's own rules must protect the network.
 */
export function createPceHosts(options: PceHostsOptions): PceHosts {
  const { allowed, own = () => null, patienceMs = 5000, what = 'PCE', isProxied = false } = options
  const resolve = boundLookups(options.resolve, patienceMs)
  const entries = readAllowed(allowed)

  function entryFor({ host, port }: Target): Entry | undefined {
    const ofHost = entries.filter((entry) => entry.host === host)
    return ofHost.find((entry) => entry.port === port) ?? ofHost.find((entry) => entry.port === null)
  }

  /** Returns why a connection to this address of the host is refused, or null if it is permitted. */
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
    return kind === null ? { host: target.host } : { problem: `${kind} is not allowed for a ${what}` }
  }

  /**
   * Returns why the host name is refused, or null if it is permitted. A name that by definition means this machine (RFC
   * 6761, 6.3) is refused whatever a name service says, unless MCP_ALLOWED_PCE_HOSTS lists it.
   */
  function refusedName(target: Target): string | null {
    return isLoopback(target.host) && entryFor(target) === undefined ? 'this machine' : null
  }

  async function addressesOf(target: Target, options: LookupAllOptions, patience: Patience): Promise<LookupAddress[]> {
    const addresses = [...(await resolve(target.host, options, patience))]
    for (const { address } of addresses) {
      const kind = problemOf(target, address)
      if (kind !== null) throw new RefusedAddress(what, kind)
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
          if (kind !== null) throw new RefusedAddress(what, kind)
        },
      }
    },
  }
}

/** The error for a refused address. It has no `code`, because only errors of the name service have one. */
class RefusedAddress extends Error {
  override readonly name = 'RefusedAddress'
  constructor(what: string, kind: string) {
    super(`the name of the ${what} resolves to ${kind}, which is not allowed for a ${what}`)
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
 * pattern, because an entry that can never match must not look as if it were a rule.
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
