import type { Actor, Rule } from '../../../schemas/pce/rule-set.js'
import { NO_CONTENT } from '../diff-fields.js'
import type { PolicyContents } from '../load-contents.js'
import type { AnyRule, RuleInForce } from '../rule-in-force.js'
import type { Reason } from '../three-valued.js'
import { isReadable } from './address-boxes.js'
import { textOf } from './comparable-text.js'
import { resolve } from './read-labels.js'
import { entriesOf } from './read-services.js'

const SELECTORS = ['actors', 'label', 'label_group', 'ip_list', 'workload', 'virtual_service', 'virtual_server']

/** A side that has something whose meaning is not known, or depends on all the rest of it. */
export function isOpaque(rule: AnyRule, side: 'providers' | 'consumers', contents: PolicyContents): boolean {
  return rule[`all_ips_except_for_in_${side}`] === true || rule[side].some((actor) => isUnclear(actor, contents))
}

function isUnclear({ exclusion, ...actor }: Actor, contents: PolicyContents): boolean {
  const [selector = '', ...more] = Object.entries(actor).flatMap(([name, target]) => (isSaid(target) ? name : []))
  if (more.length > 0 || !SELECTORS.includes(selector)) return true
  if (actor.label !== undefined || actor.label_group !== undefined) return resolve(actor, contents) === undefined
  return exclusion === true
}

/** Fields that are compared, or touch no traffic. */
const COMPARED = new Set([
  ...NO_CONTENT,
  'enabled',
  'providers',
  'consumers',
  'ingress_services',
  'egress_services',
  'unscoped_consumers',
  'network_type',
  'resolve_labels_as',
  'consuming_security_principals',
  'override',
  'all_ips_except_for_in_providers',
  'all_ips_except_for_in_consumers',
  'name',
  'description',
  'external_data_set',
  'external_data_reference',
  'update_label',
  'log_flow',
])
export const isSaid = (value: unknown) =>
  value !== null &&
  value !== undefined &&
  value !== false &&
  value !== '' &&
  !(Array.isArray(value) && value.length === 0)

/** Encryption, authentication and what a later release adds, as one text; empty where a rule has none of it. */
export function specialOf(rule: AnyRule): string {
  const said = Object.entries(rule).filter(([field, value]) => !COMPARED.has(field) && isSaid(value))
  return said.length === 0 ? '' : JSON.stringify(said.sort(([a], [b]) => (a < b ? -1 : 1)))
}

export function opaqueOf({ rule, scopes, contents }: RuleInForce): Map<string, Reason> {
  const found = new Map<string, Reason>()
  const special = specialOf(rule)
  const fields = rule as Partial<Rule>
  if (special !== '')
    found.set(
      special,
      fields.sec_connect === true || fields.machine_auth === true
        ? 'encryption'
        : fields.stateless === true
          ? 'stateless'
          : fields.use_workload_subnets != null
            ? 'subnets'
            : 'field',
    )
  for (const side of ['providers', 'consumers'] as const) {
    if (!isOpaque(rule, side, contents)) continue
    const isInverted = rule[`all_ips_except_for_in_${side}`] === true
    const hasGroup = rule[side].some((actor) => actor.label_group !== undefined && isUnclear(actor, contents))
    found.set(textOf([side, rule[side]], contents), isInverted ? 'inverted' : hasGroup ? 'label_group' : 'selector')
  }
  for (const entry of scopes.flat())
    if (resolve(entry, contents) === undefined) found.set(textOf(entry, contents), 'label_group')
  for (const { ip_list: list } of [...rule.providers, ...rule.consumers]) {
    const object = list && contents.listOf(list.href)
    if (list !== undefined && (object === undefined || !isReadable(object)))
      found.set(textOf(list, contents), 'ip_list')
  }
  for (const service of [...rule.ingress_services, ...(rule.egress_services ?? [])]) {
    const object = 'href' in service ? contents.serviceOf(service.href) : undefined
    if ('href' in service && (object === undefined || entriesOf(object).length === 0))
      found.set(textOf(service, contents), object === undefined ? 'service' : 'empty_service')
  }
  return found
}
