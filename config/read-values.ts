import { isIP, isIPv6 } from 'node:net'
import type { Fault, TrustedProxies } from '../schemas/config.js'

/**
 * Environment variables by name. An empty value counts as unset, because compose files and shells leave empty values
 * behind.
 */
export type Environment = Readonly<Record<string, string | undefined>>

/** The faults found in the settings so far, and warnings for the operator. */
export interface Findings {
  readonly faults: Fault[]
  readonly warnings: string[]
}

/**
 * The settings that are being read. If a function cannot use a value, it adds a fault and continues with the default.
 */
export interface Reading extends Findings {
  readonly env: Environment
}

/** Formats a value for a message: quoted, shortened, and with invisible characters escaped. */
export const shown = (value: string): string => JSON.stringify(value.length > 100 ? `${value.slice(0, 99)}…` : value)

/** Removes the user name and password from a string that may be a URL. */
export const withoutLogin = (value: string): string => value.replace(/^.*@/s, '…@')
const shownUrl = (value: string) => shown(withoutLogin(value))

/** Returns true if a value is a placeholder from an example or configuration file: `${NAME}`, `<your key>`, `api_…`. */
export const isPlaceholder = (value: string): boolean => /\$\{[^}]*\}|^<[^<>]*>$|…/.test(value)

export const placeholderIn = (name: string): Fault => ({
  problem: `${name} still contains a placeholder`,
  remedy: 'Write the value itself: shells and compose files replace names in ${…}, this server does not.',
})

/**
 * Reads a whole number from `min` to `max`. If the variable is not set, returns `otherwise`. If `isOff` is true, the
 * feature is off unless the variable is set, and messages mention `otherwise` only as an example and not as the
 * default.
 */
export function readInteger(
  { env, faults }: Reading,
  name: string,
  { min, max, otherwise, isOff = false }: { min: number; max: number; otherwise: number; isOff?: boolean },
): number {
  const value = env[name]
  if (!value) return otherwise
  const number = /^\d{1,16}$/.test(value) ? Number(value) : NaN
  if (number >= min && number <= max) return number
  const range = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`
  const what = Number.isNaN(number) ? `${shown(value)}: write digits only` : `${value}: write a number in that range`
  faults.push({
    problem: `${name} must be a whole number ${range}`,
    remedy: `It is ${what}, such as ${name}=${otherwise}${isOff ? '' : ', which is the default'}.`,
  })
  return otherwise
}

/** Reads a switch: 1 or true means on, 0 or false means off. */
export function readSwitch({ env, faults }: Reading, name: string, otherwise: boolean): boolean {
  const value = env[name]?.trim().toLowerCase()
  if (!value) return otherwise
  if (value === '1' || value === 'true') return true
  if (value === '0' || value === 'false') return false
  const remedy = `It is ${shown(env[name]!)}: write ${name}=1 to turn it on, ${name}=0 to turn it off.`
  faults.push({ problem: `${name} must be 1 or 0 (true and false will do)`, remedy })
  return otherwise
}

/**
 * Reads a switch that removes a protection from everybody. Only 1 turns it on. Any value except 1, 0 and an empty one
 * is a fault, because a wrong guess would either remove the protection or, against the operator's expectation, leave it
 * on.
 */
export function readUnsafeSwitch({ env, faults }: Reading, name: string): boolean {
  const value = env[name]
  if (!value || value === '0') return false
  if (value === '1') return true
  const remedy = `It is ${shown(value)}: write ${name}=1 to turn it on, or leave it out.`
  faults.push({ problem: `${name} must be 1, in no other spelling`, remedy })
  return false
}

/** Reads a value that must equal one of `choices` exactly. */
export function readChoice<Choice extends string, Otherwise>(
  { env, faults }: Reading,
  name: string,
  choices: readonly Choice[],
  otherwise: Otherwise,
): Choice | Otherwise {
  const value = env[name]
  if (!value) return otherwise
  const found = choices.find((choice) => choice === value)
  if (found !== undefined) return found
  const likely = [value.trim().toLowerCase(), otherwise, choices[0]]
  const meant = likely.find((word) => choices.some((choice) => choice === word)) as Choice
  faults.push({
    problem: `${name} must be one of ${choices.join(', ')}`,
    remedy: `It is ${shown(value)}: write, for example, ${name}=${meant}`,
  })
  return otherwise
}

/** Returns the variables in `names` that are unset or contain only whitespace, in the given order. */
export const missingOf = (env: Environment, names: readonly string[]) => names.filter((name) => !env[name]?.trim())

/**
 * Matches the discovery URL of an authorization server, which people confuse with its issuer or with the URL of its
 * keys.
 */
const DISCOVERY = /\/\.well-known\/(openid-configuration|oauth-authorization-server)\b/

/** Checks that URLs on which the login depends use https, or http on loopback (D14). An unset variable is accepted. */
export function checkUrl({ env, faults }: Reading, name: string): void {
  const value = env[name] ?? ''
  if (value.trim() === '') return
  if (isPlaceholder(value)) return void faults.push(placeholderIn(name))
  const fault = (problem: string, remedy: string) => void faults.push({ problem: `${name} ${problem}`, remedy })
  // Whitespace is rejected: a URL parser tolerates it, but the exact comparison with a claim in a token does not.
  if (/[\s\p{Cc}]/u.test(value))
    return fault('must not contain whitespace', `It is ${shownUrl(value)}: remove spaces and line breaks.`)
  const url = URL.canParse(value) ? new URL(value) : null
  const isSafe = url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopback(url.hostname))
  if (url === null || !isSafe) return fault('must be an https URL, or http on loopback', asHttps(name, value, url))
  if (url.username !== '' || url.password !== '' || url.hash !== '')
    return fault(
      'must not contain a user name, a password or a fragment',
      `Write ${name}=${value.replace(/(?<!\/)\/\/.*@/, '//').replace(/#.*/, '')}`,
    )
  const isKeys = name === 'MCP_OAUTH_JWKS_URL'
  if (url.search !== '' && !isKeys)
    return fault(
      'must not contain a query',
      `Remove the ? and everything after it: ${name}=${value.replace(/\?.*/, '')}`,
    )
  if (DISCOVERY.test(url.pathname))
    return fault(
      'is the address of the discovery document',
      `Open it, and copy its ${isKeys ? 'jwks_uri' : 'issuer'} here.`,
    )
}

function asHttps(name: string, value: string, url: URL | null): string {
  if (url?.protocol === 'http:') return `It is ${shownUrl(value)}: write https://; plain http is only for localhost.`
  return `It is ${shownUrl(value)}: write the whole URL, such as ${name}=https://${EXAMPLES[name] ?? 'mcp.example.com'}`
}

const EXAMPLES: Readonly<Record<string, string>> = {
  MCP_OAUTH_ISSUER: 'login.example.com/v2.0',
  MCP_OAUTH_JWKS_URL: 'login.example.com/keys',
}

/** Returns true if a listening address or the host of a URL can only mean this machine. */
export function isLoopback(host: string): boolean {
  const name = host.toLowerCase().replace(/^\[(.*)\]$/, '$1')
  return name === 'localhost' || name === '::1' || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(name)
}

/** Reads a comma-separated list. Entries are trimmed, and empty entries are dropped. */
export const readList = ({ env }: Pick<Reading, 'env'>, name: string): string[] =>
  (env[name] ?? '').split(',').flatMap((entry) => entry.trim() || [])

/** Reads a comma-separated list of hosts, each with or without a port. An invalid entry, such as a URL, is a fault. */
export function readHosts(reading: Reading, name: string): string[] {
  return readList(reading, name).filter((host) => {
    if (isIPv6(host) || (!/[\s/\\?#@*]/.test(host) && URL.canParse(`http://${host}`))) return true
    const isSeveral = host.includes('*') || isIP(host.replace(/\/\d+$/, '')) !== 0
    reading.faults.push({
      problem: `${name} takes hosts like ${EXAMPLE_HOSTS[name] ?? 'mcp.example.com'}, not '${host}'`,
      remedy: isSeveral
        ? 'Networks and patterns are not supported. Write each host, separated by commas.'
        : `Write only the host, or host:port, and separate several with commas: ${hostIn(host)}`,
    })
    return false
  })
}

const EXAMPLE_HOSTS: Readonly<Record<string, string>> = { MCP_ALLOWED_PCE_HOSTS: 'pce.example.com' }

/** Returns the host of a URL, for use in an example. */
function hostIn(text: string): string {
  const written = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `https://${text}`
  return (URL.canParse(written) && new URL(written).host) || 'mcp.example.com'
}

/** Reads a comma-separated list of addresses, networks and the word `unix`; returns undefined if it is not set. */
export function readProxies(reading: Reading, name: string): TrustedProxies | undefined {
  const entries = readList(reading, name)
  if (entries.length === 0) return undefined
  const networks = entries.filter((entry) => entry !== 'unix').flatMap((entry) => readNetwork(reading, entry, name))
  return { networks, unix: entries.includes('unix') }
}

function readNetwork({ faults }: Reading, entry: string, name: string): { address: string; prefix: number }[] {
  const [address = '', length, ...rest] = entry.split('/')
  const bits = isIP(address) === 4 ? 32 : 128
  const prefix = length === undefined ? bits : /^\d{1,3}$/.test(length) ? Number(length) : NaN
  if (isIP(address) === 0 || address.includes('%') || rest.length > 0 || !(prefix <= bits)) {
    faults.push({
      problem: `${name} takes addresses such as 10.0.0.7, networks such as 10.0.0.0/24, and unix, not '${entry}'`,
      remedy: `Write the addresses of the proxies in front of this server, separated by commas: ${name}=127.0.0.1`,
    })
    return []
  }
  // A network that contains every address is rejected, because any client could then pretend to have any address.
  if (prefix === 0) {
    faults.push({
      problem: `${name} must not trust every address: '${entry}'`,
      remedy: `Anyone could then claim any address. Write only those of your proxies: ${name}=127.0.0.1`,
    })
    return []
  }
  return [{ address, prefix }]
}
