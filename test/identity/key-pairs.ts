import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  type KeyPairKeyObjectResult,
} from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** RSA keys outlive a run, because making the twenty that the suite uses takes longer than most of its files. */
const FOLDER = fileURLToPath(new URL('../../node_modules/.cache/keys', import.meta.url))
/** More than any test has at a time: those that it is given one after the other are different keys. */
const DIFFERENT_KEYS = 16

const given = new Map<number, number>()
const made = new Map<string, KeyPairKeyObjectResult>()

/** A key pair for signatures. The tests share a few RSA keys, given in turn; those of curves are quick to make, and new. */
export function keyPairFor(alg: 'RS256' | 'PS256' | 'ES256' | 'EdDSA', bits = 2048): KeyPairKeyObjectResult {
  if (alg === 'ES256') return generateKeyPairSync('ec', { namedCurve: 'P-256' })
  if (alg === 'EdDSA') return generateKeyPairSync('ed25519')
  const turn = given.get(bits) ?? 0
  given.set(bits, turn + 1)
  const name = `rsa-${bits}-${turn % DIFFERENT_KEYS}`
  const pair = made.get(name) ?? sharedPair(name, bits)
  made.set(name, pair)
  return pair
}

function sharedPair(name: string, bits: number): KeyPairKeyObjectResult {
  const file = `${FOLDER}/${name}.pem`
  let privateKey: KeyObject
  try {
    privateKey = createPrivateKey(readFileSync(file))
  } catch {
    privateKey = generateKeyPairSync('rsa', { modulusLength: bits }).privateKey
    mkdirSync(FOLDER, { recursive: true })
    // Renamed into place, so that no process reads half a key. Where two make it at once, each goes on with its own.
    writeFileSync(`${file}.${process.pid}`, privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 })
    renameSync(`${file}.${process.pid}`, file)
  }
  return { privateKey, publicKey: createPublicKey(privateKey) }
}
