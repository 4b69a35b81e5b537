import type { ShownEffect } from '../../schemas/approvals.js'

const NOUNS: Record<string, readonly [one: string, many: string]> = {
  label_groups: ['label group', 'label groups'],
  services: ['service', 'services'],
  rule_sets: ['rule set', 'rule sets'],
  ip_lists: ['IP list', 'IP lists'],
  virtual_services: ['virtual service', 'virtual services'],
  firewall_settings: ['firewall settings', 'firewall settings'],
  secure_connect_gateways: ['secure connect gateway', 'secure connect gateways'],
  virtual_servers: ['virtual server', 'virtual servers'],
  enforcement_boundaries: ['enforcement boundary', 'enforcement boundaries'],
  sec_rules: ['allow rule', 'allow rules'],
  deny_rules: ['deny rule', 'deny rules'],
  labels: ['label', 'labels'],
  workloads: ['workload', 'workloads'],
  container_clusters: ['container cluster', 'container clusters'],
  container_workload_profiles: ['container workload profile', 'container workload profiles'],
  security_principals: ['user group', 'user groups'],
  networks: ['network', 'networks'],
}

/** Returns the noun for a type of object, in singular or plural: `rule set`, `rule sets`. */
export const kindOf = (type: string, count = 1): string => NOUNS[type]?.[count === 1 ? 0 : 1] ?? type

/**
 * Combines the effects of several changes into one. If any change permits more, the result says so, even if others
 * permit less.
 */
export function joinEffects(effects: readonly ShownEffect[]): ShownEffect {
  const has = (effect: ShownEffect) => effects.includes(effect)
  if (has('mixed') || (has('widening') && has('narrowing'))) return 'mixed'
  if (has('widening')) return 'widening'
  if (has('undecided')) return 'undecided'
  return has('narrowing') ? 'narrowing' : 'neutral'
}

/** The warning that is shown when an override deny rule is created. */
export const OVERRIDE_WARNING =
  'An override deny beats every allow rule, in this and every other rule set. Use it to isolate an incident, or for traffic that must never flow; a ringfence needs a plain deny. VENs older than 22.3.0 ignore it.'
