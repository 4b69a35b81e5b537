import { timingSafeEqual } from 'node:crypto'

/** A login that was begun in this browser: what the identity provider's answer is checked against. Lives in the session cookie. */
export interface PendingLogin {
  state: string
  nonce: string
  /** PKCE (RFC 7636). */
  verifier: string
  /** Milliseconds since the epoch. */
  until: number
}

/** A person may be asked for a password, a second factor and consent. */
export const LOGIN_SECONDS = 10 * 60
/** Somebody may open the page in several tabs; the cookie must stay small. */
const MOST_LOGINS = 3

export function addLogin(pending: readonly PendingLogin[] | undefined, login: PendingLogin): PendingLogin[] {
  return [...(pending ?? []), login].slice(-MOST_LOGINS)
}

/** The login that `state` belongs to, and the others; null where none does or its time is over. */
export function takeLogin(
  pending: readonly PendingLogin[] | undefined,
  state: string | null,
  now: number,
): { login: PendingLogin; others: PendingLogin[] } | null {
  if (pending === undefined || state === null) return null
  const login = pending.find((one) => isSame(one.state, state))
  if (login === undefined || login.until <= now) return null
  return { login, others: pending.filter((one) => one !== login) }
}

function isSame(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)]
  return left.length === right.length && timingSafeEqual(left, right)
}
