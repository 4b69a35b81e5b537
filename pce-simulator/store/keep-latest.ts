/** Adds an entry to a map, and removes the oldest entries if there are more than `most`. */
export function keepLatest<T>(map: Map<string, T>, most: number, key: string, value: T): void {
  map.set(key, value)
  for (const oldest of map.keys()) {
    if (map.size <= most) break
    map.delete(oldest)
  }
}
