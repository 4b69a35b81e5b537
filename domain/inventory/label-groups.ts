import type { LabelGroup, LabelRef } from '../../schemas/pce/label.js'
import type { RuleSet } from '../../schemas/pce/rule-set.js'
import type { PolicyUsers } from './find-uses.js'
import { parseHref, toDraftHref } from './parse-href.js'

/** What a label group comes to, with the groups inside it. */
export interface GroupMembers {
  /** Every label in it once, its own first. */
  labels: LabelRef[]
  /** Every group inside it, at any depth, once. */
  groups: LabelGroup[]
  /** Hrefs of groups inside it that this version of the policy does not have. */
  missing: string[]
  /** It contains itself, at whatever depth: a PCE refuses that, so something else wrote it. */
  isCyclic: boolean
}

/** The label groups of one version of the policy, and which contain which. */
export interface GroupTree {
  membersOf(group: LabelGroup): GroupMembers
  /** The groups that contain this one, with whether directly. Those that it contains itself in a circle are among them. */
  holdersOf(group: LabelGroup): { group: LabelGroup; isDirect: boolean }[]
}

/** Each group is visited once for a question, so a circle ends where it began, and nothing is deeper than there are groups. */
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
      // A set hands over what is added to it while it is walked.
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

/** Where something that decides about traffic names a label group. */
export interface GroupUse {
  /** Path segment of its kind: `rule_sets`, `virtual_services` … */
  type: string
  href: string
  name: string
  /** Of a rule set or boundary that is switched off. */
  isOff: boolean
  /** Of a rule set: its scopes, and the ends of its rules that name the group. */
  places: ReadonlySet<Place>
  /** Hrefs of the rules of a rule set that name it. */
  rules: ReadonlySet<string>
}

/** Every use of every label group in one version of the policy, by the group's draft href; in the order of kinds, rule sets first. */
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
    // The firewall settings may be without an href of their own (P12).
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

/** The draft hrefs of the label groups that a value names, at any depth. */
function groupsIn(value: unknown, found = new Set<string>()): Set<string> {
  if (Array.isArray(value)) for (const item of value) groupsIn(item, found)
  else if (typeof value === 'object' && value !== null) {
    for (const [field, inner] of Object.entries(value)) {
      if (field !== 'href') groupsIn(inner, found)
      else if (typeof inner === 'string' && inner.includes('/label_groups/')) found.add(toDraftHref(inner))
    }
  }
  return found
}
