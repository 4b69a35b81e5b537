/**
 * What of a value a pattern speaks about: the named properties of objects, whole arrays item by item. `strictSame(project(value,
 * pattern), pattern)` holds when the value has everything the pattern has, with a readable difference when it has not.
 */
export function project(value: unknown, pattern: unknown): unknown {
  if (Array.isArray(pattern)) {
    return Array.isArray(value) ? value.map((item, index) => project(item, pattern[index])) : value
  }
  if (pattern === null || typeof pattern !== 'object' || value === null || typeof value !== 'object') return value
  return Object.fromEntries(
    Object.entries(pattern).map(([key, below]) => [key, project((value as Record<string, unknown>)[key], below)]),
  )
}
