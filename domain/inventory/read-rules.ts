import { PceApiError, PceError, type PceClient } from '../../pce-client/index.js'
import { ToolError } from '../../schemas/errors.js'
import type { DenyRule, Rule, RuleSet } from '../../schemas/pce/rule-set.js'
import { quote } from '../text/escape-text.js'
import { fetchEvery } from './fetch-every.js'
import { parseHref, toDraftHref } from './parse-href.js'
import { readPolicyVersion } from './policy-version.js'
import { readEnds } from './require-rule-shape.js'
import { mapBounded } from '../text/pace-work.js'

/** Maximum number of concurrent requests for deny rules. */
const IN_FLIGHT = 4

interface WithDenyRules {
  ruleSet: RuleSet
  /** The reason why the deny rules could not be read. Without them, a rule set looks more permissive than it is. */
  error?: string
  /** True if the PCE has no list of deny rules for the rule set: its release has none, or the rule set is deleted. */
  hasNone?: boolean
  /** True if the deny rules could not be read because they are larger than `maxBytes`. */
  isTooLarge?: boolean
}

/**
 * Adds deny rules to rule sets. Deny rules embedded in a rule set are kept; missing ones are read for a few rule sets
 * at a time. Rejects if the call is cancelled.
 *
 * @param maxBytes maximum size of the deny rules of one rule set; if absent, the client's own limits apply.
 */
export function loadDenyRules(
  pce: PceClient,
  ruleSets: readonly RuleSet[],
  signal: AbortSignal,
  maxBytes?: number,
): Promise<WithDenyRules[]> {
  return mapBounded(ruleSets, IN_FLIGHT, async (ruleSet) => {
    if (ruleSet.deny_rules !== undefined) return { ruleSet }
    try {
      const policyVersion = readPolicyVersion(parseHref(ruleSet.href)?.version)
      const { items } = await fetchEvery({
        api: pce.denyRules,
        policyVersion,
        parent: ruleSet.href,
        params: {},
        signal,
        maxBytes,
      })
      return { ruleSet: { ...ruleSet, deny_rules: readEnds(items, `${ruleSet.href}, deny_rules`) } }
    } catch (error) {
      if (!(error instanceof PceError) || signal.aborted) throw error
      const hasNone = error instanceof PceApiError && error.status === 404
      const isTooLarge = error.code === 'body_too_large'
      return { ruleSet, error: error.message, ...(hasNone && { hasNone }), ...(isTooLarge && { isTooLarge }) }
    }
  })
}

/**
 * Returns the allow rules or the deny rules of a draft rule set, including rules marked for deletion. If the deny rules
 * cannot be read, returns the reason as a string.
 */
export async function readRulesOfKind(
  pce: PceClient,
  ruleSet: RuleSet,
  collection: RuleCollection,
  signal: AbortSignal,
): Promise<readonly (Rule | DenyRule)[] | string> {
  if (collection === 'sec_rules') return ruleSet.rules ?? []
  const [complete] = await loadDenyRules(pce, [ruleSet], signal)
  return complete?.error ?? complete?.ruleSet.deny_rules ?? []
}

/** The nouns for allow rules and deny rules, each with a hint that names the tools for the other type of rule. */
const KINDS = {
  sec_rules: { noun: 'allow rule', other: 'Deny rules have their own tools (update-deny-rule, delete-deny-rule).' },
  deny_rules: { noun: 'deny rule', other: 'Allow rules have their own tools (update-sec-rule, delete-sec-rule).' },
} as const
type RuleCollection = keyof typeof KINDS

export interface LocatedRule<R> {
  rule: R
  /** The draft href of the rule set that contains the rule. */
  ruleSetHref: string
}

/** Returns a warning if the rule set of a changed rule is marked for deletion (P4). */
export function warnOfEnd({ update_type: updateType }: Pick<RuleSet, 'update_type'>): string[] {
  return updateType === 'delete'
    ? ['Its rule set is marked for deletion: provisioning deletes it with all its rules.']
    : []
}

/**
 * Reads the draft rule with this href; an active href stands for its draft.
 * @throws {ToolError} invalid_href if the href is not of a rule of this type in this organisation, or not_found.
 */
export async function findRule<C extends RuleCollection>(
  pce: PceClient,
  collection: C,
  href: string,
  signal: AbortSignal,
): Promise<LocatedRule<C extends 'sec_rules' ? Rule : DenyRule>> {
  const { noun, other } = KINDS[collection]
  const parsed = parseHref(href.trim())
  const isRule = parsed?.kind === collection && parsed.parent?.kind === 'rule_sets' && parsed.version !== undefined
  if (!isRule || parsed.org !== pce.orgId || /^\d+$/.test(parsed.version ?? '')) {
    const text = `${quote(href)} is not the href of a draft ${noun} in organisation ${pce.orgId}.`
    throw new ToolError('invalid_href', text, { href }, { hint: `get-rulesets lists the hrefs of rules. ${other}` })
  }
  const draft = toDraftHref(href.trim())
  const api = collection === 'sec_rules' ? pce.rules : pce.denyRules
  try {
    const rule = await api.getByReference(draft, { signal })
    return { rule: rule as never, ruleSetHref: draft.slice(0, draft.indexOf(`/${collection}/`)) }
  } catch (error) {
    if (!(error instanceof PceApiError) || error.status !== 404) throw error
    throw new ToolError('not_found', `No ${noun} has the href ${quote(draft)}.`, { href: draft }, { cause: error })
  }
}
