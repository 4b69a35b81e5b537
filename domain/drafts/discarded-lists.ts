import type { Difference } from '../policy/compare-stored.js'
import { SERVICE_LISTS } from '../../schemas/pce/words.js'

/** What to say of a service whose stored form lacks a list that was sent: the PCE answers success all the same (P18). */
export function showDiscarded(differences: readonly Difference[]): { discarded_fields?: string[] } {
  const lists: readonly string[] = SERVICE_LISTS
  const discarded = differences.filter(({ field, stored }) => lists.includes(field) && isEmpty(stored))
  return discarded.length === 0 ? {} : { discarded_fields: discarded.map(({ field }) => field) }
}

function isEmpty(stored: unknown): boolean {
  return stored === null || (Array.isArray(stored) && stored.length === 0)
}

/** The note of services that name a connecting program: elsewhere than on Windows the port alone decides. */
export function noteEgress(list: string | undefined): { note?: string } {
  if (list !== 'windows_egress_services') return {}
  return {
    note: 'Consumers without a Windows VEN ignore the program: a rule then admits whatever connects to its port.',
  }
}
