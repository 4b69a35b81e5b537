import type { Actor, Rule } from '../../../schemas/pce/rule-set.js'
import type { PolicyContents } from '../load-contents.js'
import { isSaid } from '../default-fields.js'
import { NO_CONDITION, isForUnknownNetwork } from '../rule-conditions.js'
import type { AnyRule, RuleInForce } from '../rule-in-force.js'
import type { Reason } from '../three-valued.js'
import { isReadable } from './address-boxes.js'
import { textOf } from './comparable-text.js'
import { resolveLabels } from './label-boxes.js'
import { entriesOf } from './read-services.js'

const SELECTORS = ['actors', 'label', 'label_group', 'ip_list', 'workload', 'virtual_service', 'virtual_server']

/**
 * Returns true if a side of a rule contains an entry whose meaning is not known, or covers all addresses except the
 * listed ones. Such a side can only be compared for equality, as a whole.
 */
export function isOpaque(rule: AnyRule, side: 'providers' | 'consumers', contents: PolicyContents): boolean {
  return rule[`all_ips_except_for_in_${side}`] === true || rule[side].some((actor) => isUnclear(actor, contents))
}

/**
 * Returns true for an actor that has no known selector or more than one, whose label or label group cannot be resolved,
 * or that excludes something other than labels.
 */
function isUnclear({ exclusion, ...actor }: Actor, contents: PolicyContents): boolean {
  const [selector = '', ...more] = Object.entries(actor).flatMap(([name, target]) => (isSaid(target) ? name : []))
  if (more.length > 0 || !SELECTORS.includes(selector)) return true
  if (actor.label !== undefined || actor.label_group !== undefined) return resolveLabels(actor, contents) === undefined
  return exclusion === true
}

/** The rule conditions that have a dimension of their own and are therefore not part of `special`. */
const COMPARED = new Set([
  'network_type',
  'resolve_labels_as',
  'consuming_security_principals',
  'all_ips_except_for_in_providers',
  'all_ips_except_for_in_consumers',
])

/**
 * Returns a string that combines all conditions of a rule that have no dimension of their own: encryption,
 * authentication, unknown networks, and fields of later releases. The string is empty if the rule has no such
 * conditions.
 */
export function specialOf(rule: AnyRule): string {
  const isWithin = (field: string) =>
    NO_CONDITION.has(field) || (COMPARED.has(field) && !(field === 'network_type' && isForUnknownNetwork(rule)))
  const said = Object.entries(rule).filter(([field, value]) => !isWithin(field) && isSaid(value))
  return said.length === 0 ? '' : JSON.stringify(said.sort(([a], [b]) => (a < b ? -1 : 1)))
}

/**
 * Lists the parts of a rule that can only be compared for equality. Each part is given as a string, with the reason. If
 * two versions of a rule differ in such a part, it is not known which version covers more.
 */
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
          : isSaid(fields.use_workload_subnets)
            ? 'subnets'
            : isForUnknownNetwork(rule)
              ? 'network'
              : 'field',
    )
  for (const side of ['providers', 'consumers'] as const) {
    if (!isOpaque(rule, side, contents)) continue
    const isInverted = rule[`all_ips_except_for_in_${side}`] === true
    const hasGroup = rule[side].some((actor) => actor.label_group !== undefined && isUnclear(actor, contents))
    found.set(textOf([side, rule[side]], contents), isInverted ? 'inverted' : hasGroup ? 'label_group' : 'selector')
  }
  for (const entry of scopes.flat())
    if (resolveLabels(entry, contents) === undefined) found.set(textOf(entry, contents), 'label_group')
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
