import type { Owner } from '../../schemas/caller.js'
import type { LastCheck, LastChecks } from '../../schemas/credentials.js'
import type { Notes } from '../../schemas/state.js'

/**
 * Creates an accessor for the result of the last check of each user's credentials. Each result is stored in a note,
 * unencrypted: it is not secret, because it does not name the PCE. Older versions of the program ignore these notes.
 */
export function lastChecks(notes: Notes): LastChecks {
  return {
    async find(owner, version) {
      return readCheck(await notes.get(nameOfLastCheck(owner)), version)
    },
    put: (owner, version, check) => notes.set(nameOfLastCheck(owner), JSON.stringify({ of: version, ...check })),
    remove: (owner) => notes.remove(nameOfLastCheck(owner)),
  }
}

/** Returns the name of an owner's note. It is different for every owner. */
export const nameOfLastCheck = ({ iss, sub }: Owner) => `last_check ${JSON.stringify([iss, sub])}`

/** The latest time that a Date can hold, in milliseconds since the epoch. */
const LATEST = 8.64e15
/**
 * Maximum number of characters that are read of the message in a stored result. This server's own messages are far
 * shorter.
 */
const LONGEST_MESSAGE = 2000

/**
 * Reads the note about this version of the credentials. Returns null if there is none, or if its content is not in the
 * form that this server writes.
 */
function readCheck(note: string | null, version: string): LastCheck | null {
  let found: Partial<Record<keyof LastCheck | 'of', unknown>> | null
  try {
    found = JSON.parse(note ?? 'null') as typeof found
  } catch {
    return null
  }
  const { of, at, ok, message } = found ?? {}
  if (of !== version || typeof at !== 'number' || !(Math.abs(at) <= LATEST) || typeof ok !== 'boolean') return null
  if (message === undefined) return { at, ok }
  return typeof message === 'string' && message.length <= LONGEST_MESSAGE ? { at, ok, message } : null
}
