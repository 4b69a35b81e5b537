import type { Actor, IngressService, Rule } from '../../schemas/pce/rule-set.js'
import type { Reference } from '../../schemas/pce/reference.js'
import type { Service } from '../../schemas/pce/service.js'
import type { Json } from '../model.js'
import { invalidInput, invalidUri, notAcceptable } from '../refusal.js'
import { requireReferenced, requireLabel, requireWorkload } from '../validate/check-references.js'
import type { World } from '../world.js'

/** Maximum number of stateless rules in the whole policy (P20). */
const MAX_STATELESS_RULES = 100

/**
 * Checks the requirements of a rule or enforcement boundary that a schema cannot express (P20, P21). Throws 406 if one
 * is not met.
 */
export function checkRule(world: World, rule: Json): void {
  const { providers, consumers, ingress_services, egress_services } = rule as unknown as Rule
  for (const actor of [...providers, ...consumers]) checkActor(world, actor)
  if (ingress_services.length === 0 && !isForVirtualServices(rule as unknown as Rule)) {
    throw notAcceptable('ingress_services_cannot_be_empty', 'Ingress services cannot be empty')
  }
  for (const entry of ingress_services) checkIngress(world, entry)
  for (const { href } of egress_services ?? []) {
    if (!serviceOf(world, href).windows_egress_services) {
      throw invalidInput('egress_services must be services with windows_egress_services')
    }
  }
}

/**
 * Returns true if all providers of the rule are virtual services. The rule then has no services of its own, because the
 * virtual services determine them.
 */
function isForVirtualServices({ providers, resolve_labels_as }: Rule): boolean {
  const labelled = (resolve_labels_as as Rule['resolve_labels_as'] | undefined)?.providers ?? []
  const labelsAreServices = labelled.length > 0 && labelled.every((as) => as === 'virtual_services')
  return providers.every(({ virtual_service, label, label_group }) => {
    return virtual_service !== undefined || (labelsAreServices && (label !== undefined || label_group !== undefined))
  })
}

export function checkAllowRule(world: World, rule: Json): void {
  checkRule(world, rule)
  if (rule.stateless === true) {
    if (rule.sec_connect === true || rule.machine_auth === true) {
      throw invalidInput('A stateless rule cannot be combined with sec_connect or machine_auth')
    }
    const stateless = world.policy
      .entries('rule_sets')
      .flatMap(({ draft }) => (draft.rules ?? []) as Json[])
      .filter((other) => other.stateless === true && other.update_type !== 'delete' && other.href !== rule.href)
    if (stateless.length >= MAX_STATELESS_RULES) {
      throw invalidInput(`A policy can have at most ${MAX_STATELESS_RULES} stateless rules`)
    }
  }
  for (const { href } of (rule.consuming_security_principals ?? []) as Reference[]) {
    if (!world.store('security_principals').get(href)) throw invalidUri(href)
  }
}

export function checkIpTablesRule(world: World, rule: Json): void {
  for (const actor of rule.actors as Actor[]) checkActor(world, actor)
}

export function checkDenyRule(world: World, rule: Json): void {
  checkRule(world, rule)
  for (const entry of (rule as unknown as Rule).ingress_services) {
    if ('href' in entry && isProcessQualified(serviceOf(world, entry.href))) {
      throw invalidInput('A service with a process or Windows service cannot be used in a deny rule')
    }
  }
}

function checkActor(world: World, actor: Actor): void {
  const { exclusion, ...selectors } = actor
  if (Object.keys(selectors).length !== 1) {
    throw invalidInput('A provider or consumer must have exactly one selector')
  }
  if (exclusion !== undefined && !actor.label && !actor.label_group) {
    throw invalidInput('Only labels and label groups can be excluded')
  }
  const { label, label_group, label_dimension, ip_list, workload, virtual_service, virtual_server } = actor
  if (label) requireLabel(world, label.href)
  if (label_group) requireReferenced(world, 'label_groups', label_group.href)
  if (label_dimension !== undefined && !world.labelDimensions.live().some(({ key }) => key === label_dimension)) {
    throw invalidInput(`${label_dimension} is not a label dimension`)
  }
  if (ip_list) requireReferenced(world, 'ip_lists', ip_list.href)
  if (workload) requireWorkload(world, workload.href)
  if (virtual_service) requireReferenced(world, 'virtual_services', virtual_service.href)
  if (virtual_server) requireReferenced(world, 'virtual_servers', virtual_server.href)
}

function checkIngress(world: World, entry: IngressService): void {
  if ('href' in entry) {
    if (serviceOf(world, entry.href).windows_egress_services) {
      throw notAcceptable(
        'ingress_service_cannot_be_windows_egress_service',
        'Ingress service cannot be a Windows egress service',
      )
    }
    return
  }
  const { port, to_port } = entry as { port?: number; to_port?: number }
  if (to_port !== undefined && (port === undefined || to_port < port)) {
    throw invalidInput('to_port must not be below port')
  }
}

function serviceOf(world: World, href: string): Service {
  return requireReferenced(world, 'services', href).draft as Service
}

function isProcessQualified(service: Service): boolean {
  const qualified = (service.windows_services ?? []).some((one) => one.process_name || one.service_name)
  return qualified || Boolean(service.process_name)
}
