import type { Notice } from './notice.js'
import type { PendingLogin } from './pending-logins.js'
import type { Person } from './person-session.js'

/** What the session library offers. Its values go into the cookie as JSON; setting undefined removes one. */
export interface SessionStore {
  get(key: string): unknown
  set(key: string, value: unknown): void
  delete(): void
  regenerate(): void
}

/** What the session cookie of /setup holds, encrypted: never a token, never a credential. */
export interface SessionData {
  readonly person: Person | undefined
  pendingLogins: PendingLogin[]
  leaveNotice(notice: Notice | null): void
  /** What an earlier form has left, once. */
  takeNotice(): Notice | null
  /** Nothing of what was in the session before stays in it, its CSRF secret included: whoever knew it knows nothing of this one. */
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
