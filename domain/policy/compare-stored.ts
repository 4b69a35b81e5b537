import { toDraftHref } from '../inventory/parse-href.js'

/** A field that the PCE did not store, or stored differently from what was sent. */
export interface Difference {
  field: string
  sent: unknown
  stored: unknown
}

/**
 * Lists the fields of a payload that the stored object lacks or contains in a different form. The PCE may add fields
 * and reorder lists; it should not drop or change anything, but sometimes does so silently (P18). Hrefs are compared
 * without their policy version. A list entry also differs if its stored form has a meaningful field that was not sent,
 * for example if a single address became a range or a label is now excluded.
 */
export function findDifferences(sent: object, stored: object): Difference[] {
  return Object.entries(sent as Record<string, unknown>)
    .filter(([field, value]) => value !== undefined && !contains((stored as Record<string, unknown>)[field], value))
    .map(([field, value]) => ({ field, sent: value, stored: (stored as Record<string, unknown>)[field] ?? null }))
}

/**
 * Returns an object to spread into an answer. It has the property `differences`, or is empty if there are no
 * differences.
 */
export function listDifferences(differences: readonly Difference[] = []): { differences?: Difference[] } {
  return differences.length === 0 ? {} : { differences: [...differences] }
}

function contains(stored: unknown, sent: unknown): boolean {
  if (typeof sent === 'string' && typeof stored === 'string') return toDraftHref(stored) === toDraftHref(sent)
  if (Array.isArray(sent)) return containsAll(stored, sent)
  if (typeof sent === 'object' && sent !== null) {
    if (typeof stored !== 'object' || stored === null) return false
    return (
      Object.entries(sent).every(([field, value]) => contains((stored as Record<string, unknown>)[field], value)) &&
      !saysMore(stored as Record<string, unknown>, sent)
    )
  }
  // To the PCE, null and absent mean the same (P43).
  return stored === sent || ((sent ?? null) === null && (stored ?? null) === null)
}

/** The fields whose mere presence changes the meaning of an entry in a rule, service or IP list. */
const TELLING = [
  'exclusion',
  'to_ip',
  'port',
  'to_port',
  'proto',
  'icmp_type',
  'icmp_code',
  'process_name',
  'service_name',
  'description',
]

/**
 * Returns true if a stored entry has a meaningful field that was not sent. In a reference by href, other fields only
 * describe the object and are ignored.
 */
function saysMore(stored: Record<string, unknown>, sent: object): boolean {
  if ('href' in sent) return false
  return TELLING.some((field) => {
    const value = stored[field]
    if (field in sent || value === undefined || value === null || value === '' || value === false) return false
    // The PCE may write an entry without ports with the port -1, or add a to_port equal to the port (P18).
    return !(value === -1 || (field === 'to_port' && value === stored.port))
  })
}

/** Returns true if every sent item can be paired with a stored item of its own, and no stored item is left over. */
function containsAll(stored: unknown, sent: readonly unknown[]): boolean {
  const found = Array.isArray(stored) ? (stored as unknown[]) : []
  if (found.length !== sent.length) return false
  // The most detailed items are matched first. Otherwise a less detailed item could take the partner of a more detailed
  // one. Both lists are sorted in this way, so the partner of an item is usually near the beginning of `left`.
  const left = mostDetailedFirst(found)
  return mostDetailedFirst(sent).every((item) => {
    const at = left.findIndex((candidate) => contains(candidate, item))
    if (at !== -1) left.splice(at, 1)
    return at !== -1
  })
}

function mostDetailedFirst(items: readonly unknown[]): unknown[] {
  return items
    .map((item) => ({ item, text: JSON.stringify(item) }))
    .sort((a, b) => b.text.length - a.text.length || (a.text < b.text ? -1 : 1))
    .map(({ item }) => item)
}
