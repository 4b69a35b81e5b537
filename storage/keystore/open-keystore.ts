import { randomUUID } from 'node:crypto'
import type { Owner } from '../../schemas/caller.js'
import type { DatabaseConfig, PerUserConfig } from '../../schemas/config.js'
import type { Keystore, LastChecks, PceCredentials } from '../../schemas/credentials.js'
import { ToolError } from '../../schemas/errors.js'
import type { Meter } from '../../schemas/metrics.js'
import type { CredentialRecords, Notes, SealedCredentials, State } from '../../schemas/state.js'
import { measureState } from '../measure-state.js'
import { openDatabase } from '../postgres/open-database.js'
import { openState } from '../state/open-state.js'
import { nameOfRevocation, readRevocation } from '../revocations.js'
import { checkKek, isNewKey, type KeystorePlace, mayPut, rewrap, type RewrapCounts } from './change-kek.js'
import { identifyKeys, type Keys, openCredentials, seal } from './envelope.js'
import { lastChecks } from './last-checks.js'

const OUTDATED =
  'MCP_KEK of the keystore has changed since this server started: restart the server with the new settings'

/**
 * The reason why nothing is stored for a person whose access was revoked while their registration was running: the
 * operator may already have deleted this person's key.
 */
const REVOKED = 'the access of the owner was revoked'

/** The keystore, with an additional operation for the operator's command `rewrap-keystore`. */
export interface RewrappableKeystore extends Keystore {
  /**
   * Rewraps, with the current key-encryption key (MCP_KEK), every data key that the previous one has wrapped. It may be
   * interrupted at any moment and started again, and servers that have both keys may run at the same time.
   */
  rewrap(): Promise<RewrapCounts>
}

export interface KeystoreOptions {
  records: CredentialRecords
  notes: Notes
  /** The current key-encryption key, which has 32 bytes. */
  kek: Buffer
  /**
   * The previous key-encryption key during a key change. It still opens the records that it has wrapped, but wraps no
   * new ones.
   */
  previousKek?: Buffer
  /** The location of the keystore, for messages. */
  place: KeystorePlace
  /** Returns milliseconds since the epoch. */
  now: () => number
}

/**
 * Opens the keystore whose encrypted records are in `records` (D24, D39), after checking that the key belongs to the
 * keystore.
 *
 * @throws {StartupError} (rejects) if the key does not match, or the store cannot be read.
 */
export async function openKeystore({
  records,
  notes,
  kek,
  previousKek,
  place,
  now,
}: KeystoreOptions): Promise<RewrappableKeystore> {
  const keys = identifyKeys(kek, previousKek)
  await checkKek(keys, { records, notes, place })

  return {
    find: (owner, fetched) =>
      orUnavailable(async () => {
        const record = fetched === undefined ? await records.get(owner) : fetched
        if (record === null) return null
        if (!keys.ids.includes(record.kekId) && (await isNewKey(record.kekId, notes))) throw new Error(OUTDATED)
        return { version: record.version, open: () => openOrRefuse(keys, owner, record) }
      }),
    write: (owner, credentials) =>
      orUnavailable(async () => {
        const record = seal(keys.current, owner, randomUUID(), credentials)
        const { notes: names, isMet } = mayPut(keys)
        let isRevoked = false
        const isPut = await records.put(owner, record, {
          notes: [...names, nameOfRevocation(owner)],
          isMet(values) {
            isRevoked = (readRevocation(values.at(-1) ?? null)?.until ?? 0) > now()
            return !isRevoked && isMet(values)
          },
        })
        if (isRevoked) throw new Error(REVOKED)
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
      'Nothing was changed. Repeat the call shortly; if it persists, the operator must look at the server log.'
    throw new ToolError(
      'keystore_unavailable',
      'The credential store cannot be used at the moment.',
      {},
      { cause, hint },
    )
  }
}

export interface OpenKeystore {
  state: State
  keystore: RewrappableKeystore
  lastChecks: LastChecks
}

const IF_NEW =
  'this is a new, empty keystore, and nobody is registered. If you expected an existing one, check the path and the mount.'

/**
 * Opens the state and the keystore in it, in the database if one is configured, otherwise in the file at
 * MCP_KEYSTORE_PATH, which is created if it is missing. `now` returns milliseconds since the epoch; `warn` receives
 * lines for the operator. Rejects with StartupError.
 */
export async function openKeystoreState(
  { path, kek, previousKek }: PerUserConfig['keystore'],
  {
    now,
    warn,
    meter,
    database,
  }: { now: () => number; warn?: (line: string) => void; meter?: Meter; database?: DatabaseConfig },
): Promise<OpenKeystore> {
  const opened = database
    ? await openDatabase(database, { now, warn })
    : openState(path, { now, variable: 'MCP_KEYSTORE_PATH', warn, ifNew: IF_NEW })
  const state = measureState(opened, meter)
  const place: KeystorePlace = database
    ? { name: database.where, variable: 'MCP_STATE_URL' }
    : { name: path, variable: 'MCP_KEYSTORE_PATH' }
  try {
    const { credentials: records, notes } = state
    const keystore = await openKeystore({ records, notes, kek, previousKek, place, now })
    return { state, keystore, lastChecks: lastChecks(notes) }
  } catch (error) {
    await state.close()
    throw error
  }
}
