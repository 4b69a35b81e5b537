import type { PceObject } from '../../schemas/pce/reference.js'
import type { WholePolicy } from '../history/load-policy.js'
import { quote } from '../text/escape-text.js'
import { type FilesDifference, type ObjectDifference, policyAfter } from './compare-files.js'
import { collectHrefs } from './read-files.js'

/** An object that has no file and stays, with the reason. */
export interface Kept {
  difference: ObjectDifference
  why: string
}

/**
 * Chooses the objects without a file that can be deleted. Those that something uses stay, with what they use
 * themselves, and so do those that another system or nobody may change.
 */
export function choosePruned(
  difference: FilesDifference,
  draft: WholePolicy,
): { removed: readonly ObjectDifference[]; kept: readonly Kept[] } {
  const without = difference.differences.filter(({ object }) => object === null)
  const kept: Kept[] = []
  let removed = without.filter((one) => {
    const { external_data_set: set, caps } = one.before!
    const why =
      typeof set === 'string' && set !== ''
        ? `it belongs to the external data set ${quote(set)}`
        : Array.isArray(caps) && !caps.includes('write')
          ? 'this API key may not delete it'
          : null
    if (why !== null) kept.push({ difference: one, why })
    return why === null
  })
  for (;;) {
    const after = policyAfter(difference, draft, new Set(removed))
    const used = new Map<string, string>()
    for (const objects of Object.values(after) as ReadonlyMap<string, PceObject>[])
      for (const object of objects.values()) {
        const hrefs = new Set<string>()
        collectHrefs(object, hrefs)
        for (const href of hrefs) used.set(href, typeof object.name === 'string' ? object.name : object.href)
      }
    const staying = removed.filter(({ before }) => used.has(before!.href))
    if (staying.length === 0) return { removed, kept }
    for (const one of staying) kept.push({ difference: one, why: `${quote(used.get(one.before!.href)!)} uses it` })
    removed = removed.filter((one) => !staying.includes(one))
  }
}
