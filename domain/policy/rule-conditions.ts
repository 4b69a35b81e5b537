import { isDefault, isSaid, isUsual } from './default-fields.js'
import { NO_CONTENT } from './diff-fields.js'
import { nameReference } from './name-reference.js'
import type { ReferenceNames } from '../inventory/reference-names.js'

/**
 * The fields of a rule that are not conditions: its providers, consumers and services, its state, and the PCE's
 * records.
 */
export const NO_CONDITION: ReadonlySet<string> = new Set([
  ...NO_CONTENT,
  'enabled',
  'providers',
  'consumers',
  'ingress_services',
  'egress_services',
  'unscoped_consumers',
  'override',
  'name',
  'description',
  'external_data_set',
  'external_data_reference',
  'update_label',
  'log_flow',
])

/**
 * The known values of a rule's `network_type`. Later PCE releases may have other values, whose meaning is not known.
 */
const NETWORKS = ['brn', 'non_brn', 'all']

/** Returns true if the rule is for networks that this release of the MCP server does not know. */
export const isForUnknownNetwork = ({ network_type: network }: { network_type?: unknown }): boolean =>
  isSaid(network) && !NETWORKS.includes(network as string)

/** The fields of a rule that are conditions. */
export const CONDITIONS: readonly string[] = [
  'consuming_security_principals',
  'network_type',
  'machine_auth',
  'sec_connect',
  'stateless',
  'use_workload_subnets',
  'all_ips_except_for_in_consumers',
  'all_ips_except_for_in_providers',
  'resolve_labels_as',
]

/** Returns the fields that are set in a rule and that this release of the MCP server does not know. */
export const unknownFieldsOf = (rule: object): [field: string, value: unknown][] =>
  Object.entries(rule).filter(
    ([field, value]) => !NO_CONDITION.has(field) && !CONDITIONS.includes(field) && isSaid(value),
  )

/**
 * Returns the conditions of a rule, apart from providers, consumers and services, that narrow or widen the rule and
 * differ from the default. Values are as the PCE has them. An unknown field that is set is included, because it may be
 * a condition of a later release.
 */
export function conditionFieldsOf(rule: object): Record<string, unknown> {
  const fields = rule as Record<string, unknown>
  const known = CONDITIONS.flatMap((field) =>
    isDefault(field, fields[field]) ? [] : [[field, fields[field]] as const],
  )
  return Object.fromEntries([...known, ...unknownFieldsOf(rule)])
}

/** The conditions that do not restrict who may connect, or even let more connections in. */
const NOT_NARROWING = new Set(['stateless', 'use_workload_subnets', 'resolve_labels_as', 'network_type'])

/**
 * Returns true if conditions of a rule admit only some of the connections that its providers, consumers and services
 * describe, such as those of certain users, machines or networks. An unknown field counts too, because it may be a
 * condition.
 */
export const isLimited = (rule: { network_type?: unknown }): boolean =>
  rule.network_type === 'non_brn' ||
  isForUnknownNetwork(rule) ||
  Object.keys(conditionFieldsOf(rule)).some(
    (field) => !NOT_NARROWING.has(field) && !field.startsWith('all_ips_except_for_in_'),
  )

/** Maximum number of user groups that are named, and of characters that are quoted from an unknown value. */
const MOST_GROUPS = 4
const MOST_CHARACTERS = 80

/**
 * Describes the conditions that narrow or widen a rule, apart from its providers, consumers and services. There is one
 * phrase for each condition that differs from the default; it contains the value or the field's name as the PCE has it.
 *
 * @param besides a field to leave out, because the caller shows it elsewhere.
 */
export function describeConditions(rule: object, names: ReferenceNames, besides?: string): string[] {
  const fields = Object.entries(conditionFieldsOf(rule)).filter(([field]) => field !== besides)
  return fields.map(([field, value]) => describe(field, value, names))
}

function describe(field: string, value: unknown, names: ReferenceNames): string {
  switch (field) {
    case 'consuming_security_principals': {
      if (!Array.isArray(value)) break
      const groups = value.map((group) => nameReference(group, names) ?? JSON.stringify(group))
      const rest = groups.length - MOST_GROUPS
      return `only users of ${groups.slice(0, MOST_GROUPS).join(' or ')}${rest > 0 ? ` or ${rest} more groups` : ''}`
    }
    case 'network_type':
      if (value === 'non_brn') return 'only on networks other than the corporate one (non_brn)'
      if (value === 'all') return 'on all networks'
      break
    case 'machine_auth':
      if (value === true) return 'only authenticated machines (machine_auth)'
      break
    case 'sec_connect':
      if (value === true) return 'only encrypted connections (sec_connect)'
      break
    case 'stateless':
      if (value === true) return 'stateless'
      break
    case 'use_workload_subnets':
      if (Array.isArray(value)) return `whole subnets of its ${value.join(' and ')} (use_workload_subnets)`
      break
    case 'all_ips_except_for_in_consumers':
    case 'all_ips_except_for_in_providers':
      if (value === true) return `all addresses except those in ${field.slice('all_ips_except_for_in_'.length)}`
      break
    case 'resolve_labels_as':
      return describeResolution(value)
  }
  const text = JSON.stringify(value)
  return `${field}: ${text.length > MOST_CHARACTERS ? `${text.slice(0, MOST_CHARACTERS)}…` : text}`
}

function describeResolution(value: unknown): string {
  const sides = Object.entries(value as object).filter(([, kinds]) => !isUsual(kinds))
  return sides
    .map(
      ([side, kinds]) => `labels in ${side} mean ${Array.isArray(kinds) ? kinds.join(' and ') : JSON.stringify(kinds)}`,
    )
    .join(', ')
}
