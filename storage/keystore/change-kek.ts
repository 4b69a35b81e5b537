import { setImmediate } from 'node:timers/promises'
import type { Owner } from '../../schemas/caller.js'
import { StartupError } from '../../schemas/config.js'
import type { CredentialRecords, Notes, PutCondition, SealedCredentials } from '../../schemas/state.js'
import { MOVED_NOTE } from '../state/tables.js'
import { type Keys, rewrapRecord } from './envelope.js'

/**
 * The name of the note with the id of the key that the keystore uses: its records are encrypted with this key. During a
 * key change, it is still the old key, with which all records that have not been rewrapped yet are encrypted.
 */
const KEK_NOTE = 'kek'
/**
 * The name of the note with the id of the new key during a key change. It is written when a server first starts with
 * both keys. After the key change, this note and the note `kek` contain the same id.
 */
const NEXT_KEK_NOTE = 'kek_next'
/** The names of the notes that must be moved together with a keystore. */
export const KEPT_KEY_NOTES = [KEK_NOTE, NEXT_KEK_NOTE] as const
const PAGE = 200

/** The location of a keystore, for messages: the file or database, and the variable that names it. */
export interface KeystorePlace {
  name: string
  variable: 'MCP_KEYSTORE_PATH' | 'MCP_STATE_URL'
}

interface KeystoreFile {
  records: CredentialRecords
  notes: Notes
  place: KeystorePlace
}

/**
 * Decides whether a server with these keys may start. The keystore's key must be MCP_KEK or, before and during a key
 * change, MCP_KEK_PREVIOUS. A keystore that has never been used adopts MCP_KEK as its key. The first start with a new
 * key records the id of this key in a note.
 *
 * A key change must be finished before the next one begins. While some records are still encrypted with the old key or
 * the new key of a change, no server without that key may start: it would tell the owners of those records that their
 * data is damaged.
 *
 * @throws {StartupError} (rejects) if the start is refused. In this case, nothing has been written.
 */
export async function checkKek(keys: Keys, file: KeystoreFile): Promise<void> {
  const moved = await orRefuse(file, () => file.notes.get(MOVED_NOTE))
  if (moved !== null)
    throw new StartupError({
      problem: `The keystore '${file.place.name}' has been moved to the database at ${moved}`,
      remedy: 'Set MCP_STATE_URL to that database. Registrations since then exist only there.',
    })
  const id = await readOrClaim(keys, file)
  const next = await orRefuse(file, () => file.notes.get(NEXT_KEK_NOTE))
  const isKnown = (kekId: string | null) => kekId !== null && keys.find(kekId) !== undefined
  if (!isKnown(id) && !isKnown(next)) {
    const also = keys.ids.length > 1 ? ', and neither does MCP_KEK_PREVIOUS' : ''
    throw new StartupError({
      problem: `MCP_KEK does not match the keystore '${file.place.name}'${also}`,
      remedy: `Set the key with which it was created, or, to change keys, set that one as MCP_KEK_PREVIOUS. If it is lost, nothing in ${
        file.place.variable === 'MCP_STATE_URL' ? 'the database' : 'the file'
      } can be read: name a new ${file.place.variable === 'MCP_STATE_URL' ? 'one' : 'file'} in ${file.place.variable}.`,
    })
  }
  if (!isKnown(id)) throw unfinished(file, await countUnder(id, file))
  if (next !== null && !isKnown(next)) {
    const left = await countUnder(next, file)
    if (left > 0) throw unfinished(file, left)
  }
  if (id !== keys.current.id) await orRefuse(file, () => file.notes.set(NEXT_KEK_NOTE, keys.current.id))
}

/**
 * Returns the condition under which this server may store a record that is encrypted with its current key. The
 * keystore's own key must be known to this server, and the current key must be either that key or the new key of a key
 * change. Without this condition, a server that was not restarted after a key change, or after its reversal, could
 * write records that nobody could decrypt later.
 */
export function mayPut(keys: Keys): PutCondition {
  return {
    notes: [KEK_NOTE, NEXT_KEK_NOTE],
    isMet: ([id, next]) => keys.ids.includes(id ?? '') && (id === keys.current.id || next === keys.current.id),
  }
}

/**
 * Finds out why this server cannot decrypt a record that is encrypted with an unknown key. Returns true if the notes
 * name this key as the keystore's own key or its new one: then this server was not restarted after a key change.
 * Returns false if the record is damaged.
 */
export async function isNewKey(kekId: string, notes: Notes): Promise<boolean> {
  return kekId === (await notes.get(NEXT_KEK_NOTE)) || kekId === (await notes.get(KEK_NOTE))
}

function readOrClaim(keys: Keys, file: KeystoreFile): Promise<string> {
  const { records, notes } = file
  return orRefuse(file, async () => {
    const id = await notes.get(KEK_NOTE)
    if (id !== null) return id
    // If there are records but no note with the id of their key, the keystore was manipulated.
    if ((await records.page(null, 1)).length > 0) return ''
    // Another process that starts at the same time may already have written the id of a different key.
    return notes.setOnce(KEK_NOTE, keys.current.id)
  })
}

async function countUnder(kekId: string, file: KeystoreFile): Promise<number> {
  let count = 0
  let after: Owner | null = null
  for (;;) {
    const page = await orRefuse(file, () => file.records.page(after, PAGE))
    count += page.filter(({ record }) => record.kekId === kekId).length
    if (page.length < PAGE) return count
    after = page.at(-1)!.owner
  }
}

function unfinished({ place }: KeystoreFile, left: number): StartupError {
  const why =
    left > 0
      ? `${left} of its records need a key that is neither MCP_KEK nor MCP_KEK_PREVIOUS`
      : 'no record needs the old key any more, but a server that still has it may write one'
  return new StartupError({
    problem: `The last change of MCP_KEK is incomplete in the keystore '${place.name}': ${why}`,
    remedy: 'Set both keys of that change, run svc-mcp-http rewrap-keystore, and only then change the key again.',
  })
}

async function orRefuse<T>({ place }: KeystoreFile, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (cause) {
    const code = (cause as { code?: string }).code ?? (cause as Error).message
    throw new StartupError({
      problem: `${place.variable} '${place.name}' cannot be used: ${code}`,
      remedy:
        place.variable === 'MCP_STATE_URL'
          ? 'Check the database.'
          : 'Check the disk, and whether another program uses the file.',
    })
  }
}

/**
 * The result of a key change: the number of records that were rewrapped now (`rewrapped`), that the current key already
 * protected (`already`), and that neither key could decrypt (`unreadable`). Unreadable records were left unchanged.
 */
export interface RewrapCounts {
  rewrapped: number
  already: number
  unreadable: number
}

/**
 * Rewraps all records that the previous key protects, so that the current key protects them. Each record is replaced by
 * compare-and-swap, so that a registration made in the meantime is kept. After a first pass, both notes name the
 * current key, so that servers that still use the previous key can no longer write. A second pass rewraps the records
 * that those servers have written until then. Records that neither key can decrypt are damaged, and do not prevent the
 * key change. Rejects if the store rejects.
 */
export async function rewrap(
  keys: Keys,
  { records, notes }: { records: CredentialRecords; notes: Notes },
): Promise<RewrapCounts> {
  const first = await rewrapAll(keys, records)
  await notes.set(KEK_NOTE, keys.current.id)
  await notes.set(NEXT_KEK_NOTE, keys.current.id)
  const second = await rewrapAll(keys, records)
  return {
    rewrapped: first.rewrapped + second.rewrapped,
    already: first.already,
    unreadable: second.unreadable,
  }
}

async function rewrapAll(keys: Keys, records: CredentialRecords): Promise<RewrapCounts> {
  const counts: RewrapCounts = { rewrapped: 0, already: 0, unreadable: 0 }
  let after: Owner | null = null
  for (;;) {
    const page = await records.page(after, PAGE)
    for (const { owner, record } of page) {
      // This pause gives other servers that are waiting for the store a chance to write.
      await setImmediate()
      const outcome = await rewrapOne(keys, records, owner, record)
      if (outcome !== 'removed') counts[outcome]++
    }
    if (page.length < PAGE) return counts
    after = page.at(-1)!.owner
  }
}

async function rewrapOne(
  keys: Keys,
  records: CredentialRecords,
  owner: Owner,
  found: SealedCredentials,
): Promise<keyof RewrapCounts | 'removed'> {
  let record: SealedCredentials | null = found
  while (record !== null) {
    let rewrapped: SealedCredentials
    try {
      rewrapped = rewrapRecord(keys, owner, record)
    } catch {
      return 'unreadable'
    }
    if (record.kekId === keys.current.id) return 'already'
    if (await records.replace(owner, record.wrappedKey, rewrapped)) return 'rewrapped'
    record = await records.get(owner)
  }
  return 'removed'
}
