import { randomUUID } from 'node:crypto'
import type { Identity } from '../../schemas/caller.js'
import type { EndedSessions } from './ports.js'

/** From the login, however busy the person is (D46). */
export const SESSION_SECONDS = 15 * 60

/** Who is logged in with this browser, as the session cookie carries it. */
export interface Person {
  id: string
  iss: string
  sub: string
  groups: string[]
  overage: boolean
  /** Milliseconds since the epoch. */
  until: number
}

export function beginSession(identity: Identity, now: number): Person {
  const { iss, sub, groups, hasGroupsOverage } = identity
  const until = now + SESSION_SECONDS * 1000
  return { id: randomUUID(), iss, sub, groups: [...groups], overage: hasGroupsOverage, until }
}

/**
 * The identity of a session that is neither over nor ended, nor of another issuer than the one people log in at now; else null. Rejects
 * when nobody can say whether it was ended.
 */
export async function readSession(
  person: Person | undefined,
  { issuer, now, ended }: { issuer: string; now: number; ended: EndedSessions },
): Promise<Identity | null> {
  if (person === undefined || person.iss !== issuer || person.until <= now) return null
  if (await ended.has(person.id)) return null
  return { iss: issuer, sub: person.sub, groups: person.groups, hasGroupsOverage: person.overage }
}
