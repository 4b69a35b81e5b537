/** The last line of every suite, without colours. `.ci/run` adds these up. */
export const summaryLine = ({ passed, failed }: { passed: number; failed: number }) =>
  `${passed} passed, ${failed} failed`
