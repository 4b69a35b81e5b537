import type { Label } from '../../../schemas/pce/label.js'
import type { DenyRule, Rule, RuleSet } from '../../../schemas/pce/rule-set.js'
import { sameObjectKey, type PolicyView } from '../model.js'
import { compileIpList } from './match-addresses.js'
import { compileActors, compileScope, type ActorTest, type LabelLookup } from './match-actors.js'
import { compileServices, type ServiceFacts } from './match-services.js'
import type { Address } from './match-addresses.js'

export type RuleKind = 'override_deny' | 'allow' | 'deny'

/** One rule inside one of its rule set's scopes. */
export interface CompiledRule {
  href: string
  kind: RuleKind
  providers: ActorTest
  consumers: ActorTest
  matchesService: (facts: ServiceFacts) => boolean
}

export interface CompiledPolicy {
  rules: readonly CompiledRule[]
  /** The IP lists that any rule names, by object. */
  ipLists: ReadonlyMap<string, (address: Address | null, fqdn: string | null) => boolean>
  /** Workloads that any rule names one by one. */
  workloads: ReadonlySet<string>
}

/**
 * Makes a policy version ready to judge connections. What is disabled or about to be deleted (draft `update_type`) is left
 * out. A rule set with several scopes is as many rule sets: both ends of an intra-scope rule lie in the same scope
 * (labels AND inside a scope, scopes OR; `[[]]` is everything, and no scope at all is nothing; pce-api e.6).
 *
 * Not modelled: virtual services and servers, container hosts, user groups (a rule for `consuming_security_principals`
 * applies to nobody) and networks (every interface counts as corporate, so `non_brn` rules never apply).
 */
export function compilePolicy(view: PolicyView, labels: ReadonlyMap<string, Label>): CompiledPolicy {
  const services = byObject(view.services)
  const groups = byObject(view.labelGroups)
  const lookup: LabelLookup = {
    keyOf: (href) => labels.get(href)?.key,
    members: (href) => groups.get(sameObjectKey(href)) ?? [],
  }
  const rules: CompiledRule[] = []
  const named = { ipLists: new Set<string>(), workloads: new Set<string>() }

  const add = (ruleSet: RuleSet, rule: Rule | DenyRule, kind: RuleKind) => {
    if (!isInForce(rule) || rule.network_type === 'non_brn') return
    if ('consuming_security_principals' in rule && (rule as Rule).consuming_security_principals?.length) return
    const resolves = (side: 'providers' | 'consumers') =>
      !('resolve_labels_as' in rule) || (rule as Rule).resolve_labels_as[side].includes('workloads')
    const matchesService = compileServices(rule.ingress_services, rule.egress_services ?? [], (href) =>
      services.get(sameObjectKey(href)),
    )
    for (const { ip_list, workload } of [...rule.providers, ...rule.consumers]) {
      if (ip_list !== undefined) named.ipLists.add(sameObjectKey(ip_list.href))
      if (workload !== undefined) named.workloads.add(workload.href)
    }
    for (const entries of ruleSet.scopes) {
      const scope = compileScope(entries, lookup)
      rules.push({
        href: rule.href,
        kind,
        providers: compileActors(rule.providers, scope, lookup, resolves('providers')),
        consumers: compileActors(
          rule.consumers,
          rule.unscoped_consumers === true ? everywhere : scope,
          lookup,
          resolves('consumers'),
        ),
        matchesService,
      })
    }
  }

  for (const ruleSet of view.ruleSets) {
    if (!isInForce(ruleSet)) continue
    for (const rule of ruleSet.rules ?? []) add(ruleSet, rule, 'allow')
    for (const rule of ruleSet.deny_rules ?? []) add(ruleSet, rule, rule.override === true ? 'override_deny' : 'deny')
  }
  const ipLists = [...byObject(view.ipLists)].filter(([key]) => named.ipLists.has(key))
  return {
    rules,
    ipLists: new Map(ipLists.map(([key, list]) => [key, compileIpList(list)])),
    workloads: named.workloads,
  }
}

const everywhere = () => true

const isInForce = ({ enabled, update_type }: { enabled: boolean; update_type?: string | null }) =>
  enabled && update_type !== 'delete'

const byObject = <T>(map: ReadonlyMap<string, T>) =>
  new Map([...map].map(([href, value]) => [sameObjectKey(href), value]))
