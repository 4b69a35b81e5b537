import type { Owner } from '../../schemas/caller.js'
import type { LastCheck, LastChecks } from '../../schemas/credentials.js'
import type { Notes } from '../../schemas/state.js'

/**
 * Stores the last check of each user's credentials as a note. The note names no PCE, so it is not secret, and older
 * versions of the program ignore it.
 */
export function lastChecks(notes: Notes): LastChecks {
  return {
    async find(owner, version) {
      const { of, ...check } = JSON.parse((await notes.get(nameOfLastCheck(owner))) ?? '{}') as Partial<
        LastCheck & { of: string }
      >
      return of === version ? (check as LastCheck) : null
    },
    put: (owner, version, check) => notes.set(nameOfLastCheck(owner), JSON.stringify({ of: version, ...check })),
    remove: (owner) => notes.remove(nameOfLastCheck(owner)),
  }
}

/** Returns the name of the note, which is different for every owner. */
export const nameOfLastCheck = ({ iss, sub }: Owner) => `last_check ${JSON.stringify([iss, sub])}`
