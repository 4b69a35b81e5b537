import { PceError } from '../../pce-client/index.js'
import type { DenyRule, EnforcementBoundary, RuleSet } from '../../schemas/pce/rule-set.js'
import type { IpList } from '../../schemas/pce/ip-list.js'
import type { Service } from '../../schemas/pce/service.js'

type Fields = Record<string, unknown>

/**
 * Returns rule sets in the form that rule matching needs: selectors that are null are left out, because a PCE may list
 * all selectors and set only one. A rule set without such nulls is returned as it is.
 * @throws {PceError} invalid_response with the object and the field if scopes, providers, consumers or services are
 * missing or have an unexpected shape. Such a field must not count as empty: a rule whose list of consumers is
 * unreadable may still apply to workloads.
 */
export const readRuleSets = (ruleSets: readonly RuleSet[]): RuleSet[] =>
  ruleSets.map((ruleSet) => {
    const { href, scopes } = ruleSet
    if (!isListOf(scopes, (scope) => isListOf(scope, namesLabel))) throw odd(href, 'scopes')
    const read: Fields = { scopes: unchanged(scopes, (scope) => unchanged(scope, withoutNulls)) }
    for (const [list, lists] of Object.entries(RULE_LISTS)) {
      const rules = (ruleSet as unknown as Fields)[list]
      if (rules === undefined || rules === null) continue
      if (!isListOf(rules, isObject)) throw odd(href, list)
      read[list] = unchanged(rules as Fields[], (rule) => readRule(rule, lists, `${href}, ${list}`))
    }
    return withFields(ruleSet, read)
  })

/**
 * Returns rules in the same form as `readRuleSets`. `rules` are enforcement boundaries, or deny rules that were read
 * separately from their rule sets. `where` is how errors identify a rule that has no href.
 * @throws {PceError} as readRuleSets does
 */
export const readEnds = <R extends DenyRule | EnforcementBoundary>(rules: readonly R[], where: string): R[] =>
  rules.map((rule) => readRule(rule as unknown as Fields, ENDS, where) as unknown as R)

/**
 * Returns the providers, consumers and services of a rule whose shape has not been checked, for tools that must list
 * every rule. A field that is null or missing (P43) becomes an empty list. An entry of unexpected shape becomes an
 * empty object, so that it remains undecided what the entry matches.
 */
export function readableEnds(rule: object): Pick<DenyRule, (typeof ENDS)[number]> {
  return Object.fromEntries(ENDS.map((name) => [name, entriesOf((rule as Fields)[name])])) as never
}

/**
 * Returns the scopes of a rule set whose shape has not been checked, for tools that must list every rule; see
 * `readableEnds`.
 */
export const readableScopes = (scopes: unknown): RuleSet['scopes'] =>
  Array.isArray(scopes) ? scopes.map(entriesOf) : []

function entriesOf(list: unknown): object[] {
  if (list === null || list === undefined) return []
  if (!Array.isArray(list)) return [{}]
  return list.map((entry: unknown) => (isObject(entry) ? withoutNulls(entry) : {}))
}

function readRule(rule: Fields, lists: readonly string[], where: string): Fields {
  const own = typeof rule.href === 'string' ? rule.href : where
  const { resolve_labels_as: resolved } = rule
  const read: Fields = {}
  for (const name of lists) {
    const entries = rule[name]
    if (!isListOf(entries, isObject)) throw odd(own, name)
    if (name === 'ingress_services' || name === 'statements') continue
    read[name] = unchanged(entries as Fields[], withoutNulls)
    if (!isListOf(read[name], isActor)) throw odd(own, name)
  }
  if (resolved === undefined) return withFields(rule, read)
  if (resolved === null) {
    // `resolve_labels_as` is null and is removed. Without this field, labels stand for workloads.
    const { resolve_labels_as: _none, ...rest } = { ...rule, ...read }
    return rest
  }
  const { providers, consumers } = resolved as Fields
  if (![providers, consumers].every(Array.isArray)) throw odd(own, 'resolve_labels_as')
  return withFields(rule, read)
}

/** Returns true for a valid actor. It has at least one selector, and every selector that is an object has an href. */
const isActor = (actor: unknown): boolean => {
  const selectors = Object.entries(actor as object).filter(([name]) => name !== 'exclusion')
  return selectors.length > 0 && selectors.every(([name, target]) => !REFERRING.has(name) || hasHref(target))
}
const REFERRING = new Set(['label', 'label_group', 'ip_list', 'workload', 'virtual_service', 'virtual_server'])
const hasHref = (target: unknown) => isObject(target) && typeof (target as Fields).href === 'string'

function withoutNulls<T extends object>(entry: T): T {
  if (!Object.values(entry).includes(null)) return entry
  return Object.fromEntries(Object.entries(entry).filter(([, value]) => value !== null)) as T
}

/** Maps a list, but returns the original list if no entry changed, so that large policies are not copied. */
function unchanged<T>(list: readonly T[], read: (entry: T) => T): T[] {
  const all = list.map(read)
  return all.every((entry, at) => entry === list[at]) ? (list as T[]) : all
}

function withFields<T extends object>(object: T, fields: Fields): T {
  const isSame = Object.entries(fields).every(([name, value]) => (object as Fields)[name] === value)
  return isSame ? object : { ...object, ...fields }
}

const ENDS = ['providers', 'consumers', 'ingress_services'] as const
const RULE_LISTS: Record<string, readonly string[]> = {
  rules: ENDS,
  deny_rules: ENDS,
  ip_tables_rules: ['actors', 'statements'],
}

/**
 * Checks that the ports of services are numbers and their program names are strings.
 *
 * @throws {PceError} invalid_response that names the object and the field.
 */
export function requireServiceShapes(services: readonly Service[]): void {
  for (const { href, ...service } of services)
    for (const list of ['service_ports', 'windows_services', 'windows_egress_services'] as const) {
      const entries = service[list] as unknown
      if (entries === undefined || entries === null) continue
      if (!isListOf(entries, isObject)) throw odd(href, list)
      for (const entry of entries as Record<string, unknown>[]) {
        const isOdd = (type: string) => (name: string) => (entry[name] ?? null) !== null && typeof entry[name] !== type
        const field = NUMBERS.find(isOdd('number')) ?? TEXTS.find(isOdd('string'))
        if (field !== undefined) throw odd(href, `${list}: ${field}`)
      }
    }
}

/**
 * Checks that every range of IP lists has a first address.
 * @throws {PceError} invalid_response that names the object and the field.
 */
export function requireIpListShapes(lists: readonly IpList[]): void {
  for (const { href, ip_ranges: ranges } of lists) {
    if (ranges === undefined || ranges === null) continue
    const isRange = (range: unknown) => isObject(range) && typeof (range as Fields).from_ip === 'string'
    if (!isListOf(ranges, isRange)) throw odd(href, 'ip_ranges: from_ip', 'rules with it')
  }
}

const NUMBERS = ['port', 'to_port', 'proto', 'icmp_type', 'icmp_code']
const TEXTS = ['process_name', 'service_name']

const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const isListOf = (value: unknown, fits: (entry: unknown) => boolean): boolean =>
  Array.isArray(value) && value.every(fits)

/** Returns true if an entry of a scope refers to a label or a label group. */
const namesLabel = (entry: unknown): boolean => {
  const { label, label_group: group } = (entry ?? {}) as Record<string, { href?: unknown } | null | undefined>
  return typeof (label?.href ?? group?.href) === 'string'
}

const odd = (href: string, field: string, what = 'its rules') =>
  new PceError(
    'invalid_response',
    `${href}: ${field} is missing or of a shape that is not known, so ${what} cannot be judged`,
  )
