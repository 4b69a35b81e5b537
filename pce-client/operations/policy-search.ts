import type { PolicyVersionSelector } from '../../schemas/common.js'
import type { CheckedRule, FoundRule, PolicyCheck, RuleSearchQuery, SearchRuleType } from '../../schemas/pce/policy.js'
import { PceError } from '../errors.js'
import { isRecord } from '../transport.js'
import type { RequestOptions } from '../types.js'
import { versionSegment, type Calls } from './create-calls.js'

/** Operations that search for rules (S9, P13, P27). */
export interface PolicySearchOperations {
  /**
   * Returns the rules that apply to traffic between two endpoints. `options.params` must have one of `src_workload`,
   * `src_external_ip` and `src_container_workload`, one of the corresponding parameters with the prefix `dst_`, and
   * either `service` or both `port` and `protocol`. A list that is missing in the PCE's answer is returned as an empty
   * list.
   */
  checkPolicy(policyVersion?: PolicyVersionSelector, options?: RequestOptions): Promise<PolicyCheck>
  /**
   * Lists the rules that allow traffic between two endpoints. `options.params` describes the traffic as for
   * `checkPolicy`. The PCE returns at most 500 rules and does not say whether there are more; `max_results` in the
   * parameters raises the limit.
   */
  getPolicyAllow(policyVersion?: PolicyVersionSelector, options?: RequestOptions): Promise<CheckedRule[]>
  /**
   * Finds rules by criteria. The PCE answers with one list per rule type (older releases: a single list); this
   * operation returns one list, with `rule_type` in each rule.
   */
  searchRules(
    query: RuleSearchQuery,
    policyVersion?: PolicyVersionSelector,
    options?: RequestOptions,
  ): Promise<FoundRule[]>
}

export function createPolicySearchOperations({ org, get, list, post }: Calls): PolicySearchOperations {
  const base = `${org}/sec_policy`
  return {
    async checkPolicy(policyVersion = 'draft', options) {
      const check = await get<Partial<PolicyCheck>>(`${base}/${versionSegment(policyVersion)}/policy_check`, options)
      return {
        ...check,
        sec_rules: check.sec_rules ?? [],
        deny_rules: check.deny_rules ?? [],
        override_deny_rules: check.override_deny_rules ?? [],
      }
    },
    async getPolicyAllow(policyVersion = 'active', options) {
      return list<CheckedRule>(`${base}/${versionSegment(policyVersion)}/allow`, options)
    },
    async searchRules(query, policyVersion = 'draft', options) {
      const path = `${base}/${versionSegment(policyVersion)}/rule_search`
      return flatten((await post(path, query, options)).json<unknown>())
    },
  }
}

/**
 * Joins the lists of rules in the answer. There is one list for each rule type, and types that this client does not
 * know are included. The field `counts`, which is not a list, is skipped.
 */
function flatten(answer: unknown): FoundRule[] {
  if (Array.isArray(answer)) return rulesOf(answer).map((rule) => ({ ...rule, rule_type: typeOf(rule) }))
  const lists = isRecord(answer) && answer.error === undefined ? Object.entries(answer) : refuse()
  if (lists.length > 0 && !lists.some(([, rules]) => Array.isArray(rules))) refuse()
  return lists.flatMap(([type, rules]) =>
    Array.isArray(rules) ? rulesOf(rules).map((rule) => ({ ...rule, rule_type: type as SearchRuleType })) : [],
  )
}

function rulesOf(list: unknown[]): FoundRule[] {
  return list.every(isRecord) ? (list as unknown as FoundRule[]) : refuse()
}

function refuse(): never {
  throw new PceError('invalid_response', 'the PCE answered a rule search with something other than rules')
}

/**
 * Derives the type of a rule from its href and, for a deny rule, from its field `override`. Used if the answer does not
 * group the rules by type.
 */
function typeOf({ href: given, override }: FoundRule): SearchRuleType {
  const href = String(given)
  if (!href.includes('/deny_rules/')) return href.includes('/ip_tables_rules/') ? 'ip_tables_rules' : 'sec_rules'
  return override === true ? 'override_deny_rules' : 'deny_rules'
}
