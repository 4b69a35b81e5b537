const SECRET = /^(?:.*_)?password$|^secret$|^credential$/
const REDACTED = '[redacted]'

/**
 * Replaces every password, secret and credential in the value, at any depth. Returns the value itself, not a copy, if
 * it contains no secret.
 */
export function redactSecrets(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  let found = false
  const entries = Object.entries(value).map(([key, inner]): [string, unknown] => {
    const kept = SECRET.test(key) && inner !== null ? REDACTED : redactSecrets(inner)
    found ||= kept !== inner
    return [key, kept]
  })
  if (!found) return value
  return Array.isArray(value) ? entries.map(([, inner]) => inner) : Object.fromEntries(entries)
}

/** Removes every password, secret and credential from the value, at any depth. */
export function leaveOutSecrets(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(leaveOutSecrets)
  if (typeof value !== 'object' || value === null) return value
  const kept = Object.entries(value).filter(([key]) => !SECRET.test(key))
  return Object.fromEntries(kept.map(([key, inner]) => [key, leaveOutSecrets(inner)]))
}
