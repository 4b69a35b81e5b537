import { LRUCache } from 'lru-cache'
import { PceApiError } from '../../pce-client/index.js'
import type { Owner } from '../../schemas/caller.js'
import type {
  ConnectionReport,
  CredentialFacts,
  Keystore,
  LastChecks,
  PceCredentials,
} from '../../schemas/credentials.js'
import { type ErrorCode, ToolError } from '../../schemas/errors.js'
import type { Connect, ContextLog } from './find-pce.js'
import type { PceHosts } from './pce-hosts/create-pce-hosts.js'
import { type AttemptTime, type ProvenPces, tryConnection } from './prove-pce.js'
import type { Admissions } from '../../schemas/state.js'

export interface RegistrationPorts {
  keystore: Pick<Keystore, 'find' | 'write'>
  lastChecks: Pick<LastChecks, 'put'>
  /** Returns milliseconds since the epoch. */
  now: () => number
  hosts: Pick<PceHosts, 'admit' | 'inspect'>
  connect: Connect
  /** Drops the client for the owner's previous credentials from the pool. */
  dropClient: (owner: Owner) => void
  /** Counts a registration; throws ToolError `rate_limited` or `overloaded` if there are too many. */
  limit: (owner: Owner) => void | Promise<void>
  allowsInsecureTls: boolean
  /**
   * Returns true if the PCE's certificate is actually verified. `isWanted` is the user's setting in the registration.
   */
  isTlsChecked: (isWanted: boolean) => boolean
  /** Starts the timer that gives all failing connection attempts the same duration. */
  startAttempt: () => AttemptTime
  proven: ProvenPces
  log: ContextLog
}

/**
 * Stores a caller's credentials and tries the PCE with them (D18). If the caller already has credentials that can be
 * read, the PCE is tried first. The new credentials then replace the old ones only if the PCE accepts them or
 * `replaceAnyway` is set (D110).
 *
 * If the function rejects, nothing has been stored. If the old credentials were kept because the PCE did not accept the
 * new ones, the ToolError is `pce_error` or `pce_unreachable`, with `kept: true`. Otherwise, it is `invalid_argument
 * {problems}`, `rate_limited`, `overloaded`, `pce_unreachable` or `keystore_unavailable`.
 */
export async function registerCredentials(
  ports: RegistrationPorts,
  owner: Owner,
  given: PceCredentials,
  replaceAnyway: boolean,
): Promise<{ facts: CredentialFacts; connection: ConnectionReport }> {
  const { keystore, hosts, log } = ports
  const problems = checkCredentials(given, ports.allowsInsecureTls)
  const admitted = hosts.admit(given.host, given.port)
  if ('problem' in admitted) problems.push({ path: '/pce_host', message: admitted.problem })
  if ('problem' in admitted || problems.length > 0) throw refusal(problems)
  await ports.limit(owner)
  const problem = await hosts.inspect(admitted.host, given.port)
  if (problem !== null) throw refusal([{ path: '/pce_host', message: problem }])

  const credentials = { ...given, host: admitted.host }
  const facts = credentialFacts(credentials, ports)
  // The client is created before anything is stored, because credentials from which no client can be created are
  // useless.
  const client = ports.connect(credentials, { once: true })
  const mustWork = !replaceAnyway && (await hasReadable(keystore, owner))
  const store = async () => {
    const version = await keystore.write(owner, credentials)
    ports.dropClient(owner)
    return version
  }

  const storedFirst = mustWork ? null : await store()
  const { report, cause } = await tryConnection(client, ports.startAttempt())
  if (cause !== undefined) {
    const { message } = cause as Error
    log.info({ sub: owner.sub, pce_host: facts.host, reason: message }, 'no PCE answered during a registration')
  }
  if (report.error !== undefined && mustWork) throw keptOthers(report.error, cause)
  const version = storedFirst ?? (await store())
  if (report.ok) ports.proven.add(owner, credentials)
  await noteCheck(ports, owner, version, report.error?.message)
  return { facts, connection: report }
}

/**
 * Returns true if the caller has stored credentials that can be decrypted, so that they may still be valid. Rejects
 * with ToolError `keystore_unavailable`.
 */
async function hasReadable(keystore: Pick<Keystore, 'find'>, owner: Owner): Promise<boolean> {
  const record = await keystore.find(owner)
  try {
    record?.open()
    return record !== null
  } catch {
    return false
  }
}

/**
 * Creates the error for the case that the PCE did not accept new credentials and the earlier ones are kept. It says
 * what failed, and that the earlier credentials stay in use. The stored result of their last check does not change.
 */
function keptOthers({ code, message }: NonNullable<ConnectionReport['error']>, cause: unknown): ToolError {
  const status = code === 'pce_error' && cause instanceof PceApiError ? { http_status: cause.status } : {}
  return new ToolError(
    code as ErrorCode,
    `${message} Nothing was stored, and your registered credentials stay in use.`,
    { kept: true, ...status },
    { hint: 'Correct the entry, or repeat it with replace_anyway: true to store it without an answer of the PCE.' },
  )
}

/** Stores the result of a connection attempt, so that the owner can see it. An error of the store is only logged. */
export async function noteCheck(
  { lastChecks, now, log }: Pick<RegistrationPorts, 'lastChecks' | 'now' | 'log'>,
  owner: Owner,
  version: string,
  problem: string | undefined,
): Promise<void> {
  const check = { at: now(), ok: problem === undefined, ...(problem !== undefined && { message: problem }) }
  await lastChecks
    .put(owner, version, check)
    .catch((err: unknown) => log.info({ err }, 'the last check of credentials was not recorded'))
}

function refusal(problems: readonly FieldProblem[]): ToolError {
  const said = problems.map(({ path, message }) => `${path}: ${message}`).join('; ')
  return new ToolError('invalid_argument', `Nothing was stored. ${said}`, { problems })
}

/** Returns the fields of the credentials that may be shown to people. */
export function credentialFacts(
  credentials: PceCredentials,
  { isTlsChecked }: Pick<RegistrationPorts, 'isTlsChecked'>,
): CredentialFacts {
  const { host, port, orgId, label } = credentials
  return { host, port, orgId, tlsVerify: isTlsChecked(credentials.tlsVerify), ...(label !== undefined && { label }) }
}

interface FieldProblem {
  /**
   * JSON pointer to the argument of register-pce-credentials. The field of the form has the same name as this argument.
   */
  path: string
  message: string
}

const MOST_CHARACTERS = { '/api_key': 255, '/api_secret': 1024, '/label': 100 }

/** Returns the problems with all fields of the credentials except the host. The messages never contain the values. */
function checkCredentials(credentials: PceCredentials, allowsInsecureTls: boolean): FieldProblem[] {
  const { port, orgId, apiKey, apiSecret, tlsVerify, label } = credentials
  const problems = [
    ...(isWhole(port, 65_535) ? [] : [{ path: '/pce_port', message: 'a port is a whole number from 1 to 65535' }]),
    ...(isWhole(orgId) ? [] : [{ path: '/pce_org_id', message: 'an organisation id is a whole number, 1 or more' }]),
    ...checkText('/api_key', apiKey),
    ...checkText('/api_secret', apiSecret),
    ...(label === undefined ? [] : checkText('/label', label)),
  ]
  if (!tlsVerify && !allowsInsecureTls) {
    const message = 'the operator does not allow turning the certificate check off (MCP_ALLOW_INSECURE_PCE_TLS)'
    problems.push({ path: '/tls_verify', message })
  }
  return problems
}

const isWhole = (value: number, most = Number.MAX_SAFE_INTEGER) =>
  Number.isSafeInteger(value) && value >= 1 && value <= most

function checkText(path: keyof typeof MOST_CHARACTERS, text: string): FieldProblem[] {
  const most = MOST_CHARACTERS[path]
  if (text.trim() === '') return [{ path, message: 'it is empty' }]
  if (text.length > most) return [{ path, message: `at most ${most} characters` }]
  // Line breaks could end a header or a line of a log. Invisible characters and characters that change the text
  // direction can make one label look like another.
  if (/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u.test(text)) return [{ path, message: 'it contains invisible characters' }]
  // Everything after the first colon in the key would be read as the secret (RFC 7617, 2).
  if (path === '/api_key' && text.includes(':')) return [{ path, message: 'an API key contains no colon' }]
  return []
}

/**
 * Maximum number of registrations by one owner within any minute. There is a limit because each registration makes this
 * server connect to an address that the caller has chosen (D48).
 */
const MOST = 5
const WINDOW_MS = 60_000
const MOST_OWNERS = 10_000

/**
 * Creates the function that counts the registrations of each owner. It throws or rejects with ToolError `rate_limited
 * {retry_after: seconds}` if the owner has already registered five times within the last minute. It rejects with
 * `overloaded` if too many requests of the owner are waiting to be counted.
 *
 * @param now returns milliseconds.
 */
export function limitRegistrations(now: () => number, admissions?: Admissions): (owner: Owner) => void | Promise<void> {
  const starts = new LRUCache<string, readonly number[]>({ max: MOST_OWNERS })
  const limitHere = ({ iss, sub }: Owner) => {
    const key = JSON.stringify([iss, sub])
    const at = now()
    const recent = (starts.get(key) ?? []).filter((start) => start > at - WINDOW_MS && start <= at)
    const [oldest] = recent
    if (oldest !== undefined && recent.length >= MOST) throw tooMany(Math.ceil((oldest + WINDOW_MS - at) / 1000))
    starts.set(key, [...recent, at])
  }
  if (admissions === undefined) return limitHere
  return async (owner) => {
    try {
      await admissions.count('registrations', owner, MOST, 1)
    } catch (error) {
      if (!(error instanceof ToolError)) return limitHere(owner)
      if (error.code !== 'rate_limited') throw error
      throw tooMany(Number(error.details.retry_after))
    }
  }
}

const tooMany = (seconds: number) =>
  new ToolError(
    'rate_limited',
    `PCE credentials can be registered ${MOST} times a minute.`,
    { retry_after: seconds },
    { hint: `Try again in ${seconds} s.` },
  )
