import { findUses } from '../inventory/find-uses.js'
import { toDraftHref } from '../inventory/parse-href.js'
import { quote } from '../text/escape-text.js'
import { workInTurns } from '../text/pace-work.js'
import { firstOutside, INSIDE, outside, placeUnscoped, type PlacedObject } from './place-object.js'
import type { Place } from './place.js'
import { placeRuleSets } from './place-rule-sets.js'
import type { Reader } from './read-around.js'
import { fieldsOf, hrefsIn, nameOf, type Target, type Write } from './read-write.js'

const SHARED: ReadonlySet<string> = new Set(['ip_lists', 'services', 'label_groups'])
/** Returns true for the types of objects that rules in many different rule sets may use. */
export const isShared = (kind: string): boolean => SHARED.has(kind)

/**
 * Determines whether a change to a label, label group, IP list or service touches something protected: the label
 * itself, a label group that contains it, or a rule that uses the object and is protected.
 */
export async function placeSharedWrite(
  reader: Reader,
  { method, body }: Write,
  target: Target,
): Promise<PlacedObject[]> {
  const { territory } = reader
  const { kind, href } = target
  const change = fieldsOf(body)
  const about = { kind, ...(href !== undefined && { href }), ...nameOf(body) }
  if (kind === 'labels') {
    const before = href === undefined ? undefined : territory.labels.get(href)
    const after = { key: change['key'] ?? before?.key, value: change['value'] ?? before?.value }
    const isProtected = [before, after].some((label) => territory.shield?.isNamed(label?.key, label?.value))
    const place = isProtected ? outside('protected_label', 'is a protected label') : placeUnscoped(territory, kind)
    return [{ ...about, ...nameOf(before), place }]
  }
  const after = kind === 'label_groups' ? await placeMembers(reader, change, href) : INSIDE
  if (method === 'POST' && href === undefined) return [{ ...about, place: after }]
  return [{ ...about, place: firstOutside([after, await placeShared(reader, href ?? '')]) }]
}

/**
 * Determines whether an IP list, service or label group contains a protected label, or is used by rules on something
 * protected, in the draft or in the active policy.
 */
export async function placeShared(reader: Reader, href: string): Promise<Place> {
  const { territory, signal } = reader
  const own = [...(territory.membersOf(href) ?? [])].find((label) => territory.shield?.has(label))
  if (own !== undefined) return outside('protected_label', `contains the protected label ${territory.nameOf(own)}`)
  const users = await reader.users()
  for (const version of [users.draft, users.active]) {
    const { ruleSets, boundaries } = await workInTurns(findUses(version, href), signal)
    if (boundaries.length > 0)
      return outside('not_judged', 'is used by an enforcement boundary, whose reach is not known')
    for (const ruleSet of ruleSets) {
      const place = await placeRuleSets(reader, [ruleSet])
      if (place.is !== 'inside')
        return { ...place, why: `is used by the rule set ${quote(ruleSet.name)}, which ${place.why}` }
    }
  }
  return INSIDE
}

/**
 * Determines whether a label group may get these members. It may get neither protected labels nor, as additional
 * members, labels that protected workloads have.
 */
async function placeMembers(
  { territory }: Reader,
  { labels, sub_groups: groups }: Record<string, unknown>,
  href: string | undefined,
): Promise<Place> {
  const { shield, nameOf: say, membersOf } = territory
  const after = [...hrefsIn(labels), ...hrefsIn(groups).flatMap((group) => [...(membersOf(toDraftHref(group)) ?? [])])]
  const own = after.find((label) => shield?.has(label))
  if (own !== undefined) return outside('protected_label', `would contain the protected label ${say(own)}`)
  const before = href === undefined ? undefined : membersOf(href)
  // Nothing uses a new group yet, so only its protected labels matter.
  const added = before === undefined ? [] : after.filter((label) => !before.has(label))
  const [borne] = (await shield?.findBorne(added)) ?? []
  return borne === undefined
    ? INSIDE
    : outside('protected_workload', `would contain the label ${say(borne)}, which protected workloads have`)
}
