import { isIP, isIPv6 } from 'node:net'
import { StartupError, type TrustedProxies } from '../schemas/config.js'

/** Variables by name. An empty value counts as unset: compose files and shells leave those behind. */
export type Environment = Readonly<Record<string, string | undefined>>

/** Throws StartupError, naming the variable, for anything but a whole number from `min` to `max`. */
export function readInteger(
  env: Environment,
  name: string,
  { min, max, otherwise }: { min: number; max: number; otherwise: number },
): number {
  const value = env[name]
  if (!value) return otherwise
  const number = /^\d{1,16}$/.test(value) ? Number(value) : NaN
  if (!(number >= min && number <= max)) throw new StartupError(`${name} must be a whole number from ${min} to ${max}`)
  return number
}

/** Throws StartupError, naming the variable, for anything but true, false, 1 and 0. */
export function readBoolean(env: Environment, name: string, otherwise: boolean): boolean {
  const value = env[name]?.toLowerCase()
  if (!value) return otherwise
  if (value === 'true' || value === '1') return true
  if (value === 'false' || value === '0') return false
  throw new StartupError(`${name} must be true or false`)
}

/** Those of `names` that are not set, or set to whitespace only, in their order. */
export const missingOf = (env: Environment, names: readonly string[]) => names.filter((name) => !env[name]?.trim())

/** URLs that carry identity are https, or http on loopback (D14). Throws StartupError. */
export function checkUrl(env: Environment, name: string): void {
  const value = env[name] ?? ''
  // A URL parser forgives what a comparison with a token's claim does not.
  if (/[\s\p{Cc}]/u.test(value)) throw new StartupError(`${name} must not contain whitespace`)
  const url = URL.canParse(value) ? new URL(value) : null
  const isSafe = url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopback(url.hostname))
  if (url === null || !isSafe) throw new StartupError(`${name} must be an https URL, or http on loopback`)
  if (url.username !== '' || url.password !== '' || url.hash !== '')
    throw new StartupError(`${name} must not contain a user name, a password or a fragment`)
  if (url.search !== '' && name !== 'MCP_OAUTH_JWKS_URL') throw new StartupError(`${name} must not contain a query`)
}

/** Whether an address to listen on, or the host of a URL, is this machine and nothing else. */
export function isLoopback(host: string): boolean {
  const name = host.toLowerCase().replace(/^\[(.*)\]$/, '$1')
  return name === 'localhost' || name === '::1' || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(name)
}

/** A comma-separated list; entries are trimmed, empty ones dropped. */
export const readList = (env: Environment, name: string): string[] =>
  (env[name] ?? '').split(',').flatMap((entry) => entry.trim() || [])

/** A comma-separated list of hosts, each with or without a port. Throws StartupError for a URL or anything else. */
export function readHosts(env: Environment, name: string): string[] {
  const hosts = readList(env, name)
  const bad = hosts.find((host) => !isIPv6(host) && (/[\s/\\?#@]/.test(host) || !URL.canParse(`http://${host}`)))
  if (bad !== undefined) throw new StartupError(`${name} takes hosts like mcp.example.com, not '${bad}'`)
  return hosts
}

/** A comma-separated list of addresses, networks and the word `unix`; undefined where it is not set. Throws StartupError. */
export function readProxies(env: Environment, name: string): TrustedProxies | undefined {
  const entries = readList(env, name)
  if (entries.length === 0) return undefined
  const networks = entries.filter((entry) => entry !== 'unix').map((entry) => readNetwork(entry, name))
  return { networks, unix: entries.includes('unix') }
}

function readNetwork(entry: string, name: string): { address: string; prefix: number } {
  const [address = '', length, ...rest] = entry.split('/')
  const bits = isIP(address) === 4 ? 32 : 128
  const prefix = length === undefined ? bits : /^\d{1,3}$/.test(length) ? Number(length) : NaN
  if (isIP(address) === 0 || address.includes('%') || rest.length > 0 || !(prefix <= bits))
    throw new StartupError(
      `${name} takes addresses such as 10.0.0.7, networks such as 10.0.0.0/24, and unix, not '${entry}'`,
    )
  // Whoever connects could then claim to be anyone.
  if (prefix === 0) throw new StartupError(`${name} must not trust every address: '${entry}'`)
  return { address, prefix }
}
