import type { SuggestedEnd, SuggestedRule, SuggestedService } from '../../../domain/explain/choose-rule.js'
import { protocolName } from '../../../domain/inventory/protocols.js'
import { trimBlanks } from '../../../domain/text/escape-text.js'
import { shortLabel } from '../show-label.js'

/** A reference as rule tools take it (T4, T5). */
type Written = string | object

/** An end as the arguments of a rule tool. */
function writeEnd(end: SuggestedEnd): Written[] {
  switch (end.kind) {
    case 'ams':
      return ['ams']
    case 'labels':
      return end.labels.map((label) => writeReference(shortLabel(label)))
    case 'workload':
      return [end.href]
    case 'ip_list':
      // Names of IP lists are unique (P17); one that blanks would change is named by its href.
      return [end.isNew || trimBlanks(end.name) === end.name ? `iplist:${end.name}` : end.href]
  }
}

/** A label whole is `{key, value}` to a rule, whose href says the same. */
const writeReference = (label: ReturnType<typeof shortLabel>): Written =>
  typeof label === 'string' ? label : { href: label.href }

function writeService(service: SuggestedService): Written {
  switch (service.kind) {
    case 'service':
      return service.isShared ? { href: service.href } : { service: service.name }
    case 'port':
      return { port: service.port, proto: protocolName(service.proto) }
    case 'new_service':
      return { service: service.name }
  }
}

/** What has to be created before the rule, as the arguments of the tools that do. */
function writePrerequisites({ consumers, providers, service }: SuggestedRule) {
  const list = [consumers, providers].find((end) => end.kind === 'ip_list' && end.isNew)
  return {
    ...(list?.kind === 'ip_list' && {
      create_iplist: {
        name: list.name,
        ip_ranges: (list.list.ip_ranges ?? []).map(({ from_ip: from }) => ({ from_ip: from })),
      },
    }),
    ...(service.kind === 'new_service' && {
      create_service: { name: service.name, service_ports: [{ proto: service.proto }] },
    }),
  }
}

/** A suggested rule as the arguments that write it: of create-rule for an existing rule set, otherwise of create-ruleset. */
export function writeSuggestion(rule: SuggestedRule, description: string) {
  const written = {
    rule_type: 'allow' as const,
    providers: writeEnd(rule.providers),
    consumers: writeEnd(rule.consumers),
    ingress_services: [writeService(rule.service)],
    unscoped_consumers: rule.unscoped,
    description,
  }
  const scopes = [rule.scope.map((label) => writeReference(shortLabel(label)))]
  return {
    ...writePrerequisites(rule),
    ...(rule.ruleSet === null
      ? { create_ruleset: { name: rule.name, scopes, rules: [written] } }
      : { create_rule: { ruleset_href: rule.ruleSet.href, ...written } }),
  }
}
