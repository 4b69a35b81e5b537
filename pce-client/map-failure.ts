import type { CallState } from './call-state.js'
import { ADDRESS_REFUSED } from './connect.js'
import { PceApiError, PceError, type PceApiErrorItem } from './errors.js'
import { isRecord } from './transport.js'
import { SCHEME_MISMATCH } from './recognise-scheme.js'
import { isLostBehindGateway, readRetryAfter, type FailedAttempt } from './retry-policy.js'

/** An error answer of the PCE with its decoded body. */
export interface ErrorAnswer {
  status: number
  statusText: string
  headers: Record<string, string | string[] | undefined>
  body: string
}

/** Why an attempt failed: the PCE answered with an error, or an error prevented an answer. */
export type Failure = ErrorAnswer | Error

/** Error codes for failures to reach the server that an immediate retry would not overcome. */
const CANNOT_CONNECT = new Map([
  ['ECONNREFUSED', 'connection refused'],
  ['ENOTFOUND', 'host name not found'],
  ['EHOSTUNREACH', 'no route to the host'],
  ['ENETUNREACH', 'network unreachable'],
  ['EADDRNOTAVAIL', 'no local address to connect from'],
  ['EACCES', 'connecting is not permitted here'],
])

/** Error codes for a broken connection or a temporary failure of the name service. */
const LOST = new Map([
  ['ECONNRESET', 'connection lost'],
  ['EPIPE', 'connection lost'],
  ['ECONNABORTED', 'connection lost'],
  // Node 24 and later report this for a write to a connection whose TLS handshake broke off.
  ['ECANCELED', 'connection lost'],
  ['ENETRESET', 'connection lost'],
  ['ETIMEDOUT', 'timed out'],
  ['EAI_AGAIN', 'name lookup failed for now'],
  ['ETIMEOUT', 'name lookup timed out'],
  ['ERR_HTTP_CONTENT_LENGTH_MISMATCH', 'the answer broke off'],
  ['ERR_READING_RESPONSE_STREAM', 'the answer broke off'],
  ['ERR_STREAM_PREMATURE_CLOSE', 'the answer broke off'],
  ['Z_BUF_ERROR', 'the answer broke off'],
])

/**
 * For each verification code, an explanation of what is wrong with the server's certificate (OpenSSL,
 * X509_verify_cert_error_string).
 */
const CERTIFICATE = new Map([
  ...[
    'DEPTH_ZERO_SELF_SIGNED_CERT',
    'SELF_SIGNED_CERT_IN_CHAIN',
    'UNABLE_TO_GET_ISSUER_CERT',
    'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
    'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    'CERT_UNTRUSTED',
  ].map((code) => [code, 'no authority that is trusted here has signed its certificate'] as const),
  ['CERT_HAS_EXPIRED', 'its certificate has expired'],
  ['CERT_NOT_YET_VALID', 'its certificate is not valid yet'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'its certificate is for another name'],
])

const TLS_CODE = /^(?:ERR_TLS|ERR_SSL|CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|HOSTNAME_MISMATCH|EPROTO)/

/** Converts any thrown value to an Error, since the reason of an aborted signal may be any value. */
export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error('aborted', { cause: thrown })
}

/** Reduces a failure to the outcome that the retry policy needs. */
export function outcomeOf(failure: Failure, state: CallState): FailedAttempt['outcome'] {
  if (!(failure instanceof Error)) return failure.status
  if (state.isOver) return 'final'
  if (state.ended !== undefined) return state.ended.retry ? 'lost' : 'final'
  if (ownError(failure) !== undefined) return 'final'
  return LOST.has(codeOf(failure)) ? 'lost' : 'final'
}

/**
 * Creates the error with which a call ends. The code is `outcome_unknown` (D3, D23) if a write may have been carried
 * out, because one of its attempts was sent and got no answer, or because of a server error (see `mayBeDone`). The
 * error includes the PCE's last answer. It never includes the HTTP library's error, which holds the request's headers.
 */
export function toPceError(failure: Failure, state: CallState): PceError {
  if (!(failure instanceof Error)) return toApiError(failure, state)
  const { code, why, reason } = explain(failure, state)
  if (state.nature.writes && (state.mayHaveHappened || (state.connected && !isTlsFailure(failure)))) {
    const text = `${state.method} ${state.path} was sent, but its answer is missing (${why}): it may have been carried out. Check before repeating it.`
    return new PceError('outcome_unknown', text, { reason, cause: causeOf(failure, state) })
  }
  return new PceError(code, `${state.method} ${state.path}: ${why}`, { reason, cause: causeOf(failure, state) })
}

function toApiError(answer: ErrorAnswer, state: CallState): PceApiError {
  const { method, path } = state
  const errors = readApiErrors(answer.body)
  const unknown = state.nature.writes && mayBeDone(answer.status, state)
  const said = describeApiErrors(answer.status, answer.statusText, errors)
  const text = unknown
    ? `${method} ${path} may have been carried out${state.answerLost ? ': an answer was lost before' : ','} the PCE answered ${said}. Check before repeating it.`
    : `${method} ${path}: the PCE answered ${said}`
  const retryAfter = answer.headers['retry-after']
  const waitMs = readRetryAfter(typeof retryAfter === 'string' ? retryAfter : undefined, state.now())
  const requestId = answer.headers['x-request-id']
  return new PceApiError(text, {
    status: answer.status,
    method,
    path,
    errors,
    code: unknown ? 'outcome_unknown' : 'api_error',
    retryAfter: waitMs === null ? null : Math.ceil(waitMs / 1000),
    requestId: typeof requestId === 'string' ? requestId.slice(0, 128) : undefined,
  })
}

/**
 * Returns true if the request may have been carried out in any of its attempts. This is possible after a lost answer,
 * and after a 500, which the PCE can return when the work has already been done (D71). It remains possible after a
 * later 503 or 429, which means only that the last attempt was refused.
 */
function mayBeDone(status: number, { answerLost, failedInside, nature }: CallState): boolean {
  if (answerLost || isLostBehindGateway(status)) return true
  if (status === 429) return failedInside
  return status >= 500 && (status !== 503 || failedInside || !nature.repeatable)
}

type Explanation = Pick<PceError, 'code' | 'reason'> & { why: string }

function explain(failure: Error, state: CallState): Explanation {
  const told = explainFully(failure, state)
  const isAboutConnection = told.code === 'unreachable' || told.reason?.startsWith('HPE_') === true
  if (!state.hidesReasons || !isAboutConnection) return told
  return { code: 'unreachable', why: `no usable connection to ${peer(state)}`, reason: undefined }
}

function explainFully(failure: Error, state: CallState): Explanation {
  if (state.cancelled) return { code: 'aborted', why: 'the call was cancelled', reason: undefined }
  if (state.isOver) {
    return { code: 'deadline', why: `not done within ${state.totalTimeoutMs / 1000} s`, reason: 'ETIMEDOUT' }
  }
  const own = state.ended?.error ?? ownError(failure)
  if (own !== undefined) {
    if (own.reason === ADDRESS_REFUSED || own.reason === SCHEME_MISMATCH)
      return { code: own.code, why: own.message, reason: own.reason }
    const why = own.code === 'unreachable' ? `${peer(state)} gave ${own.message}` : own.message
    return { code: own.code, why, reason: own.reason }
  }
  const reason = codeOf(failure)
  if (/^ERR_(?:INVALID|HTTP_INVALID|UNESCAPED)/.test(reason)) {
    return { code: 'invalid_argument', why: `the request cannot be sent (${reason})`, reason }
  }
  if (reason.startsWith('HPE_')) {
    return { code: 'invalid_response', why: `${peer(state)} does not speak proper HTTP (${reason})`, reason }
  }
  return { code: 'unreachable', why: `no answer from ${peer(state)}: ${describeCode(reason, failure)}`, reason }
}

function describeCode(code: string, failure: Error): string {
  const known = CANNOT_CONNECT.get(code) ?? LOST.get(code)
  if (known !== undefined) return `${known} (${code})`
  const flaw = CERTIFICATE.get(code)
  if (flaw !== undefined) return `TLS failed: ${flaw} (${code})`
  if (TLS_CODE.test(code)) return `TLS failed (${code})`
  const refusal = /^Bad response: (\d{3})$/.exec(failure.message)?.[1]
  if (refusal !== undefined) return `the proxy refused the tunnel (${refusal})`
  return code === '' ? 'unknown network failure' : code
}

function peer(state: CallState): string {
  return `the PCE at ${state.origin}${state.via === undefined ? '' : ` through the proxy ${state.via}`}`
}

/**
 * Returns true for a TLS failure. It means that the request was certainly not carried out, even if the server refused
 * the connection only after the handshake, as it does with client certificates in TLS 1.3.
 */
function isTlsFailure(failure: Error): boolean {
  return TLS_CODE.test(codeOf(failure))
}

/** Returns the PceError behind a failure, if any; got wraps errors that its hooks throw. */
function ownError(failure: Error): PceError | undefined {
  if (failure instanceof PceError) return failure
  return failure.cause instanceof PceError ? failure.cause : undefined
}

function codeOf(failure: Error): string {
  const { code } = failure as NodeJS.ErrnoException
  return typeof code === 'string' && code !== 'ERR_GOT_REQUEST_ERROR' ? code : ''
}

/** Returns the caller's reason for cancelling, or the cause of a PceError. A network error is never used as a cause. */
function causeOf(failure: Error, state: CallState): unknown {
  if (state.cancelled) return state.reason
  return ownError(failure)?.cause
}

const LONGEST_MESSAGE = 1000
const LONGEST_TOKEN = 100
const MOST_ITEMS = 20

/**
 * Reads the error items of a PCE answer (P29). They usually have the form `[{token, message}]`; older releases and
 * proxies send `[{error}]`, a single object, `{errors: [...]}`, HTML or nothing. An unusable body gives no items. Texts
 * are truncated because the PCE or a proxy chose their length.
 */
function readApiErrors(body: string): PceApiErrorItem[] {
  const start = body.trimStart()[0]
  if (start !== '[' && start !== '{') return []
  let parsed: unknown
  try {
    parsed = JSON.parse(body)
  } catch {
    return []
  }
  const nested = isRecord(parsed) && Array.isArray(parsed.errors) ? (parsed.errors as unknown[]) : [parsed]
  const items = Array.isArray(parsed) ? (parsed as unknown[]) : nested
  return items.slice(0, MOST_ITEMS).flatMap(readItem)
}

function readItem(item: unknown): PceApiErrorItem[] {
  if (typeof item === 'string') return [{ token: '', message: clip(item, LONGEST_MESSAGE) }]
  if (!isRecord(item)) return []
  const token = typeof item.token === 'string' ? clip(item.token, LONGEST_TOKEN) : ''
  const text = [item.message, item.error].find((value) => typeof value === 'string')
  const message = typeof text === 'string' ? clip(text, LONGEST_MESSAGE) : ''
  return token === '' && message === '' ? [] : [{ token, message }]
}

/**
 * Formats an error answer as `406 Not Acceptable: "token: message; token: message"`, or only the status if the PCE said
 * nothing more. The PCE's text is quoted, because it may repeat names that other people chose.
 */
function describeApiErrors(status: number, statusText: string, errors: readonly PceApiErrorItem[]): string {
  const texts = errors.map(({ token, message }) => [token, message].filter(Boolean).join(': '))
  const head = `${status} ${clip(statusText, LONGEST_TOKEN)}`.trim()
  return texts.length === 0 ? head : `${head}: ${JSON.stringify(clip(texts.join('; '), 2 * LONGEST_MESSAGE))}`
}

function clip(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text
}
