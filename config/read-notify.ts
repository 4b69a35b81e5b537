import type { NotifyConfig, StateFileConfig } from '../schemas/config.js'
import { isPlaceholder, placeholderIn, readSwitch, type Reading } from './read-values.js'

const URL_NAME = 'MCP_NOTIFY_WEBHOOK_URL'
const SECRET_NAME = 'MCP_NOTIFY_SECRET'
const MAKE_SECRET = `Make one with: echo "whsec_$(openssl rand -base64 32)"`
/** The shortest and the longest secret that Standard Webhooks permits, in bytes. */
const [LEAST_BYTES, MOST_BYTES] = [24, 64]
/** The value of a secret whose file has a fault that has already been reported. */
const UNREADABLE = '\0'

/**
 * Reads the settings for the receiver of notifications. Returns undefined if there is no receiver or a setting has a
 * fault. Messages quote neither the secret nor the URL, whose path may be a secret.
 */
export function readNotify(reading: Reading): NotifyConfig | undefined {
  const { env, faults, warnings } = reading
  const names = readSwitch(reading, 'MCP_NOTIFY_NAMES', false)
  const [url, secret] = [env[URL_NAME], env[SECRET_NAME]]
  if (!url) {
    const unread = [SECRET_NAME, 'MCP_NOTIFY_NAMES'].filter((name) => env[name])
    if (unread.length > 0)
      warnings.push(`No ${URL_NAME}: nobody is told of anything; ${unread.join(', ')} set but ignored.`)
    return undefined
  }
  if (!secret) faults.push({ problem: `${URL_NAME} requires ${SECRET_NAME}`, remedy: MAKE_SECRET })
  const key = secret ? readSecret(secret, reading) : undefined
  return isReceiver(url, reading) && key !== undefined ? { url, secret: key, names } : undefined
}

/**
 * Reads the settings with which a command can notify the receiver. A command only stores its message for the servers to
 * send, so it needs neither the receiver's URL nor the secret. Returns undefined if the servers have no receiver.
 */
export function readTold(reading: Reading): StateFileConfig['notify'] {
  const { env } = reading
  if (!env[URL_NAME] && !env[`${URL_NAME}_FILE`]) return undefined
  return { publicUrl: env.MCP_PUBLIC_URL ?? '', names: readSwitch(reading, 'MCP_NOTIFY_NAMES', false) }
}

function isReceiver(value: string, { faults }: Reading): boolean {
  if (value === UNREADABLE) return false
  if (isPlaceholder(value)) {
    faults.push(placeholderIn(URL_NAME))
    return false
  }
  const url = /[\s\p{Cc}]/u.test(value) || !URL.canParse(value) ? null : new URL(value)
  if (url?.protocol === 'https:' && url.username === '' && url.password === '' && url.hash === '') return true
  faults.push({
    problem: `${URL_NAME} must be an https URL without a user name, a password or a fragment`,
    remedy: `Write the whole URL, such as ${URL_NAME}=https://relay.example.com/svc-mcp`,
  })
  return false
}

function readSecret(value: string, { faults }: Reading): Buffer | undefined {
  if (value === UNREADABLE) return undefined
  const text = value.replace(/^whsec_/, '')
  const bytes = Buffer.from(text, 'base64')
  const isBase64 = text !== value && bytes.toString('base64') === text
  if (isBase64 && bytes.length >= LEAST_BYTES && bytes.length <= MOST_BYTES) return bytes
  faults.push({
    problem: `${SECRET_NAME} must be whsec_ and base64 of ${LEAST_BYTES} to ${MOST_BYTES} random bytes`,
    remedy: MAKE_SECRET,
  })
  return undefined
}
