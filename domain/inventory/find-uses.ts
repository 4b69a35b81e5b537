import { PceApiError, PceError, type PceClient } from '../../pce-client/index.js'
import type { EnforcementBoundary, RuleSet } from '../../schemas/pce/rule-set.js'
import type { PceObject } from '../../schemas/pce/reference.js'
import { fetchEvery } from './fetch-every.js'
import { loadDenyRules } from './load-deny-rules.js'
import { mapBounded } from '../text/map-bounded.js'
import { toDraftHref } from './parse-href.js'
import { pointsAt } from './points-at.js'

/** How a rule uses an object; `unclear` where what the object grows by may be what the rule loses. */
export type Use = 'allow' | 'deny' | 'unclear'

/** Everything that can point at a policy object, in draft and in force: what is provisioned alone meets the active rules. */
export interface PolicyUsers {
  ruleSets: readonly RuleSet[]
  boundaries: readonly EnforcementBoundary[]
  others: readonly PceObject[]
}

const OTHERS = ['labelGroups', 'virtualServices', 'virtualServers', 'firewallSettings'] as const
const IN_FLIGHT = 4

/** Reads them, a few requests at a time. A kind that this PCE does not know has no objects. */
export async function loadPolicyUsers(pce: PceClient, signal: AbortSignal): Promise<PolicyUsers> {
  const read = async <T extends object>(kind: string) => {
    const pages = await mapBounded(['draft', 'active'] as const, 1, async (policyVersion) => {
      try {
        return await fetchEvery<T>({ api: pce[kind as 'labelGroups'] as never, policyVersion, params: {}, signal })
      } catch (error) {
        if (error instanceof PceApiError && error.status === 404) return { items: [] }
        throw error
      }
    })
    return pages.flatMap(({ items }) => items)
  }
  const [ruleSets, boundaries, ...others] = await mapBounded(
    ['ruleSets', 'enforcementBoundaries', ...OTHERS],
    IN_FLIGHT,
    (kind) => read<PceObject>(kind),
  )
  const complete = await loadDenyRules(pce, ruleSets as RuleSet[], signal)
  const unread = complete.find(({ error }) => error !== undefined)?.error
  if (unread !== undefined) throw new PceError('invalid_response', unread)
  return {
    ruleSets: complete.map(({ ruleSet }) => ruleSet),
    boundaries: boundaries as EnforcementBoundary[],
    others: others.flat(),
  }
}

/** Every use of an object by what is in force or will be. */
export function findUses({ ruleSets, boundaries, others }: PolicyUsers, href: string): Use[] {
  const wanted = toDraftHref(href)
  const elsewhere = others.some((other) => toDraftHref(other.href) !== wanted && pointsAt(other, wanted))
  return [
    ...ruleSets.flatMap((ruleSet) => usesOf(ruleSet, wanted)),
    ...boundaries
      .filter(({ enabled, update_type: updateType }) => enabled !== false && updateType !== 'delete')
      .flatMap(({ providers, consumers, ingress_services: services }): Use[] => {
        const ends = [...providers, ...consumers]
        if (isExcluded(ends, wanted)) return ['unclear']
        return pointsAt([ends, services], wanted) ? ['deny'] : []
      }),
    ...(elsewhere ? (['unclear'] as const) : []),
  ]
}

/** How the rules of a rule set use an object; through a scope they all do. */
function usesOf(ruleSet: RuleSet, href: string): Use[] {
  if (!ruleSet.enabled || ruleSet.update_type === 'delete') return []
  const scoped = pointsAt(ruleSet.scopes, href)
  const rules = [
    ...(ruleSet.rules ?? []).map((rule) => ({ rule, use: 'allow' as const })),
    ...(ruleSet.deny_rules ?? []).map((rule) => ({ rule, use: 'deny' as const })),
  ]
  const uses = rules.flatMap(({ rule, use }): Use[] => {
    if (!rule.enabled || rule.update_type === 'delete') return []
    const ends = [...rule.providers, ...rule.consumers]
    if (isExcluded([...ends, ...ruleSet.scopes.flat()], href)) return ['unclear']
    for (const side of ['providers', 'consumers'] as const) {
      if (rule[`all_ips_except_for_in_${side}`] === true && pointsAt(rule[side], href)) return ['unclear']
    }
    return scoped || pointsAt([ends, rule.ingress_services, rule.egress_services], href) ? [use] : []
  })
  const tables = ruleSet.ip_tables_rules ?? []
  return tables.length > 0 && (scoped || pointsAt(tables, href)) ? [...uses, 'unclear'] : uses
}

function isExcluded(ends: readonly { exclusion?: boolean }[], href: string): boolean {
  return ends.some((end) => end.exclusion === true && pointsAt(end, href))
}
