import type { Label } from '../../schemas/pce/label.js'
import type { Actor, IngressService, Rule, RuleSet, ScopeEntry } from '../../schemas/pce/rule-set.js'
import type { Known, AddressRules } from './reach.js'
import { matchServices } from '../policy/match-service.js'

/**
 * The allow rules of all rule sets that name sources of the application, or destinations of anybody, by address. What is disabled
 * counts while that is pending, and so does what waits for its deletion: the active policy still has it.
 */
export function findAddressRules(
  ruleSets: readonly RuleSet[],
  application: readonly Label[],
  { keyOf, findService }: Pick<Known, 'keyOf' | 'findService'>,
): AddressRules {
  const from: IngressService[] = []
  const to: IngressService[] = []
  const mayBeOurs = (entries: readonly (ScopeEntry | Actor)[]) => mayMatch(entries, application, keyOf)
  for (const ruleSet of ruleSets.filter(mayBeInForce)) {
    const scopes = ruleSet.scopes.filter(mayBeOurs)
    for (const rule of (ruleSet.rules ?? []).filter(mayBeInForce)) {
      if (rule.providers.some(isAddress)) to.push(...servicesOf(rule))
      if (
        rule.consumers.some(isAddress) &&
        scopes.length > 0 &&
        mayBeOurs(rule.providers.filter(isWorkload)) &&
        rule.providers.some(isWorkload)
      )
        from.push(...servicesOf(rule))
    }
  }
  return { from: matchServices(from, findService), to: matchServices(to, findService) }
}

const mayBeInForce = ({ enabled, update_type: updateType }: Pick<RuleSet, 'enabled' | 'update_type'>) =>
  enabled || (updateType !== null && updateType !== undefined)

/** Anything but workloads, labels and the like: lists of addresses, virtual services, all addresses but some. */
const isAddress = ({ ip_list: list, virtual_service: service, virtual_server: server }: Actor) =>
  list !== undefined || service !== undefined || server !== undefined

/** Also virtual services, which are the workloads bound to them. */
const isWorkload = ({ ip_list: list }: Actor) => list === undefined

const servicesOf = ({ ingress_services: services }: Rule) => services

/** False only when the labels of the entries shut the application out. */
export function mayMatch(
  entries: readonly (ScopeEntry | Actor)[],
  application: readonly Label[],
  keyOf: (href: string) => string | undefined,
): boolean {
  const isMore = (entry: ScopeEntry | Actor) => entry.label === undefined || entry.exclusion === true
  if (entries.some(isMore)) return true
  return application.every(({ href, key }) => {
    const ofKey = entries.flatMap(({ label }) => (label !== undefined && keyOf(label.href) === key ? label.href : []))
    return ofKey.length === 0 || ofKey.includes(href)
  })
}
