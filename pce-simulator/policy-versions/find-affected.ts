import type { PceObject, VersionedObject } from '../../schemas/pce/reference.js'
import type { Actor, Rule, RuleSet, ScopeEntry } from '../../schemas/pce/rule-set.js'
import { bodiesOf, collectHrefs, findPolicyUsage } from '../kinds/find-usage.js'
import { expandGroup } from '../kinds/expand-group.js'
import type { Entry } from '../store/policy-store.js'
import type { World } from '../world.js'

export interface Affected {
  /** The rule sets that change, or that use an object that changes. */
  ruleSets: Set<Entry>
  /**
   * The workloads that are providers or consumers of a rule in `ruleSets` or of an affected enforcement boundary,
   * before or after the change.
   */
  workloads: PceObject[]
  containerWorkloads: PceObject[]
  virtualServers: Set<Entry>
}

/** Finds every rule set and workload that a set of changes affects. */
export function findAffected(world: World, entries: readonly Entry[]): Affected {
  const usage = entries.map((entry) => findPolicyUsage(world, entry.draft.href))
  const ruleSets = new Set([
    ...entries.filter(({ type }) => type === 'rule_sets'),
    ...usage.flatMap((one) => one.ruleSets),
  ])
  const boundaries = new Set([
    ...entries.filter(({ type }) => type === 'enforcement_boundaries'),
    ...usage.flatMap((one) => one.boundaries),
  ])
  const bodies = [
    ...[...ruleSets].flatMap((entry) => bodiesOf(entry) as RuleSet[]),
    ...[...boundaries].flatMap((entry) => bodiesOf(entry).map(asRuleSet)),
  ]
  const isConcerned = ({ href, labels }: PceObject) => {
    const hrefs = collectHrefs(labels)
    return bodies.some((body) => concerns(world, body, href, hrefs))
  }
  const named = collectHrefs(bodies.map(({ rules }) => rules))
  const servers = world.policy.entries('virtual_servers').filter(({ draft }) => named.has(draft.href))
  return {
    ruleSets,
    workloads: world.workloads.live().filter(isConcerned),
    containerWorkloads: ['container_workloads', 'kubernetes_workloads'].flatMap((segment) => {
      return world.store(segment).live().filter(isConcerned)
    }),
    virtualServers: new Set([
      ...entries.filter(({ type }) => type === 'virtual_servers'),
      ...usage.flatMap((one) => one.virtualServers),
      ...servers,
    ]),
  }
}

/**
 * Wraps an enforcement boundary in a rule set with an unlimited scope, because a boundary's providers and consumers may
 * be in any scope.
 */
function asRuleSet(boundary: VersionedObject): RuleSet {
  const { href, providers, consumers } = boundary as unknown as Rule
  const rule = { ...boundary, href, providers, consumers, unscoped_consumers: true } as Rule
  return { href, name: '', enabled: true, scopes: [[]], rules: [rule], deny_rules: [] }
}

function concerns(world: World, ruleSet: RuleSet, href: string, labels: ReadonlySet<string>): boolean {
  const inScope = ruleSet.scopes.some((scope) => scope.every((entry) => bears(world, entry, labels)))
  const rules = [...(ruleSet.rules ?? []), ...(ruleSet.deny_rules ?? [])]
  return rules.some((rule) => {
    if (inScope && isAmong(world, rule.providers, href, labels)) return true
    return (inScope || rule.unscoped_consumers === true) && isAmong(world, rule.consumers, href, labels)
  })
}

/**
 * Returns true if the workload is one of `actors`, the providers or the consumers of a rule. Labels with the same key
 * are alternatives; the workload must match one label of each key (P20).
 */
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
