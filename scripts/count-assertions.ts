import { Parser, type Result } from 'tap-parser'

export interface Counts {
  passed: number
  failed: number
  /** Assertions marked skip or todo: neither passed nor failed. */
  skipped: number
}

/** What can be told while a run is under way. */
export interface RunListener {
  /** An assertion failed, or the end of a file or subtest that alone says that something went wrong there. */
  failure?: (result: Result) => void
  /** A test file is done; `counts` are its own. */
  file?: (result: Result, counts: Counts) => void
}

/**
 * Counts the assertions of one run in raw TAP 14, at every depth. The test point that closes a subtest repeats its assertions and
 * is not counted, except where it alone failed (a file that crashed, timed out or never reached its plan). A run that was cut
 * short, and a file in which nothing was asserted, count as one failure each: silence is not success. Write the TAP into `parser`;
 * `total` is right once it has ended.
 */
export function watchRun(listener: RunListener = {}): { parser: Parser; total: () => Counts } {
  const counts: Counts = { passed: 0, failed: 0, skipped: 0 }
  const parser = new Parser()
  watch(parser, counts, listener, 0)
  return {
    parser,
    total: () => {
      const { passed, failed, skipped } = counts
      const isWhole = parser.bailedOut === false && (parser.ok || failed > 0) && passed + failed > 0
      return { passed, failed: isWhole ? failed : failed + 1, skipped }
    },
  }
}

/** The counts of a whole run at once. */
export function countAssertions(tap: string): Counts {
  const { parser, total } = watchRun()
  parser.end(tap)
  return total()
}

function watch(parser: Parser, counts: Counts, listener: RunListener, depth: number): void {
  let before = { ...counts }
  parser.on('child', (child: Parser) => {
    before = { ...counts }
    watch(child, counts, listener, depth + 1)
  })
  parser.on('assert', (result: Result) => {
    const isExcused = result.skip !== false || result.todo !== false
    const isSilent = result.closingTestPoint && depth === 0 && sum(counts) === sum(before)
    const isUnexplained = result.closingTestPoint && !result.ok && !isExcused && counts.failed === before.failed
    if (result.closingTestPoint ? isSilent || isUnexplained : !result.ok && !isExcused) {
      counts.failed++
      listener.failure?.(result)
    } else if (!result.closingTestPoint) {
      counts[isExcused ? 'skipped' : 'passed']++
    }
    if (depth === 0 && result.closingTestPoint) listener.file?.(result, difference(counts, before))
  })
}

const sum = ({ passed, failed, skipped }: Counts) => passed + failed + skipped

const difference = (now: Counts, before: Counts): Counts => ({
  passed: now.passed - before.passed,
  failed: now.failed - before.failed,
  skipped: now.skipped - before.skipped,
})

/** The plain last line of every suite; `.ci/run` adds these up. */
export const summaryLine = ({ passed, failed }: Pick<Counts, 'passed' | 'failed'>) =>
  `${passed} passed, ${failed} failed`
