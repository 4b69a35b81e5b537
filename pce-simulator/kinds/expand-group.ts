import type { Reference, VersionedObject } from '../../schemas/pce/reference.js'
import { collectHrefs } from './find-usage.js'

/** Finds a label group by its draft href in one version of the policy. */
export type Lookup = (href: string) => VersionedObject | null | undefined

/** Lists the groups that a group contains, at any depth. */
export function containedGroups(href: string, lookup: Lookup, seen = new Set<string>()): Set<string> {
  for (const sub of (lookup(href)?.sub_groups ?? []) as Reference[]) {
    if (seen.has(sub.href)) continue
    seen.add(sub.href)
    containedGroups(sub.href, lookup, seen)
  }
  return seen
}

/** Lists the hrefs of a group's labels, including those of its sub-groups, without duplicates. */
export function expandGroup(href: string, lookup: Lookup): string[] {
  const groups = [href, ...containedGroups(href, lookup)]
  return [...new Set(groups.flatMap((group) => [...collectHrefs(lookup(group)?.labels ?? [])]))]
}
