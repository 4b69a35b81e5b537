import { randomUUID } from 'node:crypto'
import type { Owner } from '../../schemas/caller.js'
import type { PceCredentials } from '../../schemas/credentials.js'
import { ToolError } from '../../schemas/errors.js'
import type { CredentialRecords, Notes, SealedCredentials } from '../../schemas/state.js'
import { checkKek, isNewKey, mayPut } from './check-kek.js'
import { openCredentials, seal } from './envelope.js'
import { identifyKeys, type Keys } from './identify-keys.js'
import { rewrap, type RewrapCounts } from './rewrap.js'

const OUTDATED = 'MCP_KEK was changed in the keystore since this server started: restart it with the new key'

/** What an owner has stored. `open` decrypts at every call and throws ToolError `credentials_unreadable`. */
export interface StoredCredentials {
  /** New with every registration: names this one, also to whoever keeps a client made from it. */
  version: string
  open: () => PceCredentials
}

/** The encrypted credentials of all users. Everything rejects with ToolError `keystore_unavailable` when the store cannot be used. */
export interface Keystore {
  /** Reads only; null where the owner has none. */
  find: (owner: Owner) => Promise<StoredCredentials | null>
  /** Stores in place of earlier ones; on the disk when it resolves, with the new version. */
  write: (owner: Owner, credentials: PceCredentials) => Promise<string>
  /** Resolves with whether there was something to remove; on the disk then, and known to every process. */
  remove: (owner: Owner) => Promise<boolean>
  /**
   * Wraps every data key with the current key-encryption key (MCP_KEK) that the previous one has wrapped. May be stopped at any
   * moment and begun again, beside running servers that have both keys.
   */
  rewrap: () => Promise<RewrapCounts>
}

export interface KeystoreOptions {
  records: CredentialRecords
  notes: Notes
  /** 32 bytes. */
  kek: Buffer
  /** The key before: still opens records, wraps none. */
  previousKek?: Buffer
  /** Of the file, for messages. */
  path: string
}

/**
 * The keystore over its records (D24, D39). Checks first that the key is the keystore's.
 *
 * @throws {StartupError} (rejects) when it is not, or the file cannot be read.
 */
export async function openKeystore({ records, notes, kek, previousKek, path }: KeystoreOptions): Promise<Keystore> {
  const keys = identifyKeys(kek, previousKek)
  await checkKek(keys, { records, notes, path })

  return {
    find: (owner) =>
      orUnavailable(async () => {
        const record = await records.get(owner)
        if (record === null) return null
        if (keys.find(record.kekId) === undefined && (await isNewKey(record.kekId, notes))) throw new Error(OUTDATED)
        return { version: record.version, open: () => openOrRefuse(keys, owner, record) }
      }),
    write: (owner, credentials) =>
      orUnavailable(async () => {
        const record = seal(keys.current, owner, randomUUID(), credentials)
        const isPut = await records.put(owner, record, mayPut(keys))
        if (!isPut) throw new Error(OUTDATED)
        return record.version
      }),
    remove: (owner) => orUnavailable(() => records.remove(owner)),
    rewrap: () => orUnavailable(() => rewrap(keys, { records, notes })),
  }
}

function openOrRefuse(keys: Keys, owner: Owner, record: SealedCredentials): PceCredentials {
  try {
    return openCredentials(keys, owner, record)
  } catch (cause) {
    throw new ToolError('credentials_unreadable', 'Your stored PCE credentials cannot be read.', {}, { cause })
  }
}

async function orUnavailable<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (cause) {
    const hint =
      'Nothing was changed. Repeat the call shortly; if it goes on, the operator must look at the server log.'
    throw new ToolError(
      'keystore_unavailable',
      'The credential store cannot be used at the moment.',
      {},
      { cause, hint },
    )
  }
}
