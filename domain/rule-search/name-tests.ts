import type { PceClient } from '../../pce-client/index.js'
import type { PolicyVersionSelector } from '../../schemas/common.js'
import type { Actor, DenyRule, Rule, RuleSet } from '../../schemas/pce/rule-set.js'
import { resolveActors, type ActorReference } from '../drafts/resolve-actors.js'
import { resolveService, type ResolvedService, type ServiceReference } from '../drafts/resolve-services.js'
import { pickEvery } from '../inventory/fetch-every.js'
import type { PolicyLookups } from '../inventory/find-object.js'
import { toDraftHref } from '../inventory/parse-href.js'
import { catalogOf } from '../policy/load-snapshot.js'
import { compileServices, type ServiceObjects } from '../policy/match-services.js'

type AnyRule = Rule | DenyRule
export type Side = 'providers' | 'consumers'

/** What a rule must name: an actor on either side, and a service that it names or a port that it covers. */
interface RuleQuestion {
  actor?: ActorReference | undefined
  service?: ServiceReference | undefined
}

/**
 * Creates a function that tests rules against these criteria; returns undefined if there are none. For a rule set
 * without rules, the function is called without a rule and returns whether the scopes alone match. This server tests
 * the rules itself (D98), because the PCE's own search (`rule_search`) does not find port ranges that contain the port,
 * and how it compares is not documented. Services are those of the policy version that `lookups` uses.
 * Throws invalid_actor, label_not_found, not_found or ambiguous_name for the actor, and invalid_argument or
 * ambiguous_name for the service.
 */
export async function createRuleTest(
  pce: PceClient,
  lookups: PolicyLookups,
  { actor, service }: RuleQuestion,
  signal: AbortSignal,
  policyVersion: PolicyVersionSelector = 'draft',
): Promise<((rule: AnyRule | undefined, scopes: RuleSet['scopes']) => boolean) | undefined> {
  const wanted = actor === undefined ? undefined : await findActor(lookups, actor)
  const sought = service === undefined ? undefined : await resolveService(lookups, service, 'service')
  const isPort = sought !== undefined && 'ports' in sought
  const objects = isPort ? await loadServices(pce, lookups, policyVersion, signal) : undefined
  if (wanted === undefined && sought === undefined) return undefined
  const isNamed = (rule: AnyRule | undefined, scopes: RuleSet['scopes']) =>
    wanted === undefined ||
    (rule !== undefined && (namesActor(rule, 'providers', wanted) || namesActor(rule, 'consumers', wanted))) ||
    scopesName(scopes, wanted)
  const offers = sought && testService(sought, objects)
  return (rule, scopes) => isNamed(rule, scopes) && (offers === undefined || (rule !== undefined && offers(rule)))
}

/**
 * Looks up the actor to which a caller refers. An exclusion in the reference is ignored. Throws invalid_actor,
 * label_not_found, not_found, ambiguous_name.
 */
export async function findActor(
  lookups: PolicyLookups,
  reference: ActorReference,
  side: 'actor' | 'provider' | 'consumer' = 'actor',
): Promise<Actor> {
  const [actor] = await resolveActors(lookups, [reference], { side, deny: false })
  return actor as Actor
}

/** Returns true if this side of a rule names the actor, even as an exclusion. Draft and active hrefs count as equal. */
export function namesActor(rule: Pick<AnyRule, Side>, side: Side, wanted: Actor): boolean {
  const known = identify(wanted)
  return rule[side].some((end) => identify(end) === known)
}

/**
 * Returns true if a scope contains the label or label group, because all rules of the rule set then require it of their
 * providers.
 */
function scopesName(scopes: RuleSet['scopes'], wanted: Actor): boolean {
  const known = identify(wanted)
  return (scopes ?? []).some((scope) =>
    (scope ?? []).some((condition) => condition.exclusion !== true && identify(condition) === known),
  )
}

/**
 * Returns a string that identifies an actor. It is the same for the actor's draft and active href, and with and without
 * an exclusion.
 */
function identify({ actors, exclusion: _exclusion, ...selector }: Actor): string | undefined {
  if (actors !== undefined) return actors
  const [target] = Object.values(selector) as ({ href?: string } | string | undefined)[]
  const href = typeof target === 'object' ? target.href : target
  return href === undefined ? undefined : toDraftHref(href)
}

/**
 * Creates a function that tests whether a rule is for the wanted service. A service object is matched by href. A port
 * matches if the rule covers it, whatever process the rule requires; a port range matches if the rule covers its first
 * and last port. To test for ports, `objects` must contain the services.
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
