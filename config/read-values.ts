import { isIP, isIPv6 } from 'node:net'
import type { Fault, TrustedProxies } from '../schemas/config.js'

/** Variables by name. An empty value counts as unset: compose files and shells leave those behind. */
export type Environment = Readonly<Record<string, string | undefined>>

/** What is wrong with the settings, as far as they have been read, and what the operator should know about them. */
export interface Findings {
  readonly faults: Fault[]
  readonly warnings: string[]
}

/** The settings while they are read: a reader that cannot use a value adds a fault and goes on with the default. */
export interface Reading extends Findings {
  readonly env: Environment
}

/** A value for a message: in quotes, with what cannot be seen in it escaped, and not too long. */
export const shown = (value: string): string => JSON.stringify(value.length > 100 ? `${value.slice(0, 99)}…` : value)

/** What may be a URL, without the user name and the password that may be in it. */
export const withoutLogin = (value: string): string => value.replace(/^.*@/s, '…@')
const shownUrl = (value: string) => shown(withoutLogin(value))

/** What examples and configuration files have where a value belongs: `${NAME}`, `<your key>`, `api_…`. */
export const isPlaceholder = (value: string): boolean => /\$\{[^}]*\}|^<[^<>]*>$|…/.test(value)

export const placeholderIn = (name: string): Fault => ({
  problem: `${name} still contains a placeholder`,
  remedy: 'Write the value itself: shells and compose files replace names in ${…}, this server does not.',
})

/** A whole number from `min` to `max`. `isOff`: a variable that is not set is not `otherwise`, which is then an example alone. */
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
  const what = Number.isNaN(number) ? `${shown(value)}: write digits only` : `${value}: write one in that range`
  faults.push({
    problem: `${name} must be a whole number ${range}`,
    remedy: `It is ${what}, such as ${name}=${otherwise}${isOff ? '' : ', which is the default'}.`,
  })
  return otherwise
}

/** 1 and true, 0 and false; the same for every switch. */
export function readSwitch({ env, faults }: Reading, name: string, otherwise: boolean): boolean {
  const value = env[name]?.trim().toLowerCase()
  if (!value) return otherwise
  if (value === '1' || value === 'true') return true
  if (value === '0' || value === 'false') return false
  const remedy = `It is ${shown(env[name]!)}: write ${name}=1 to turn it on, ${name}=0 to turn it off.`
  faults.push({ problem: `${name} must be 1 or 0 (true and false will do)`, remedy })
  return otherwise
}

/** One of `choices`, exactly. */
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

/** Those of `names` that are not set, or set to whitespace only, in their order. */
export const missingOf = (env: Environment, names: readonly string[]) => names.filter((name) => !env[name]?.trim())

/** Where an authorization server describes itself: neither its issuer nor its keys. */
const DISCOVERY = /\/\.well-known\/(openid-configuration|oauth-authorization-server)\b/

/** URLs that carry identity are https, or http on loopback (D14). A variable that is not set is no business of this. */
export function checkUrl({ env, faults }: Reading, name: string): void {
  const value = env[name] ?? ''
  if (value.trim() === '') return
  if (isPlaceholder(value)) return void faults.push(placeholderIn(name))
  const fault = (problem: string, remedy: string) => void faults.push({ problem: `${name} ${problem}`, remedy })
  // A URL parser forgives what a comparison with a token's claim does not.
  if (/[\s\p{Cc}]/u.test(value))
    return fault('must not contain whitespace', `It is ${shownUrl(value)}: leave out spaces and line breaks.`)
  const url = URL.canParse(value) ? new URL(value) : null
  const isSafe = url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopback(url.hostname))
  if (url === null || !isSafe) return fault('must be an https URL, or http on loopback', asHttps(name, value, url))
  if (url.username !== '' || url.password !== '' || url.hash !== '')
    return fault(
      'must not contain a user name, a password or a fragment',
      `Write ${name}=${value.replace(/\/\/.*@/, '//').replace(/#.*/, '')}`,
    )
  const isKeys = name === 'MCP_OAUTH_JWKS_URL'
  if (url.search !== '' && !isKeys)
    return fault('must not contain a query', `Leave out the ? and what follows: ${name}=${value.replace(/\?.*/, '')}`)
  if (DISCOVERY.test(url.pathname))
    return fault(
      'is the address of the discovery document',
      `Open it, and copy its ${isKeys ? 'jwks_uri' : 'issuer'} here.`,
    )
}

function asHttps(name: string, value: string, url: URL | null): string {
  if (url?.protocol === 'http:') return `It is ${shownUrl(value)}: write https://; plain http is for localhost alone.`
  return `It is ${shownUrl(value)}: write the whole URL, such as ${name}=https://${EXAMPLES[name] ?? 'mcp.example.com'}`
}

const EXAMPLES: Readonly<Record<string, string>> = {
  MCP_OAUTH_ISSUER: 'login.example.com/v2.0',
  MCP_OAUTH_JWKS_URL: 'login.example.com/keys',
}

/** Whether an address to listen on, or the host of a URL, is this machine and nothing else. */
export function isLoopback(host: string): boolean {
  const name = host.toLowerCase().replace(/^\[(.*)\]$/, '$1')
  return name === 'localhost' || name === '::1' || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(name)
}

/** A comma-separated list; entries are trimmed, empty ones dropped. */
export const readList = ({ env }: Pick<Reading, 'env'>, name: string): string[] =>
  (env[name] ?? '').split(',').flatMap((entry) => entry.trim() || [])

/** A comma-separated list of hosts, each with or without a port. URLs and everything else are faults, one for each entry. */
export function readHosts(reading: Reading, name: string): string[] {
  return readList(reading, name).filter((host) => {
    if (isIPv6(host) || (!/[\s/\\?#@*]/.test(host) && URL.canParse(`http://${host}`))) return true
    const isSeveral = host.includes('*') || isIP(host.replace(/\/\d+$/, '')) !== 0
    reading.faults.push({
      problem: `${name} takes hosts like ${EXAMPLE_HOSTS[name] ?? 'mcp.example.com'}, not '${host}'`,
      remedy: isSeveral
        ? 'Networks and patterns are not supported: write each host, with commas between them.'
        : `Write only the host, or host:port, with commas between several: ${hostIn(host)}`,
    })
    return false
  })
}

const EXAMPLE_HOSTS: Readonly<Record<string, string>> = { MCP_ALLOWED_PCE_HOSTS: 'pce.example.com' }

/** The host that a URL names, for an example. */
function hostIn(text: string): string {
  const written = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `https://${text}`
  return (URL.canParse(written) && new URL(written).host) || 'mcp.example.com'
}

/** A comma-separated list of addresses, networks and the word `unix`; undefined where it is not set. */
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
      remedy: `Write the addresses of the proxies in front of this server, with commas: ${name}=127.0.0.1`,
    })
    return []
  }
  // Whoever connects could then claim to be anyone.
  if (prefix === 0) {
    faults.push({
      problem: `${name} must not trust every address: '${entry}'`,
      remedy: `Anybody could then claim any address. Write those of your proxies alone: ${name}=127.0.0.1`,
    })
    return []
  }
  return [{ address, prefix }]
}
