import type { PceClient } from '../../pce-client/index.js'
import type { Actor, RuleSet, ScopeEntry } from '../../schemas/pce/rule-set.js'
import type { TrafficFlow } from '../../schemas/pce/traffic.js'
import type { CallerScopes } from '../../schemas/scopes.js'
import { isUnread } from '../inventory/fetch-every.js'
import { loadDenyRules } from '../inventory/read-rules.js'
import { placeLabels } from './place-object.js'
import type { ReachingRule } from './place.js'
import { labelsOfWorkloads, readVersions } from './read-around.js'
import { hrefsIn, listOf } from './read-write.js'
import { surveyTerritory, type Land, type Territory } from './territory.js'

/**
 * How much of the policy is visible. `shown`: the objects that are listed to people. `judged`: also everything that may
 * decide about a flow with an end inside, such as somebody else's rule for an IP list.
 */
export type Extent = 'shown' | 'judged'

/** Determines what a caller with limited reading may see. Each call has its own. */
export interface Sight {
  /** Returns true if an object with these labels is inside. */
  readonly holds: (labels: unknown) => boolean
  /** Returns true if a profile that assigns these labels may assign them to something inside. */
  readonly mayHold: (labels: readonly (readonly string[])[]) => boolean
  /** Returns true if an end of the flow is inside. */
  readonly seesFlow: (flow: TrafficFlow) => boolean
  /**
   * Returns the rule sets whose scopes may contain something inside, or that have a rule which may have an end inside.
   * Their other rules are left out, and so are names of machines in rules.
   */
  readonly ruleSets: (found: readonly RuleSet[], extent: Extent) => Promise<RuleSet[]>
  /**
   * Returns the rules that may have an end inside. The rules must belong to a rule set with these scopes; null means no
   * scopes.
   */
  readonly rules: <T extends object>(found: readonly T[], scopes: Rows, extent: Extent) => Promise<T[]>
}

/** The scopes of a rule set; null for rules that no scope limits. */
type Rows = readonly (readonly ScopeEntry[])[] | null

/**
 * Creates the `Sight` of a caller. A label in the caller's scopes that does not exist on the PCE makes nothing visible.
 * @throws the errors of the PCE client, and IncompleteListError if not all labels could be read.
 */
export async function openSight(pce: PceClient, scopes: CallerScopes, signal: AbortSignal): Promise<Sight> {
  const territory = await surveyTerritory(pce, scopes, { signal })
  const holds = (labels: unknown) => placeLabels(hrefsIn(labels), territory, 'workload_labels').is === 'inside'
  const seesEnd = ({ workload, virtual_service: service, virtual_server: server }: TrafficFlow['src']) =>
    [workload, service, server].some((one) => holds((one as { labels?: unknown } | null | undefined)?.labels))
  const findEnds = createEndFinder({ pce, signal, holds })

  async function keepRules<T extends object>(found: readonly T[], rows: Rows, extent: Extent): Promise<T[]> {
    const ends = await findEnds(found)
    return found
      .filter((rule) => sidesOf(rule).some((side) => mayBeInside(side, rows, { territory, ends, extent })))
      .map(withoutNames)
  }

  return {
    holds,
    mayHold: (given) =>
      territory.lands.some(({ labels }) =>
        [...labels.values()].every((wanted) => given.some((hrefs) => hrefs.some((href) => wanted.has(href)))),
      ),
    seesFlow: ({ src, dst }) => seesEnd(src) || seesEnd(dst),
    rules: keepRules,
    async ruleSets(found, extent) {
      const kept: RuleSet[] = []
      for (const ruleSet of found) {
        const { scopes, rules, deny_rules: denies, ip_tables_rules: tables } = ruleSet
        const rows = scopes.length === 0 ? [[]] : scopes
        const isNear = rows.some((row) => territory.lands.some((land) => overlaps(row, land, territory)))
        const seen = {
          ...ruleSet,
          ...(rules && { rules: await keepRules(rules, rows, extent) }),
          ...(denies && { deny_rules: await keepRules(denies, rows, extent) }),
          ...(tables && { ip_tables_rules: await keepRules(tables, rows, extent) }),
        }
        const hasRule = [seen.rules, seen.deny_rules, seen.ip_tables_rules].some((list) => (list ?? []).length > 0)
        if (isNear || hasRule || (denies === undefined && (await hasDenyRule(ruleSet, rows, extent)))) kept.push(seen)
      }
      return kept
    },
  }

  /** Returns true if a rule set has a visible deny rule. It is needed for releases that list deny rules separately. */
  async function hasDenyRule(ruleSet: RuleSet, rows: Rows, extent: Extent): Promise<boolean> {
    const [read] = await loadDenyRules(pce, [ruleSet], signal)
    if (read?.error !== undefined) return extent === 'judged' && read.hasNone !== true
    return (await keepRules(read?.ruleSet.deny_rules ?? [], rows, extent)).length > 0
  }
}

/** One side of a rule. `isBound` is true if labels on it select only within the scopes of the rule set. */
interface Side {
  readonly actors: readonly Actor[]
  readonly isBound: boolean
  /** True if the side stands for all addresses except those of its IP lists. */
  readonly isAnyAddress: boolean
}

function sidesOf(rule: ReachingRule & { actors?: unknown }): Side[] {
  const side = (actors: unknown, isBound: boolean, isAnyAddress: unknown): Side => ({
    actors: listOf(actors) as Actor[],
    isBound,
    isAnyAddress: isAnyAddress === true,
  })
  return [
    side(rule.providers, true, rule.all_ips_except_for_in_providers),
    side(rule.consumers, rule.unscoped_consumers !== true, rule.all_ips_except_for_in_consumers),
    side(rule.actors, true, false),
  ]
}

interface Looking {
  readonly territory: Territory
  readonly ends: ReadonlyMap<string, boolean>
  readonly extent: Extent
}

/**
 * Returns true if something inside may be on this side of a rule. If that is not known, the answer depends on the
 * purpose: true where rules judge traffic, because a missing rule would make a verdict wrong, and false where rules are
 * shown.
 */
function mayBeInside(
  { actors, isBound, isAnyAddress }: Side,
  rows: Rows,
  { territory, ends, extent }: Looking,
): boolean {
  if (isAnyAddress) return extent === 'judged'
  const named = actors.filter(({ exclusion }) => exclusion !== true)
  const isByLabel = named.some(
    (actor) =>
      actor.actors !== undefined ||
      actor.label !== undefined ||
      actor.label_group !== undefined ||
      actor.label_dimension !== undefined,
  )
  const isInLand = (land: Land) =>
    (!isBound || rows === null || rows.some((row) => overlaps(row, land, territory))) &&
    overlaps(actors, land, territory)
  if (isByLabel && territory.lands.some(isInLand)) return true
  return named.some(({ workload, virtual_service: service, ip_list: list, virtual_server: server }) => {
    const href = workload?.href ?? service?.href
    if (href !== undefined) return ends.get(href) ?? extent === 'judged'
    return extent === 'judged' && (list !== undefined || server !== undefined)
  })
}

type LabelEntry = Pick<Actor, 'label' | 'label_group' | 'label_dimension' | 'exclusion'>

/**
 * Returns true if an object may have the labels that the entries require and be inside this scope of the caller
 * (`land`).
 */
function overlaps(entries: readonly LabelEntry[], { labels }: Land, { keyOf, membersOf }: Territory): boolean {
  const named = new Map<string, string[]>()
  const excluded = new Set<string>()
  for (const { label, label_group: group, label_dimension: key, exclusion } of entries) {
    // Every object inside the land has a label with each of the land's keys, so excluding a whole key excludes them
    // all.
    if (key !== undefined && exclusion === true && labels.has(key)) return false
    const hrefs = [...(label === undefined ? [] : [label.href]), ...(membersOf(group?.href ?? '') ?? [])]
    for (const href of hrefs) {
      const own = keyOf(href)
      if (exclusion === true) excluded.add(href)
      else if (own !== undefined) named.set(own, [...(named.get(own) ?? []), href])
    }
  }
  return [...labels].every(([key, wanted]) => {
    const allowed = [...wanted].filter((href) => !excluded.has(href))
    return allowed.length > 0 && (named.get(key)?.some((href) => allowed.includes(href)) ?? true)
  })
}

/** Creates the function that determines which of the workloads and virtual services in rules are inside. */
function createEndFinder({
  pce,
  signal,
  holds,
}: {
  pce: PceClient
  signal: AbortSignal
  holds: Sight['holds']
}): (rules: readonly object[]) => Promise<ReadonlyMap<string, boolean>> {
  const known = new Map<string, boolean>()
  return async (rules) => {
    const actors = rules.flatMap((rule) => sidesOf(rule)).flatMap((side) => side.actors)
    const workloads = actors.flatMap(({ workload }) => workload?.href ?? []).filter((href) => !known.has(href))
    const read = await labelsOfWorkloads(pce, [...new Set(workloads)], signal)
    for (const [href, labels] of read) known.set(href, holds(labels.map((label) => ({ href: label }))))
    for (const { virtual_service: service } of actors) {
      if (service === undefined || known.has(service.href)) continue
      const versions = await readVersions(pce.virtualServices, service.href, signal).catch((error: unknown) => {
        if (!isUnread(error) || signal.aborted) throw error
        return []
      })
      if (versions.length > 0)
        known.set(
          service.href,
          versions.some(({ labels }) => holds(labels)),
        )
    }
    return known
  }
}

/** Removes the names of workloads and virtual services from a rule, because some of them may be outside. */
function withoutNames<T extends object>(rule: T): T {
  const bare = (actors: unknown) =>
    listOf(actors).map((actor) => {
      const { workload, virtual_service: service } = actor as Actor
      if (workload !== undefined) return { ...(actor as Actor), workload: { href: workload.href } }
      return service === undefined ? actor : { ...(actor as Actor), virtual_service: { href: service.href } }
    })
  const sides = ['providers', 'consumers'].filter((side) => side in rule)
  return { ...rule, ...Object.fromEntries(sides.map((side) => [side, bare(rule[side as keyof T])])) }
}
