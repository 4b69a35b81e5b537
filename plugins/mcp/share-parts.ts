/** Shorter parts than this are not worth the two references and the definition. */
const MIN_BYTES = 90

type Schema = Record<string, unknown>

/**
 * The same schema with the parts that occur more than once defined once (`$defs`, JSON Schema 2020-12, core 8.2.4). The answer about
 * two directions of traffic has every one of its lists twice.
 */
export function shareParts(schema: Schema): Schema {
  const counts = new Map<string, number>()
  const count = (part: unknown) => {
    if (!isPart(part)) return forEachPart(part, count)
    const text = JSON.stringify(part)
    const before = counts.get(text) ?? 0
    counts.set(text, before + 1)
    // What is inside a part that occurred before is shared with it.
    if (before === 0) forEachPart(part, count)
  }
  forEachPart(schema, count)

  const definitions: Schema = {}
  const names = new Map<string, string>()
  const share = (part: unknown): unknown => {
    if (!isPart(part)) return mapParts(part, share)
    const text = JSON.stringify(part)
    if ((counts.get(text) ?? 0) < 2 || text.length < MIN_BYTES) return mapParts(part, share)
    let name = names.get(text)
    if (name === undefined) {
      names.set(text, (name = `p${names.size + 1}`))
      definitions[name] = mapParts(part, share)
    }
    return { $ref: `#/$defs/${name}` }
  }
  const shared = mapParts(schema, share) as Schema
  return names.size === 0 ? shared : { ...shared, $defs: definitions }
}

/** A schema that can stand behind a reference: of an object or of a list. */
const isPart = (value: unknown): value is Schema =>
  typeof value === 'object' &&
  value !== null &&
  'type' in value &&
  (typeof value.type === 'string' || Array.isArray(value.type)) &&
  ('properties' in value || 'items' in value)

function forEachPart(value: unknown, visit: (inner: unknown) => void): void {
  if (typeof value === 'object' && value !== null) Object.values(value).forEach(visit)
}

function mapParts(value: unknown, change: (inner: unknown) => unknown): unknown {
  if (Array.isArray(value)) return value.map(change)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, change(inner)]))
}
