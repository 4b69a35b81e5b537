import type { Label } from '../../schemas/pce/label.js'
import type { DenyRule, IngressService, Rule, RuleSet } from '../../schemas/pce/rule-set.js'
import { sameObjectKey, type PolicyView } from '../model.js'
import { findVirtualServices, listOffers } from './bind-virtual-services.js'
import { compileIpList } from './match-addresses.js'
import { compileActors, compileScope, type ActorTest, type LabelLookup } from './match-actors.js'
import { compileServices, type ServiceFacts } from './match-services.js'
import type { Address } from './match-addresses.js'

export type RuleKind = 'override_deny' | 'allow' | 'deny'

/**
 * A rule within one scope of its rule set. If virtual services are among its providers, the rule is compiled once more
 * for each group of workloads that provide such a service on the same ports.
 */
export interface CompiledRule {
  /** The href of the rule, or of the enforcement boundary. */
  href: string
  kind: RuleKind
  providers: ActorTest
  consumers: ActorTest
  matchesService: (facts: ServiceFacts) => boolean
}

export interface CompiledPolicy {
  rules: readonly CompiledRule[]
  /**
   * A test for each IP list to which a rule refers: whether the list contains an address or host name. The key of the
   * map is the list's href without its policy version.
   */
  ipLists: ReadonlyMap<string, (address: Address | null, fqdn: string | null) => boolean>
  /** The workloads to which a rule refers individually or through a virtual service. */
  workloads: ReadonlySet<string>
}

/**
 * Prepares a policy version for evaluating connections. Disabled objects and drafts that are marked as deleted are left
 * out. A rule set with several scopes is treated as several rule sets: provider and consumer of an intra-scope rule
 * must be in the same scope. Labels within a scope are combined with AND and scopes with OR; `[[]]` matches everything,
 * and an empty list of scopes nothing (P19).
 *
 * An enforcement boundary is a deny rule without a scope: it blocks what no rule allows (P22). A virtual service stands
 * for the workloads bound to it, on its own ports instead of the rule's services (P23).
 *
 * Virtual servers, addresses of virtual services, container hosts, user groups and networks are not modelled. A rule
 * with `consuming_security_principals` (user groups) applies to nobody. Every interface counts as corporate, so a rule
 * that is only for other networks, such as `non_brn`, does not apply unless `networks` contains its network type.
 */
export function compilePolicy(
  view: PolicyView,
  labels: ReadonlyMap<string, Label>,
  networks: ReadonlySet<string> = CORPORATE,
): CompiledPolicy {
  const services = byObject(view.services)
  const groups = byObject(view.labelGroups)
  const lookup: LabelLookup = {
    keyOf: (href) => labels.get(href)?.key,
    members: (href) => groups.get(sameObjectKey(href)) ?? [],
  }
  const rules: CompiledRule[] = []
  const named = { ipLists: new Set<string>(), workloads: new Set<string>() }

  const add = (ruleSet: Pick<RuleSet, 'scopes'>, rule: Rule | DenyRule, kind: RuleKind) => {
    if (!isInForce(rule) || !networks.has(rule.network_type ?? 'brn')) return
    if ('consuming_security_principals' in rule && (rule as Rule).consuming_security_principals?.length) return
    const resolves = (side: 'providers' | 'consumers') =>
      !('resolve_labels_as' in rule) || (rule as Rule).resolve_labels_as[side].includes('workloads')
    const compile = (ingress: readonly IngressService[]) =>
      compileServices(ingress, rule.egress_services ?? [], (href) => services.get(sameObjectKey(href)))
    const matchesService = compile(rule.ingress_services)
    for (const { ip_list, workload } of [...rule.providers, ...rule.consumers]) {
      if (ip_list !== undefined) named.ipLists.add(sameObjectKey(ip_list.href))
      if (workload !== undefined) named.workloads.add(workload.href)
    }
    for (const entries of ruleSet.scopes) {
      const scope = compileScope(entries, lookup)
      const outer = rule.unscoped_consumers === true ? everywhere : scope
      const clients = findVirtualServices(view, rule, 'consumers', outer, lookup).flatMap(({ bindings }) => bindings)
      const consumers = withWorkloads(
        compileActors(rule.consumers, outer, lookup, resolves('consumers')),
        new Set(clients.map(({ workload }) => workload)),
      )
      const providers = compileActors(rule.providers, scope, lookup, resolves('providers'))
      const offers = findVirtualServices(view, rule, 'providers', scope, lookup).flatMap(listOffers)
      rules.push({ href: rule.href, kind, providers, consumers, matchesService })
      for (const { workloads, services: offered } of offers) {
        const bound = withWorkloads(NOBODY, workloads)
        rules.push({ href: rule.href, kind, providers: bound, consumers, matchesService: compile(offered) })
      }
      for (const href of [
        ...clients.map(({ workload }) => workload),
        ...offers.flatMap((offer) => [...offer.workloads]),
      ])
        named.workloads.add(href)
    }
  }

  for (const ruleSet of view.ruleSets) {
    if (!isInForce(ruleSet)) continue
    for (const rule of ruleSet.rules ?? []) add(ruleSet, rule, 'allow')
    for (const rule of ruleSet.deny_rules ?? []) add(ruleSet, rule, rule.override === true ? 'override_deny' : 'deny')
  }
  for (const { network_type, ...boundary } of view.boundaries ?? []) {
    const rule = { ...boundary, enabled: boundary.enabled !== false, unscoped_consumers: true, network_type }
    add(EVERYTHING, rule, 'deny')
  }
  const ipLists = [...byObject(view.ipLists)].filter(([key]) => named.ipLists.has(key))
  return {
    rules,
    ipLists: new Map(ipLists.map(([key, list]) => [key, compileIpList(list)])),
    workloads: named.workloads,
  }
}

const everywhere = () => true
const CORPORATE = new Set(['brn', 'all'])
const NOBODY: ActorTest = { asWorkload: () => false, asAddress: () => false }
const EVERYTHING: Pick<RuleSet, 'scopes'> = { scopes: [[]] }

/**
 * Extends a test of whether the providers (or consumers) of a rule include an endpoint, so that the given workloads are
 * included as well.
 */
const withWorkloads = (actors: ActorTest, workloads: ReadonlySet<string>): ActorTest => ({
  ...actors,
  asWorkload: (facts) => actors.asWorkload(facts) || (facts.workload !== null && workloads.has(facts.workload)),
})

const isInForce = ({ enabled, update_type }: { enabled: boolean; update_type?: string | null }) =>
  enabled && update_type !== 'delete'

const byObject = <T>(map: ReadonlyMap<string, T>) =>
  new Map([...map].map(([href, value]) => [sameObjectKey(href), value]))
