/**
 * The matrix of scopes as dry runs, which are refused like the calls that they stand for: every tool that changes
 * something, with objects inside, outside, half inside and without a scope. `matrix.long.ts` has all roles, both modes
 * and the calls themselves.
 */
import t from 'tap'
import { ENTRIES } from './matrix.js'
import { runMatrix, WRITING } from './matrix-cells.js'

t.test('shared mode', (t) => runMatrix(t, 'shared', { roles: ['admin'], dryRun: [true], limited: true }))

t.test('no entry is about a tool that is gone or only reads', (t) => {
  t.same(
    Object.keys(ENTRIES).filter((tool) => !WRITING.includes(tool)),
    [],
  )
  t.end()
})
