import { countOf } from '../text/count-of.js'
import { percentOf } from '../text/percent-of.js'
import type { Status } from './verdict.js'

/** How the score is made, as answers say it. */
export const FORMULA =
  'PASS / (PASS + FAIL + WARNING) * 100; INFO and NOT_ASSESSED do not count; null without any of the three'

/** From which score on, best first, what to do. */
const BANDS: readonly (readonly [number, string])[] = [
  [90, 'Largely compliant as far as the PCE shows it: keep watching, and settle what is left.'],
  [70, 'Mostly compliant: work on the warnings and failures.'],
  [40, 'Gaps: settle the failures first, then the warnings.'],
  [0, 'Serious gaps: start with enforcement, ringfences and what is exposed.'],
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

/** The score of a framework's verdicts, in percent with one decimal. */
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

/** No band by a minority of the checks: the score of few says little about the framework. */
function recommend(score: number | null, judged: number, all: number): string {
  const seeWhy = 'widen the window or the scope, or see why in the findings.'
  if (score === null) return `None of ${countOf(all, 'check')} could be judged: ${seeWhy}`
  const share = `${judged} of ${countOf(all, 'check')} could be judged`
  if (2 * judged < all) return `Only ${share}, too few to say how compliant it is: ${seeWhy}`
  const advice = BANDS.find(([from]) => score >= from)?.[1] ?? ''
  return judged === all ? advice : `${advice} Only ${share}.`
}
