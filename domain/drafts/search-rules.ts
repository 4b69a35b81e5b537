import type { PceClient } from '../../pce-client/index.js'
import type { Actor, DenyRule, Rule } from '../../schemas/pce/rule-set.js'
import { pickEvery } from '../inventory/fetch-every.js'
import type { PolicyLookups } from '../inventory/find-object.js'
import { allOf } from '../inventory/match-exactly.js'
import { toDraftHref } from '../inventory/parse-href.js'
import { catalogOf } from '../policy/load-snapshot.js'
import { compileServices } from '../policy/match-services.js'
import { resolveActors, type ActorReference } from './resolve-actors.js'
import { resolveService, type ServiceReference } from './resolve-services.js'

type AnyRule = Rule | DenyRule

/** What rules are searched for: something that stands at one of their ends, and a service they name or a port they cover. */
interface RuleQuestion {
  actor?: ActorReference | undefined
  service?: ServiceReference | undefined
}

/**
 * The test of a rule that the question stands for; undefined where it asks for nothing. The PCE's own rule search (`rule_search`) does
 * not say how it compares, and leaves out what a port is part of, so rules are compared here (D98). Throws invalid_actor,
 * label_not_found, not_found or ambiguous_name for the end, invalid_argument for the service.
 */
export async function createRuleTest(
  pce: PceClient,
  lookups: PolicyLookups,
  { actor, service }: RuleQuestion,
  signal: AbortSignal,
): Promise<((rule: AnyRule) => boolean) | undefined> {
  return allOf(
    actor === undefined ? undefined : await namesActor(lookups, actor),
    service === undefined ? undefined : await namesService(pce, lookups, service, signal),
  )
}

async function namesActor(lookups: PolicyLookups, reference: ActorReference): Promise<(rule: AnyRule) => boolean> {
  const [actor] = await resolveActors(lookups, [reference], { side: 'actor', deny: false })
  const wanted = identify(actor as Actor)
  return ({ providers, consumers }) =>
    [...(providers ?? []), ...(consumers ?? [])].some((end) => identify(end) === wanted)
}

/** What an actor is, whether excluded or not, in either version of the policy. */
function identify({ actors, exclusion: _exclusion, ...selector }: Actor): string | undefined {
  if (actors !== undefined) return actors
  const [target] = Object.values(selector) as ({ href?: string } | string | undefined)[]
  const href = typeof target === 'object' ? target.href : target
  return href === undefined ? undefined : toDraftHref(href)
}

/**
 * A service object by its href; ports by what covers them (a range by its first and last), whatever else a service may ask of a process.
 */
async function namesService(
  pce: PceClient,
  lookups: PolicyLookups,
  reference: ServiceReference,
  signal: AbortSignal,
): Promise<(rule: AnyRule) => boolean> {
  const wanted = await resolveService(lookups, reference, 'service')
  if ('service' in wanted) {
    const href = toDraftHref(wanted.service.href)
    return ({ ingress_services: ingress, egress_services: egress }) =>
      [...(ingress ?? []), ...(egress ?? [])].some((one) => 'href' in one && toDraftHref(one.href) === href)
  }
  const services = await pickEvery(
    { api: pce.services, params: {}, signal },
    ({ description: _, ...service }) => service,
  )
  const objects = catalogOf({ labels: lookups.labels, services, lists: [], groups: [] })
  const { port, to_port: last = port, proto } = wanted.ports
  return ({ ingress_services: ingress }) => {
    const covers = compileServices(ingress ?? [], objects)
    return covers(port, proto) !== 'no' && covers(last, proto) !== 'no'
  }
}
