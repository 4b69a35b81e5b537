/**
 * The matrix of scopes in full: every tool that changes something, with objects inside, outside, half inside and without
 * a scope, for every role and for callers without scopes, in both modes, as a dry run and really. What has to come out
 * follows from the rules in `matrix-cells.ts`; nothing is written by a call that is refused, nor by a dry run.
 */
import t from 'tap'
import { ROLES } from './matrix.js'
import { runMatrix } from './matrix-cells.js'

for (const mode of ['shared', 'per_user'] as const)
  t.test(mode, (t) => runMatrix(t, mode, { roles: ROLES, dryRun: [true, false] }))
