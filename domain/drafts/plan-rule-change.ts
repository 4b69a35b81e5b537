import type { PceClient } from '../../pce-client/index.js'
import type { Actor, Rule, ScopeEntry } from '../../schemas/pce/rule-set.js'
import type { Service } from '../../schemas/pce/service.js'
import { toDraftHref } from '../inventory/parse-href.js'
import type { PolicyLookups } from '../inventory/find-object.js'
import { resolveActors, toWire, type ActorReference } from './resolve-actors.js'
import {
  resolveEgressServices,
  resolveIngressServices,
  toWireServices,
  type ResolvedService,
  type ServiceReferences,
} from './resolve-services.js'
import { warnOfWidening, type WideningWarning } from './warn-of-widening.js'

/** What a caller may change of a rule. */
interface RuleChange {
  providers?: readonly ActorReference[]
  consumers?: readonly ActorReference[]
  ingress_services?: ServiceReferences
  egress_services?: ServiceReferences
  enabled?: boolean
  description?: string
  unscoped_consumers?: boolean
}

/** A change with everything in it resolved; only what was given is there. */
interface PlannedChange {
  body: Record<string, unknown>
  consumers?: Actor[]
  services?: ResolvedService[]
  egress?: Service[]
}

/** Resolves every reference of a change, all or nothing. Throws what the resolvers throw. */
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
    ...(consumers && { consumers }),
    ...(services && { services }),
    ...(egress && { egress }),
  }
}

/**
 * The widening warning of an allow rule as it will be after a change: whether or not the change concerns its egress services
 * or its consumers, the rule that results is judged.
 */
export async function warnOfChange(
  pce: PceClient,
  lookups: PolicyLookups,
  current: Rule,
  scopes: readonly (readonly ScopeEntry[])[],
  { body, consumers, egress }: PlannedChange,
  signal: AbortSignal,
): Promise<WideningWarning | undefined> {
  const kept =
    egress ?? (await Promise.all((current.egress_services ?? []).map(({ href }) => readService(lookups, href))))
  const rule = {
    egress: kept,
    consumers: consumers ?? current.consumers,
    unscoped: (body.unscoped_consumers as boolean | undefined) ?? current.unscoped_consumers === true,
  }
  return warnOfWidening(pce, lookups, scopes, rule, signal)
}

async function readService(lookups: PolicyLookups, href: string): Promise<Service> {
  return (await lookups.byHref('services', href)) as Service
}

/** Services as answers echo them: `{href, resolved_name}`, or ports. */
export function showResolved(services: readonly ResolvedService[]): object[] {
  return services.map((entry) => ('service' in entry ? showNamed(entry.service) : entry.ports))
}

export function showNamed({ href, name }: Pick<Service, 'href' | 'name'>): { href: string; resolved_name: string } {
  return { href: toDraftHref(href), resolved_name: name }
}
