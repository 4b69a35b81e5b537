import { isIPv6 } from 'node:net'
import type { HeavyConfig, Limits, OfferConfig, PceFromEnvironment } from '../schemas/config.js'
import { readGuardrails } from './read-guardrails.js'
import {
  isLoopback,
  isPlaceholder,
  readChoice,
  readInteger,
  readList,
  readSwitch,
  shown,
  withoutLogin,
  type Reading,
} from './read-values.js'

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const

/** Reads the settings that the stdio program and the HTTP program share. */
export function readCommon(reading: Reading) {
  const { env, warnings } = reading
  const limits: Limits = {
    responseBudgetBytes: readInteger(reading, 'MCP_RESPONSE_BUDGET_BYTES', {
      min: 1000,
      max: 800_000,
      otherwise: 24_000,
    }),
    trafficQueryTimeoutSeconds: readInteger(reading, 'MCP_TRAFFIC_QUERY_TIMEOUT_SECONDS', {
      min: 1,
      max: 3600,
      otherwise: 600,
    }),
    trafficMaxParts: readInteger(reading, 'MCP_TRAFFIC_MAX_PARTS', { min: 1, max: 1000, otherwise: 64 }),
  }
  return {
    logLevel: readChoice(reading, 'MCP_LOG_LEVEL', LOG_LEVELS, 'info'),
    limits,
    heavy: readHeavy(reading),
    offer: readOffer(reading),
    ...readGuardrails(reading),
    warnings,
    ...(env.MCP_AUDIT_LOG_PATH && { auditLogPath: env.MCP_AUDIT_LOG_PATH }),
    ...readReplica(reading),
    ...readTracing(reading),
  }
}

const ENDPOINTS = ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_ENDPOINT']
const PROTOCOLS = ['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'OTEL_EXPORTER_OTLP_PROTOCOL']

/**
 * Returns whether tracing is on. All other tracing settings, such as the endpoint, are read from the environment by
 * OpenTelemetry's own libraries.
 */
function readTracing({ env, faults, warnings }: Reading): { tracing?: true } {
  if (env.OTEL_SDK_DISABLED?.toLowerCase() === 'true' || env.OTEL_TRACES_EXPORTER === 'none') return {}
  const name = ENDPOINTS.find((one) => env[one])
  if (name === undefined) return {}
  const endpoint = env[name]!
  if (!/^https?:\/\/[^/]/i.test(endpoint) || !URL.canParse(endpoint)) {
    faults.push({
      problem: `${name} must be an http or https URL`,
      remedy: `It is ${shown(withoutLogin(endpoint))}: write the URL of a collector, such as ${name}=http://127.0.0.1:4318`,
    })
    return {}
  }
  const protocol = PROTOCOLS.find((one) => env[one])
  if (protocol !== undefined && env[protocol] !== 'http/protobuf')
    warnings.push(`${protocol} is ignored: traces are sent as http/protobuf, to a port like 4318.`)
  return { tracing: true }
}

/**
 * Matches a valid replica id. Since every log line contains the id, it must be short, and must not contain characters
 * that a log would have to escape.
 */
const REPLICA = /^[!#-[\]-~]{1,128}$/

/** Reads the name of this process for the audit log, the server log and traces. */
export function readReplica({ env, faults }: Reading): { replicaId?: string } {
  const { MCP_REPLICA_ID: replicaId } = env
  if (!replicaId) return {}
  if (REPLICA.test(replicaId)) return { replicaId }
  faults.push({
    problem: 'MCP_REPLICA_ID must be 1 to 128 visible ASCII characters without quotes and backslashes',
    remedy: `It is ${shown(replicaId)}: write a short name, such as MCP_REPLICA_ID=mcp-1, or unset it to use the host name.`,
  })
  return {}
}

/**
 * Reads the settings that decide which tools are offered (D121). At start-up, the names in these settings are compared
 * with the existing tools.
 */
function readOffer(reading: Reading): OfferConfig {
  const toolsets = readNames(reading, 'MCP_TOOLSETS')
  const tools = readNames(reading, 'MCP_TOOLS')
  const excluded = readNames(reading, 'MCP_EXCLUDE_TOOLS')
  return {
    ...(readSwitch(reading, 'MCP_READ_ONLY', false) && { readOnly: true }),
    ...(toolsets && { toolsets }),
    ...(tools && { tools }),
    ...(excluded && { excluded }),
  }
}

/**
 * Reads a list of names of tools or toolsets. A variable that is set to an empty list is a fault: an operator who wants
 * to offer fewer tools must not offer all of them by mistake.
 */
function readNames(reading: Reading, name: string): string[] | undefined {
  if (!reading.env[name]) return undefined
  const names = [...new Set(readList(reading, name))]
  if (names.length > 0) return names
  reading.faults.push({
    problem: `${name} is set but names nothing`,
    remedy: `Write names separated by commas, or unset ${name}.`,
  })
  return undefined
}

/**
 * Reads the limits for heavy calls. The limits per caller are set equal to those for all callers together; the
 * authenticated modes later replace them.
 */
function readHeavy(reading: Reading): HeavyConfig {
  const max = readInteger(reading, 'MCP_HEAVY_CALLS', { min: 1, max: 64, otherwise: 4 })
  const queue = readInteger(reading, 'MCP_HEAVY_QUEUE', { min: 0, max: 1000, otherwise: 16 })
  const memoryMb = readInteger(reading, 'MCP_HEAVY_MEMORY_MIB', { min: 64, max: 16_384, otherwise: 512 })
  return { max, perCaller: max, queue, queuePerCaller: queue, memoryMb }
}

/** Returns the tools named in MCP_CONFIRM_TOOLS without duplicates, or undefined if there are none. */
export function readConfirmTools(reading: Pick<Reading, 'env'>): string[] | undefined {
  const tools = [...new Set(readList(reading, 'MCP_CONFIRM_TOOLS'))]
  return tools.length > 0 ? tools : undefined
}

/**
 * The variables that make calls wait for a confirmation. In a mode in which nobody can be asked, it is a fault to set
 * one of them, because the operator relies on the confirmation.
 */
const OF_CONFIRMATION = ['MCP_CONFIRM_TOOLS', 'MCP_APPROVAL', 'MCP_CONFIRM_STDIO', 'MCP_FREEZE_OVERRIDE'] as const

/**
 * Reports variables that make calls wait for a confirmation as faults in a mode without a login. Nobody could be asked
 * in such a mode, so every tool would run as soon as it is called (D149).
 *
 * @param instead the last part of the remedy; the first part is "Unset" and the variable.
 */
export function refuseConfirmation(
  { env, faults }: Reading,
  { except = [], instead }: { except?: readonly (typeof OF_CONFIRMATION)[number][]; instead: string },
): void {
  for (const name of OF_CONFIRMATION) {
    if (!env[name] || except.includes(name)) continue
    if (name === 'MCP_APPROVAL' && env[name] === 'token') continue
    if (name === 'MCP_FREEZE_OVERRIDE' && env[name] === 'off') continue
    if (name === 'MCP_CONFIRM_STDIO' && /^(0|false)$/i.test(env[name].trim())) continue
    faults.push({
      problem: `${name} is set, but nobody logs in here, so no call would wait for its confirmation`,
      remedy: `Unset ${name}, ${name === 'MCP_FREEZE_OVERRIDE' ? 'or run svc-mcp-http with MCP_APPROVAL=page or two-person.' : instead}`,
    })
  }
}

/**
 * Reads the settings of a PCE whose host and key are in the environment. If PCE_HOST, API_KEY or API_SECRET is missing,
 * the caller of this function must report it.
 */
export function readPce(reading: Reading): PceFromEnvironment {
  const { env, warnings } = reading
  const port = readPcePort(reading)
  if (/^api_/.test(env.API_SECRET ?? '') && !/^api_/.test(env.API_KEY ?? ''))
    warnings.push('API_SECRET begins with api_, as API keys do: API_KEY and API_SECRET may be swapped.')
  return {
    url: env.PCE_HOST ?? '',
    port,
    orgId: String(readInteger(reading, 'PCE_ORG_ID', { min: 1, max: Number.MAX_SAFE_INTEGER, otherwise: 1 })),
    apiKey: env.API_KEY ?? '',
    apiSecret: env.API_SECRET ?? '',
    ...readPceConnection(reading),
  }
}

/** Reads the settings for connecting to a PCE, which are the same in every mode and for every PCE key (D10). */
export function readPceConnection(reading: Reading): Pick<PceFromEnvironment, 'tls' | 'proxyUrl' | 'bounds'> {
  const { env, faults, warnings } = reading
  const verify = readSwitch(reading, 'PCE_TLS_VERIFY', true)
  if (!verify)
    warnings.push(
      "PCE_TLS_VERIFY=false: the PCE's certificate is not verified, so anyone on the network path can impersonate it.",
    )
  if (!verify && env.PCE_CA_FILE) warnings.push('PCE_CA_FILE is not used, because PCE_TLS_VERIFY=false.')
  if (env.PCE_CLIENT_KEY_FILE && !env.PCE_CLIENT_CERT_FILE)
    faults.push({
      problem: 'PCE_CLIENT_KEY_FILE requires PCE_CLIENT_CERT_FILE',
      remedy: 'Set PCE_CLIENT_CERT_FILE to the certificate for that key, or unset PCE_CLIENT_KEY_FILE.',
    })
  const hasProxy = /^https?:\/\/[^/]/i.test(env.PCE_PROXY_URL ?? '')
  if (env.PCE_PROXY_URL && env.PCE_PROXY_URL !== '\0' && !hasProxy)
    faults.push({
      problem: 'PCE_PROXY_URL must be an http or https URL',
      remedy: 'Write it with its scheme, such as PCE_PROXY_URL=http://proxy.example.com:3128',
    })
  return {
    tls: {
      verify,
      ...(env.PCE_CA_FILE && { caFile: env.PCE_CA_FILE }),
      ...(env.PCE_CLIENT_CERT_FILE && { clientCertFile: env.PCE_CLIENT_CERT_FILE }),
      ...(env.PCE_CLIENT_KEY_FILE && { clientKeyFile: env.PCE_CLIENT_KEY_FILE }),
    },
    ...(hasProxy && { proxyUrl: env.PCE_PROXY_URL }),
    bounds: {
      answerMib: readInteger(reading, 'MCP_PCE_ANSWER_MIB', { min: 1, max: 256, otherwise: 32 }),
      listMib: readInteger(reading, 'MCP_PCE_LIST_MIB', { min: 1, max: 4096, otherwise: 256 }),
      timeoutSeconds: readInteger(reading, 'MCP_PCE_TIMEOUT_SECONDS', { min: 5, max: 3600, otherwise: 120 }),
    },
  }
}

const DEFAULT_PORT = 443

/**
 * Reads the port of the PCE. If PCE_PORT is not set, the port in PCE_HOST is used; if both are set, they must be equal.
 */
function readPcePort(reading: Reading): string {
  const { env, faults } = reading
  const written = readPceHost(reading)
  if (!env.PCE_PORT) return String(written ?? DEFAULT_PORT)
  if (/^(tcp|udp):\/\//.test(env.PCE_PORT)) {
    const remedy = `It is ${shown(env.PCE_PORT)}, as Kubernetes sets it for a service named pce: give the pod enableServiceLinks: false.`
    faults.push({ problem: 'PCE_PORT must be a whole number from 1 to 65535', remedy })
    return String(DEFAULT_PORT)
  }
  const before = faults.length
  const port = readInteger(reading, 'PCE_PORT', { min: 1, max: 65_535, otherwise: DEFAULT_PORT })
  if (faults.length === before && written !== undefined && written !== port)
    faults.push({ problem: `PCE_HOST names port ${written}, but PCE_PORT is ${port}`, remedy: 'Keep one of the two.' })
  return String(port)
}

/** Checks PCE_HOST and returns the port in it, if any. */
function readPceHost({ env, faults, warnings }: Reading): number | undefined {
  const address = env.PCE_HOST ?? ''
  if (address.trim() === '' || isPlaceholder(address)) return undefined
  const fault = (problem: string, remedy: string) => void faults.push({ problem: `PCE_HOST ${problem}`, remedy })
  const [, scheme, rest = ''] = /^(?:([a-z][a-z0-9+.-]*):\/\/)?(.*)$/is.exec(address.trim()) ?? []
  const example = 'such as PCE_HOST=pce.example.com or PCE_HOST=https://pce.example.com:8443'
  if (scheme !== undefined && !/^https?$/i.test(scheme))
    return fault('must be a host or an http(s) URL', `Its scheme is ${shown(scheme)}: write https, ${example}`)
  if (/^https?(:\/?|\/\/)/i.test(rest))
    return fault('must be a host or an http(s) URL', 'Its scheme is misspelt: write https:// with both slashes.')
  const [, authority = '', path = ''] = /^([^/?#\\]*)(.*)/s.exec(rest) ?? []
  if (address.includes('@'))
    return fault(
      'must be a host or an http(s) URL, without user name and password',
      'The key belongs in API_KEY and API_SECRET: leave out everything before the host.',
    )
  const url = `${scheme ?? 'https'}://${authority}`
  // An IPv6 address has two colons. For anything else Node.js is not asked, because its first answer takes longer than
  // all the rest of reading the settings.
  if (authority.split(':').length > 2 && isIPv6(authority))
    return fault('must be a host or an http(s) URL', `Put brackets around an IPv6 address: PCE_HOST=[${authority}]`)
  if (/\s/.test(authority) || !URL.canParse(url))
    return fault('must be a host or an http(s) URL', `It is ${shown(address)}: write one, ${example}`)
  if (path !== '' && path !== '/')
    return fault(
      'must not contain a path',
      `The API is always at /api on the host: write PCE_HOST=${scheme === undefined ? authority : url}`,
    )
  if (scheme?.toLowerCase() === 'http' && !isLoopback(new URL(url).hostname))
    warnings.push('PCE_HOST begins with http://: the API key goes over the network unencrypted.')
  const port = /:(\d+)$/.exec(authority)?.[1]
  return port === undefined ? undefined : Number(port)
}
