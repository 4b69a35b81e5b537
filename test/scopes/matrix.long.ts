/**
 * The matrix of scopes in full: every tool that changes something, with objects inside, outside, half inside and without
 * a scope, for every role and for callers without scopes, in both modes, as a dry run and really. What has to come out
 * follows from the rules in `matrix-cells.ts`; nothing is written by a call that is refused, nor by a dry run. A dry run
 * is an argument, and the mode decides whose key a call has, so that dry runs in one mode are enough.
 */
import t from 'tap'
import { ROLES } from './matrix.js'
import { runMatrix } from './matrix-cells.js'

for (const [mode, dryRun] of [
  ['shared', [true, false]],
  ['per_user', [false]],
] as const)
  t.test(mode, (t) => runMatrix(t, mode, { roles: ROLES, dryRun }))
