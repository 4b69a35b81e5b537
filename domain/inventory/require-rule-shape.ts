import { PceError } from '../../pce-client/index.js'
import type { RuleSet } from '../../schemas/pce/rule-set.js'
import type { Service } from '../../schemas/pce/service.js'

/**
 * Refuses rule sets in which something is missing or odd on which it depends what their rules are about: scopes, ends and
 * services. A rule without its consumers is not a rule about nobody.
 * @throws {PceError} invalid_response that names the object and the field.
 */
export function requireRuleShapes(ruleSets: readonly RuleSet[]): void {
  for (const ruleSet of ruleSets) {
    const { href, scopes } = ruleSet
    if (!isListOf(scopes, (scope) => isListOf(scope, namesLabel))) throw odd(href, 'scopes')
    const parts = ruleSet as unknown as Record<string, unknown>
    for (const [list, lists] of Object.entries(RULE_LISTS)) {
      const rules = parts[list]
      if (rules === undefined || rules === null) continue
      if (!isListOf(rules, isObject)) throw odd(href, list)
      for (const rule of rules as Record<string, unknown>[]) {
        const field = lists.find((name) => !isListOf(rule[name], isObject))
        if (field !== undefined) throw odd(typeof rule.href === 'string' ? rule.href : `${href}, ${list}`, field)
      }
    }
  }
}

const ENDS = ['providers', 'consumers', 'ingress_services'] as const
const RULE_LISTS: Record<string, readonly string[]> = {
  rules: ENDS,
  deny_rules: ENDS,
  ip_tables_rules: ['actors', 'statements'],
}

/**
 * Refuses services whose ports are not numbers, or whose programs are not texts.
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

const NUMBERS = ['port', 'to_port', 'proto', 'icmp_type', 'icmp_code']
const TEXTS = ['process_name', 'service_name']

const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const isListOf = (value: unknown, fits: (entry: unknown) => boolean): boolean =>
  Array.isArray(value) && value.every(fits)

/** An entry of a scope names a label or a label group. */
const namesLabel = (entry: unknown): boolean => {
  const { label, label_group: group } = (entry ?? {}) as Record<string, { href?: unknown } | null | undefined>
  return typeof (label?.href ?? group?.href) === 'string'
}

const odd = (href: string, field: string) =>
  new PceError(
    'invalid_response',
    `${href}: ${field} is missing or of a shape that is not known, so its rules cannot be judged`,
  )
