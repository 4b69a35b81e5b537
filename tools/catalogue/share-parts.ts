/**
 * A schema in the portable core (D243), which the interfaces of all models and the converters of all well-known clients
 * accept and pass on completely. It has exactly one `type`, or is an `anyOf` of such schemas.
 */
export interface Portable {
  [keyword: string]: unknown
  type?: string
  anyOf?: Portable[]
}

/**
 * Sizes, in bytes, of a reference to a shared part of a schema, and of the part's definition without the part itself.
 */
const REFERENCE_BYTES = 23
const DEFINITION_BYTES = 20

/**
 * Returns true if a part of a schema takes fewer bytes when it is defined once and referred to elsewhere. `length` is
 * the part's length, `times` the number of its occurrences.
 */
const isWorthSharing = (length: number, times: number): boolean =>
  (times - 1) * length > times * REFERENCE_BYTES + DEFINITION_BYTES

/**
 * Returns an equivalent schema in which each repeated part is defined only once (`$defs`, JSON Schema 2020-12, core
 * 8.2.4). For example, an answer about two directions of traffic has each of its lists twice.
 */
export function shareParts(schema: Portable): Portable {
  const counts = new Map<string, number>()
  const count = (part: unknown) => {
    if (!isPart(part)) return forEachPart(part, count)
    const text = JSON.stringify(part)
    const before = counts.get(text) ?? 0
    counts.set(text, before + 1)
    // If a repeated part is moved, the parts inside it move with it and need no definitions of their own.
    if (before === 0) forEachPart(part, count)
  }
  forEachPart(schema, count)

  const definitions: Portable = {}
  const names = new Map<string, string>()
  const share = (part: unknown): unknown => {
    if (!isPart(part)) return mapParts(part, share)
    const text = JSON.stringify(part)
    if (!isWorthSharing(text.length, counts.get(text) ?? 0)) return mapParts(part, share)
    let name = names.get(text)
    if (name === undefined) {
      names.set(text, (name = `p${names.size + 1}`))
      definitions[name] = mapParts(part, share)
    }
    return { $ref: `#/$defs/${name}` }
  }
  const shared = mapParts(schema, share) as Portable
  return names.size === 0 ? shared : { ...shared, $defs: definitions }
}

/**
 * Returns true if a value is a schema that may be replaced by a reference: that of an object with properties, a list
 * with items, or alternatives.
 */
const isPart = (value: unknown): value is Portable =>
  typeof value === 'object' &&
  value !== null &&
  (('type' in value && typeof value.type === 'string' && ('properties' in value || 'items' in value)) ||
    ('anyOf' in value && Array.isArray(value.anyOf)))

function forEachPart(value: unknown, visit: (inner: unknown) => void): void {
  if (typeof value === 'object' && value !== null) Object.values(value).forEach(visit)
}

function mapParts(value: unknown, change: (inner: unknown) => unknown): unknown {
  if (Array.isArray(value)) return value.map(change)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, change(inner)]))
}
