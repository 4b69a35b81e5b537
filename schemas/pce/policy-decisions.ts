/**
 * The facts about a policy decision of the PCE (P25, P52). All types, lists and functions for decisions are derived from
 * one table of these facts, so that the compiler finds every place that has to deal with a new decision.
 */
interface DecisionFacts {
  /** The rank of the decision by how much traffic it stops: 0 is the mildest. Null for `unknown`, which has no rank. */
  strictness: number | null
  /** An explanation of the decision for people. */
  meaning: string
  /**
   * The longer string with which the PCE reports the draft decision together with its cause; null if there is none. If
   * the string ends with `_`, it is the common beginning of several such strings; otherwise, it is the complete string.
   */
  longForm: string | null
}

const TABLE = {
  allowed: {
    strictness: 0,
    meaning: 'Allowed by the active policy; for a workload in selective mode maybe only as no deny rule matched',
    longForm: 'allowed_across_boundary',
  },
  potentially_blocked: {
    strictness: 1,
    meaning: 'No rule allows it, and nobody enforces that yet: blocked once the workload does',
    longForm: 'potentially_blocked_by_',
  },
  blocked: {
    strictness: 2,
    meaning: 'Blocked by a workload that enforces',
    longForm: 'blocked_by_',
  },
  unknown: {
    strictness: null,
    meaning: 'Nobody decided, as on idle workloads: in no total and no percentage of what is allowed',
    longForm: null,
  },
} as const satisfies Record<string, DecisionFacts>

export type PolicyDecision = keyof typeof TABLE

/** A known decision: any decision other than `unknown`. */
export type JudgedDecision = {
  [Word in PolicyDecision]: (typeof TABLE)[Word]['strictness'] extends null ? never : Word
}[PolicyDecision]

const FACTS: Readonly<Record<PolicyDecision, DecisionFacts>> = TABLE

/** All decisions, in the order in which they are shown. */
export const POLICY_DECISIONS = Object.keys(TABLE) as PolicyDecision[] as [PolicyDecision, ...PolicyDecision[]]

/** The known decisions (all except `unknown`), from mildest to strictest. */
export const JUDGED_DECISIONS: readonly JudgedDecision[] = POLICY_DECISIONS.filter(isJudged).sort(
  (one, other) => TABLE[one].strictness - TABLE[other].strictness,
)

/** For each decision, an explanation for people. */
export const DECISION_MEANINGS = mapDecisions((word) => FACTS[word].meaning)

/** Builds an object that has a field for each decision, with the value that `valueOf` returns for it. */
export function mapDecisions<Value>(valueOf: (word: PolicyDecision) => Value): Record<PolicyDecision, Value> {
  return Object.fromEntries(POLICY_DECISIONS.map((word) => [word, valueOf(word)])) as Record<PolicyDecision, Value>
}

/** Returns true if the string is a decision in its short form, without a cause. */
export function isDecision(word: string): word is PolicyDecision {
  return Object.hasOwn(TABLE, word)
}

/** Returns true if the decision is known, that is, not `unknown`. */
export function isJudged(word: PolicyDecision): word is JudgedDecision {
  return FACTS[word].strictness !== null
}

/** Returns true if policy blocks, or would block, traffic with this decision. */
export function isStopped(word: PolicyDecision): boolean {
  return (FACTS[word].strictness ?? 0) > 0
}

/**
 * Reads a decision of the PCE, active or draft. A draft decision may also name its cause, which is not part of the
 * result (P25). Strings that are not recognised become `unknown`.
 */
export function readDecision(word: string | null): PolicyDecision {
  return (
    (word !== null && POLICY_DECISIONS.find((known) => word === known || isLongForm(word, FACTS[known]))) || 'unknown'
  )
}

function isLongForm(word: string, { longForm }: DecisionFacts): boolean {
  if (longForm === null) return false
  return longForm.endsWith('_') ? word.startsWith(longForm) : word === longForm
}
