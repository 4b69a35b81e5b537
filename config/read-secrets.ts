import { inWords, type PceMode } from '../schemas/config.js'
import type { Environment, Findings, Reading } from './read-values.js'

/**
 * The variables whose values can also be read from a file, because container platforms provide secrets as files. The
 * variable NAME_FILE then contains the path of the file.
 */
export const SECRETS = [
  'API_KEY',
  'API_SECRET',
  'MCP_KEK',
  'MCP_KEK_PREVIOUS',
  'MCP_CONFIRM_HMAC_KEY',
  'MCP_CONFIRM_HMAC_KEY_PREVIOUS',
  'MCP_OAUTH_CLIENT_SECRET',
  'MCP_STATE_URL',
  // Anyone who knows the path of a webhook's URL can often post messages there, so the URL is a secret.
  'MCP_NOTIFY_WEBHOOK_URL',
  'MCP_NOTIFY_SECRET',
  // The URL of a proxy may contain a user name and a password.
  'PCE_PROXY_URL',
] as const
export type SecretName = (typeof SECRETS)[number]

/** The secrets that are read in each mode. The files of other secrets are not opened. */
export const SECRETS_OF: Record<'environment' | PceMode, readonly SecretName[]> = {
  environment: ['API_KEY', 'API_SECRET', 'PCE_PROXY_URL'],
  shared: [
    'API_KEY',
    'API_SECRET',
    'MCP_CONFIRM_HMAC_KEY',
    'MCP_CONFIRM_HMAC_KEY_PREVIOUS',
    'MCP_STATE_URL',
    'MCP_NOTIFY_WEBHOOK_URL',
    'MCP_NOTIFY_SECRET',
    'PCE_PROXY_URL',
  ],
  per_user: [
    'MCP_KEK',
    'MCP_KEK_PREVIOUS',
    'MCP_CONFIRM_HMAC_KEY',
    'MCP_CONFIRM_HMAC_KEY_PREVIOUS',
    'MCP_OAUTH_CLIENT_SECRET',
    'MCP_STATE_URL',
    'MCP_NOTIFY_WEBHOOK_URL',
    'MCP_NOTIFY_SECRET',
    'PCE_PROXY_URL',
  ],
}

/**
 * Returns the environment with the value of every secret in `names` whose NAME_FILE is set. One line break at the end
 * of the file is ignored. Reports a fault if both NAME and NAME_FILE are set, or if the file is empty or unreadable. A
 * fault never contains the secret.
 *
 * @param readFile returns the text of a file or throws the errors of node:fs.
 */
export function readSecretFiles(
  env: Environment,
  names: readonly SecretName[],
  readFile: (path: string) => string,
  { faults }: Findings,
): Environment {
  const found: Record<string, string> = {}
  for (const name of names) {
    const path = env[`${name}_FILE`]
    if (!path) continue
    if (env[name]) {
      faults.push({
        problem: `${name} and ${name}_FILE are both set: keep one`,
        remedy: `Delete ${name} to use the content of the file.`,
      })
      continue
    }
    const value = readSecretFile(`${name}_FILE '${path}'`, path, readFile, faults)
    // If the file of a secret cannot be used, the secret gets a placeholder, so that it is not also reported as
    // missing.
    found[name] = value ?? UNREADABLE
  }
  return Object.keys(found).length === 0 ? env : { ...env, ...found }
}

/** The placeholder for a secret whose file has a fault that has already been reported. */
const UNREADABLE = '\0'

function readSecretFile(
  which: string,
  path: string,
  readFile: (path: string) => string,
  faults: Findings['faults'],
): string | null {
  let text: string
  try {
    text = readFile(path)
  } catch (error) {
    faults.push({
      problem: `Cannot read ${which}: ${inWords(error)}`,
      remedy: 'Use the path of a file that contains only the secret and that the user of this server can read.',
    })
    return null
  }
  const value = text.replace(/\r?\n$/, '')
  if (value !== '') return value
  faults.push({ problem: `${which} is empty`, remedy: 'Write only the secret into the file.' })
  return null
}

const MAKE_KEY = 'openssl rand -base64 32'

/**
 * Reads a cryptographic key, which must be strict base64 of 32 bytes (S21). Returns 32 zero bytes if the key is missing
 * or malformed. A message never contains the key itself.
 */
export function readKey({ env, faults }: Reading, name: string): Buffer {
  const value = env[name] ?? ''
  const bytes = Buffer.from(value, 'base64')
  const isKey = bytes.length === 32 && bytes.toString('base64') === value
  if (isKey && bytes.some((byte) => byte !== 0)) return bytes
  if (value !== '' && value !== UNREADABLE)
    faults.push(
      isKey
        ? { problem: `${name} must be 32 random bytes, not zeros`, remedy: `Make one with ${MAKE_KEY}` }
        : {
            problem: `${name} must be base64 of 32 random bytes`,
            remedy: describeKey(value, name),
          },
    )
  return Buffer.alloc(32)
}

/** Describes the form of a malformed key, such as hexadecimal, without revealing any of its characters. */
function describeKey(value: string, name: string): string {
  const make = name.endsWith('_PREVIOUS') ? 'set the key that was in use before' : `make one with ${MAKE_KEY}`
  const rewrite = `write the same bytes in base64, or ${make}`
  if (/^[0-9a-f]{64}$/i.test(value)) return `It looks like hexadecimal: ${rewrite}`
  if (/^[\w-]{43}=?$/.test(value) && /[-_]/.test(value))
    return `It looks like base64url, which uses - and _ instead of + and /: ${rewrite}`
  if (value.split(/\s+/).some((word) => /^[A-Za-z0-9+/]{43}=$/.test(word)))
    return 'There is whitespace or other text next to the key. Leave only the key.'
  return `It has ${value.length} characters instead of 44: ${make}`
}

/**
 * Reads the key that was in use before `current`, from which it must differ. Returns undefined if the variable is not
 * set.
 */
export function readPreviousKey(reading: Reading, name: string, current: Buffer): Buffer | undefined {
  if (!reading.env[name]) return undefined
  const previous = readKey(reading, name)
  const now = name.replace('_PREVIOUS', '')
  if (previous.equals(current) && previous.some((byte) => byte !== 0))
    reading.faults.push({
      problem: `${name} is the same key as ${now}`,
      remedy: `${now} is for the new key and ${name} for the old one. If you are not changing keys, delete ${name}.`,
    })
  return previous
}
