/**
 * The scopes of a token, from `scope` (RFC 8693, 4.2: one string, separated by blanks) and `scp` (a string in Entra
 * ID, an array in Okta) together. An element of an array is one scope, whatever it contains.
 */
export function readScopes({ scope, scp }: Record<string, unknown>): Set<string> {
  return new Set([...scopesIn(scope), ...scopesIn(scp)])
}

function scopesIn(value: unknown): string[] {
  if (typeof value === 'string') return value.split(' ')
  if (Array.isArray(value)) return value.filter((element) => typeof element === 'string')
  return []
}
