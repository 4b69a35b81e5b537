import type { PceObject } from '../../schemas/pce/reference.js'
import type { WholePolicy } from '../history/load-policy.js'
import { quote } from '../text/escape-text.js'
import { type FilesDifference, type ObjectDifference, policyAfter } from './compare-files.js'
import { collectHrefs } from './read-files.js'

/** An object that has no file but is not deleted, with the reason. */
export interface Kept {
  difference: ObjectDifference
  why: string
}

/**
 * Chooses which of the objects without a file can be deleted. An object is kept if anything that is kept uses it, or if
 * another system owns it, or if this API key may not delete it.
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
