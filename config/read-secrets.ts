import { StartupError, type PceMode } from '../schemas/config.js'
import type { Environment } from './read-values.js'

/** Variables that may also come from a file, the way container platforms provide secrets: NAME_FILE holds the path. */
export const SECRETS = [
  'API_KEY',
  'API_SECRET',
  'MCP_KEK',
  'MCP_KEK_PREVIOUS',
  'MCP_CONFIRM_HMAC_KEY',
  'MCP_CONFIRM_HMAC_KEY_PREVIOUS',
  'MCP_OAUTH_CLIENT_SECRET',
  // It may name a user and a password.
  'PCE_PROXY_URL',
] as const
type SecretName = (typeof SECRETS)[number]

/** The secrets that each mode reads; files for others are not opened. */
export const SECRETS_OF: Record<'environment' | PceMode, readonly SecretName[]> = {
  environment: ['API_KEY', 'API_SECRET', 'PCE_PROXY_URL'],
  shared: ['API_KEY', 'API_SECRET', 'MCP_CONFIRM_HMAC_KEY', 'MCP_CONFIRM_HMAC_KEY_PREVIOUS', 'PCE_PROXY_URL'],
  per_user: [
    'MCP_KEK',
    'MCP_KEK_PREVIOUS',
    'MCP_CONFIRM_HMAC_KEY',
    'MCP_CONFIRM_HMAC_KEY_PREVIOUS',
    'MCP_OAUTH_CLIENT_SECRET',
    'PCE_PROXY_URL',
  ],
}

/**
 * The environment with every secret of `names` that a NAME_FILE points to. The file may end in one line break.
 *
 * @param readFile returns the text of a file or throws what node:fs throws.
 * @throws {StartupError} when both NAME and NAME_FILE are set, or the file cannot be read or is empty; never with its content.
 */
export function readSecretFiles(
  env: Environment,
  names: readonly SecretName[],
  readFile: (path: string) => string,
): Environment {
  const found: Record<string, string> = {}
  for (const name of names) {
    const path = env[`${name}_FILE`]
    if (!path) continue
    if (env[name]) throw new StartupError(`${name} and ${name}_FILE are both set: keep one`)
    let text: string
    try {
      text = readFile(path)
    } catch (error) {
      throw new StartupError(`Cannot read ${name}_FILE '${path}': ${(error as NodeJS.ErrnoException).code ?? 'failed'}`)
    }
    const value = text.replace(/\r?\n$/, '')
    if (value === '') throw new StartupError(`${name}_FILE '${path}' is empty`)
    found[name] = value
  }
  return Object.keys(found).length === 0 ? env : { ...env, ...found }
}

/** Strict base64 of 32 bytes (S21). The value itself is never part of a message. Throws StartupError. */
export function readKey(env: Environment, name: string): Buffer {
  const value = env[name] ?? ''
  const bytes = Buffer.from(value, 'base64')
  if (bytes.length !== 32 || bytes.toString('base64') !== value)
    throw new StartupError(`${name} must be base64 of 32 random bytes`)
  if (bytes.every((byte) => byte === 0)) throw new StartupError(`${name} must be 32 random bytes, not zeros`)
  return bytes
}

/** The key that was in use before: absent where the variable is not set. Throws StartupError, also when it equals `current`. */
export function readPreviousKey(env: Environment, name: string, current: Buffer): Buffer | undefined {
  if (!env[name]) return undefined
  const previous = readKey(env, name)
  if (previous.equals(current)) throw new StartupError(`${name} is the same key as ${name.replace('_PREVIOUS', '')}`)
  return previous
}
