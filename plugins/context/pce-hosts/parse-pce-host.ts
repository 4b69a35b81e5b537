import { isIP, isIPv6 } from 'node:net'

/**
 * A host in canonical form: lower case, punycode, IPv4 dotted, IPv6 compressed and without brackets, no trailing dot.
 */
export interface PceHost {
  host: string
  /** True if the host is an IP address, so that it need not be looked up. */
  isAddress: boolean
}

/** The problem with a host, worded so that it can follow the name of the field. */
export interface HostProblem {
  problem: string
}

const LONGEST = 300
const EXAMPLE = 'give a host name or IP address such as pce.example.com'

/**
 * Parses the text that a user typed as the host of a PCE (D18). `https://` is optional. A single `/` after the host is
 * accepted, because address bars show one; it does not count as a path (RFC 3986, 6.2.3). A port is accepted only if it
 * equals `port`. Names and addresses are read as in WHATWG URLs: `127.1`, `0x7f.1` and full-width digits mean
 * 127.0.0.1, as they do for the code that later connects.
 */
export function parsePceHost(text: string, port: number): PceHost | HostProblem {
  const typed = text.trim()
  if (typed === '') return { problem: `empty: ${EXAMPLE}` }
  // A URL parser would drop tabs and line breaks, read \ as / and decode %. A host can contain none of these
  // characters.
  if (typed.length > LONGEST || /[\s\\%\p{Cc}]/u.test(typed)) return { problem: `not a host: ${EXAMPLE}` }
  const [, scheme, rest = ''] = /^(?:([a-z][a-z0-9+.-]*):\/\/)?(.*)$/is.exec(typed) ?? []
  if (scheme !== undefined && scheme.toLowerCase() !== 'https') {
    return { problem: 'a PCE is only reached over https: leave the scheme out' }
  }
  const authority = rest.replace(/\/$/, '')
  if (authority.includes('@')) return { problem: 'leave out user name and password' }
  if (/[/?#]/.test(authority)) return { problem: 'leave out everything after the host: path, query and fragment' }
  const [host, written] = splitPort(authority)
  const normal = normalise(host)
  const isOtherPort = written !== undefined && Number(written) !== port
  if ('problem' in normal || !isOtherPort) return normal
  return { problem: 'its port differs from pce_port: give the port only there' }
}

/** Splits the input into host and port without interpreting them. An IPv6 address without brackets has no port. */
function splitPort(authority: string): [host: string, port?: string] {
  if (isIPv6(authority)) return [`[${authority}]`]
  const [, host, port] = /^(.*?):(\d*)$/.exec(authority) ?? []
  return host === undefined ? [authority] : [host, port ?? '']
}

function normalise(written: string): PceHost | HostProblem {
  const problem = { problem: `not a host: ${EXAMPLE}` }
  const parsed = hostnameOf(written)
  // With a trailing dot (in any script), an IP address looks like a name, so the host is parsed again without the dot.
  const name = parsed === null ? null : hostnameOf(parsed.replace(/\.$/, ''))
  if (name === null) return problem
  const address = name.replace(/^\[(.*)\]$/, '$1')
  if (isIP(address) !== 0) return { host: address, isAddress: true }
  return isName(name) ? { host: name, isAddress: false } : problem
}

function hostnameOf(host: string): string | null {
  const url = `https://${host}`
  return URL.canParse(url) ? new URL(url).hostname : null
}

/**
 * Returns true if the host is a name as defined in RFC 1035, 2.3.4; underscores, which internal names use, are accepted
 * too.
 */
function isName(name: string): boolean {
  return name.length <= 253 && name.split('.').every((label) => /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/.test(label))
}
