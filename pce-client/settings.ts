import { readFileSync, statSync } from 'node:fs'
import type { LookupFunction } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { type AnswerBounds, type AnswerSizes, boundsOf } from './bound-answers.js'
import { PceError, PceIntegerError } from './errors.js'
import { createPacer, type Pacer } from './pace-requests.js'
import type { AnswerFacts, PceClientOptions, RetryEvent, Timers } from './types.js'

/** The parts of the PCE's address, none of which is secret. */
export interface PceAddress {
  readonly scheme: 'http' | 'https'
  /** The origin `<scheme>://<host>:<port>`, which always includes the port. */
  readonly origin: string
  readonly version: string
  readonly orgId: string
}

/**
 * The settings of one client, including those that its setters change. They live in a closure and are never exposed as
 * a property.
 */
export interface ClientSettings {
  readonly address: PceAddress
  readonly retryCount: number
  readonly totalTimeoutMs: number
  readonly idleTimeoutMs: number
  readonly sizes: AnswerSizes
  readonly bounds: AnswerBounds
  readonly timers: Timers
  readonly onRetry: ((event: RetryEvent) => void) | undefined
  readonly onAnswer: ((facts: AnswerFacts) => void) | undefined
  readonly onRequest: PceClientOptions['onRequest']
  readonly lookup: LookupFunction | undefined
  readonly checkPeer: ((address: string) => void) | undefined
  readonly hideReasons: boolean
  readonly requestId: (() => string | undefined) | undefined
  readonly pacer: Pacer | undefined
  requestTimeoutMs: number
  authorization: string | undefined
  /** The user name of the credentials: an API key's `auth_username`, for example. */
  userName: string | undefined
  proxies: { http: URL | undefined; https: URL | undefined }
  tls: TlsSettings
}

/** Maximum delay of a Node timer in milliseconds; a timer with a longer delay would fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

/** Largest `maxAnswerMib` that can be set: an answer is held as a single string, and Node limits strings to 512 MiB. */
const LARGEST_ANSWER_MIB = 256
const LARGEST_LIST_MIB = 4096

const REAL_TIMERS: Timers = {
  now: () => Date.now(),
  random: () => Math.random(),
  sleep: async (ms, signal) => {
    try {
      await delay(ms, undefined, { signal })
    } catch (error) {
      throw signal?.aborted === true ? signal.reason : error
    }
  },
}

/**
 * Validates the constructor options according to the specification (S9) and P1, without any I/O. The specification
 * passes port and organisation as strings, so digits are accepted for them; values that the specification calls
 * integers must be integers.
 *
 * @throws {PceIntegerError} for a port outside 1..65535, an organisation below 1, a negative retry count, a
 *   `requestTimeout` that is not a whole number of seconds above 0, a time-out longer than a timer can wait, a rate
 *   below 1, or a size that is too small or too large.
 * @throws {PceError} `invalid_argument` for an invalid address or version.
 */
export function readSettings(options: PceClientOptions): ClientSettings {
  const port = integerIn('port', digits(options.port) ?? 443, 1, 65_535)
  const orgId = integerIn('orgId', digits(options.orgId) ?? 1, 1)
  const timers = options.timers ?? REAL_TIMERS
  const rate = options.maxRequestsPerMinute
  const sizes = {
    maxAnswerMib: integerIn('maxAnswerMib', options.maxAnswerMib ?? 32, 1, LARGEST_ANSWER_MIB),
    maxListMib: integerIn('maxListMib', options.maxListMib ?? 256, 1, LARGEST_LIST_MIB),
  }
  return {
    address: {
      ...parseOrigin(options.url, port),
      version: parseVersion(options.version ?? 'v2'),
      orgId: String(orgId),
    },
    retryCount: integerIn('retryCount', options.retryCount ?? 5, 0),
    requestTimeoutMs: readTimeout(options.requestTimeout ?? 30),
    totalTimeoutMs: duration('totalTimeout', options.totalTimeout ?? 120) * 1000,
    idleTimeoutMs: duration('idleTimeout', options.idleTimeout ?? 60) * 1000,
    sizes,
    bounds: boundsOf(sizes),
    timers,
    pacer: rate === undefined ? undefined : createPacer(integerIn('maxRequestsPerMinute', rate, 1), timers),
    onRetry: options.onRetry,
    onAnswer: options.onAnswer,
    onRequest: options.onRequest,
    lookup: options.lookup,
    checkPeer: options.checkPeer,
    hideReasons: options.hideReasons ?? false,
    requestId: options.requestId,
    authorization: undefined,
    userName: undefined,
    proxies: { http: undefined, https: undefined },
    tls: { verify: true },
  }
}

/**
 * Converts a `requestTimeout` from seconds to milliseconds.
 *
 * @throws {PceIntegerError} unless the number is whole, above 0, and not longer than a timer can wait.
 */
export function readTimeout(seconds: number): number {
  return integerIn('requestTimeout', seconds, 1, Math.floor(LONGEST_TIMER_MS / 1000)) * 1000
}

/**
 * Validates the `totalTimeoutMs` of a call and returns it unchanged; undefined if the call has none.
 *
 * @throws {PceIntegerError} if no timer can wait that long.
 */
export function readCallTimeout(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : duration('totalTimeoutMs', ms, 1)
}

/**
 * Parses a proxy address.
 *
 * @throws {PceError} `invalid_argument`; the message does not contain the address, since it may include a password.
 */
export function readProxy(name: string, uri: string | null | undefined): URL | undefined {
  if (uri === undefined || uri === null || uri === '') return undefined
  const url = URL.canParse(uri) ? new URL(uri) : undefined
  if (url === undefined || (url.protocol !== 'http:' && url.protocol !== 'https:') || url.hostname === '') {
    throw new PceError('invalid_argument', `${name} is not an http:// or https:// address`)
  }
  try {
    decodeURIComponent(url.username + url.password)
  } catch {
    throw new PceError(
      'invalid_argument',
      `${name}: its user name and password must be UTF-8, and a % in them is written %25`,
    )
  }
  return url
}

function parseOrigin(url: unknown, port: number): Pick<PceAddress, 'scheme' | 'origin'> {
  // Without this check, `undefined` and `null` would be used as names of hosts.
  if (typeof url !== 'string') throw new PceError('invalid_argument', 'url, the address of the PCE, must be a string')
  const [, givenScheme, rest = ''] = /^(?:([a-z][a-z0-9+.-]*):\/\/)?(.*)$/is.exec(url.trim()) ?? []
  const scheme = givenScheme?.toLowerCase() === 'http' ? 'http' : 'https'
  const authority = rest.split(/[/?#\\]/, 1)[0] ?? ''
  if (authority.includes('@')) {
    throw new PceError('invalid_argument', 'the PCE address must not hold a user name or password; use setCredentials')
  }
  const isBareIpv6 = /^[0-9a-f:.]*$/i.test(authority) && authority.split(':').length > 2
  const candidate = `${scheme}://${isBareIpv6 ? `[${authority}]` : authority}`
  const hostname = URL.canParse(candidate) ? new URL(candidate).hostname : ''
  if (hostname === '') throw new PceError('invalid_argument', 'the PCE address has no usable host name')
  return { scheme, origin: `${scheme}://${hostname}:${port}` }
}

function parseVersion(version: string): string {
  if (!/^[a-z0-9][a-z0-9._-]*$/i.test(version)) {
    throw new PceError('invalid_argument', 'the API version must be a single path segment such as v2')
  }
  return version
}

function digits(value: string | number | undefined): string | number | undefined {
  return typeof value === 'string' && /^\d{1,16}$/.test(value) ? Number(value) : value
}

/** Checks that a value is an integer in a range. @throws {PceIntegerError} otherwise. */
export function integerIn(name: string, value: unknown, least: number, most = Number.MAX_SAFE_INTEGER): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < least || value > most) {
    const range = most === Number.MAX_SAFE_INTEGER ? `of ${least} or more` : `from ${least} to ${most}`
    throw new PceIntegerError(`${name} must be an integer ${range}`)
  }
  return value
}

/**
 * Validates a duration, which need not be an integer, and returns it unchanged. `unitMs` is the number of milliseconds
 * in the duration's unit.
 */
function duration(name: string, value: unknown, unitMs = 1000): number {
  const most = Math.floor(LONGEST_TIMER_MS / unitMs)
  if (typeof value !== 'number' || !(value > 0 && value <= most)) {
    throw new PceIntegerError(`${name} must be a number above 0 and at most ${most}`)
  }
  return value
}

/** The TLS options in the form that Node's connections accept. */
export interface TlsSettings {
  /** If false, any certificate is accepted. */
  verify: boolean
  /**
   * PEM of the certificate authorities to trust, instead of those in Node's own list. If absent, that list applies
   * (with NODE_EXTRA_CA_CERTS).
   */
  ca?: string
  cert?: string
  key?: string
}

/**
 * Reads the files given to `setTlsSettings` and checks that OpenSSL can use them, so that a bad file is reported
 * immediately and not later as a failed handshake.
 *
 * @param verify true for the default trust store, false to accept any certificate, or the path of a PEM bundle to trust
 *   instead.
 * @param cert path of one PEM file with certificate and key, or the paths of a certificate file and a key file.
 * @throws {PceError} `invalid_argument`, naming the path.
 */
export function readTlsFiles(
  verify: boolean | string = true,
  cert: string | readonly [string, string] | null = null,
): TlsSettings {
  const settings: TlsSettings = { verify: verify !== false }
  if (typeof verify === 'string') {
    settings.ca = readPem('CA bundle', verify, 'CERTIFICATE')
    tryInOpenssl({ ca: settings.ca }, `CA bundle ${verify}`)
  }
  if (cert !== null) {
    const [certPath, keyPath] = typeof cert === 'string' ? [cert, cert] : cert
    settings.cert = readPem('client certificate', certPath, 'CERTIFICATE')
    settings.key = readPem('client key', keyPath, 'PRIVATE KEY')
    const paths = certPath === keyPath ? certPath : `${certPath} with key ${keyPath}`
    tryInOpenssl({ cert: settings.cert, key: settings.key }, `client certificate ${paths}`)
  }
  return settings
}

function readPem(what: string, path: string, block: string): string {
  let text: string
  try {
    // Reading a named pipe without a writer would block forever.
    if (!statSync(path).isFile()) throw Object.assign(new Error('no file'), { code: 'not a regular file' })
    text = readFileSync(path, 'utf8')
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code ?? 'unreadable'
    throw new PceError('invalid_argument', `cannot read the ${what} ${path}: ${reason}`, { reason })
  }
  if (!text.includes(`${block}-----`)) {
    throw new PceError('invalid_argument', `the ${what} ${path} has no PEM block of type ${block}`)
  }
  if (block === 'PRIVATE KEY' && /BEGIN ENCRYPTED PRIVATE KEY|Proc-Type: 4,ENCRYPTED/.test(text)) {
    throw new PceError(
      'invalid_argument',
      `the ${what} ${path} is encrypted: save it without a passphrase, for example with openssl pkey`,
    )
  }
  return text
}

function tryInOpenssl(parts: { ca?: string; cert?: string; key?: string }, what: string): void {
  try {
    // The TLS module is loaded only here: loading it takes milliseconds, and without certificate files it is not needed.
    process.getBuiltinModule('node:tls').createSecureContext(parts)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const said = code === 'ERR_OSSL_X509_KEY_VALUES_MISMATCH' ? 'the key belongs to another certificate' : message
    throw new PceError('invalid_argument', `the ${what} cannot be used: ${said}`, { reason: code })
  }
}

/** Returns the value of an Authorization header with Basic credentials (RFC 7617, UTF-8). */
export function basicAuthorization(username: string, password: string): string {
  return `Basic ${Buffer.from(`${username}:${password}`, 'utf8').toString('base64')}`
}
