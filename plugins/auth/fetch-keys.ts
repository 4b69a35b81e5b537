import { createPublicKey, type JsonWebKey, type KeyObject } from 'node:crypto'
import type { Algorithm } from './read-token.js'

interface DownloadOptions {
  fetch: typeof globalThis.fetch
  /** The signal that cancels the download. */
  signal: AbortSignal
}

const TIMEOUT_MS = 5000
const LARGEST_SET = 1024 * 1024

/**
 * Downloads the key set at `url` and returns its `keys` (RFC 7517, 5). Rejects with an Error that briefly says what is
 * wrong: no complete answer within 5 s, a redirect or any status other than 200, more than 1 MiB after decompression,
 * or anything but a JSON object with an array of keys.
 */
export async function downloadKeys(url: string, { fetch, signal }: DownloadOptions): Promise<readonly unknown[]> {
  signal.throwIfAborted()
  const bound = new AbortController()
  let timer: NodeJS.Timeout | undefined
  let callOff = () => {}
  // The time limit needs a timer of its own: Node.js 20 may garbage-collect the abort signal, and reading a stalled
  // body would then never end.
  const over = new Promise<never>((_resolve, reject) => {
    const end = (why: string) => {
      const error = new Error(why)
      bound.abort(error)
      reject(error)
    }
    timer = setTimeout(() => end('no complete answer within 5 s'), TIMEOUT_MS)
    callOff = () => end('the download was cancelled')
    signal.addEventListener('abort', callOff)
  })
  try {
    return await Promise.race([over, readKeys(url, fetch, bound.signal)])
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', callOff)
  }
}

async function readKeys(url: string, fetch: DownloadOptions['fetch'], signal: AbortSignal): Promise<unknown[]> {
  const response = await fetch(url, {
    redirect: 'error',
    signal,
    headers: { accept: 'application/jwk-set+json, application/json' },
  })
  if (response.status !== 200) {
    await response.body?.cancel()
    throw new Error(`the answer has status ${response.status}`)
  }
  const keys = keysIn(await readBounded(response, signal))
  if (!Array.isArray(keys)) throw new Error('the answer is not a JSON object with an array of keys')
  return keys as unknown[]
}

async function readBounded(response: Response, signal: AbortSignal): Promise<string> {
  const reader: ReadableStreamDefaultReader<Uint8Array> | undefined = response.body?.getReader()
  const drop = () => void reader?.cancel().catch(() => {})
  signal.addEventListener('abort', drop)
  const chunks: Uint8Array[] = []
  let size = 0
  for (;;) {
    const chunk = await reader?.read()
    if (chunk?.value === undefined) break
    size += chunk.value.byteLength
    chunks.push(chunk.value)
    if (size <= LARGEST_SET) continue
    drop()
    throw new Error('the answer is larger than 1 MiB')
  }
  return Buffer.concat(chunks).toString()
}

function keysIn(text: string): unknown {
  try {
    return (JSON.parse(text) as { keys?: unknown } | null)?.keys
  } catch {
    return undefined
  }
}

/** A public key for one signature algorithm. Its JWK contains only the members that make up the key. */
export type SigningKey = JsonWebKey & {
  alg: Algorithm
  /** The id of the key; null if the provider has given it none. */
  kid: string | null
}

const LEAST_RSA_BITS = 2048
/**
 * Maximum size of an RSA key, in bits. Verifying with a larger key takes so long that a few signatures would stall the
 * server.
 */
const MOST_RSA_BITS = 8192
/** Maximum number of keys in a key set; identity providers publish only a handful. */
const MOST_KEYS = 100

/** For each key type, the JWK members that make up a key, and the algorithms with which such a key can be used. */
const KINDS: Record<string, { members: readonly string[]; algorithms: readonly Algorithm[]; curve?: string }> = {
  RSA: { members: ['n', 'e'], algorithms: ['RS256', 'PS256'] },
  EC: { members: ['crv', 'x', 'y'], algorithms: ['ES256'], curve: 'P-256' },
  OKP: { members: ['crv', 'x'], algorithms: ['EdDSA'], curve: 'Ed25519' },
}

/**
 * Selects the keys of a key set with which this server can verify signatures, in the order of the set. A key that suits
 * several algorithms gets one entry for each of them. Keys for encryption, keys for other operations or algorithms, and
 * weak or invalid keys are left out, as RFC 7517, 5 recommends for unknown keys.
 */
export function selectKeys(set: readonly unknown[]): SigningKey[] {
  return set.flatMap(usesOf).slice(0, MOST_KEYS)
}

function usesOf(entry: unknown): SigningKey[] {
  if (typeof entry !== 'object' || entry === null) return []
  const { kty, kid, alg, use, key_ops: operations, ...rest } = entry as Record<string, unknown>
  const kind = typeof kty === 'string' && Object.hasOwn(KINDS, kty) ? KINDS[kty]! : undefined
  if (kind === undefined || (kid !== undefined && typeof kid !== 'string')) return []
  if (use !== undefined && use !== 'sig') return []
  if (operations !== undefined && !(Array.isArray(operations) && operations.includes('verify'))) return []
  if (kind.curve !== undefined && rest.crv !== kind.curve) return []
  const jwk = { kty, ...Object.fromEntries(kind.members.map((name) => [name, rest[name]])) } as JsonWebKey
  if (!isStrong(jwk)) return []
  return kind.algorithms
    .filter((algorithm) => alg === undefined || alg === algorithm)
    .map((algorithm) => ({ ...jwk, alg: algorithm, kid: kid ?? null }))
}

function isStrong(jwk: JsonWebKey): boolean {
  let key: KeyObject
  try {
    key = createPublicKey({ key: jwk, format: 'jwk' })
  } catch {
    return false
  }
  const { modulusLength: bits, publicExponent: exponent } = key.asymmetricKeyDetails ?? {}
  if (bits === undefined) return true
  return (
    bits >= LEAST_RSA_BITS && bits <= MOST_RSA_BITS && exponent !== undefined && exponent > 2n && exponent % 2n === 1n
  )
}
