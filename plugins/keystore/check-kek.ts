import { StartupError } from '../../schemas/config.js'
import type { CredentialRecords, Notes } from '../../schemas/state.js'
import type { Keys } from './identify-keys.js'

/** The note with the id of the key that opens the whole keystore, or all of it that has not been rewrapped yet. */
export const KEK_NOTE = 'kek'
/** The note with the id of the key that the keystore is changed to, from the first start that has both. */
const NEXT_KEK_NOTE = 'kek_next'

export interface KeystoreFile {
  records: CredentialRecords
  notes: Notes
  path: string
}

/**
 * Lets a start go on when the keystore's key is MCP_KEK, or is MCP_KEK_PREVIOUS (a rotation under way, begun or not), and refuses it
 * otherwise. A keystore that has never been used takes MCP_KEK for its own; at the first start of a rotation the new key is noted.
 *
 * @throws {StartupError} (rejects) in one line.
 */
export async function checkKek(keys: Keys, file: KeystoreFile): Promise<void> {
  const id = await readOrClaim(keys, file)
  if (keys.find(id) !== undefined) {
    if (id !== keys.current.id) await orRefuse(file, () => file.notes.set(NEXT_KEK_NOTE, keys.current.id))
    return
  }
  const also = keys.ids.length > 1 ? ', and neither does MCP_KEK_PREVIOUS' : ''
  throw new StartupError(`MCP_KEK does not match the keystore '${file.path}'${also}`)
}

/**
 * Whether a record was wrapped by a key that is the keystore's, now or soon, and that this server does not have: it was not restarted
 * when the key was changed. A key that nobody knows is something else, the record is damaged.
 */
export async function isNewKey(kekId: string, notes: Notes): Promise<boolean> {
  return kekId === (await notes.get(NEXT_KEK_NOTE)) || kekId === (await notes.get(KEK_NOTE))
}

function readOrClaim(keys: Keys, file: KeystoreFile): Promise<string> {
  const { records, notes } = file
  return orRefuse(file, async () => {
    const id = await notes.get(KEK_NOTE)
    if (id !== null) return id
    // Records without a check value: somebody has tampered with the file.
    if ((await records.page(null, 1)).length > 0) return ''
    // Another process that starts now may be faster, with another key.
    return notes.setOnce(KEK_NOTE, keys.current.id)
  })
}

async function orRefuse<T>({ path }: KeystoreFile, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (cause) {
    throw new StartupError(`MCP_KEYSTORE_PATH '${path}' cannot be used`, { cause })
  }
}
