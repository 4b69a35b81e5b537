import { isIP } from 'node:net'
import type { CallState } from './call-state.js'
import { PceError } from './errors.js'
import type { ClientSettings } from './settings.js'

/**
 * The `reason` in the error of a connection that used the wrong scheme: TLS to a plain http port, or plain http to a
 * TLS port.
 */
export const SCHEME_MISMATCH = 'SCHEME_MISMATCH'

/** Time-out in milliseconds of the test handshake that shows whether a port speaks TLS. */
const PROBE_MS = 3000
/** The possible first bytes of a TLS server's reply: an alert or a handshake record. */
const TLS_RECORDS = [0x15, 0x16]
/** The messages in OpenSSL's errors that mean that the server's reply was not TLS. */
const NO_TLS = /wrong[ _]version[ _]number|packet[ _]length[ _]too[ _]long|unknown[ _]protocol/i
/** The answers of nginx, Apache and Go servers when a TLS port receives plain http. */
const TLS_WANTED =
  /plain HTTP request was sent to HTTPS port|plain HTTP to an SSL-enabled server|HTTP request to an HTTPS server/i

const mismatch = (what: string) => new PceError('unreachable', what, { reason: SCHEME_MISMATCH })
const speaksTls = ({ origin }: CallState) =>
  mismatch(`the PCE at ${origin} expects TLS there: use ${origin.replace(/^http:/, 'https:')}`)
const speaksNoTls = ({ origin }: CallState) =>
  mismatch(
    `the PCE at ${origin} answers without TLS there, as an http port does: use its https port, or ${origin.replace(/^https:/, 'http:')}`,
  )

/** Returns an error if an answer over plain http says that the port requires TLS. */
export function findTlsWanted(status: number, body: string, state: CallState): PceError | undefined {
  const isPlain = state.origin.startsWith('http:')
  return isPlain && status === 400 && TLS_WANTED.test(body) ? speaksTls(state) : undefined
}

/**
 * Finds out whether a connection failed because the port expects the other scheme (http or https), in which case
 * retries are pointless. Most TLS servers just break off a plain http request. An additional TLS handshake, in which no
 * data is sent, then shows whether the port speaks TLS.
 *
 * @param isLost true if the connection broke before any answer, and this server has never answered before.
 */
export async function findWrongScheme(
  failure: Error,
  state: CallState,
  settings: ClientSettings,
  isLost: boolean,
): Promise<PceError | undefined> {
  if (state.via !== undefined || state.isOver) return undefined
  if (settings.address.scheme === 'https')
    return NO_TLS.test(`${failure.message} ${(failure as NodeJS.ErrnoException).code}`) ? speaksNoTls(state) : undefined
  const { rawPacket } = (failure.cause ?? failure) as { rawPacket?: Buffer }
  if (TLS_RECORDS.includes(rawPacket?.[0] ?? 0)) return speaksTls(state)
  return isLost && (await answersHandshake(state, settings)) ? speaksTls(state) : undefined
}

async function answersHandshake({ origin, signal }: CallState, { lookup }: ClientSettings): Promise<boolean> {
  const { hostname, port } = new URL(origin)
  const host = hostname.replace(/^\[|\]$/g, '')
  const { connect } = await import('node:tls')
  return new Promise((resolve) => {
    const options = {
      host,
      port: Number(port || 80),
      servername: isIP(host) === 0 ? host : '',
      rejectUnauthorized: false,
    }
    const socket = connect({ ...options, ...(lookup !== undefined && { lookup }), timeout: PROBE_MS })
    const end = (answer: boolean) => {
      signal.removeEventListener('abort', giveUp)
      socket.destroy()
      resolve(answer)
    }
    const giveUp = () => end(false)
    signal.addEventListener('abort', giveUp, { once: true })
    socket.once('secureConnect', () => end(true))
    // A TLS alert also shows that the port speaks TLS: a server sends it if it refuses this client, for example because
    // it wants a client certificate.
    socket.once('error', ({ message }: Error) => end(/alert/i.test(message)))
    socket.once('close', giveUp)
    socket.once('timeout', giveUp)
  })
}
