import { PceApiError, PceError, type PceClient } from '../../pce-client/index.js'
import type { ErrorDetails } from '../../schemas/errors.js'
import type { PceObject } from '../../schemas/pce/reference.js'
import type { EnforcementBoundary, RuleSet } from '../../schemas/pce/rule-set.js'
import { ALL_SERVICES_NAME, ANY_IP_LIST_NAME } from '../../schemas/pce/words.js'
import { fetchEvery } from './fetch-every.js'
import { toDraftHref } from './parse-href.js'
import { loadDenyRules } from './read-rules.js'
import { mapBounded } from '../text/pace-work.js'

/** How a rule uses an object; `unclear` where a larger object may make the rule match less. */
export type Use = 'allow' | 'deny' | 'unclear'

/** Everything that can refer to a policy object, in draft and in force: a change provisioned alone meets the active rules. */
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

/** Every use of an object, by active policy or by the draft. */
export function findUses({ ruleSets, boundaries, others }: PolicyUsers, href: string): Use[] {
  const wanted = toDraftHref(href)
  // The firewall settings may be without an href of their own (P12).
  const elsewhere = others.some(({ href: own, ...other }: Partial<PceObject>) => {
    return (own === undefined || toDraftHref(own) !== wanted) && pointsAt(other, wanted)
  })
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

/** How the rules of a rule set use an object; if a scope names it, they all do. */
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

/** Whether an object's `{href}` occurs anywhere inside a value, in any policy version. `href` is a draft href. */
function pointsAt(value: unknown, href: string): boolean {
  if (Array.isArray(value)) return value.some((item) => pointsAt(item, href))
  if (typeof value !== 'object' || value === null) return false
  return Object.entries(value).some(([field, inner]) =>
    field === 'href' && typeof inner === 'string' ? toDraftHref(inner) === href : pointsAt(inner, href),
  )
}

/** Users an error names at most. */
const MAX_LISTED = 20

/** Kinds whose objects point at IP lists and services. */
const USERS = ['ruleSets', 'enforcementBoundaries', 'virtualServices'] as const

/**
 * Rule sets, enforcement boundaries and virtual services that point at a policy object, in the draft or in the active policy:
 * both keep it from being deleted (P31). For an error's `used_by`; `used_by_unread` names kinds that this account may not list or
 * the PCE does not have. Built-in objects cannot be deleted for another reason, so removing them from every rule would not help.
 */
export async function findPolicyUsers(
  pce: PceClient,
  object: { href: string; name: string },
  signal: AbortSignal,
): Promise<{ details: ErrorDetails; hint?: string }> {
  const [hint] = warnOfBuiltIn(object)
  if (hint !== undefined) return { details: {}, hint }
  const wanted = toDraftHref(object.href)
  const users = new Map<string, { href: string; name: string; versions: string[] }>()
  const unread = new Set<string>()
  for (const version of ['draft', 'active'] as const) {
    for (const kind of USERS) {
      try {
        const { items } = await fetchEvery<PceObject>({ api: pce[kind], policyVersion: version, params: {}, signal })
        for (const item of items.filter((candidate) => pointsAt(candidate, wanted))) {
          const user = toDraftHref(item.href)
          const known = users.get(user) ?? { href: user, name: nameOf(item), versions: [] }
          users.set(user, { ...known, versions: [...known.versions, version] })
        }
      } catch (error) {
        if (!(error instanceof PceApiError)) throw error
        unread.add(kind)
      }
    }
  }
  return {
    details: {
      used_by: [...users.values()].slice(0, MAX_LISTED),
      used_by_total: users.size,
      ...(unread.size > 0 && { used_by_unread: [...unread] }),
    },
    ...(users.size > 0 && {
      hint: 'First remove it from everything in used_by; where versions include active, provision that change.',
    }),
  }
}

function nameOf({ name }: PceObject): string {
  return typeof name === 'string' ? name : ''
}

/** Built-in objects can be used but not changed (P17, P18): worth knowing before trusting a dry run. */
export function warnOfBuiltIn({ name }: { name: string }): string[] {
  return name === ANY_IP_LIST_NAME || name === ALL_SERVICES_NAME
    ? ['It is built in: a PCE refuses to change or delete it.']
    : []
}
