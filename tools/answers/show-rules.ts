import type { Actor, DenyRule, IngressService, Rule, RuleSet, ScopeEntry } from '../../schemas/pce/rule-set.js'
import type { ActorOut, ScopeOut } from '../../schemas/rule-shapes.js'
import type { ReferenceNames } from '../../domain/inventory/reference-names.js'
import { denyType, type RuleType } from '../../domain/policy/rule-type.js'

/** Actors with their type, and key and value or name beside each href. */
export function showActors(actors: readonly Actor[] | null | undefined, names: ReferenceNames): ActorOut[] {
  return (actors ?? []).map(({ exclusion, ...actor }) => {
    if (actor.actors !== undefined) return { type: actor.actors }
    const [type, target] = Object.entries(actor)[0] ?? ['unknown', undefined]
    const href = (target as { href?: string } | undefined)?.href
    return { type, ...(href === undefined ? {} : { href, ...names(href) }), ...(exclusion === true && { exclusion }) }
  })
}

/** Scopes as lists of label conditions. */
export function showScopes(scopes: readonly ScopeEntry[][] | null | undefined, names: ReferenceNames): ScopeOut[][] {
  return (scopes ?? []).map((scope) =>
    scope.map(({ label, label_group: group, exclusion }) => {
      const href = (label ?? group)?.href ?? ''
      return { href, ...names(href), ...(exclusion === true && { exclusion }) }
    }),
  )
}

export type ServiceOut = { href: string; name?: string } | { port?: number; to_port?: number; proto: number }

/** Services by href and name, or as ports with the protocol's number. */
export function showServices(
  services: readonly IngressService[] | null | undefined,
  names: ReferenceNames,
): ServiceOut[] {
  return (services ?? []).map((service) =>
    'href' in service
      ? { href: service.href, name: names(service.href).name }
      : {
          port: service.port,
          ...(service.to_port != null && { to_port: service.to_port }),
          proto: service.proto,
        },
  )
}

/** A rule or deny rule as answers show it. */
export function showRule(rule: Rule | DenyRule, type: RuleType, names: ReferenceNames) {
  const egress = showServices(rule.egress_services, names)
  return {
    rule_type: type,
    href: rule.href,
    enabled: rule.enabled,
    description: rule.description ?? null,
    ...('resolve_labels_as' in rule && rule.resolve_labels_as ? { resolve_labels_as: rule.resolve_labels_as } : {}),
    consumers: showActors(rule.consumers, names),
    providers: showActors(rule.providers, names),
    ingress_services: showServices(rule.ingress_services, names),
    ...(egress.length > 0 && { egress_services: egress }),
    unscoped_consumers: rule.unscoped_consumers ?? false,
    ...(rule.update_type != null && { update_type: rule.update_type }),
  }
}

/** A rule set with its allow and deny rules in one list; `denyError` says why the deny rules are missing from it. */
export function showRuleSet(ruleSet: RuleSet, names: ReferenceNames, denyError?: string) {
  const rules = [
    ...(ruleSet.rules ?? []).map((rule) => showRule(rule, 'allow', names)),
    ...(ruleSet.deny_rules ?? []).map((rule) => showRule(rule, denyType(rule), names)),
  ]
  return {
    href: ruleSet.href,
    name: ruleSet.name,
    enabled: ruleSet.enabled,
    description: ruleSet.description ?? null,
    scopes: showScopes(ruleSet.scopes, names),
    ...(ruleSet.update_type != null && { update_type: ruleSet.update_type }),
    ...(denyError !== undefined && { deny_rules_error: denyError }),
    rules_total: rules.length,
    rules,
  }
}
