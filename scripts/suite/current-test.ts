import type { Test } from 'tap'

/** A test file to run, or null when there is none left. */
export type Order = { name: string; url: string; timeoutMs: number } | null

/** What a process of the suite says when it wants an order. */
export const NEXT = 'next'

/** The variable that tells the processes of the suite where its compiled files are. */
export const SUITE_FOLDER = 'SVC_MCP_SUITE_FOLDER'

let open: Test | null = null

/** The test of the file that is being loaded; what `import t from 'tap'` becomes in a compiled test file. */
export function currentTest(): Test {
  if (open === null) throw new Error('No test file is being loaded')
  return open
}

/** From now on, files that are loaded belong to this test. */
export function openTest(test: Test): void {
  open = test
}
