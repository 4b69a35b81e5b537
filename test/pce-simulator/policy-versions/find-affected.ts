import type { PceObject } from '../../../schemas/pce/reference.js'
import type { Actor, RuleSet, ScopeEntry } from '../../../schemas/pce/rule-set.js'
import { bodiesOf, collectHrefs, findPolicyUsage } from '../kinds/find-usage.js'
import { expandGroup } from '../kinds/expand-group.js'
import type { Entry } from '../store/policy-store.js'
import type { World } from '../world.js'

export interface Affected {
  /** Rule sets that change or use what changes. */
  ruleSets: Set<Entry>
  /** Workloads on either side of one of their rules, before or after. */
  workloads: PceObject[]
}

/** Whom a set of changes concerns. */
export function findAffected(world: World, entries: readonly Entry[]): Affected {
  const ruleSets = new Set(
    entries.flatMap((entry) =>
      entry.type === 'rule_sets' ? [entry] : findPolicyUsage(world, entry.draft.href).ruleSets,
    ),
  )
  const bodies = [...ruleSets].flatMap((entry) => bodiesOf(entry) as RuleSet[])
  const workloads = world.workloads.live().filter((workload) => {
    const labels = collectHrefs(workload.labels)
    return bodies.some((body) => concerns(world, body, workload.href, labels))
  })
  return { ruleSets, workloads }
}

function concerns(world: World, ruleSet: RuleSet, href: string, labels: ReadonlySet<string>): boolean {
  const inScope = ruleSet.scopes.some((scope) => scope.every((entry) => bears(world, entry, labels)))
  const rules = [...(ruleSet.rules ?? []), ...(ruleSet.deny_rules ?? [])]
  return rules.some((rule) => {
    if (inScope && isAmong(world, rule.providers, href, labels)) return true
    return (inScope || rule.unscoped_consumers === true) && isAmong(world, rule.consumers, href, labels)
  })
}

/** Labels of one key are alternatives, different keys must all hold (pce-api e.7). */
function isAmong(world: World, actors: readonly Actor[], href: string, labels: ReadonlySet<string>): boolean {
  if (actors.some((actor) => actor.actors === 'ams' || actor.workload?.href === href)) return true
  const byKey = new Map<unknown, Actor[]>()
  for (const actor of actors) {
    const key = actor.label
      ? world.labels.get(actor.label.href)?.key
      : world.policy.get('label_groups', actor.label_group?.href ?? '')?.draft.key
    if (key !== undefined) byKey.set(key, [...(byKey.get(key) ?? []), actor])
  }
  if (byKey.size === 0) return false
  return [...byKey.values()].every((ofKey) => ofKey.some((actor) => bears(world, actor, labels)))
}

function bears(world: World, entry: ScopeEntry, labels: ReadonlySet<string>): boolean {
  const wanted = entry.label
    ? [entry.label.href]
    : expandGroup(entry.label_group?.href ?? '', (group) => world.policy.get('label_groups', group)?.draft)
  return wanted.some((href) => labels.has(href)) !== (entry.exclusion === true)
}
