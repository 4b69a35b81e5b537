/** Returns the last line of a suite's output, without colours. `.ci/run` adds up the numbers in these lines. */
export const summaryLine = ({ passed, failed }: { passed: number; failed: number }) =>
  `${passed} passed, ${failed} failed`
