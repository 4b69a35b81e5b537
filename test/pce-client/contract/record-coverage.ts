import type { Test } from 'tap'

export type Dimension = 'kinds' | 'generic operations' | 'transport' | 'named operations'

const passed: Record<Dimension, Set<string>> = {
  kinds: new Set(),
  'generic operations': new Set(),
  transport: new Set(),
  'named operations': new Set(),
}

/**
 * Counts a part of the specification as proven: called at the end of the test that proves it, and without effect when an
 * assertion of that test failed.
 */
export function covered(t: Test, dimension: Dimension, name: string): void {
  if (t.passing()) passed[dimension].add(name)
}

export function coverageOf(dimension: Dimension): ReadonlySet<string> {
  return passed[dimension]
}
