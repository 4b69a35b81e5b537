import { setImmediate } from 'node:timers/promises'
import type { Owner } from '../../schemas/caller.js'
import { StartupError } from '../../schemas/config.js'
import type { CredentialRecords, Notes, PutCondition, SealedCredentials } from '../../schemas/state.js'
import { MOVED_NOTE } from '../state/tables.js'
import { type Keys, rewrapRecord } from './envelope.js'

/** The note with the id of the key that opens the whole keystore, or all of it that has not been rewrapped yet. */
const KEK_NOTE = 'kek'
/** The note with the id of the key that the keystore is changed to, from the first start that has both; the keystore's own when that is done. */
const NEXT_KEK_NOTE = 'kek_next'
/** What a keystore has to have with it wherever it is. */
export const KEPT_KEY_NOTES = [KEK_NOTE, NEXT_KEK_NOTE] as const
const PAGE = 200

/** Where a keystore is, for messages: a file or a database, and the variable that names it. */
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
 * Lets a start go on when the keystore's key is MCP_KEK, or is MCP_KEK_PREVIOUS (a rotation under way, begun or not), and refuses it
 * otherwise. A keystore that has never been used takes MCP_KEK for its own; at the first start of a rotation the new key is noted.
 *
 * A rotation that was begun is finished before the next: while records are left under one of its two keys, a start without that key is
 * refused, since their owners would be told that what they have stored is damaged.
 *
 * @throws {StartupError} (rejects) Nothing is written then.
 */
export async function checkKek(keys: Keys, file: KeystoreFile): Promise<void> {
  const moved = await orRefuse(file, () => file.notes.get(MOVED_NOTE))
  if (moved !== null)
    throw new StartupError({
      problem: `The keystore '${file.place.name}' has been moved to the database at ${moved}`,
      remedy: 'Set MCP_STATE_URL to that database. What has been registered since then is there alone.',
    })
  const id = await readOrClaim(keys, file)
  const next = await orRefuse(file, () => file.notes.get(NEXT_KEK_NOTE))
  const isKnown = (kekId: string | null) => kekId !== null && keys.find(kekId) !== undefined
  if (!isKnown(id) && !isKnown(next)) {
    const also = keys.ids.length > 1 ? ', and neither does MCP_KEK_PREVIOUS' : ''
    throw new StartupError({
      problem: `MCP_KEK does not match the keystore '${file.place.name}'${also}`,
      remedy: `Set the key it was made with, or, to change keys, set that one as MCP_KEK_PREVIOUS. If it is lost, nothing in ${
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
 * When a record that the current key wraps may be put: while that is the keystore's own key, or the one that it is changed to from another
 * that this server has. A server that was not restarted when the key was changed, or changed back, must not write what cannot be opened
 * afterwards.
 */
export function mayPut(keys: Keys): PutCondition {
  return {
    notes: [KEK_NOTE, NEXT_KEK_NOTE],
    isMet: ([id, next]) => keys.ids.includes(id ?? '') && (id === keys.current.id || next === keys.current.id),
  }
}

/**
 * Whether a record was wrapped by a key that is the keystore's, now or soon, and that this server does not have: it was not restarted
 * when the key was changed. An unknown key is different: the record is damaged.
 */
export async function isNewKey(kekId: string, notes: Notes): Promise<boolean> {
  return kekId === (await notes.get(NEXT_KEK_NOTE)) || kekId === (await notes.get(KEK_NOTE))
}

function readOrClaim(keys: Keys, file: KeystoreFile): Promise<string> {
  const { records, notes } = file
  return orRefuse(file, async () => {
    const id = await notes.get(KEK_NOTE)
    if (id !== null) return id
    // Records without a check value: someone has tampered with the file.
    if ((await records.page(null, 1)).length > 0) return ''
    // Another process that starts now may be faster, with another key.
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
    problem: `The last change of MCP_KEK is not finished in the keystore '${place.name}': ${why}`,
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
        place.variable === 'MCP_STATE_URL' ? 'Check the database.' : 'Check the disk and what else uses the file.',
    })
  }
}

/** How many records were rewrapped, already were, and cannot be opened with either key: those are left as they are. */
export interface RewrapCounts {
  rewrapped: number
  already: number
  unreadable: number
}

/**
 * Wraps with the current key what the previous one has wrapped, record by record, each by compare-and-swap: a registration that comes in
 * between wins. When all are done the keystore's key is the current one and no other is to follow, and a server that wraps with the previous
 * one stops writing; what such a server has written until then is taken up by a second look at all records. Records that neither key opens
 * are damaged, and keep the change from nothing. Rejects as the store does.
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
      // Lets servers that are waiting to write have their turn.
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
