import { lookup } from 'node:dns/promises'
import { readFileSync } from 'node:fs'
import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls, type PeerCertificate, type TLSSocket } from 'node:tls'
import { once } from 'node:events'
import { type PceClient, PceApiError, PceError, type PceResponse } from '../../pce-client/index.js'
import { escapeText, quote } from '../../domain/text/escape-text.js'
import { connectPce } from '../../plugins/context/connect-pce.js'
import { type PceFromEnvironment, StartupError, type StdioConfig } from '../../schemas/config.js'
import { connectionHint } from '../../schemas/errors.js'

/** The result of one check by `svc-mcp doctor`. */
interface Finding {
  check: 'configuration' | 'address' | 'connection' | 'certificate' | 'PCE' | 'credentials' | 'organisation' | 'clock'
  /** The outcome. `skipped` means that an earlier check failed, or that this check does not apply. */
  state: 'ok' | 'warning' | 'failed' | 'skipped'
  found: string
  /** What the operator should do about the problem. */
  remedy?: string
}

/** The address of the PCE in the settings. */
interface Place {
  host: string
  port: number
  isTls: boolean
}

/** The time limit, in milliseconds, of one network step, such as the connection or the TLS handshake. */
const PATIENCE_MS = 5000
/** The time limit of one request to the PCE, including connecting and retries, in milliseconds. */
const ANSWER_MS = 15_000
/** The remaining lifetime, in milliseconds, below which a certificate causes a warning: 30 days. */
const SOON_MS = 30 * 24 * 60 * 60 * 1000
/**
 * Maximum tolerated difference, in seconds, between the clocks of this machine and the PCE. If it is larger, event
 * times and traffic windows are wrong, and tokens over HTTP are rejected.
 */
const LARGEST_SKEW = 30

export interface DoctorPorts {
  /** Reads the settings. Throws or rejects with StartupError. */
  readSettings: () => Promise<Pick<StdioConfig, 'pce' | 'warnings'>>
  /** Writes one or more complete lines of the report. */
  write: (text: string) => void
  /** The first line of the report: the program, its version, and the version of Node.js. */
  heading: string
  /** Returns milliseconds since the epoch. */
  now?: () => number
}

/**
 * Runs `svc-mcp doctor`: checks the settings and the PCE to which they refer. Each finding is written as soon as it is
 * known, with its remedy below it. Resolves with the exit code: 0 if everything essential works, 1 if something failed.
 */
export async function runDoctor({ readSettings, write, heading, now }: DoctorPorts): Promise<number> {
  write(`${heading}\n\n`)
  const counts = { ok: 0, warning: 0, failed: 0, skipped: 0 }
  for await (const finding of examine(readSettings, now)) {
    counts[finding.state] += 1
    write(describeFinding(finding))
  }
  write(`\n${conclude(counts)}\n`)
  return counts.failed === 0 ? 0 : 1
}

const LABELS = { ok: 'ok', warning: 'WARN', failed: 'FAIL', skipped: '-' } as const

/** Formats a finding as lines in which every hidden character is visible, because the lines quote texts of the PCE. */
function describeFinding({ check, state, found, remedy }: Finding): string {
  const line = `${LABELS[state].padEnd(4)}  ${check.padEnd(13)}  ${escapeText(found)}\n`
  return remedy === undefined ? line : `${line}      → ${escapeText(remedy)}\n`
}

function conclude({ warning, failed }: Record<Finding['state'], number>): string {
  const warnings = `${warning} ${warning === 1 ? 'warning' : 'warnings'}`
  if (failed > 0) return `${failed} failed, ${warnings}. Until that is fixed, tools that need the PCE fail.`
  return warning > 0 ? `The PCE can be used. ${warnings}.` : 'Everything that a client needs works.'
}

async function* examine(readSettings: DoctorPorts['readSettings'], now = Date.now): AsyncGenerator<Finding> {
  let settings: Awaited<ReturnType<DoctorPorts['readSettings']>>
  try {
    settings = await readSettings()
  } catch (error) {
    if (!(error instanceof StartupError)) throw error
    yield* findingsOf(error)
    return
  }
  const { pce, warnings } = settings
  yield { check: 'configuration', state: 'ok', found: `${pce.url}, port ${pce.port}, organisation ${pce.orgId}` }
  for (const found of warnings) yield { check: 'configuration', state: 'warning', found }
  yield* examinePce(pce, now)
}

/**
 * Checks the connection to the PCE step by step: address, connection, certificate, the PCE itself, key, organisation,
 * clock. Each step depends on the previous ones. The checks change nothing and send two requests. Problems with the
 * settings, the network or the PCE become findings; the generator never throws for them.
 *
 * @param now returns milliseconds since the epoch.
 */
async function* examinePce(pce: PceFromEnvironment, now: () => number): AsyncGenerator<Finding> {
  let client: PceClient
  try {
    client = connectPce(
      pce,
      { requestId: () => undefined, noteAnswer: () => {} },
      { warn: () => {} },
      { retryCount: 0 },
    )
  } catch (error) {
    if (!(error instanceof StartupError)) throw error
    yield* findingsOf(error)
    return
  }
  try {
    yield* examineWay(pce, placeOf(client))
    yield* examineAnswers(client, now)
  } catch (error) {
    if (!(error instanceof Unreachable)) throw error
    yield error.finding
  } finally {
    client.close()
  }
}

/** Turns each fault in the configuration into a finding of the report. */
const findingsOf = ({ faults }: StartupError): Finding[] =>
  faults.map(({ problem, remedy }) => ({ check: 'configuration', state: 'failed', found: problem, remedy }))

/** The error that ends the checks: a step has failed, so no later step is possible. */
class Unreachable extends Error {
  constructor(readonly finding: Finding) {
    super(finding.found)
  }
}

function placeOf({ origin }: PceClient): Place {
  const { hostname, port, protocol } = new URL(origin)
  const isTls = protocol === 'https:'
  return { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port) || (isTls ? 443 : 80), isTls }
}

/**
 * Checks, one by one, the steps that come before HTTP: address, connection, certificate. Throws Unreachable if a step
 * fails.
 */
async function* examineWay({ tls, proxyUrl }: PceFromEnvironment, place: Place): AsyncGenerator<Finding> {
  if (proxyUrl !== undefined) {
    yield { check: 'connection', state: 'skipped', found: `goes through the proxy ${new URL(proxyUrl).host}` }
    return
  }
  const { address } = await lookup(place.host).catch((error: NodeJS.ErrnoException) => {
    throw unreachable('address', error, `${place.host} has no address`)
  })
  yield { check: 'address', state: 'ok', found: address === place.host ? address : `${place.host} is ${address}` }
  const started = performance.now()
  const socket = await open(place).catch((error: NodeJS.ErrnoException) => {
    throw unreachable('connection', error, `nothing answers at ${address}, port ${place.port}`)
  })
  socket.destroy()
  yield {
    check: 'connection',
    state: 'ok',
    found: `port ${place.port} answers in ${Math.round(performance.now() - started)} ms`,
  }
  if (!place.isTls) {
    const remedy =
      'Anyone on the network can read the API key and secret: use https:// in PCE_HOST, except against a simulator.'
    yield { check: 'certificate', state: 'warning', found: 'none: the connection is plain HTTP', remedy }
    return
  }
  yield await examineCertificate(place, tls)
}

const unreachable = (check: Finding['check'], { code = '' }: NodeJS.ErrnoException, what: string) =>
  new Unreachable({
    check,
    state: 'failed',
    found: code === '' ? what : `${what} (${code})`,
    remedy:
      hintOf({ reason: code, message: '' }) ?? 'Check PCE_HOST and PCE_PORT, and the network between here and the PCE.',
  })

/**
 * Returns the PCE client's hint without "Nothing was changed" at its beginning, because a check never changes anything.
 */
const hintOf = (error: { reason?: string; message: string }) =>
  connectionHint(error)?.replace(/^Nothing was changed\. /, '')

/** Connects to the address. Rejects with the socket's error, or with ETIMEDOUT. */
async function open({ host, port }: Place): Promise<Socket> {
  const socket = connectTcp({ host, port })
  return waitFor(socket, 'connect')
}

async function waitFor<S extends Socket>(socket: S, event: string): Promise<S> {
  try {
    await once(socket, event, { signal: AbortSignal.timeout(PATIENCE_MS) })
    return socket
  } catch (error) {
    socket.destroy()
    throw (error as Error).name === 'AbortError' ? Object.assign(new Error('timed out'), { code: 'ETIMEDOUT' }) : error
  }
}

/**
 * Reports the names in the PCE's certificate and the time at which it expires. Throws Unreachable if the svc-mcp server
 * would reject the PCE's certificate with these settings.
 */
async function examineCertificate(place: Place, settings: PceFromEnvironment['tls']): Promise<Finding> {
  const { verify, caFile, clientCertFile, clientKeyFile } = settings
  const read = (file: string | undefined) => (file === undefined ? undefined : readFileSync(file))
  const socket = connectTls({
    host: place.host,
    port: place.port,
    ...(!/^[\d.]+$|:/.test(place.host) && { servername: place.host }),
    ca: read(caFile),
    cert: read(clientCertFile),
    key: read(clientKeyFile ?? clientCertFile),
    // The certificate is accepted here and verified below, so that the report can name both the fault and the
    // certificate.
    rejectUnauthorized: false,
  })
  const { authorizationError: flaw, certificate } = await lookAt(socket)
  const about = describeCertificate(certificate)
  if (flaw === null) return judgeEnd(about, certificate)
  if (verify) {
    const error = { code: flaw } as NodeJS.ErrnoException
    throw unreachable('certificate', error, `${about} is not trusted`)
  }
  const remedy = 'Anyone on the network could read the API key: set PCE_CA_FILE instead of PCE_TLS_VERIFY=0.'
  return { check: 'certificate', state: 'warning', found: `${about}, not verified (PCE_TLS_VERIFY=0; ${flaw})`, remedy }
}

async function lookAt(socket: TLSSocket): Promise<{ authorizationError: string | null; certificate: PeerCertificate }> {
  await waitFor(socket, 'secureConnect').catch((error: NodeJS.ErrnoException) => {
    throw unreachable('certificate', error, 'no TLS connection could be made')
  })
  const certificate = socket.getPeerCertificate()
  // This field is declared as an Error, but Node.js may also set it to an error code, which is a string.
  const flaw = socket.authorizationError as Error | string | null | undefined
  socket.destroy()
  return {
    certificate,
    authorizationError:
      flaw == null ? null : typeof flaw === 'string' ? flaw : ((flaw as NodeJS.ErrnoException).code ?? flaw.message),
  }
}

function describeCertificate({ subject, issuer }: PeerCertificate): string {
  const [name, by] = [subject, issuer].map((one) => plain(one?.CN ?? one?.O))
  const whose = name === undefined ? 'a certificate without a name' : quote(name)
  return by === undefined ? whose : `${whose}, issued by ${quote(by)}`
}

/**
 * Makes a name from a certificate safe to print. The server chooses this name, so it could contain control characters
 * that affect the terminal.
 */
const plain = (name: string | string[] | undefined) => [name].flat()[0]?.replace(/\p{C}/gu, '\uFFFD').slice(0, 100)

function judgeEnd(about: string, { valid_to: end }: PeerCertificate): Finding {
  const ends = Date.parse(end)
  if (Number.isNaN(ends)) return { check: 'certificate', state: 'ok', found: about }
  const found = `${about}, valid until ${new Date(ends).toISOString().slice(0, 10)}`
  if (ends - Date.now() >= SOON_MS) return { check: 'certificate', state: 'ok', found }
  const remedy = 'The operator of the PCE must renew it by then.'
  return { check: 'certificate', state: 'warning', found, remedy }
}

/** Checks the PCE with two requests, the first of which needs no key. */
async function* examineAnswers(client: PceClient, now: () => number): AsyncGenerator<Finding> {
  const options = { totalTimeoutMs: ANSWER_MS }
  const first = await ask(() => client.get('product_version', { ...options, includeOrg: false }))
  if (first instanceof PceError && !(first instanceof PceApiError)) throw failedAt('PCE', first)
  yield judgeRelease(first)
  const asked = now()
  const answer = await ask(() => client.get('settings/workloads', options))
  yield* judgeAccess(answer, client.orgId)
  const answered = answer instanceof Error ? first : answer
  if (!(answered instanceof Error)) yield judgeClock(answered, (asked + now()) / 2)
}

async function ask(send: () => Promise<PceResponse>): Promise<PceResponse | PceError> {
  try {
    return await send()
  } catch (error) {
    if (error instanceof PceError) return error
    throw error
  }
}

const failedAt = (check: Finding['check'], error: PceError) =>
  new Unreachable({
    check,
    state: 'failed',
    found: error.message,
    remedy:
      hintOf({ ...(error.reason && { reason: error.reason }), message: error.message }) ??
      'Check PCE_HOST and PCE_PORT.',
  })

function judgeRelease(answer: PceResponse | PceError): Finding {
  if (answer instanceof PceApiError && answer.status !== 404)
    return { check: 'PCE', state: 'warning', found: `it does not tell its release (HTTP status ${answer.status})` }
  const told = answer instanceof Error ? {} : readRelease(answer)
  const release = plain(told.long_display ?? told.version)
  if (release !== undefined) return { check: 'PCE', state: 'ok', found: `release ${release}` }
  const remedy = 'Check the host and port: something else may be listening there.'
  return { check: 'PCE', state: 'warning', found: 'the answer does not say that it is a PCE', remedy }
}

function readRelease(answer: PceResponse): { version?: string; long_display?: string } {
  try {
    const { version, long_display: display } = answer.json<Record<string, unknown>>()
    return {
      ...(typeof version === 'string' && { version }),
      ...(typeof display === 'string' && { long_display: display }),
    }
  } catch {
    return {}
  }
}

function* judgeAccess(answer: PceResponse | PceError, orgId: string): Generator<Finding> {
  if (!(answer instanceof Error)) {
    yield { check: 'credentials', state: 'ok', found: 'the PCE accepts the API key and secret' }
    yield { check: 'organisation', state: 'ok', found: orgId }
    return
  }
  if (!(answer instanceof PceApiError)) throw failedAt('credentials', answer)
  const { status } = answer
  if (status === 401) {
    const remedy =
      'Check API_KEY (it begins with api_) and API_SECRET, and whether the key has expired: My API Keys in the console of the PCE.'
    yield { check: 'credentials', state: 'failed', found: 'the PCE does not accept them', remedy }
    yield { check: 'organisation', state: 'skipped', found: 'cannot be checked without a key' }
  } else if (status === 403 || status === 404) {
    yield { check: 'credentials', state: 'ok', found: 'the PCE knows the API key' }
    const remedy = 'Check PCE_ORG_ID (the number in the hrefs of that PCE), and the roles of the user who owns the key.'
    const found = `the key may not read organisation ${orgId} (HTTP status ${status})`
    yield { check: 'organisation', state: 'failed', found, remedy }
  } else {
    const remedy = 'The PCE, or a proxy in front of it, is failing: ask its operator.'
    yield { check: 'credentials', state: 'failed', found: `the PCE answers with HTTP status ${status}`, remedy }
  }
}

function judgeClock({ headers }: PceResponse, asked: number): Finding {
  const theirs = Date.parse(String(headers.date))
  if (Number.isNaN(theirs)) return { check: 'clock', state: 'skipped', found: 'the PCE does not tell its time' }
  // The PCE truncates its time to seconds, so half a second is added, which is the average loss.
  const ahead = Math.round((asked - (theirs + 500)) / 1000)
  if (Math.abs(ahead) <= LARGEST_SKEW) return { check: 'clock', state: 'ok', found: 'as the clock of the PCE' }
  const found = `this machine is ${Math.abs(ahead)} s ${ahead > 0 ? 'ahead of' : 'behind'} the PCE`
  const remedy = 'Synchronise both clocks (NTP): traffic windows and event times are wrong by that much.'
  return { check: 'clock', state: 'warning', found, remedy }
}
