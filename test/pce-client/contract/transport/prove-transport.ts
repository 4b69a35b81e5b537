import type { Test } from 'tap'
import { covered } from '../record-coverage.js'

/** One transport operation, by what the wire shows of it. */
export async function proveTransport(t: Test, name: string, prove: (t: Test) => Promise<void>): Promise<void> {
  await t.test(name, async (t) => {
    await prove(t)
    covered(t, 'transport', name)
  })
}
