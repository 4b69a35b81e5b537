const SECRET = /^(?:.*_)?password$|^secret$|^credential$/
const REDACTED = '[redacted]'

/** The value with every password, secret and credential taken out, at any depth; itself when it has none. */
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
