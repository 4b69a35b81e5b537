import { RULE_TYPES } from '../../schemas/rule-shapes.js'
import type { ToolContext } from '../call.js'
import { isUnread } from '../inventory/fetch-every.js'
import { loadLabels } from '../inventory/labels.js'
import { toDraftHref } from '../inventory/parse-href.js'
import { isInForce, loadSnapshot, rulesInForce, withDenyRules, type PolicySnapshot } from '../policy/load-snapshot.js'
import { isWrittenTo, matchLabels, type End } from '../policy/match-rules.js'
import { namesOf } from '../policy/name-references.js'
import { nameRule } from '../policy/name-rule.js'
import type { AnyRule } from '../policy/rule-in-force.js'
import type { RuleType } from '../policy/rule-type.js'
import { anyOf, isUnknown } from '../policy/three-valued.js'
import { workInTurns, type Steps } from '../text/pace-work.js'

/** A rule in force that applies to a new machine, in one line. */
export interface JoinedRule {
  type: RuleType
  href: string
  /** The name of its rule set; null for an enforcement boundary. */
  ruleSet: string | null
  line: string
}

/** The active policy that applies to a machine which has certain labels and no others. */
export interface Joining {
  /** The names of the rule sets in force that have a scope which includes the machine. */
  scoped: string[]
  /** Number of rule sets in force without a scope, which apply to all machines. */
  everywhere: number
  /** Number of rule sets for which it is not certain whether their scopes include the machine. */
  undecided: number
  /**
   * Number of rules in force that apply to the machine, by type. `undecidedRules` counts those that may apply to it.
   */
  rules: Partial<Record<RuleType, number>>
  undecidedRules: number
  /** The rules that `rules` counts, those of the rule sets in `scoped` first. */
  applying: JoinedRule[]
  /** Number of rule sets whose deny rules could not be read and are therefore not counted. */
  unread: number
}

/**
 * Determines which policy applies to a new machine with these labels. Returns a sentence if the policy could not be
 * read.
 * @param hrefs of the labels
 */
export async function judgeJoining(
  ctx: Pick<ToolContext<true>, 'pce' | 'now' | 'signal'>,
  hrefs: readonly string[],
): Promise<Joining | string> {
  try {
    const index = await loadLabels(ctx.pce, ctx)
    const active = await withDenyRules(ctx, await loadSnapshot(ctx, 'active', index))
    const own = hrefs.flatMap((href) => index.get(href) ?? [])
    const labels = Object.fromEntries(own.map(({ key, value }) => [key, value]))
    // The machine does not exist yet, so no rule can name it or its address.
    return await workInTurns(judge(active, { workload: '', labels, ip: null, fqdn: null }), ctx.signal)
  } catch (error) {
    if (ctx.signal.aborted || !isUnread(error)) throw error
    return `Which policy a machine with these labels joins is not known: ${error.message}`
  }
}

function* judge(active: PolicySnapshot, end: End): Steps<Joining> {
  const found: Joining = {
    scoped: [],
    everywhere: 0,
    undecided: 0,
    rules: {},
    undecidedRules: 0,
    applying: [],
    unread: active.unread.size,
  }
  const names = namesOf(active, () => undefined)
  const holders = new Map<object, { name: string; isScoped: boolean }>()
  for (const { name, scopes, rules, deny_rules: denies } of active.ruleSets.filter(isInForce)) {
    yield
    const holder = { name, isScoped: !scopes.some((scope) => scope.length === 0) }
    for (const rule of [...(rules ?? []), ...(denies ?? [])]) holders.set(rule, holder)
    const isIn = anyOf(scopes.map((scope) => matchLabels(scope, end, active)))
    if (scopes.some((scope) => scope.length === 0)) found.everywhere += 1
    else if (isIn === 'yes') found.scoped.push(name)
    else if (isUnknown(isIn)) found.undecided += 1
  }
  const [scoped, others]: [JoinedRule[], JoinedRule[]] = [[], []]
  for (const type of RULE_TYPES)
    for (const placed of rulesInForce(active, type)) {
      yield
      const applies = anyOf((['providers', 'consumers'] as const).map((side) => isWrittenTo(placed, side, end, active)))
      if (isUnknown(applies)) found.undecidedRules += 1
      if (applies !== 'yes') continue
      found.rules[type] = (found.rules[type] ?? 0) + 1
      const rule = placed.rule as AnyRule
      const holder = holders.get(rule)
      const joined = { type, href: toDraftHref(rule.href), ruleSet: holder?.name ?? null, line: nameRule(rule, names) }
      ;(holder?.isScoped === true ? scoped : others).push(joined)
    }
  return { ...found, applying: [...scoped, ...others] }
}
