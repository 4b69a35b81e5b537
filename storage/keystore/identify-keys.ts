import { createHmac } from 'node:crypto'

/** A key-encryption key with the name by which records say who wrapped them. */
export interface Kek {
  /** 32 bytes. */
  key: Buffer
  id: string
}

export interface Keys {
  /** Wraps what is written. */
  current: Kek
  /** Of one or both. */
  ids: readonly string[]
  /** The key of this id, if it is one of them. */
  find: (id: string) => Kek | undefined
}

/** Names the keys. */
export function identifyKeys(kek: Buffer, previousKek: Buffer | undefined): Keys {
  const current = identify(kek)
  const previous = previousKek && identify(previousKek)
  const known = previous ? [current, previous] : [current]
  return { current, ids: known.map(({ id }) => id), find: (id) => known.find((kek) => kek.id === id) }
}

/**
 * The id is a fingerprint that only whoever has the key can make, and that tells nothing about 32 random bytes. It serves as the check
 * value of the keystore too.
 */
const identify = (key: Buffer): Kek => ({
  key,
  id: createHmac('sha256', key).update('svc-mcp keystore: id of a key-encryption key').digest('hex').slice(0, 32),
})
