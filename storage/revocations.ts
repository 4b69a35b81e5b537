import type { Owner } from '../schemas/caller.js'
import type { Notes, Revocation, Revocations } from '../schemas/state.js'

const PREFIX = 'revoked '
/** Maximum number of notes that are read at a time. */
const PAGE = 500

/** Returns the name of the note about a person's revocation. It is different for every person. */
export const nameOfRevocation = ({ iss, sub }: Owner): string => `${PREFIX}${JSON.stringify([iss, sub])}`

/**
 * Creates an accessor for revocations (D282). Each revocation is a note. Programs of earlier releases ignore these
 * notes, and both database engines can read them together with the other data of a request.
 */
export function revocations(notes: Notes): Revocations {
  let kept = new WeakMap<Owner, Revocation | null>()
  let edition: object | undefined

  function find(owner: Owner) {
    const name = nameOfRevocation(owner)
    const now = notes.getNow?.(name)
    return now === undefined ? notes.get(name).then(readRevocation) : readRevocation(now)
  }

  return {
    find,
    findOnArrival(owner) {
      const current = notes.edition?.()
      if (current === undefined) return find(owner)
      if (current !== edition) kept = new WeakMap()
      edition = current
      // The requests of one token have the same object as their owner.
      const known = kept.get(owner)
      if (known !== undefined) return known
      const found = find(owner)
      if (!(found instanceof Promise)) kept.set(owner, found)
      return found
    },
    set: (owner, revocation) => notes.set(nameOfRevocation(owner), JSON.stringify(revocation)),
    async *all() {
      for await (const { owner, value } of ownersIn(notes, PREFIX)) yield { owner, revocation: readRevocation(value)! }
    },
  }
}

/** Returns all notes whose name is `prefix` followed by an owner, in a stable order. */
export async function* ownersIn(
  notes: Pick<Notes, 'list'>,
  prefix: string,
): AsyncGenerator<{ owner: Owner; value: string }> {
  for (let after = ''; ;) {
    const page = await notes.list(prefix, after, PAGE)
    for (const { name, value } of page) {
      const owner = ownerIn(name.slice(prefix.length))
      if (owner !== null) yield { owner, value }
    }
    if (page.length < PAGE) return
    after = page.at(-1)!.name
  }
}

/**
 * Reads the note about a revocation. Returns null if there is none. A note that this program did not write counts as a
 * revocation without an end, because somebody meant to lock the person out.
 */
export function readRevocation(note: string | null): Revocation | null {
  if (note === null) return null
  try {
    const { until, at, by } = JSON.parse(note) as Partial<Record<keyof Revocation, unknown>>
    if (typeof until === 'number' && typeof at === 'number' && typeof by === 'string') return { until, at, by }
  } catch {
    // The note is not JSON. It is then treated by the last line of this function.
  }
  return { until: Infinity, at: 0, by: '' }
}

/** Reads the owner from the name of a note; null if this program did not write the name. */
export function ownerIn(text: string): Owner | null {
  try {
    const [iss, sub] = JSON.parse(text) as unknown[]
    return typeof iss === 'string' && typeof sub === 'string' ? { iss, sub } : null
  } catch {
    return null
  }
}
