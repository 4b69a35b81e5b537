import { toDraftHref } from './parse-href.js'

/** A field the PCE stored otherwise than it was sent, or not at all. */
export interface Difference {
  field: string
  sent: unknown
  stored: unknown
}

/**
 * What of a payload is not in the stored object. The PCE may add fields and reorder lists; it should drop or change nothing,
 * but does so without a word (pce-api quirk 5). Hrefs compare without regard to the policy version.
 */
export function findDifferences(sent: object, stored: object): Difference[] {
  return Object.entries(sent as Record<string, unknown>)
    .filter(([field, value]) => value !== undefined && !contains((stored as Record<string, unknown>)[field], value))
    .map(([field, value]) => ({ field, sent: value, stored: (stored as Record<string, unknown>)[field] ?? null }))
}

/** Differences as an answer's optional property: absent when everything was stored as sent. */
export function listDifferences(differences: readonly Difference[] = []): { differences?: Difference[] } {
  return differences.length === 0 ? {} : { differences: [...differences] }
}

function contains(stored: unknown, sent: unknown): boolean {
  if (typeof sent === 'string' && typeof stored === 'string') return toDraftHref(stored) === toDraftHref(sent)
  if (Array.isArray(sent)) return containsAll(stored, sent)
  if (typeof sent === 'object' && sent !== null) {
    if (typeof stored !== 'object' || stored === null) return false
    return Object.entries(sent).every(([field, value]) => contains((stored as Record<string, unknown>)[field], value))
  }
  // Null and absent mean the same to the PCE (pce-api quirk 25).
  return stored === sent || ((sent ?? null) === null && (stored ?? null) === null)
}

/** Every item has a partner of its own and nothing is left over. */
function containsAll(stored: unknown, sent: readonly unknown[]): boolean {
  const left = Array.isArray(stored) ? [...(stored as unknown[])] : []
  if (left.length !== sent.length) return false
  // The most detailed first: a port also lies within a range that begins with it, and would take its partner.
  const ordered = [...sent].sort((a, b) => JSON.stringify(b).length - JSON.stringify(a).length)
  return ordered.every((item) => {
    const at = left.findIndex((candidate) => contains(candidate, item))
    if (at !== -1) left.splice(at, 1)
    return at !== -1
  })
}
