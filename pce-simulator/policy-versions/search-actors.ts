import type { PceObject } from '../../schemas/pce/reference.js'
import type { Actor, ScopeEntry } from '../../schemas/pce/rule-set.js'
import { collectHrefs } from '../kinds/find-usage.js'
import { expandGroup } from '../kinds/expand-group.js'
import { compileActors, compileScope, type LabelLookup } from '../policy/match-actors.js'
import { invalidUri } from '../refusal.js'
import type { World } from '../world.js'
import type { PlacedRule } from './describe-rules.js'

export type SearchedActor = Actor & { container_workload?: { href: string }; kubernetes_workload?: { href: string } }

/**
 * Builds a test of whether the providers or the consumers of a rule include the actor `wanted`, such as a workload or a
 * label. With `resolve_actors`, a workload is also found through labels and scopes, and a label through groups that
 * contain it. "All workloads" includes every workload and label (P27).
 */
export function compileActorSearch(
  world: World,
  side: 'providers' | 'consumers',
  wanted: SearchedActor,
  resolve: boolean,
): (placed: PlacedRule) => boolean {
  const [selector] = Object.keys(wanted) as (keyof SearchedActor)[]
  const href = hrefOf(wanted, selector)
  const lookup = createLookup(world)
  const bearer = resolve ? findBearer(world, selector, href) : undefined

  return ({ rule, ruleSet, kind }) => {
    const actors = (kind.segment === 'ip_tables_rules' ? rule.actors : rule[side]) as Actor[]
    if (actors.some((actor) => hrefOf(actor, selector) === href)) return true
    if (!resolve) return false
    if (bearer) return reaches(ruleSet, rule, side, actors, bearer, lookup)
    if (selector !== 'label') return false
    return actors.some(({ actors: all, label_group }) => {
      return all === 'ams' || (label_group !== undefined && lookup.members(label_group.href).includes(href ?? ''))
    })
  }
}

/**
 * Returns the draft href that a field of an actor contains. If the field contains a keyword such as `ams` instead,
 * returns the keyword.
 */
function hrefOf(actor: SearchedActor, selector: keyof SearchedActor | undefined): string | undefined {
  const value = selector === undefined ? undefined : actor[selector]
  if (typeof value === 'string') return value
  return (value as { href?: string } | undefined)?.href?.replace(/\/sec_policy\/[^/]+\//, '/sec_policy/draft/')
}

function findBearer(world: World, selector: string | undefined, href = ''): PceObject | undefined {
  const segments: Record<string, string> = {
    workload: 'workloads',
    container_workload: 'container_workloads',
    kubernetes_workload: 'kubernetes_workloads',
  }
  const segment = segments[selector ?? '']
  if (segment === undefined) return undefined
  const found = world.store(segment).get(href)
  if (!found) throw invalidUri(href)
  return found
}

function reaches(
  ruleSet: PlacedRule['ruleSet'],
  rule: PlacedRule['rule'],
  side: 'providers' | 'consumers',
  actors: readonly Actor[],
  bearer: PceObject,
  lookup: LabelLookup,
): boolean {
  const facts = { workload: bearer.href, labels: collectHrefs(bearer.labels), ipLists: new Set<string>() }
  const anywhere = side === 'consumers' && rule.unscoped_consumers === true
  return (ruleSet.scopes as ScopeEntry[][]).some((entries) => {
    const scope = anywhere ? () => true : compileScope(entries, lookup)
    return compileActors(actors, scope, lookup, true).asWorkload(facts)
  })
}

function createLookup(world: World): LabelLookup {
  return {
    keyOf: (href) => world.labels.get(href)?.key as string | undefined,
    members: (href) => {
      const draft = href.replace(/\/sec_policy\/[^/]+\//, '/sec_policy/draft/')
      return expandGroup(draft, (group) => world.policy.get('label_groups', group)?.draft)
    },
  }
}
