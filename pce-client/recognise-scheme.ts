import { isIP } from 'node:net'
import type { CallState } from './call-state.js'
import { PceError } from './errors.js'
import type { ClientSettings } from './settings.js'

/** The `reason` of a connection to a port of the other kind: TLS where there is none, or plain http where TLS is expected. */
export const SCHEME_MISMATCH = 'SCHEME_MISMATCH'

/** How long a port that broke off a plain request has to show that it speaks TLS: milliseconds. */
const PROBE_MS = 3000
/** The first byte of what a TLS server sends: an alert, or a part of its handshake. */
const TLS_RECORDS = [0x15, 0x16]
/** What OpenSSL says of bytes that are no TLS. */
const NO_TLS = /wrong[ _]version[ _]number|packet[ _]length[ _]too[ _]long|unknown[ _]protocol/i
/** What servers with TLS tell those who come without it, as far as they tell anything: nginx, Apache, Go. */
const TLS_WANTED =
  /plain HTTP request was sent to HTTPS port|plain HTTP to an SSL-enabled server|HTTP request to an HTTPS server/i

const mismatch = (what: string) => new PceError('unreachable', what, { reason: SCHEME_MISMATCH })
const speaksTls = ({ origin }: CallState) =>
  mismatch(`the PCE at ${origin} expects TLS there: use ${origin.replace(/^http:/, 'https:')}`)
const speaksNoTls = ({ origin }: CallState) =>
  mismatch(
    `the PCE at ${origin} answers without TLS there, as an http port does: use its https port, or ${origin.replace(/^https:/, 'http:')}`,
  )

/** What an error answer over plain http says about the port, where it says that TLS is missing. */
export function findTlsWanted(status: number, body: string, state: CallState): PceError | undefined {
  const isPlain = state.origin.startsWith('http:')
  return isPlain && status === 400 && TLS_WANTED.test(body) ? speaksTls(state) : undefined
}

/**
 * Whether a failed connection went to a port of the other kind, which no repetition mends. Most servers with TLS break off a plain request
 * without a word: then a TLS handshake, in which nothing is sent, tells.
 *
 * @param isLost the connection broke before anything came back, and never has anything come back from there.
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
    // A server that refuses this client, for want of its certificate for example, does so in TLS.
    socket.once('error', ({ message }: Error) => end(/alert/i.test(message)))
    socket.once('close', giveUp)
    socket.once('timeout', giveUp)
  })
}
