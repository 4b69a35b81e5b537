import type { PceClient } from '../../pce-client/index.js'
import type { PolicyVersionSelector } from '../../schemas/common.js'
import type { Actor, DenyRule, Rule } from '../../schemas/pce/rule-set.js'
import { resolveActors, type ActorReference } from '../drafts/resolve-actors.js'
import { resolveService, type ResolvedService, type ServiceReference } from '../drafts/resolve-services.js'
import { pickEvery } from '../inventory/fetch-every.js'
import type { PolicyLookups } from '../inventory/find-object.js'
import { allOf } from '../inventory/match-exactly.js'
import { toDraftHref } from '../inventory/parse-href.js'
import { catalogOf } from '../policy/load-snapshot.js'
import { compileServices, type ServiceObjects } from '../policy/match-services.js'

type AnyRule = Rule | DenyRule
export type Side = 'providers' | 'consumers'

/** What rules are searched for: something that stands at one of their ends, and a service they name or a port they cover. */
interface RuleQuestion {
  actor?: ActorReference | undefined
  service?: ServiceReference | undefined
}

/**
 * The test of a rule that the question stands for; undefined where it asks for nothing. The PCE's own rule search (`rule_search`) does
 * not say how it compares, and leaves out what a port is part of, so rules are compared here (D98), with the services of the version that
 * `lookups` look into. Throws invalid_actor,
 * label_not_found, not_found or ambiguous_name for the end, invalid_argument for the service.
 */
export async function createRuleTest(
  pce: PceClient,
  lookups: PolicyLookups,
  { actor, service }: RuleQuestion,
  signal: AbortSignal,
  policyVersion: PolicyVersionSelector = 'draft',
): Promise<((rule: AnyRule) => boolean) | undefined> {
  const wanted = actor === undefined ? undefined : await findActor(lookups, actor)
  const sought = service === undefined ? undefined : await resolveService(lookups, service, 'service')
  const isPort = sought !== undefined && 'ports' in sought
  const objects = isPort ? await loadServices(pce, lookups, policyVersion, signal) : undefined
  return allOf(
    wanted && ((rule) => namesActor(rule, 'providers', wanted) || namesActor(rule, 'consumers', wanted)),
    sought && testService(sought, objects),
  )
}

/** The actor that a reference names, without its exclusion. Throws invalid_actor, label_not_found, not_found, ambiguous_name. */
export async function findActor(
  lookups: PolicyLookups,
  reference: ActorReference,
  side: 'actor' | 'provider' | 'consumer' = 'actor',
): Promise<Actor> {
  const [actor] = await resolveActors(lookups, [reference], { side, deny: false })
  return actor as Actor
}

/** Whether a side of a rule names it, whether excluded or not, in either version of the policy. */
export function namesActor(rule: Pick<AnyRule, Side>, side: Side, wanted: Actor): boolean {
  const known = identify(wanted)
  return rule[side].some((end) => identify(end) === known)
}

/** What an actor is, whether excluded or not, in either version of the policy. */
function identify({ actors, exclusion: _exclusion, ...selector }: Actor): string | undefined {
  if (actors !== undefined) return actors
  const [target] = Object.values(selector) as ({ href?: string } | string | undefined)[]
  const href = typeof target === 'object' ? target.href : target
  return href === undefined ? undefined : toDraftHref(href)
}

/**
 * A service object by its href; ports by what covers them (a range by its first and last), whatever else a service may ask of a process:
 * for these `objects` has to know the services.
 */
export function testService(wanted: ResolvedService, objects: ServiceObjects | undefined): (rule: AnyRule) => boolean {
  if ('service' in wanted) {
    const href = toDraftHref(wanted.service.href)
    return ({ ingress_services: ingress, egress_services: egress }) =>
      [...(ingress ?? []), ...(egress ?? [])].some((one) => 'href' in one && toDraftHref(one.href) === href)
  }
  if (objects === undefined) throw new Error('a port is found through the services that hold it')
  const { port, to_port: last = port, proto } = wanted.ports
  return ({ ingress_services: ingress }) => {
    const covers = compileServices(ingress ?? [], objects)
    return covers(port, proto) !== 'no' && covers(last, proto) !== 'no'
  }
}

async function loadServices(
  pce: PceClient,
  { labels }: PolicyLookups,
  policyVersion: PolicyVersionSelector,
  signal: AbortSignal,
): Promise<ServiceObjects> {
  const services = await pickEvery(
    { api: pce.services, policyVersion, params: {}, signal },
    ({ description: _, ...service }) => service,
  )
  return catalogOf({ labels, services, lists: [], groups: [] })
}
