import { type PlannedRule, showResolved } from '../../../domain/drafts/plan-rules.js'
import type { ResolvedService } from '../../../domain/drafts/resolve-services.js'
import { toDraftHref } from '../../../domain/inventory/parse-href.js'
import { protocolName } from '../../../domain/inventory/protocols.js'
import { listDifferences } from '../../../domain/policy/compare-stored.js'
import type { RingfenceRule } from '../../../domain/ringfence/plan-ringfence.js'
import type { Prepared } from '../../../domain/ringfence/prepare-ringfence.js'
import { type RingfenceWritten, bodyOf } from '../../../domain/ringfence/write-ringfence.js'
import type { PlannedRequest } from '../../../schemas/dry-run.js'
import type { Actor } from '../../../schemas/pce/rule-set.js'

/** Describes in words the rules that a real call would add, in the order of writing. */
export const listPlanned = (prepared: Prepared): object[] =>
  prepared.plan.newRules.map((rule: RingfenceRule, at) => {
    const planned = prepared.rules[at] as PlannedRule
    return { type: rule.type, ...describePlanned(planned), ...describeDeny(rule, planned, prepared) }
  })

/**
 * Lists the requests that a real call would send, in order. A request that creates a rule also describes this rule in
 * words, so that no second list is needed.
 */
export function listRequests(prepared: Prepared, orgId: string): (PlannedRequest & { rule?: object })[] {
  const { ruleSet, name, rules } = prepared
  const collection = `/orgs/${orgId}/sec_policy/draft/rule_sets`
  const parent = ruleSet === null ? `${collection}/{id of ${name}}` : toDraftHref(ruleSet.href)
  const words = listPlanned(prepared)
  return [
    ...(ruleSet === null ? [{ method: 'POST', path: collection, body: bodyOf(prepared) }] : []),
    ...rules.map((rule, at) => ({
      rule: words[at] as object,
      method: 'POST',
      path: `${parent}/${rule.collection}`,
      body: rule.body,
    })),
  ]
}

/** Lists the written rules with all that is known about each. */
export const listWritten = (prepared: Prepared, written: RingfenceWritten): object[] =>
  listHrefs(prepared, written).map((row, at) => {
    const planned = prepared.rules[at] as PlannedRule
    const rule = prepared.plan.newRules[at] as RingfenceRule
    return {
      ...describeRule(rule),
      description: planned.body.description ?? '',
      ...describePlanned(planned),
      ...describeDeny(rule, planned, prepared),
      ...row,
    }
  })

/**
 * Lists the written rules by href, each with the sources that it is for and the fields that the PCE stored differently
 * from what was sent.
 */
export const listHrefs = ({ plan }: Prepared, { ruleHrefs, stored }: RingfenceWritten) =>
  plan.newRules.map(({ type, remote }, at) => ({
    type,
    ...(remote !== undefined && { app: remote.app, env: remote.env }),
    href: ruleHrefs[at] ?? '',
    ...listDifferences(stored?.ruleDifferences[at]),
  }))

/** Describes the purpose of a rule. */
export const describeRule = ({ type, remote }: RingfenceRule) => ({ type, ...remote })

/** Describes a planned rule in words. */
export function describePlanned({ consumers, providers, services }: PlannedRule) {
  return {
    consumers: consumers.map(nameActor).join(', '),
    providers: providers.map(nameActor).join(', '),
    services: services.map(nameService).join(', '),
  }
}

/** Returns the fields that exist only in deny rules; empty for any other rule. */
export function describeDeny({ type }: RingfenceRule, { services }: PlannedRule, { deny }: Prepared) {
  if (deny === null || type !== 'deny (block all inbound)') return {}
  return { deny_consumer_mode: deny.mode, ingress_services_resolved: showResolved(services) }
}

function nameActor({ actors, label, ip_list: list }: Actor): string {
  if (actors !== undefined) return 'All workloads'
  return label === undefined ? (list?.name ?? list?.href ?? '') : `${label.key}=${label.value}`
}

function nameService(service: ResolvedService): string {
  if ('service' in service) return service.service.name
  const { port, to_port: toPort, proto } = service.ports
  return `${port}${toPort === undefined ? '' : `-${toPort}`}/${protocolName(proto)}`
}
