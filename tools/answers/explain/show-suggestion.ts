import type { SuggestedEnd, SuggestedRule, SuggestedService } from '../../../domain/explain/choose-rule.js'
import { nameOf, type AskedEnd } from '../../../domain/explain/resolve-end.js'
import { isKubernetes } from '../../../domain/inventory/kubernetes-workloads.js'
import { trimBlanks } from '../../../domain/text/escape-text.js'
import { shortLabel } from '../show-label.js'

/** A reference to an object in the form that the rule tools accept (T4, T5). */
type Written = string | object

/**
 * Replaces the labels in a suggested rule with the two workloads in the question. Returns undefined if nothing was
 * replaced, or if the result is not a rule between two workloads. Such a rule allows no traffic of other workloads, but
 * it is useful only while both workloads exist, so it is offered only as an alternative (D207).
 */
export function narrowToWorkloads(
  rule: SuggestedRule,
  { source, destination }: { source: AskedEnd; destination: AskedEnd },
): { consumers: SuggestedEnd; providers: SuggestedEnd } | undefined {
  const ends = { consumers: narrow(rule.consumers, source), providers: narrow(rule.providers, destination) }
  if (ends.consumers.kind !== 'workload' || ends.providers.kind !== 'workload') return undefined
  return ends.consumers === rule.consumers && ends.providers === rule.providers ? undefined : ends
}

function narrow(end: SuggestedEnd, asked: AskedEnd): SuggestedEnd {
  const workload = asked.kind === 'workload' || asked.kind === 'address' ? asked.workload : null
  // A rule cannot name a Kubernetes workload (P106).
  if (workload === null || isKubernetes(workload) || (end.kind !== 'labels' && end.kind !== 'ams')) return end
  return { kind: 'workload', href: workload.href, name: nameOf(workload) }
}

/** Converts the source or destination of a suggested rule to the arguments of a rule tool. */
function writeEnd(end: SuggestedEnd): Written[] {
  switch (end.kind) {
    case 'ams':
      return ['ams']
    case 'labels':
      return end.labels.map((label) => writeReference(shortLabel(label)))
    case 'workload':
      return [end.href]
    case 'ip_list':
      // IP list names are unique (P17), so the name suffices. Blanks at its beginning or end would be trimmed, so in
      // this case the href is used.
      return [end.isNew || trimBlanks(end.name) === end.name ? `iplist:${end.name}` : end.href]
  }
}

/** Converts a label to a reference: `key=value`, or the href if that string would not be read as this label. */
const writeReference = (label: ReturnType<typeof shortLabel>): string =>
  typeof label === 'string' ? label : label.href

function writeService(service: SuggestedService): Written {
  switch (service.kind) {
    case 'service':
      return service.isShared ? { href: service.href } : { service: service.name }
    case 'port':
      return { port: service.port, proto: service.proto }
    case 'new_service':
      return { service: service.name }
  }
}

/** Returns the objects that must be created before the rule, as arguments of the tools that create them. */
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

/**
 * Converts a suggested rule to the arguments of the tool that writes it: create-rule if the rule set exists, otherwise
 * create-ruleset.
 */
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
