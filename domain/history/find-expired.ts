import { ToolError } from '../../schemas/errors.js'
import type { DenyRule, Rule, RuleSet } from '../../schemas/pce/rule-set.js'
import { toDraftHref } from '../inventory/parse-href.js'
import { readExpiry } from '../policy/read-expiry.js'
import { denyType, type RuleType } from '../policy/rule-type.js'
import { compareTexts } from '../text/compare-texts.js'
import { quote } from '../text/escape-text.js'
import type { WholePolicy } from './load-policy.js'

/** What happens to an expired rule. */
export const RETIREMENTS = ['disable', 'delete'] as const
export type Retirement = (typeof RETIREMENTS)[number]

/** A rule of the draft whose last day has passed. */
export interface ExpiredRule {
  href: string
  collection: 'sec_rules' | 'deny_rules'
  type: RuleType
  rule: Rule | DenyRule
  ruleSet: RuleSet
  /** The last day, `YYYY-MM-DD` in UTC. */
  date: string
}

/** A rule or rule set whose description mentions an end that does not make any rule expire. */
export interface UnclearEnd {
  href: string
  ruleSet: string
  why: string
}

export interface ExpiredRules {
  /** The rules to retire. Those that expired first come first. */
  chosen: ExpiredRule[]
  /** Number of expired rules that are already disabled; 0 if the action is to delete them. */
  done: number
  /** Number of expired rules beyond the limit of a call. */
  left: number
  unclear: UnclearEnd[]
}

/**
 * Finds the expired rules of the draft. Rules marked for deletion are left out.
 * @param hrefs the only rules to retire; all expired rules if absent.
 * @throws {ToolError} invalid_argument if one of `hrefs` is not that of an expired rule, with the reason for each.
 */
export function findExpired(
  draft: WholePolicy,
  {
    action,
    hrefs,
    now,
    most,
  }: { action: Retirement; hrefs?: readonly string[] | undefined; now: number; most: number },
): ExpiredRules {
  const ended: ExpiredRule[] = []
  const unclear: UnclearEnd[] = []
  const notOver = new Map<string, string>()
  for (const ruleSet of draft.rule_sets.values() as Iterable<RuleSet>) {
    const ofSet = readExpiry(ruleSet.description)
    if (ofSet.kind === 'ends' || (ofSet.kind === 'unclear' && ofSet.isMarker))
      unclear.push({ href: ruleSet.href, ruleSet: ruleSet.name, why: OF_A_SET })
    const rules = [
      ...(ruleSet.rules ?? []).map((rule) => ({ rule, collection: 'sec_rules', type: 'allow' }) as const),
      ...(ruleSet.deny_rules ?? []).map((rule) => ({ rule, collection: 'deny_rules', type: denyType(rule) }) as const),
    ]
    for (const one of rules) {
      const href = toDraftHref(one.rule.href)
      if (one.rule.update_type === 'delete') {
        notOver.set(href, 'its deletion is pending already')
        continue
      }
      const end = readExpiry(one.rule.description)
      if (end.kind === 'ends' && end.over <= now) ended.push({ ...one, href, ruleSet, date: end.date })
      else
        notOver.set(href, end.kind === 'ends' ? `it ends after ${end.date}` : end.kind === 'unclear' ? end.why : NO_END)
      if (end.kind === 'unclear') unclear.push({ href, ruleSet: ruleSet.name, why: end.why })
    }
  }
  ended.sort((a, b) => compareTexts(a.date, b.date) || compareTexts(a.href, b.href))
  const wanted = hrefs === undefined ? ended : only(ended, hrefs, notOver)
  const open = action === 'delete' ? wanted : wanted.filter(({ rule }) => rule.enabled !== false)
  return {
    chosen: open.slice(0, most),
    done: wanted.length - open.length,
    left: Math.max(0, open.length - most),
    unclear,
  }
}

const NO_END = 'its description says no end'
const OF_A_SET = 'a marker in the description of a rule set ends none of its rules'
/** Maximum number of hrefs that an error names. */
const MOST_NAMED = 10

function only(ended: readonly ExpiredRule[], hrefs: readonly string[], notOver: ReadonlyMap<string, string>) {
  const wanted = new Set(hrefs.map((href) => toDraftHref(href.trim())))
  const found = ended.filter(({ href }) => wanted.has(href))
  const known = new Set(found.map(({ href }) => href))
  const others = [...wanted].filter((href) => !known.has(href))
  if (others.length === 0) return found
  const named = others.slice(0, MOST_NAMED).map((href) => `${quote(href)} (${notOver.get(href) ?? 'no such rule'})`)
  const more = others.length > named.length ? ` and ${others.length - named.length} more` : ''
  const text = `Not of a rule of the draft that is over: ${named.join(', ')}${more}. Nothing was written.`
  throw new ToolError('invalid_argument', text, { argument: 'hrefs', hrefs: others.slice(0, MOST_NAMED) })
}

/** Returns the draft with the given rules retired. */
export function withoutExpired(draft: WholePolicy, retired: readonly ExpiredRule[], action: Retirement): WholePolicy {
  const gone = new Set(retired.map(({ href }) => href))
  const retire = <R extends Rule | DenyRule>(rules: readonly R[] | null | undefined): R[] =>
    (rules ?? []).flatMap((rule) =>
      !gone.has(toDraftHref(rule.href)) ? [rule] : action === 'delete' ? [] : [{ ...rule, enabled: false }],
    )
  const sets = new Map(draft.rule_sets)
  for (const { ruleSet } of retired) {
    const { rules, deny_rules: denies } = ruleSet
    const changed = { ...ruleSet, rules: retire(rules), ...(denies != null && { deny_rules: retire(denies) }) }
    sets.set(toDraftHref(ruleSet.href), changed)
  }
  return { ...draft, rule_sets: sets }
}
