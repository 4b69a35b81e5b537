import type { Owner } from '../../schemas/caller.js'
import type { LastCheck, LastChecks } from '../../schemas/credentials.js'
import type { Notes } from '../../schemas/state.js'

/**
 * The last check of each user's credentials, as a note of the file: it names no PCE, so nothing of it is secret, and versions before this
 * one leave it alone.
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

/** The name of the note; different owners never share one. */
export const nameOfLastCheck = ({ iss, sub }: Owner) => `last_check ${JSON.stringify([iss, sub])}`
