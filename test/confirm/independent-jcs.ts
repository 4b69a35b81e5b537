/** RFC 8785 written down a second time, letter by letter, to hold the first against. Numbers alone are ECMAScript's in both. */
export function writeCanonically(value: unknown): string {
  if (value === null || typeof value === 'boolean') return String(value)
  if (typeof value === 'number') return Object.is(value, -0) ? '0' : `${value}`
  if (typeof value === 'string') return writeString(value)
  if (Array.isArray(value)) return `[${value.map(writeCanonically).join(',')}]`
  const members = Object.entries(value as object).sort(([a], [b]) => compareUnits(a, b))
  return `{${members.map(([name, inner]) => `${writeString(name)}:${writeCanonically(inner)}`).join(',')}}`
}

function compareUnits(a: string, b: string): number {
  for (let at = 0; at < Math.min(a.length, b.length); at++) {
    const difference = a.charCodeAt(at) - b.charCodeAt(at)
    if (difference !== 0) return difference
  }
  return a.length - b.length
}

const SHORT: Record<number, string> = { 8: '\\b', 9: '\\t', 10: '\\n', 12: '\\f', 13: '\\r', 34: '\\"', 92: '\\\\' }

function writeString(text: string): string {
  let out = '"'
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at)
    out += SHORT[unit] ?? (unit < 32 ? `\\u${unit.toString(16).padStart(4, '0')}` : text[at])
  }
  return `${out}"`
}
