/** A target of the benchmark: the bound that a measured value has to keep. */
type Target = { atLeast: number } | { atMost: number }

/** Number of targets that the measured values have met and missed so far. */
const counts = { met: 0, missed: 0 }

/**
 * Compares a measured value with its target, counts the verdict, and returns both for the report, such as `target at
 * most 1.50: met`. A value that is not a number misses every target.
 * @param digits number of decimal places of the bound in the report.
 */
export function judge(value: number, target: Target, digits = 0): string {
  const isMet = 'atLeast' in target ? value >= target.atLeast : value <= target.atMost
  counts[isMet ? 'met' : 'missed']++
  const bound =
    'atLeast' in target ? `at least ${target.atLeast.toFixed(digits)}` : `at most ${target.atMost.toFixed(digits)}`
  return `target ${bound}: ${isMet ? 'met' : 'MISSED'}`
}

/** Returns the counts of all verdicts so far. */
export const verdicts = (): Readonly<typeof counts> => counts
