/** The outbox in the file; test/postgres/outbox.edge.ts has the same promises in a database. */
import { join } from 'node:path'
import t from 'tap'
import { openState } from '../../storage/state/open-state.js'
import { directoryOf } from '../state/support.js'
import { proveOutbox } from './outbox-proofs.js'

proveOutbox(t, async (t, clock) => {
  const path = join(directoryOf(t), 'state.db')
  return async () => {
    const state = openState(path, { now: () => clock.now, variable: 'MCP_STATE_PATH' })
    t.teardown(() => state.close())
    return state
  }
})
