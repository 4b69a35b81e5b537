import type { Actor, DenyRule, IngressService, Rule, RuleSet, ScopeEntry } from '../../schemas/pce/rule-set.js'
import type { LabelIndex } from '../inventory/load-labels.js'
import { toDraftHref } from '../inventory/parse-href.js'
import type { ActivePolicy, Assessment } from './facts.js'

/** Whether a rule set may concern what is assessed: none of its scopes' labels says otherwise. Label groups are taken to concern it. */
export function concerns(
  { scopes }: RuleSet,
  assessment: Assessment,
  keyOf: (href: string) => string | undefined,
): boolean {
  return scopes.length === 0 || scopes.some((one) => one.every((entry) => admits([entry], assessment, keyOf)))
}

/** Whether one end of a rule may select workloads that are assessed; addresses are no workloads, whatever list covers them. */
export function selects(
  actors: readonly Actor[],
  assessment: Assessment,
  keyOf: (href: string) => string | undefined,
): boolean {
  if (actors.every((actor) => actor.ip_list !== undefined)) return false
  const keys = new Map<string, Actor[]>()
  for (const actor of actors) {
    const key = actor.label === undefined ? undefined : (actor.label.key ?? keyOf(actor.label.href))
    if (key !== undefined) keys.set(key, [...(keys.get(key) ?? []), actor])
  }
  // Labels of one key are alternatives.
  return [...keys.values()].every((sameKey) => admits(sameKey, assessment, keyOf))
}

/** Labels of one key as alternatives, against the label of this key that was asked for. */
function admits(
  entries: readonly (ScopeEntry | Actor)[],
  { app, env }: Assessment,
  keyOf: (href: string) => string | undefined,
): boolean {
  return entries.some(({ label, exclusion }) => {
    if (label === undefined) return true
    const key = label.key ?? keyOf(label.href)
    const wanted = key === 'app' ? app : key === 'env' ? env : null
    return wanted === null || (wanted.href === label.href) !== (exclusion === true)
  })
}

/** Everything of TCP, UDP and the rest, or all ports there are. */
export function isEveryService(services: readonly IngressService[], { facts }: ActivePolicy): boolean {
  return services.some((service) =>
    'href' in service
      ? facts.allServices.has(toDraftHref(service.href))
      : service.port <= 1 && (service.to_port ?? service.port) >= 65_535,
  )
}

/** Whom a rule's consumers are: addresses without bound, all workloads, or something narrower. */
export function breadthOf(
  rule: Rule | DenyRule,
  { scopes }: RuleSet,
  broadLists: ReadonlySet<string>,
): 'anybody' | 'all workloads' | 'named' {
  if (rule.consumers.some(({ ip_list: list }) => list !== undefined && broadLists.has(toDraftHref(list.href))))
    return 'anybody'
  // Inside a scope all workloads are those of the scope.
  const isBound = rule.unscoped_consumers !== true && scopes.length > 0 && scopes.every((scope) => scope.length > 0)
  return !isBound && rule.consumers.some(({ actors }) => actors === 'ams') ? 'all workloads' : 'named'
}

/** Rules that are in force. */
export const enabled = <R extends { enabled: boolean }>(rules: readonly R[] | null | undefined): R[] =>
  (rules ?? []).filter((rule) => rule.enabled)

/** No label value holds this. */
const SEPARATOR = '\u0000'
export const closedKey = (app: string, env: string): string => `${app}${SEPARATOR}${env}`

/**
 * Applications into which nothing comes that no rule allows, because their own rule set denies all the rest: by closedKey, from
 * whom. There, and only there, what is allowed in selective mode was allowed by a rule.
 */
export function findClosedApplications(
  policy: ActivePolicy,
  labels: LabelIndex,
  broadLists: ReadonlySet<string>,
): ReadonlyMap<string, 'any' | 'ams'> {
  const closed = new Map<string, 'any' | 'ams'>()
  for (const ruleSet of policy.ruleSets.filter((one) => one.enabled)) {
    const [scope = [], ...others] = ruleSet.scopes
    const values = Object.fromEntries(
      scope.flatMap(({ label, exclusion }) => {
        const known = label === undefined || exclusion === true ? undefined : labels.get(label.href)
        return known === undefined ? [] : [[known.key, known.value]]
      }),
    ) as Record<string, string>
    const { app, env } = values
    if (app === undefined || env === undefined || scope.length !== 2 || others.length > 0) continue
    for (const rule of enabled(ruleSet.deny_rules)) {
      const toAll = rule.providers.some(({ actors }) => actors === 'ams')
      const from = breadthOf(rule, ruleSet, broadLists)
      if (
        !toAll ||
        rule.unscoped_consumers !== true ||
        from === 'named' ||
        !isEveryService(rule.ingress_services, policy)
      )
        continue
      const key = closedKey(app, env)
      if (closed.get(key) !== 'any') closed.set(key, from === 'anybody' ? 'any' : 'ams')
    }
  }
  return closed
}
