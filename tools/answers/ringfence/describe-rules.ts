import type { PlannedRequest } from '../../../schemas/dry-run.js'
import type { Actor } from '../../../schemas/pce/rule-set.js'
import { toDraftHref } from '../../../domain/inventory/parse-href.js'
import { showResolved } from '../../../domain/drafts/plan-rule-change.js'
import type { PlannedRule } from '../../../domain/drafts/plan-rules.js'
import { protocolName } from '../../../domain/inventory/protocols.js'
import type { ResolvedService } from '../../../domain/drafts/resolve-services.js'
import type { RingfenceRule } from '../../../domain/ringfence/plan-ringfence.js'
import type { Prepared } from '../../../domain/ringfence/prepare-ringfence.js'
import { bodyOf } from '../../../domain/ringfence/write-ringfence.js'

/** What a real run sends, in its order. */
export function listRequests(prepared: Prepared, orgId: string): PlannedRequest[] {
  const { ruleSet, name, rules } = prepared
  const collection = `/orgs/${orgId}/sec_policy/draft/rule_sets`
  const parent = ruleSet === null ? `${collection}/{id of ${name}}` : toDraftHref(ruleSet.href)
  return [
    ...(ruleSet === null ? [{ method: 'POST', path: collection, body: bodyOf(prepared) }] : []),
    ...rules.map((rule) => ({ method: 'POST', path: `${parent}/${rule.collection}`, body: rule.body })),
  ]
}

/** What a rule is for. */
export const describeRule = ({ type, remote }: RingfenceRule) => ({ type, ...remote })

/** A rule of the plan in words. */
export function describePlanned({ body, consumers, providers, services }: PlannedRule) {
  return {
    description: body.description ?? '',
    consumers: consumers.map(nameActor).join(', '),
    providers: providers.map(nameActor).join(', '),
    services: services.map(nameService).join(', '),
  }
}

/** What only the deny rule says of itself. */
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
