type Claims = Record<string, unknown>

/**
 * The values of all the named claims together, strings only, each once. A claim that is no array gives none: a lone
 * string is no list. A name that is no claim itself is read as a path with dots (Keycloak's `realm_access.roles`).
 */
export function readGroups(payload: Claims, names: readonly string[]): readonly string[] {
  const groups = new Set<string>()
  for (const name of names) {
    const values = Object.hasOwn(payload, name) ? payload[name] : follow(payload, name.split('.'))
    if (!Array.isArray(values)) continue
    for (const value of values) if (typeof value === 'string' && value !== '') groups.add(value)
  }
  return [...groups]
}

/**
 * Whether the provider has left the groups out because they are too many for a token (Entra ID). Where to ask for
 * them is in `_claim_sources`, which is never read: nobody is called because a token says so.
 */
export function hasGroupsOverage(payload: Claims): boolean {
  const { groups, hasgroups, _claim_names: elsewhere } = payload
  if (Array.isArray(groups)) return false
  const isElsewhere = isObject(elsewhere) && Object.hasOwn(elsewhere, 'groups')
  return isElsewhere || (hasgroups !== undefined && hasgroups !== false)
}

function follow(value: unknown, path: readonly string[]): unknown {
  const [name, ...rest] = path
  if (name === undefined) return value
  return isObject(value) && Object.hasOwn(value, name) ? follow(value[name], rest) : undefined
}

const isObject = (value: unknown): value is Claims => typeof value === 'object' && value !== null
