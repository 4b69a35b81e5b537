import { setImmediate } from 'node:timers/promises'
import type { Owner } from '../../schemas/caller.js'
import { StartupError } from '../../schemas/config.js'
import type { CredentialRecords, Notes, PutCondition, SealedCredentials } from '../../schemas/state.js'
import { MOVED_NOTE } from '../state/tables.js'
import { type Keys, rewrapRecord } from './envelope.js'

/**
 * The name of the note with the id of the keystore's own key, which opens its records. During a key change, this is the
 * key that opens all records that have not been rewrapped yet.
 */
const KEK_NOTE = 'kek'
/**
 * The name of the note with the id of the keystore's next key. It is written when a server first starts with both keys.
 * After the key change, it equals the keystore's own key.
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
 * Permits the start of a server if the keystore's key is MCP_KEK, or MCP_KEK_PREVIOUS before or during a key change;
 * otherwise refuses it. An unused keystore adopts MCP_KEK as its key. At the first start of a key change, the id of the
 * new key is written to a note.
 *
 * A key change must be finished before the next one begins. As long as one of its two keys protects records, a server
 * that lacks this key may not start, because the owners of these records would be told that their data is damaged.
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
 * Returns the condition under which a record wrapped by this server's current key may be stored. The current key must
 * be the keystore's own key. It may also be the keystore's next key, if this server also has the keystore's own key.
 * This prevents a server that was not restarted after a key change, or after its reversal, from writing records that
 * could not be opened later.
 */
export function mayPut(keys: Keys): PutCondition {
  return {
    notes: [KEK_NOTE, NEXT_KEK_NOTE],
    isMet: ([id, next]) => keys.ids.includes(id ?? '') && (id === keys.current.id || next === keys.current.id),
  }
}

/**
 * Returns true if a key that this server does not have, and that has wrapped a record, is the keystore's own or next
 * key. In this case, this server was not restarted after the key change. A record with any other unknown key is
 * damaged.
 */
export async function isNewKey(kekId: string, notes: Notes): Promise<boolean> {
  return kekId === (await notes.get(NEXT_KEK_NOTE)) || kekId === (await notes.get(KEK_NOTE))
}

function readOrClaim(keys: Keys, file: KeystoreFile): Promise<string> {
  const { records, notes } = file
  return orRefuse(file, async () => {
    const id = await notes.get(KEK_NOTE)
    if (id !== null) return id
    // A keystore that has records but no note with the id of its key was manipulated.
    if ((await records.page(null, 1)).length > 0) return ''
    // Another process that starts at the same time may have written the id of a different key first.
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
 * The numbers of records that were rewrapped now (`rewrapped`), that the current key had wrapped before (`already`),
 * and that neither key could open (`unreadable`). The unreadable records were left unchanged.
 */
export interface RewrapCounts {
  rewrapped: number
  already: number
  unreadable: number
}

/**
 * Rewraps, with the current key, every record that the previous key has wrapped. Records are replaced by
 * compare-and-swap, so that a registration made in the meantime is kept. After the first pass, the notes name the
 * current key as the only one, so that servers that still use the previous key can no longer write. A second pass
 * rewraps the records that these servers have written until then. Records that neither key opens are damaged and do not
 * prevent the key change. Rejects if the store rejects.
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
