import { hkdfSync, randomUUID, timingSafeEqual } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { Identity } from '../../../schemas/caller.js'
import type { UsedTokens } from '../../../schemas/state.js'
import type { Notice } from '../layout/page-layout.js'

/**
 * The part of the session library's interface that is used here. Values are stored in the cookie as JSON; setting a
 * value to undefined removes it.
 */
interface SessionStore {
  get(key: string): unknown
  set(key: string, value: unknown): void
  delete(): void
  regenerate(): void
}

/** The contents of the pages' session cookie, which is encrypted. It never contains a token or a credential. */
export interface SessionData {
  readonly person: Person | undefined
  pendingLogins: PendingLogin[]
  leaveNotice(notice: Notice | null): void
  /** Returns the notice that a previous form has left in the session, and removes it. */
  takeNotice(): Notice | null
  /**
   * Starts a new session. It contains nothing of the previous session, not even the CSRF secret, so that nobody who
   * knows the old secret can use it.
   */
  logIn(person: Person): void
  end(): void
}

export function readSessionData(store: SessionStore): SessionData {
  return {
    get person() {
      return store.get('person') as Person | undefined
    },
    get pendingLogins() {
      return (store.get('logins') as PendingLogin[] | undefined) ?? []
    },
    set pendingLogins(logins) {
      store.set('logins', logins)
    },
    leaveNotice: (notice) => store.set('notice', notice ?? undefined),
    takeNotice() {
      const notice = store.get('notice') as Notice | undefined
      if (notice !== undefined) store.set('notice', undefined)
      return notice ?? null
    },
    logIn(person) {
      store.regenerate()
      store.set('person', person)
    },
    end: () => store.delete(),
  }
}

/** The maximum duration of a session after the login, regardless of activity (D46). */
export const SESSION_SECONDS = 15 * 60

/** The person who is logged in with this browser, as stored in the session cookie. */
export interface Person {
  id: string
  iss: string
  sub: string
  name?: string
  groups: string[]
  overage: boolean
  /** The time at which the session expires, in milliseconds since the epoch. */
  until: number
  /** The time at which the person entered the password, in milliseconds since the epoch, if it is known. */
  authenticatedAt?: number
}

export function beginSession(identity: Identity, now: number, authenticatedAt?: number): Person {
  const { iss, sub, name, groups, hasGroupsOverage } = identity
  const until = now + SESSION_SECONDS * 1000
  const known = { ...(name !== undefined && { name }), ...(authenticatedAt !== undefined && { authenticatedAt }) }
  return { id: randomUUID(), iss, sub, ...known, groups: [...groups], overage: hasGroupsOverage, until }
}

/**
 * Returns the identity in a session. Returns null if the session has expired, was ended, or was started with a
 * different issuer than the current one, or if the person's access was revoked. Rejects if it cannot be determined
 * whether the session was ended.
 */
export async function readSession(person: Person | undefined, options: SessionOptions): Promise<Identity | null> {
  const { issuer, now, ended, isRevoked } = options
  if (person === undefined || person.iss !== issuer || person.until <= now) return null
  if (await ended.has(person.id)) return null
  const { sub, name, groups, overage, until } = person
  const issuedAt = until / 1000 - SESSION_SECONDS
  const identity = {
    iss: issuer,
    sub,
    groups,
    hasGroupsOverage: overage,
    issuedAt,
    ...(name !== undefined && { name }),
  }
  return (await isRevoked?.(identity)) === true ? null : identity
}

interface SessionOptions {
  issuer: string
  now: number
  ended: EndedSessions
  /** Returns true if the person's access was revoked after this session began. */
  isRevoked?: ((identity: Identity) => boolean | Promise<boolean>) | undefined
}

/**
 * A login that was started in this browser. It is stored in the session cookie, so that the identity provider's answer
 * can be compared with it.
 */
export interface PendingLogin {
  state: string
  nonce: string
  /** The code verifier of this login's PKCE exchange (RFC 7636). */
  verifier: string
  /** The time at which the login expires, in milliseconds since the epoch. */
  until: number
  /** Identifies the issuer for which the login was started; absent in logins that earlier releases started. */
  at?: string
  /** The conditions of the login, with the same meaning as in `LoginWish`. */
  isAnew?: boolean
  backTo?: string
  maxAgeSeconds?: number
}

/**
 * The time limit of a login, in seconds. It leaves time for a password, a second factor, and a page that asks for
 * consent.
 */
export const LOGIN_SECONDS = 10 * 60
/**
 * Maximum number of unfinished logins in the cookie. More than one is kept, because a person may have pages open in
 * several tabs; only a few are kept, because the cookie must stay small.
 */
const MOST_LOGINS = 3

export function addLogin(pending: readonly PendingLogin[] | undefined, login: PendingLogin): PendingLogin[] {
  return [...(pending ?? []), login].slice(-MOST_LOGINS)
}

/**
 * Finds the unfinished login with this `state`. Returns it together with the list of the other logins, or null if there
 * is no such login or it has expired.
 */
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

/**
 * The logins that this process has tried to complete. They are remembered, so that the code of each login is sent to
 * the provider only once. Successful logins are also recorded for all processes.
 */
export interface TriedLogins {
  /** Remembers an attempt to complete the login with this `state`. Returns true if it is the first attempt. */
  add(state: string): boolean
}

/**
 * Maximum number of remembered logins. If a login is forgotten, a repeated attempt causes one more request to the
 * provider, which refuses it.
 */
const MOST_TRIED = 10_000

/**
 * Creates the memory of the logins that this process has tried to complete.
 *
 * @param now returns milliseconds.
 */
export function rememberTriedLogins(now: () => number): TriedLogins {
  const tried = new LRUCache<string, true>({
    max: MOST_TRIED,
    ttl: LOGIN_SECONDS * 1000,
    ttlResolution: 0,
    perf: { now },
  })
  return {
    add(state) {
      if (tried.has(state)) return false
      tried.set(state, true)
      return true
    },
  }
}

function isSame(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)]
  return left.length === right.length && timingSafeEqual(left, right)
}

/**
 * The record of sessions that were ended before they expired. Deleting the cookie is not enough, because somebody could
 * continue to use a copy of it.
 */
export interface EndedSessions {
  /**
   * Records the end of a session. `until` is the time, in milliseconds since the epoch, at which the session would have
   * expired; after it, the record can be deleted.
   */
  add(id: string, until: number): Promise<void>
  has(id: string): Promise<boolean>
}

/**
 * Creates a record of ended sessions. It records each ended session in the store of used tokens, so that no process
 * accepts the session again.
 */
export function keepEndedSessions(used: UsedTokens): EndedSessions {
  const idOf = (session: string) => `setup-session:${session}`
  return {
    add: async (id, until) => void (await used.claim(idOf(id), until)),
    has: (id) => used.isUsed(idOf(id)),
  }
}

const KEY_BYTES = 32

/**
 * Derives the key that encrypts the session cookie from a key of 32 bytes that every replica has (the key-encryption
 * key of the keystore, if there is one). All replicas derive the same key, and nobody has to configure it. The label
 * keeps the derived key separate from other keys that are derived from the same original (RFC 5869, 3.2). The label
 * contains the server's address, so that another server with the same original key does not accept this server's
 * sessions: the groups in a session may have a different meaning there.
 */
export const deriveSessionKey = (key: Buffer, publicUrl: string): Buffer =>
  derive(key, `svc-mcp setup session cookie v2 ${publicUrl}`)

/** Derives, from the session key, the key that binds CSRF tokens to a person. */
export const deriveCsrfKey = (sessionKey: Buffer): Buffer => derive(sessionKey, 'svc-mcp setup csrf token v1')

const derive = (key: Buffer, label: string) => Buffer.from(hkdfSync('sha256', key, Buffer.alloc(0), label, KEY_BYTES))
