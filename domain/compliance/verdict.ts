import { countOf, percentOf } from '../text/describe-numbers.js'
import type { TrafficExposure, ShownFlow } from './exposure.js'
import type { ComplianceFacts, Loaded, SourceName } from './facts.js'

/**
 * The possible statuses of a check. NOT_ASSESSED: the PCE cannot show whether the control is met. INFO: the result is
 * worth knowing, but does not measure the control.
 */
export const STATUSES = ['PASS', 'FAIL', 'WARNING', 'INFO', 'NOT_ASSESSED'] as const
export type Status = (typeof STATUSES)[number]

/** The evidence for a verdict: counts of what was examined, and the names of the worst cases. */
export interface Evidence {
  counts: Record<string, number>
  /** Traffic that counts against the control, with the most connections first. */
  flows?: readonly ShownFlow[]
  workloads?: readonly string[]
  rule_sets?: readonly string[]
  /** Hrefs of the rules to which the verdict refers. */
  rules?: readonly string[]
}

/** The result of one evaluator. */
export interface CheckOutcome {
  status: Status
  detail: string
  evidence?: Evidence
  /** The unconfirmed assumptions about the PCE on which the verdict depends. */
  assumes?: readonly string[]
}
export interface CheckVerdict extends CheckOutcome {
  looked_at: string
}

/** An evaluator of one requirement. `ports` lists the ports that it must be able to distinguish in the traffic. */
export interface Evaluator {
  name: string
  lookedAt: string
  needs: readonly SourceName[]
  ports: readonly number[]
  judge(facts: ComplianceFacts): CheckVerdict
}

interface Spec<N extends SourceName> {
  /** A short name of the requirement. No two checks of a framework have the same name. */
  name: string
  lookedAt: string
  /** The facts that the check requires. If one of them is missing, the check is NOT_ASSESSED. */
  needs: readonly N[]
  ports?: readonly number[]
}

/** Maximum number of workloads, rules or flows named in one piece of evidence. */
export const MOST_EVIDENCE = 10

/**
 * Creates an evaluator that calls `judge` only if all required facts were read. Otherwise, the check is NOT_ASSESSED
 * and says what is missing. If traffic beyond the row limit or some workloads were not read, a PASS is not proven and
 * becomes INFO.
 */
export function evaluator<N extends SourceName>(
  { name, lookedAt, needs, ports = [] }: Spec<N>,
  judge: (loaded: Pick<Loaded, N>, facts: ComplianceFacts) => CheckOutcome,
): Evaluator {
  return {
    name,
    lookedAt,
    needs,
    ports,
    judge(facts) {
      const missing = needs.flatMap((need) => {
        const source = facts.sources[need]
        return source !== undefined && 'value' in source
          ? []
          : `${need} could not be read (${source?.unavailable ?? 'not asked for'})`
      })
      if (missing.length > 0) return { status: 'NOT_ASSESSED', detail: `${missing.join('; ')}.`, looked_at: lookedAt }
      const loaded = Object.fromEntries(
        needs.map((need) => [need, (facts.sources[need] as { value: unknown }).value]),
      ) as unknown as Pick<Loaded, N>
      const { traffic } = loaded as { traffic?: TrafficExposure }
      const outcome = judge(loaded, facts)
      const gaps = [
        ...(traffic?.truncated === true ? ['the row limit was reached, so some traffic was not read.'] : []),
        ...needs.flatMap((need) => (facts.sources[need] as { partly?: string }).partly ?? []),
      ]
      return {
        ...outcome,
        ...(outcome.status === 'PASS' &&
          gaps.length > 0 && { status: 'INFO' as const, detail: `${outcome.detail} Not proven: ${gaps.join(' ')}` }),
        ...(outcome.status === 'NOT_ASSESSED' && { detail: [outcome.detail, ...gaps].join(' ') }),
        looked_at: lookedAt,
      }
    },
  }
}

const WORST_FIRST: readonly Status[] = ['FAIL', 'WARNING', 'NOT_ASSESSED', 'INFO', 'PASS']

/**
 * Combines several requirements into one control. The worst status counts, and a PASS requires that all requirements
 * could be assessed.
 */
export function allOf(...parts: readonly Evaluator[]): Evaluator {
  const lookedAt = parts.map((part) => part.lookedAt).join('; ')
  return {
    name: parts.map(({ name }) => name).join(' and '),
    lookedAt,
    needs: [...new Set(parts.flatMap(({ needs }) => needs))],
    ports: [...new Set(parts.flatMap(({ ports }) => ports))],
    judge(facts) {
      const verdicts = parts.map((part) => part.judge(facts))
      const status = WORST_FIRST.find((one) => verdicts.some((verdict) => verdict.status === one)) ?? 'NOT_ASSESSED'
      const shown = verdicts.flatMap(({ evidence }) => evidence ?? [])
      return {
        status,
        detail: verdicts.map((verdict) => `${verdict.status}: ${verdict.detail}`).join(' '),
        looked_at: lookedAt,
        ...(shown.length > 0 && { evidence: mergeEvidence(shown) }),
        assumes: verdicts.flatMap(({ assumes = [] }) => assumes),
      }
    },
  }
}

function mergeEvidence(parts: readonly Evidence[]): Evidence {
  const merged: Evidence = { counts: Object.assign({}, ...parts.map(({ counts }) => counts)) as Record<string, number> }
  for (const list of ['flows', 'workloads', 'rule_sets', 'rules'] as const) {
    const entries = parts.flatMap((part): readonly (string | ShownFlow)[] => part[list] ?? [])
    if (entries.length > 0) Object.assign(merged, { [list]: entries })
  }
  return merged
}

/** Creates the outcome of a check that has nothing to assess. */
export const notAssessed = (detail: string, evidence?: Evidence): CheckOutcome => ({
  status: 'NOT_ASSESSED',
  detail,
  ...(evidence !== undefined && { evidence }),
})

/**
 * Returns the status of a check that found nothing wrong. `unknown` is the number of objects about which the PCE does
 * not report enough: without any, the check is a PASS, with some it is INFO, and if all are unknown, it is
 * NOT_ASSESSED.
 */
export const unprovenBy = (unknown: number, all: number): Status =>
  unknown === 0 ? 'PASS' : unknown < all ? 'INFO' : 'NOT_ASSESSED'

/** Creates the verdict for an evaluator that was not run; `detail` gives the reason. */
export const unassessed = ({ lookedAt }: Evaluator, detail: string): CheckVerdict => ({
  ...notAssessed(detail),
  looked_at: lookedAt,
})

/** Returns a sentence such as `12 rows blocked. `, or an empty string for a count of zero. */
export const found = (count: number, noun: string, rest: string): string =>
  count === 0 ? '' : `${countOf(count, noun)} ${rest}. `

/** The formula of the score, as answers show it. */
export const FORMULA =
  'PASS / (PASS + FAIL + WARNING) * 100; INFO and NOT_ASSESSED do not count; null without any of the three'

/** The recommendations, each with the minimum score for which it is given, from high to low. */
const BANDS: readonly (readonly [number, string])[] = [
  [90, 'Largely compliant as far as the PCE shows: keep monitoring, and resolve what is left.'],
  [70, 'Mostly compliant: work through the failures and warnings.'],
  [40, 'Gaps: fix the failures first, then the warnings.'],
  [0, 'Serious gaps: start with enforcement, ringfences and exposed services.'],
]

export interface Score {
  compliance_score: number | null
  summary: {
    total_checks: number
    passed: number
    failed: number
    warnings: number
    info: number
    not_assessed: number
  }
  recommendation: string
}

/** Computes the score of a framework in percent, to one decimal. */
export function scoreVerdicts(statuses: readonly Status[]): Score {
  const count = (wanted: Status) => statuses.filter((status) => status === wanted).length
  const [passed, failed, warnings] = [count('PASS'), count('FAIL'), count('WARNING')]
  const judged = passed + failed + warnings
  const score = judged === 0 ? null : percentOf(passed, judged)
  return {
    compliance_score: score,
    summary: {
      total_checks: statuses.length,
      passed,
      failed,
      warnings,
      info: count('INFO'),
      not_assessed: count('NOT_ASSESSED'),
    },
    recommendation: recommend(score, judged, statuses.length),
  }
}

/**
 * Recommends what to do next. If most checks could not be assessed, no advice is given, because a score based on a few
 * checks says little.
 */
function recommend(score: number | null, judged: number, all: number): string {
  const seeWhy = 'widen the window or assess more, or see the findings for the reasons.'
  if (score === null) return `None of ${countOf(all, 'check')} could be judged: ${seeWhy}`
  const share = `${judged} of ${countOf(all, 'check')} could be judged`
  if (2 * judged < all) return `Only ${share}, too few to say how compliant it is: ${seeWhy}`
  const advice = BANDS.find(([from]) => score >= from)?.[1] ?? ''
  return judged === all ? advice : `${advice} Only ${share}.`
}
