import type { Actor, IngressService, Rule } from '../../../schemas/pce/rule-set.js'
import type { Reference } from '../../../schemas/pce/reference.js'
import type { Service } from '../../../schemas/pce/service.js'
import type { Json } from '../http/route.js'
import { invalidInput, invalidUri, notAcceptable } from '../refusal.js'
import { requireDraft, requireLabel, requireWorkload } from '../validate/check-references.js'
import type { World } from '../world.js'

/** What both kinds of rules must hold to beyond their schema (pce-api e.7, e.8). Throws 406. */
export function checkRule(world: World, rule: Json): void {
  const { providers, consumers, ingress_services, egress_services } = rule as unknown as Rule
  for (const actor of [...providers, ...consumers]) checkActor(world, actor)
  const onlyVirtualServices = providers.every((actor) => actor.virtual_service !== undefined)
  if (ingress_services.length === 0 && !onlyVirtualServices) {
    throw notAcceptable('ingress_services_cannot_be_empty', 'Ingress services cannot be empty')
  }
  for (const entry of ingress_services) checkIngress(world, entry)
  for (const { href } of egress_services ?? []) {
    if (!serviceOf(world, href).windows_egress_services) {
      throw invalidInput('egress_services must be services with windows_egress_services')
    }
  }
}

export function checkAllowRule(world: World, rule: Json): void {
  checkRule(world, rule)
  if (rule.stateless === true && (rule.sec_connect === true || rule.machine_auth === true)) {
    throw invalidInput('A stateless rule cannot be combined with sec_connect or machine_auth')
  }
  // No security principals exist here, so none can be named.
  for (const { href } of (rule.consuming_security_principals ?? []) as Reference[]) throw invalidUri(href)
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
  const { label, label_group, ip_list, workload, virtual_service, virtual_server } = actor
  if (label) requireLabel(world, label.href)
  if (label_group) requireDraft(world, 'label_groups', label_group.href)
  if (ip_list) requireDraft(world, 'ip_lists', ip_list.href)
  if (workload) requireWorkload(world, workload.href)
  if (virtual_service) requireDraft(world, 'virtual_services', virtual_service.href)
  if (virtual_server) requireDraft(world, 'virtual_servers', virtual_server.href)
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
  return requireDraft(world, 'services', href).draft as Service
}

function isProcessQualified(service: Service): boolean {
  const qualified = (service.windows_services ?? []).some((one) => one.process_name || one.service_name)
  return qualified || Boolean(service.process_name)
}
