import { ENFORCEMENT_MODES, type EndMode } from '../../schemas/pce/enforcement-modes.js'
import { JUDGED_DECISIONS, type JudgedDecision } from '../../schemas/pce/policy-decisions.js'
import { onlyReports, stops, type Deciding, type Direction } from './mode-effects.js'
import type { RuleType } from './rule-type.js'
import { anyOf, both, isUnknown, not, unknown, type Answer } from './three-valued.js'

/**
 * The step that decided about a connection at one end. The steps are tried in the order of P50, and the first one that
 * applies decides.
 */
export type Step = 'not_enforced' | RuleType | 'default'

/** What one end decides about a connection. */
export interface EndVerdict {
  mode: EndMode
  /** The possible decisions; more than one if the verdict is undecided. */
  possible: readonly JudgedDecision[]
  /** The step that decided; null if the verdict is undecided. */
  step: Step | null
  undecided: Answer
  /**
   * Whether the rules that the PCE sends to this end allow the connection, regardless of the enforcement mode. If the
   * end has no VEN, the answer is 'yes'.
   */
  byRules: Answer
}

/**
 * Replaces "allowed" in a verdict with "potentially blocked" if the rules do not allow the connection, so that it
 * passes only because of the enforcement mode. If it is undecided whether they allow it, both decisions are possible.
 */
export function requireRules(verdict: EndVerdict): EndVerdict {
  const { byRules, possible, undecided } = verdict
  if (byRules === 'yes' || !possible.includes('allowed')) return verdict
  const isOpen = isUnknown(byRules)
  const words = possible.flatMap((word): JudgedDecision[] =>
    word !== 'allowed' ? [word] : isOpen ? ['allowed', 'potentially_blocked'] : ['potentially_blocked'],
  )
  const distinct = JUDGED_DECISIONS.filter((word) => words.includes(word))
  if (distinct.length === 1) return { ...verdict, possible: distinct, undecided: 'no' }
  return { ...verdict, possible: distinct, step: null, undecided: anyOf([undecided, byRules].filter(isUnknown)) }
}

/** The decision on a connection, combined from the verdicts at its source and its destination. */
export interface Decided {
  decision: JudgedDecision | 'uncertain'
  possible: readonly JudgedDecision[]
  /** The reasons, if the decision is uncertain. */
  undecided: Answer
}

/** Combines the verdicts of both ends. A connection passes only if both permit it. */
export function decide(source: EndVerdict, destination: EndVerdict): Decided {
  const possible = JUDGED_DECISIONS.filter((decision) =>
    source.possible.some((a) => destination.possible.some((b) => harder(a, b) === decision)),
  )
  const [only, ...others] = possible
  if (only !== undefined && others.length === 0) return { decision: only, possible, undecided: 'no' }
  const undecided = anyOf([source.undecided, destination.undecided].filter(isUnknown))
  return { decision: 'uncertain', possible, undecided }
}

const harder = (a: JudgedDecision, b: JudgedDecision): JudgedDecision =>
  JUDGED_DECISIONS.indexOf(a) > JUDGED_DECISIONS.indexOf(b) ? a : b

/**
 * For each type of rule, whether such rules match the connection at one end. Only rules that the PCE sends to this end
 * count.
 */
export interface RulesAtEnd {
  essential: Answer
  overridden: Answer
  allowed: Answer
  denied: Answer
  /**
   * Whether rules that this server cannot evaluate, such as iptables rules, are in force at this end: 'no', or an
   * undecided answer with the reason, which then makes every answer about this end undecided.
   */
  unjudged: Answer
}

/**
 * Determines what an end of a connection does with the connection in the given enforcement mode. If the mode is not
 * known, the verdict is undecided, unless it is the same in every mode.
 */
export function judgeEnd(mode: EndMode, direction: Direction, rules: RulesAtEnd): EndVerdict {
  if (mode === 'none') return { mode, possible: ['allowed'], step: 'not_enforced', undecided: 'no', byRules: 'yes' }
  const { essential, overridden, allowed, denied, unjudged } = rules
  const byRules = beside(unjudged, both(anyOf([allowed, essential]), not(overridden)))
  if (mode === 'idle') return { mode, possible: ['allowed'], step: 'not_enforced', undecided: 'no', byRules }
  if (mode === 'unknown') {
    const each = ENFORCEMENT_MODES.map((one) => judgeEnd(one, direction, rules))
    const possible = JUDGED_DECISIONS.filter((decision) => each.some((one) => one.possible.includes(decision)))
    if (possible.length === 1) return { mode, possible, step: each.at(-1)?.step ?? null, undecided: 'no', byRules }
    const undecided = anyOf([unknown('enforcement'), ...each.map((one) => one.undecided)])
    return { mode, possible, step: null, undecided, byRules }
  }
  const stopped = (by: Deciding, matches: Answer) => both(matches, stops(mode, direction, by))
  const unlessAllowed = anyOf([stopped('deny', denied), stopped('default', 'yes')])
  const denies = anyOf([stopped('override_deny', overridden), both(not(allowed), unlessAllowed)])
  const dropped = beside(unjudged, both(denies, not(essential)))
  const loss: JudgedDecision = onlyReports(mode, direction) ? 'potentially_blocked' : 'blocked'
  if (isUnknown(dropped)) return { mode, possible: ['allowed', loss], step: null, undecided: dropped, byRules }
  const possible: JudgedDecision[] = [dropped === 'yes' ? loss : 'allowed']
  return { mode, possible, step: stepOf(dropped, rules), undecided: 'no', byRules }
}

/**
 * Makes an answer undecided if rules are in force that cannot be evaluated, because they may allow or block anything.
 */
const beside = (unjudged: Answer, answer: Answer): Answer =>
  unjudged === 'no' ? answer : anyOf([unjudged, answer].filter(isUnknown))

function stepOf(dropped: 'yes' | 'no', { overridden, allowed, denied }: RulesAtEnd): Step {
  if (dropped === 'no') return allowed === 'yes' ? 'allow' : 'default'
  if (overridden === 'yes') return 'override_deny'
  return denied === 'yes' ? 'deny' : 'default'
}
