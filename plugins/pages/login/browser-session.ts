import { hkdfSync, randomUUID, timingSafeEqual } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { Identity } from '../../../schemas/caller.js'
import type { UsedTokens } from '../../../schemas/state.js'
import type { Notice } from '../layout/page-layout.js'

/** The interface of the session library. Values are stored in the cookie as JSON; setting undefined removes one. */
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
  /** Returns the notice that an earlier form has left, and removes it. */
  takeNotice(): Notice | null
  /**
   * Starts a new session. Nothing of the previous session is kept, not even its CSRF secret, so that knowing the old
   * secret does not help.
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

/** The duration of a session from the login on, regardless of activity (D46). */
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
  /** When the person entered their password, if known, in milliseconds since the epoch. */
  authenticatedAt?: number
}

export function beginSession(identity: Identity, now: number, authenticatedAt?: number): Person {
  const { iss, sub, name, groups, hasGroupsOverage } = identity
  const until = now + SESSION_SECONDS * 1000
  const known = { ...(name !== undefined && { name }), ...(authenticatedAt !== undefined && { authenticatedAt }) }
  return { id: randomUUID(), iss, sub, ...known, groups: [...groups], overage: hasGroupsOverage, until }
}

/**
 * Returns the identity of a session; null if it has expired, was ended, or belongs to another issuer than the current
 * one. Rejects if it cannot be determined whether it was ended.
 */
export async function readSession(
  person: Person | undefined,
  { issuer, now, ended }: { issuer: string; now: number; ended: EndedSessions },
): Promise<Identity | null> {
  if (person === undefined || person.iss !== issuer || person.until <= now) return null
  if (await ended.has(person.id)) return null
  const { sub, name, groups, overage } = person
  return { iss: issuer, sub, groups, hasGroupsOverage: overage, ...(name !== undefined && { name }) }
}

/**
 * A login that was started in this browser. It is kept in the session cookie, and the identity provider's answer is
 * checked against it.
 */
export interface PendingLogin {
  state: string
  nonce: string
  /** The code verifier of PKCE (RFC 7636). */
  verifier: string
  /** The time at which the login expires, in milliseconds since the epoch. */
  until: number
  /** Identifies the issuer at which it was started; absent in logins of earlier releases. */
  at?: string
  /** The conditions of the login, as in the `LoginWish` that started it. */
  isAnew?: boolean
  backTo?: string
  maxAgeSeconds?: number
}

/**
 * The time limit of a login, during which the person may have to enter a password and a second factor and give consent.
 */
export const LOGIN_SECONDS = 10 * 60
/**
 * Maximum number of logins to keep: several, because the page may be open in several tabs, but few, because the cookie
 * must stay small.
 */
const MOST_LOGINS = 3

export function addLogin(pending: readonly PendingLogin[] | undefined, login: PendingLogin): PendingLogin[] {
  return [...(pending ?? []), login].slice(-MOST_LOGINS)
}

/**
 * Finds the login that `state` belongs to, and returns it with the remaining ones, or null if there is none or it has
 * expired.
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
 * The logins that have been tried in this process, so that each causes only one request to the provider. Successful
 * logins are recorded for all processes.
 */
export interface TriedLogins {
  /** Returns whether this is the first attempt for the login with this state. */
  add(state: string): boolean
}

/**
 * Maximum number of logins to remember. A forgotten one can cause one more request to the provider, which refuses it.
 */
const MOST_TRIED = 10_000

/**
 * Creates the memory of tried logins.
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
 * The sessions that were ended early. They are recorded because it is not enough to delete the cookie: someone could go
 * on using a copy of it.
 */
export interface EndedSessions {
  /** `until` is when the session expires by itself and can be forgotten here, in milliseconds since the epoch. */
  add(id: string, until: number): Promise<void>
  has(id: string): Promise<boolean>
}

/** Stores an ended session as a used token, so that no process accepts it again. */
export function keepEndedSessions(used: UsedTokens): EndedSessions {
  const idOf = (session: string) => `setup-session:${session}`
  return {
    add: async (id, until) => void (await used.claim(idOf(id), until)),
    has: (id) => used.isUsed(idOf(id)),
  }
}

const KEY_BYTES = 32

/**
 * Derives the key of the session cookie from a key that every replica has (32 bytes; the key-encryption key of the
 * keystore, if there is one). All replicas derive the same key, nobody has to configure it, and its label separates it
 * from other uses of that key (RFC 5869, 3.2). The derived key depends on the server's address, so that another server
 * with the same key does not accept this server's sessions: the groups in a session may have another meaning there.
 */
export const deriveSessionKey = (key: Buffer, publicUrl: string): Buffer =>
  derive(key, `svc-mcp setup session cookie v2 ${publicUrl}`)

/** Derives from the session key the key that ties CSRF tokens to a person. */
export const deriveCsrfKey = (sessionKey: Buffer): Buffer => derive(sessionKey, 'svc-mcp setup csrf token v1')

const derive = (key: Buffer, label: string) => Buffer.from(hkdfSync('sha256', key, Buffer.alloc(0), label, KEY_BYTES))
