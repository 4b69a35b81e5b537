import type { LastUse, Notes, People, Registration } from '../schemas/state.js'
import type { Owner } from '../schemas/caller.js'
import { ownersIn } from './revocations.js'

const USED = 'used '
const REGISTERED = 'registered '
/** Maximum number of characters of a person's name that are kept. */
const LONGEST_NAME = 200
/** The latest time that a Date can hold, in milliseconds since the epoch. */
const LATEST = 8.64e15

/** Returns the names of the notes about a person, which are different for every person. */
export const namesOfPerson = ({ iss, sub }: Owner): string[] =>
  [USED, REGISTERED].map((prefix) => `${prefix}${JSON.stringify([iss, sub])}`)

/**
 * Creates an accessor for what the state knows about people, apart from their keys (D296). Each fact is a note;
 * programs of earlier releases ignore these notes.
 */
export function people(notes: Notes): People {
  return {
    async lastUse(owner) {
      const [name] = namesOfPerson(owner)
      return readUse(await notes.get(name!))
    },
    async used(owner, { at, name }) {
      const known = name === undefined ? {} : { name: [...name].slice(0, LONGEST_NAME).join('') }
      await notes.set(namesOfPerson(owner)[0]!, JSON.stringify({ at, ...known }))
    },
    async *allUses() {
      for await (const { owner, value } of ownersIn(notes, USED)) {
        const use = readUse(value)
        if (use !== null) yield { owner, use }
      }
    },
    registered: (owner, { version, at }) => notes.set(namesOfPerson(owner)[1]!, JSON.stringify({ of: version, at })),
    async registration(owner) {
      return readRegistration(await notes.get(namesOfPerson(owner)[1]!))
    },
    async remove(owner) {
      const removed = []
      for (const name of namesOfPerson(owner)) removed.push(await notes.remove(name))
      return removed.some(Boolean)
    },
  }
}

/** Reads a note as a JSON object. Returns an object without properties if the note contains anything else. */
function readFacts(note: string | null): Record<string, unknown> {
  try {
    const found: unknown = JSON.parse(note ?? '{}')
    return typeof found === 'object' && found !== null ? (found as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}

const isTime = (at: unknown): at is number => typeof at === 'number' && Math.abs(at) <= LATEST

function readUse(note: string | null): LastUse | null {
  const { at, name } = readFacts(note)
  if (!isTime(at)) return null
  return typeof name === 'string' && name.length <= 2 * LONGEST_NAME ? { at, name } : { at }
}

function readRegistration(note: string | null): Registration | null {
  const { of, at } = readFacts(note)
  return typeof of === 'string' && isTime(at) ? { version: of, at } : null
}
