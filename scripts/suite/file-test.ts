import type { Test } from 'tap'

let open: Test | undefined

/**
 * Returns the subtest of the test file that is being loaded. In a compiled test file, a call of this function replaces
 * `import t from 'tap'`.
 */
export function fileTest(): Test {
  if (open === undefined) throw new Error('No test file is being loaded')
  return open
}

/** Loads a test file into a subtest. */
export async function loadInto(test: Test, url: string): Promise<void> {
  open = test
  await import(url)
}
