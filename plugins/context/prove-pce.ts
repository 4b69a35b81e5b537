import { setTimeout as wait } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import { PceApiError, type PceClient } from '../../pce-client/index.js'
import type { Owner } from '../../schemas/caller.js'
import type { ConnectionReport, CredentialsPort } from '../../schemas/credentials.js'
import { connectionHint, ToolError } from '../../schemas/errors.js'
import type { PceEndpoint } from './find-pce.js'

/** For each user, the addresses at which a PCE has answered this user since the process started. */
export interface ProvenPces {
  readonly has: (owner: Owner, place: PceEndpoint) => boolean
  readonly add: (owner: Owner, place: PceEndpoint) => void
}

/** Maximum number of remembered addresses. An address that was forgotten must be tried again. */
const MOST_PROVEN = 10_000

export function rememberProven(): ProvenPces {
  const proven = new LRUCache<string, true>({ max: MOST_PROVEN })
  return {
    has: (owner, place) => proven.get(keyOf(owner, place)) === true,
    add: (owner, place) => void proven.set(keyOf(owner, place), true),
  }
}

const keyOf = ({ iss, sub }: Owner, { host, port }: PceEndpoint) => JSON.stringify([iss, sub, host, port])

/**
 * The timer of one attempt to reach a PCE. A failed attempt lasts exactly as long as the timer, unless the PCE refused
 * the key.
 */
export interface AttemptTime {
  /** The signal that aborts the attempt when its time is up. */
  readonly isUp: AbortSignal
  /** Resolves when the time of the attempt is up. */
  readonly rest: () => Promise<void>
  /** Stops the timer when the attempt is over. */
  readonly stop: () => void
}

/** Starts the timer of an attempt with the timers of Node.js. */
export function startAttempt(ms: number): AttemptTime {
  const stopped = new AbortController()
  const timeUp = new AbortController()
  const end = wait(ms, undefined, { signal: stopped.signal }).then(
    () => timeUp.abort(),
    () => undefined,
  )
  return { isUp: timeUp.signal, rest: () => end, stop: () => stopped.abort() }
}

/** A function that creates a client for a single attempt. */
type ConnectOnce = () => PceClient

type NoteCheck = CredentialsPort['noteCheck']

/**
 * Creates the function that decides whether a call may use the location of a PCE. A location where a PCE has already
 * answered the caller is permitted at once. Any other location is first tried once, in the same way as when a person registers a PCE. All failures
 * except a refused key take the same time, so that the duration of a call reveals nothing about other people's networks
 * (D84). Simultaneous calls share one attempt.
 *
 * @param start starts the timer that gives all failing attempts the same duration.
 * @returns a function that tries a location and reports each attempt to the callback `note`: the problem if the attempt
 * failed, or undefined if it succeeded. The function's promise rejects with ToolError `pce_unreachable`, with `pce_error {http_status}` for a refused key, or with the reason of
 * `signal` if the signal is aborted.
 */
export function createProver(
  proven: ProvenPces,
  start: () => AttemptTime,
): (owner: Owner, place: PceEndpoint, connect: ConnectOnce, note: NoteCheck, signal: AbortSignal) => Promise<void> {
  const trying = new Map<string, Promise<ToolError | null>>()

  async function tryPlace(
    owner: Owner,
    place: PceEndpoint,
    connect: ConnectOnce,
    note: NoteCheck,
  ): Promise<ToolError | null> {
    const { report, cause } = await tryConnection(connect(), start())
    await note(report.error?.message)
    if (report.error === undefined) {
      proven.add(owner, place)
      return null
    }
    const { code, message } = report.error
    if (!(cause instanceof PceApiError)) return new ToolError('pce_unreachable', message)
    if (code === 'pce_error') return new ToolError('pce_error', message, { http_status: cause.status })
    // The PCE client gives a reason only if the caller's role is above `reader`, because only such callers may operate
    // a PCE.
    const { reason } = cause
    return reason === undefined
      ? new ToolError('pce_unreachable', message)
      : new ToolError('pce_unreachable', cause.message, { reason }, { hint: connectionHint(cause) })
  }

  return async (owner, place, connect, note, signal) => {
    if (proven.has(owner, place)) return
    const key = keyOf(owner, place)
    let attempt = trying.get(key)
    if (attempt === undefined) {
      attempt = tryPlace(owner, place, connect, note).finally(() => trying.delete(key))
      trying.set(key, attempt)
    }
    const problem = await orAborted(attempt, signal)
    if (problem !== null) throw problem
  }
}

/** Waits for `work`. If the signal is aborted, rejects at once with the signal's reason, while `work` continues. */
async function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted()
  let stop = () => {}
  const aborted = new Promise<never>((_resolve, reject) => {
    stop = () => reject(signal.reason as Error)
    signal.addEventListener('abort', stop, { once: true })
  })
  try {
    return await Promise.race([work, aborted])
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

/**
 * The messages for statuses that only a PCE sends and that the PCE's owner needs to know about. An explanation of any
 * other answer would reveal something about a foreign network.
 */
const EXPLAINED: Record<number, string> = {
  401: 'The PCE does not accept the API key and secret.',
  403: 'The PCE knows the key, but the key is not for this organisation or may not read its settings.',
}
const UNREACHABLE = 'No PCE could be reached at this address. Check host, port, certificate and network.'

/**
 * Tries the PCE once, with a request for its health and a request within the organisation. Any failure other than 401
 * or 403 (unknown name, refused, filtered, no TLS, unknown certificate, not a PCE) results in the same message after
 * the same time, so that neither a registration nor a call can be used as a port scanner (D48, D84).
 *
 * @param time the timer of the attempt. Such a failure takes exactly as long as the timer, and a success at most as
 * long.
 * @returns the report, and the cause of a failure for the log.
 */
export async function tryConnection(
  client: PceClient,
  time: AttemptTime,
): Promise<{ report: ConnectionReport; cause?: unknown }> {
  try {
    await client.mustConnect({ signal: time.isUp })
    return { report: { ok: true } }
  } catch (cause) {
    const explained = cause instanceof PceApiError ? EXPLAINED[cause.status] : undefined
    if (explained !== undefined)
      return { report: { ok: false, error: { code: 'pce_error', message: explained } }, cause }
    await time.rest()
    return { report: { ok: false, error: { code: 'pce_unreachable', message: UNREACHABLE } }, cause }
  } finally {
    time.stop()
    client.close()
  }
}
