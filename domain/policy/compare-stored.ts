import { toDraftHref } from '../inventory/parse-href.js'

/** A field the PCE stored differently from what was sent, or not at all. */
export interface Difference {
  field: string
  sent: unknown
  stored: unknown
}

/**
 * What is in a payload but not in the stored object. The PCE may add fields and reorder lists; it should not drop or change
 * anything, but sometimes does so silently (P18). Hrefs compare regardless of the policy version. A list entry also differs when
 * it says more than was sent: a range with an end, a label that is excluded.
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
    return (
      Object.entries(sent).every(([field, value]) => contains((stored as Record<string, unknown>)[field], value)) &&
      !saysMore(stored as Record<string, unknown>, sent)
    )
  }
  // Null and absent mean the same to the PCE (P43).
  return stored === sent || ((sent ?? null) === null && (stored ?? null) === null)
}

/** Fields whose presence changes the meaning of an entry of a rule, a service or an IP list. */
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

/** Whether an entry has a meaningful field that was not sent. What accompanies an href only describes it. */
function saysMore(stored: Record<string, unknown>, sent: object): boolean {
  if ('href' in sent) return false
  return TELLING.some((field) => {
    const value = stored[field]
    if (field in sent || value === undefined || value === null || value === '' || value === false) return false
    // The PCE may spell out what an entry without ports has (P18).
    return !(value === -1 || (field === 'to_port' && value === stored.port))
  })
}

/** Every item has its own partner and nothing is left over. */
function containsAll(stored: unknown, sent: readonly unknown[]): boolean {
  const found = Array.isArray(stored) ? (stored as unknown[]) : []
  if (found.length !== sent.length) return false
  // The most detailed first: what says less would also find its partner in what says more, and take it away. Both sides in
  // that order, so that partners of long lists stand close to each other.
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
