/**
 * Whether parsed JSON is nested deeper than `limit`. JSON.parse takes any depth, JSON.stringify and every recursive check after it
 * do not, so this goes level by level instead of calling itself.
 */
export function exceedsDepth(value: unknown, limit: number): boolean {
  let level: unknown[] = [value]
  for (let depth = 0; level.length > 0; depth++) {
    const next: unknown[] = []
    for (const item of level) {
      if (typeof item !== 'object' || item === null) continue
      if (depth === limit) return true
      for (const child of Array.isArray(item) ? (item as unknown[]) : Object.values(item)) {
        if (typeof child === 'object' && child !== null) next.push(child)
      }
    }
    level = next
  }
  return false
}
