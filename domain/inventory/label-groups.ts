import type { LabelGroup, LabelRef } from '../../schemas/pce/label.js'
import type { RuleSet } from '../../schemas/pce/rule-set.js'
import type { PolicyUsers } from './find-uses.js'
import { parseHref, toDraftHref } from './parse-href.js'

/** The contents of a label group, including the contents of nested groups. */
export interface GroupMembers {
  /** All labels without duplicates, the group's own labels first. */
  labels: LabelRef[]
  /** All nested groups at any depth, without duplicates. */
  groups: LabelGroup[]
  /** Hrefs of nested groups that do not exist in this policy version. */
  missing: string[]
  /**
   * True if the group contains itself at any depth. A PCE rejects such a group, so it was not created through the PCE's
   * API.
   */
  isCyclic: boolean
}

/** The label groups of one policy version and their nesting. */
export interface GroupTree {
  membersOf(group: LabelGroup): GroupMembers
  /**
   * Lists the groups that contain the given group. `isDirect` says whether a group contains it directly. Groups that
   * contain each other in a circle are listed too.
   */
  holdersOf(group: LabelGroup): { group: LabelGroup; isDirect: boolean }[]
}

/**
 * Builds the tree of label groups. No search in it visits a group twice, so groups that contain each other cause no
 * endless loop.
 */
export function createGroupTree(groups: readonly LabelGroup[]): GroupTree {
  const byHref = new Map(groups.map((group) => [toDraftHref(group.href), group]))
  const holders = new Map<string, LabelGroup[]>()
  for (const group of groups) {
    for (const inner of new Set((group.sub_groups ?? []).map(({ href }) => toDraftHref(href))))
      holders.set(inner, [...(holders.get(inner) ?? []), group])
  }

  return {
    membersOf(group) {
      const own = toDraftHref(group.href)
      const labels = new Map<string, LabelRef>()
      const inside = new Map<string, LabelGroup>()
      const missing = new Set<string>()
      let isCyclic = false
      const next = [group]
      for (let at = next.shift(); at !== undefined; at = next.shift()) {
        for (const label of at.labels ?? []) if (!labels.has(label.href)) labels.set(label.href, label)
        for (const { href } of at.sub_groups ?? []) {
          const id = toDraftHref(href)
          const inner = byHref.get(id)
          if (id === own) isCyclic = true
          else if (inner === undefined) missing.add(href)
          else if (!inside.has(id)) {
            inside.set(id, inner)
            next.push(inner)
          }
        }
      }
      return { labels: [...labels.values()], groups: [...inside.values()], missing: [...missing], isCyclic }
    },

    holdersOf(group) {
      const own = toDraftHref(group.href)
      const direct = new Set(holders.get(own))
      const found = new Set(direct)
      // Iterating over a Set includes elements added meanwhile, so the loop also visits groups that its body adds to
      // `found`.
      for (const one of found) {
        for (const outer of holders.get(toDraftHref(one.href)) ?? [])
          if (toDraftHref(outer.href) !== own) found.add(outer)
      }
      return [...found].map((one) => ({ group: one, isDirect: direct.has(one) }))
    },
  }
}

type Place = 'scopes' | 'providers' | 'consumers' | 'ip_tables_rules'
const NO_RULES: ReadonlySet<string> = new Set()

/** An object that affects traffic and refers to a label group. */
export interface GroupUse {
  /** The path segment of the object's type in hrefs, such as `rule_sets` or `virtual_services`. */
  type: string
  href: string
  name: string
  /** True for a rule set or enforcement boundary that is disabled. */
  isOff: boolean
  /**
   * The parts of a rule set or enforcement boundary that refer to the group: its scopes, the sides of its rules, or its
   * iptables rules.
   */
  places: ReadonlySet<Place>
  /** Hrefs of the rules of a rule set that refer to the group. */
  rules: ReadonlySet<string>
}

/**
 * Finds all uses of each label group in one policy version. The keys of the returned map are the draft hrefs of the
 * groups. The uses of a group are ordered by type of object, rule sets first.
 */
export function locateGroups({ ruleSets, boundaries, others }: PolicyUsers): ReadonlyMap<string, readonly GroupUse[]> {
  const uses = new Map<string, GroupUse[]>()
  const note = (group: string, use: GroupUse) => {
    const known = uses.get(group) ?? []
    uses.set(group, known)
    known.push(use)
  }
  for (const ruleSet of ruleSets) {
    for (const [group, { places, rules }] of placesIn(ruleSet)) {
      const { href, name, enabled } = ruleSet
      note(group, { type: 'rule_sets', href, name, isOff: !enabled, places, rules })
    }
  }
  for (const boundary of boundaries) {
    const { href, name, enabled } = boundary
    const places = sidesNaming(boundary)
    for (const [group, named] of places)
      note(group, {
        type: 'enforcement_boundaries',
        href,
        name,
        isOff: enabled === false,
        places: named,
        rules: NO_RULES,
      })
  }
  for (const other of others) {
    // The PCE may send the firewall settings without an href (P12).
    const { href = '', name }: { href?: string; name?: unknown } = other
    const type = href === '' ? 'firewall_settings' : (parseHref(href)?.kind ?? '')
    for (const group of groupsIn(other))
      note(group, {
        type,
        href,
        name: typeof name === 'string' ? name : '',
        isOff: false,
        places: new Set(),
        rules: NO_RULES,
      })
  }
  return uses
}

function placesIn({ scopes, ip_tables_rules: tables, ...ruleSet }: RuleSet) {
  const found = new Map<string, { places: Set<Place>; rules: Set<string> }>()
  const at = (group: string) => {
    const known = found.get(group) ?? { places: new Set<Place>(), rules: new Set<string>() }
    found.set(group, known)
    return known
  }
  for (const group of groupsIn(scopes)) at(group).places.add('scopes')
  for (const rule of [...(ruleSet.rules ?? []), ...(ruleSet.deny_rules ?? [])]) {
    for (const [group, sides] of sidesNaming(rule)) {
      const known = at(group)
      known.rules.add(rule.href)
      for (const side of sides) known.places.add(side)
    }
  }
  for (const rule of tables ?? []) {
    for (const group of groupsIn(rule)) {
      const known = at(group)
      known.rules.add(rule.href)
      known.places.add('ip_tables_rules')
    }
  }
  return found
}

function sidesNaming(rule: { providers?: unknown; consumers?: unknown }) {
  const found = new Map<string, Set<Place>>()
  for (const side of ['providers', 'consumers'] as const)
    for (const group of groupsIn(rule[side])) found.set(group, (found.get(group) ?? new Set()).add(side))
  return found
}

/** Collects the draft hrefs of all label groups that a value refers to, at any depth. */
export function groupsIn(value: unknown, found = new Set<string>()): Set<string> {
  if (Array.isArray(value)) for (const item of value) groupsIn(item, found)
  else if (typeof value === 'object' && value !== null) {
    for (const [field, inner] of Object.entries(value)) {
      if (field !== 'href') groupsIn(inner, found)
      else if (typeof inner === 'string' && inner.includes('/label_groups/')) found.add(toDraftHref(inner))
    }
  }
  return found
}
