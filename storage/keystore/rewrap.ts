import { setImmediate } from 'node:timers/promises'
import type { Owner } from '../../schemas/caller.js'
import type { CredentialRecords, Notes, SealedCredentials } from '../../schemas/state.js'
import { KEK_NOTE, NEXT_KEK_NOTE } from './check-kek.js'
import { rewrapRecord } from './envelope.js'
import type { Keys } from './identify-keys.js'

/** How many records were rewrapped, how many needed it no more, and how many neither key opens: those are left as they are. */
export interface RewrapCounts {
  rewrapped: number
  already: number
  unreadable: number
}

const PAGE = 200

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
      // Servers that want to write meanwhile get their turn.
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
