import type { Actor, IngressService } from '../../schemas/pce/rule-set.js'
import type { Service } from '../../schemas/pce/service.js'
import { toDraftHref } from '../inventory/parse-href.js'
import type { PolicyLookups } from '../inventory/find-object.js'
import { requireReadableEnd } from './plan-expiry.js'
import { resolveActors, toWire, type ActorReference } from './resolve-actors.js'
import {
  resolveEgressServices,
  resolveIngressServices,
  toWireServices,
  type ResolvedService,
  type ServiceReferences,
} from './resolve-services.js'
import type { RuleType } from '../policy/rule-type.js'

/** A rule in the form in which callers describe it. */
export interface RuleArguments {
  providers: readonly ActorReference[]
  consumers: readonly ActorReference[]
  ingress_services: ServiceReferences
  egress_services?: ServiceReferences
  unscoped_consumers?: boolean
  rule_type?: RuleType
  description?: string
}

/**
 * A rule whose references have been looked up, with the request body that creates it and the collection to which this
 * body is posted.
 */
export interface PlannedRule {
  type: RuleType
  collection: 'sec_rules' | 'deny_rules'
  providers: Actor[]
  consumers: Actor[]
  services: ResolvedService[]
  egress: Service[]
  unscoped: boolean
  body: RulePayload
}

interface RulePayload {
  enabled: boolean
  description?: string
  providers: Actor[]
  consumers: Actor[]
  ingress_services: IngressService[]
  egress_services?: { href: string }[]
  unscoped_consumers: boolean
  override?: boolean
  resolve_labels_as?: { providers: string[]; consumers: string[] }
}

/**
 * Looks up the references of all rules before anything is written. Throws the errors of the lookups, with the index of
 * the rule.
 */
export async function planRules(lookups: PolicyLookups, rules: readonly RuleArguments[]): Promise<PlannedRule[]> {
  const planned = []
  for (const [index, rule] of rules.entries()) planned.push(await planRule(lookups, rule, index))
  return planned
}

/** Works like `planRules` for the only rule of a call. Errors contain no index. */
export async function planRule(lookups: PolicyLookups, rule: RuleArguments, ruleIndex?: number): Promise<PlannedRule> {
  const type = rule.rule_type ?? 'allow'
  const deny = type !== 'allow'
  requireReadableEnd(rule.description, ruleIndex)
  const providers = await resolveActors(lookups, rule.providers, { ruleIndex, side: 'providers', deny })
  const consumers = await resolveActors(lookups, rule.consumers, { ruleIndex, side: 'consumers', deny })
  const services = await resolveIngressServices(lookups, rule.ingress_services, { ruleIndex, deny })
  const egress = await resolveEgressServices(lookups, rule.egress_services, { ruleIndex, deny })
  const unscoped = rule.unscoped_consumers ?? false
  const body: RulePayload = {
    enabled: true,
    ...(rule.description !== undefined && { description: rule.description }),
    providers: toWire(providers),
    consumers: toWire(consumers),
    ingress_services: toWireServices(services),
    ...(egress.length > 0 && { egress_services: egress.map(({ href }) => ({ href: toDraftHref(href) })) }),
    unscoped_consumers: unscoped,
    // In a deny rule, the PCE rejects resolve_labels_as with 406 (P21); in an allow rule, it requires this field (P20).
    ...(deny
      ? { override: type === 'override_deny' }
      : { resolve_labels_as: { providers: ['workloads'], consumers: ['workloads'] } }),
  }
  return { type, collection: deny ? 'deny_rules' : 'sec_rules', providers, consumers, services, egress, unscoped, body }
}

/** The fields of a rule that a caller may change. */
interface RuleChange {
  providers?: readonly ActorReference[]
  consumers?: readonly ActorReference[]
  ingress_services?: ServiceReferences
  egress_services?: ServiceReferences
  enabled?: boolean
  description?: string
  unscoped_consumers?: boolean
}

/** A change of a rule whose references have been looked up. It has only the fields that the caller gave. */
export interface PlannedChange {
  body: Record<string, unknown>
  providers?: Actor[]
  consumers?: Actor[]
  services?: ResolvedService[]
  egress?: Service[]
}

/** Looks up all references of a change. Throws the errors of these lookups. */
export async function planRuleChange(
  lookups: PolicyLookups,
  change: RuleChange,
  { deny }: { deny: boolean },
): Promise<PlannedChange> {
  const { providers: askedProviders, consumers: askedConsumers, ingress_services: ingress, ...rest } = change
  const actors = (side: 'providers' | 'consumers', asked: readonly ActorReference[] | undefined) =>
    asked === undefined ? undefined : resolveActors(lookups, asked, { side, deny })
  const providers = await actors('providers', askedProviders)
  const consumers = await actors('consumers', askedConsumers)
  const services = ingress === undefined ? undefined : await resolveIngressServices(lookups, ingress, { deny })
  const egress =
    rest.egress_services === undefined
      ? undefined
      : await resolveEgressServices(lookups, rest.egress_services, { deny })
  return {
    body: {
      enabled: rest.enabled,
      description: rest.description,
      providers: providers && toWire(providers),
      consumers: consumers && toWire(consumers),
      ingress_services: services && toWireServices(services),
      egress_services: egress?.map(({ href }) => ({ href: toDraftHref(href) })),
      unscoped_consumers: rest.unscoped_consumers,
    },
    ...(providers && { providers }),
    ...(consumers && { consumers }),
    ...(services && { services }),
    ...(egress && { egress }),
  }
}

/** Converts services to the form that answers use: `{href, name}`, or ports. */
export function showResolved(services: readonly ResolvedService[]): object[] {
  return services.map((entry) => ('service' in entry ? showNamed(entry.service) : entry.ports))
}

export function showNamed({ href, name }: Pick<Service, 'href' | 'name'>): { href: string; name: string } {
  return { href: toDraftHref(href), name }
}
