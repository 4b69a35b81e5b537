/** The outbox in the file; test/postgres/outbox.edge.ts has the same promises in a database. */
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { openState } from '../../storage/state/open-state.js'
import { directoryOf } from '../state/support.js'
import { proveDelivery } from './delivery-proofs.js'
import { proveOutbox } from './outbox-proofs.js'

const open = async (t: Test, clock: { now: number }) => {
  const path = join(directoryOf(t), 'state.db')
  return async () => {
    const state = openState(path, { now: () => clock.now, variable: 'MCP_STATE_PATH' })
    t.teardown(() => state.close())
    return state
  }
}

proveOutbox(t, open)
proveDelivery(t, open)
