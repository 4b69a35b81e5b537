/**
 * Whether the outermost object of a JSON text names a member twice (RFC 7519, 4: claim names are unique). JSON.parse
 * takes the last one, another reader may take the first. The text must be JSON that JSON.parse accepts.
 */
export function repeatsAMember(json: string): boolean {
  const names = new Set<string>()
  let depth = 0
  let isName = false
  for (let at = 0; at < json.length; at++) {
    const char = json[at]
    if (char === '"') {
      const end = endOfString(json, at)
      if (isName) {
        const name = JSON.parse(json.slice(at, end + 1)) as string
        if (names.has(name)) return true
        names.add(name)
        isName = false
      }
      at = end
    } else if (char === '{' || char === '[') {
      depth++
      isName = depth === 1
    } else if (char === '}' || char === ']') depth--
    else if (char === ',' && depth === 1) isName = true
  }
  return false
}

/** Where the string that opens at `start` closes. */
function endOfString(json: string, start: number): number {
  let at = start + 1
  while (at < json.length && json[at] !== '"') at += json[at] === '\\' ? 2 : 1
  return at
}
