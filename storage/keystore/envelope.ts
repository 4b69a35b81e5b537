import { createCipheriv, createDecipheriv, createHmac, randomBytes } from 'node:crypto'
import type { Owner } from '../../schemas/caller.js'
import type { PceCredentials } from '../../schemas/credentials.js'
import type { SealedCredentials } from '../../schemas/state.js'

const ALGORITHM = 'aes-256-gcm'
const KEY_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16
/**
 * The first byte of all encrypted data. It identifies the layout of the following bytes: 1 means nonce, ciphertext,
 * tag.
 */
const LAYOUT = 1

/**
 * Seals credentials for their owner (D39). The credentials are encrypted with a new data key, and the key-encryption
 * key wraps the data key. Both ciphertexts are bound to the owner and to this registration. Only the wrapped data key
 * is also bound to the key-encryption key, so that rewrapping does not change the sealed credentials.
 */
export function seal(kek: Kek, owner: Owner, version: string, credentials: PceCredentials): SealedCredentials {
  const dataKey = randomBytes(KEY_BYTES)
  try {
    const text = Buffer.from(JSON.stringify(credentials), 'utf8')
    return {
      version,
      kekId: kek.id,
      wrappedKey: wrap(kek, owner, version, dataKey),
      sealed: encrypt(dataKey, text, bindSealed(owner, version)),
    }
  } finally {
    dataKey.fill(0)
  }
}

/** Decrypts a record. Throws Error if the record, or its owner, has changed in any way since it was sealed. */
export function openCredentials(keys: Keys, owner: Owner, record: SealedCredentials): PceCredentials {
  const dataKey = unwrap(keys, owner, record)
  try {
    const text = decrypt(dataKey, record.sealed, bindSealed(owner, record.version))
    return readCredentials(JSON.parse(text.toString('utf8')))
  } finally {
    dataKey.fill(0)
  }
}

/** Returns the record with its data key rewrapped by the current key. Throws Error if none of the keys unwraps it. */
export function rewrapRecord(keys: Keys, owner: Owner, record: SealedCredentials): SealedCredentials {
  const dataKey = unwrap(keys, owner, record)
  try {
    const { current } = keys
    return { ...record, kekId: current.id, wrappedKey: wrap(current, owner, record.version, dataKey) }
  } finally {
    dataKey.fill(0)
  }
}

function wrap(kek: Kek, owner: Owner, version: string, dataKey: Buffer): Buffer {
  return encrypt(kek.key, dataKey, bindWrapped(owner, version, kek.id))
}

function unwrap(keys: Keys, owner: Owner, { version, kekId, wrappedKey }: SealedCredentials): Buffer {
  const kek = keys.find(kekId)
  if (kek === undefined) throw new Error('the record was wrapped by a key that this server does not have')
  return decrypt(kek.key, wrappedKey, bindWrapped(owner, version, kekId))
}

const bindSealed = ({ iss, sub }: Owner, version: string) => bind(['credentials', iss, sub, version])
const bindWrapped = ({ iss, sub }: Owner, version: string, kekId: string) =>
  bind(['data key', iss, sub, version, kekId])

/**
 * Joins strings to bytes. Each string is preceded by its length, so that two different lists of strings never give the
 * same bytes (D39).
 */
function bind(parts: readonly string[]): Buffer {
  const pieces = [Buffer.of(LAYOUT)]
  for (const part of parts) {
    const bytes = Buffer.from(part, 'utf8')
    const length = Buffer.alloc(4)
    length.writeUInt32BE(bytes.length)
    pieces.push(length, bytes)
  }
  return Buffer.concat(pieces)
}

function encrypt(key: Buffer, plain: Buffer, boundTo: Buffer): Buffer {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES }).setAAD(boundTo)
  return Buffer.concat([Buffer.of(LAYOUT), nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()])
}

/** Decrypts and authenticates the bytes. If this fails, throws Error and returns no part of the plaintext. */
function decrypt(key: Buffer, blob: Uint8Array, boundTo: Buffer): Buffer {
  const end = blob.length - TAG_BYTES
  if (blob[0] !== LAYOUT || end < 1 + NONCE_BYTES) throw new Error('unknown layout of the encrypted bytes')
  const nonce = blob.subarray(1, 1 + NONCE_BYTES)
  const decipher = createDecipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES })
    .setAAD(boundTo)
    .setAuthTag(blob.subarray(end))
  const plain = decipher.update(blob.subarray(1 + NONCE_BYTES, end))
  return Buffer.concat([plain, decipher.final()])
}

const FIELDS = {
  host: 'string',
  port: 'number',
  orgId: 'number',
  apiKey: 'string',
  apiSecret: 'string',
  tlsVerify: 'boolean',
} as const satisfies Partial<Record<keyof PceCredentials, string>>

/** Checks that decrypted data has the structure of this version. Throws an Error that never contains a value. */
function readCredentials(value: unknown): PceCredentials {
  const found = value as Record<string, unknown> | null
  for (const [field, type] of Object.entries(FIELDS)) {
    if (typeof found?.[field] !== type) throw new Error(`the sealed credentials have no ${field}`)
  }
  return value as PceCredentials
}

/** A key-encryption key and its id. Each record contains the id of the key that wrapped its data key. */
interface Kek {
  /** The 32 bytes of the key. */
  key: Buffer
  id: string
}

export interface Keys {
  /** The current key-encryption key, which wraps the data keys of new records. */
  current: Kek
  /** The ids of the current key and, during a key change, of the previous one. */
  ids: readonly string[]
  /** Finds one of these key-encryption keys by its id. */
  find: (id: string) => Kek | undefined
}

/** Derives the ids of the given keys and makes the keys available by id. */
export function identifyKeys(kek: Buffer, previousKek: Buffer | undefined): Keys {
  const current = identify(kek)
  const previous = previousKek && identify(previousKek)
  const known = previous ? [current, previous] : [current]
  return { current, ids: known.map(({ id }) => id), find: (id) => known.find((kek) => kek.id === id) }
}

/**
 * Computes the id of a key. The id is a fingerprint that only the holder of the key can compute, and that does not
 * reveal the key's 32 random bytes. It is also used to check that a key belongs to the keystore.
 */
const identify = (key: Buffer): Kek => ({
  key,
  id: createHmac('sha256', key).update('svc-mcp keystore: id of a key-encryption key').digest('hex').slice(0, 32),
})
