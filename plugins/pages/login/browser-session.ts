import { hkdfSync, randomUUID, timingSafeEqual } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { Identity } from '../../../schemas/caller.js'
import type { UsedTokens } from '../../../schemas/state.js'
import type { Notice } from '../layout/page-layout.js'

/** What the session library offers. Its values go into the cookie as JSON; setting undefined removes one. */
interface SessionStore {
  get(key: string): unknown
  set(key: string, value: unknown): void
  delete(): void
  regenerate(): void
}

/** What the session cookie of the pages holds, encrypted: never a token, never a credential. */
export interface SessionData {
  readonly person: Person | undefined
  pendingLogins: PendingLogin[]
  leaveNotice(notice: Notice | null): void
  /** What an earlier form has left, once. */
  takeNotice(): Notice | null
  /** Nothing of the previous session stays, its CSRF secret included: knowing that one reveals nothing of this one. */
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

/** From the login, however busy the person is (D46). */
export const SESSION_SECONDS = 15 * 60

/** Who is logged in with this browser, as the session cookie carries it. */
export interface Person {
  id: string
  iss: string
  sub: string
  name?: string
  groups: string[]
  overage: boolean
  /** Milliseconds since the epoch. */
  until: number
  /** When they entered their password, as far as that is known: milliseconds since the epoch. */
  authenticatedAt?: number
}

export function beginSession(identity: Identity, now: number, authenticatedAt?: number): Person {
  const { iss, sub, name, groups, hasGroupsOverage } = identity
  const until = now + SESSION_SECONDS * 1000
  const known = { ...(name !== undefined && { name }), ...(authenticatedAt !== undefined && { authenticatedAt }) }
  return { id: randomUUID(), iss, sub, ...known, groups: [...groups], overage: hasGroupsOverage, until }
}

/**
 * The identity of a session that is neither over nor ended, nor of another issuer than the one people log in at now; otherwise
 * null. Rejects when it cannot be determined whether it was ended.
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

/** A login that was started in this browser: what the identity provider's answer is checked against. Kept in the session cookie. */
export interface PendingLogin {
  state: string
  nonce: string
  /** PKCE (RFC 7636). */
  verifier: string
  /** Milliseconds since the epoch. */
  until: number
  /** As it was begun (`LoginWish`). */
  isAnew?: boolean
  backTo?: string
  maxAgeSeconds?: number
}

/** A person may be asked for a password, a second factor and consent. */
export const LOGIN_SECONDS = 10 * 60
/** Someone may open the page in several tabs; the cookie must stay small. */
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

/** Logins that were tried in this process, so that each asks the provider once. Logins that succeeded are recorded for all processes. */
export interface TriedLogins {
  /** Whether it is the first try of the login with this state. */
  add(state: string): boolean
}

/** A login that was forgotten, because so many others were tried after it, can ask the provider once more, and is refused there. */
const MOST_TRIED = 10_000

/** @param now milliseconds. */
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

/** Which sessions were ended before their time: the cookie alone cannot tell, since a copy of it could go on being used. */
export interface EndedSessions {
  /** `until`, in milliseconds since the epoch, is when the session ends by itself and may be forgotten here. */
  add(id: string, until: number): Promise<void>
  has(id: string): Promise<boolean>
}

/** An ended session is kept as a used token: no process takes it again. */
export function keepEndedSessions(used: UsedTokens): EndedSessions {
  const idOf = (session: string) => `setup-session:${session}`
  return {
    add: async (id, until) => void (await used.claim(idOf(id), until)),
    has: (id) => used.isUsed(idOf(id)),
  }
}

const KEY_BYTES = 32

/**
 * The key of the session cookie, from a key that every replica has (32 bytes; the key-encryption key of the keystore, where there is one):
 * all derive the same one, nobody has to configure it, and its label keeps it apart from what else that key protects (RFC 5869, 3.2). The
 * address is in it, so that a server that happens to share the key takes no session of this one: its groups may mean something else there.
 */
export const deriveSessionKey = (key: Buffer, publicUrl: string): Buffer =>
  derive(key, `svc-mcp setup session cookie v2 ${publicUrl}`)

/** The key that ties CSRF tokens to a person, from the session key. */
export const deriveCsrfKey = (sessionKey: Buffer): Buffer => derive(sessionKey, 'svc-mcp setup csrf token v1')

const derive = (key: Buffer, label: string) => Buffer.from(hkdfSync('sha256', key, Buffer.alloc(0), label, KEY_BYTES))
