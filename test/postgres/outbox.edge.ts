/** The outbox of notifications in PostgreSQL: what it promises in a file too, over several replicas. */
import t, { type Test } from 'tap'
import { openDatabase } from '../../storage/postgres/open-database.js'
import { proveDelivery } from '../notifications/delivery-proofs.js'
import { proveOutbox } from '../notifications/outbox-proofs.js'
import { databaseOf } from './database-of.js'
import { sharedPostgres } from './start-postgres.js'

const open = async (t: Test, clock: { now: number }) => {
  const { url } = await (await sharedPostgres()).makeDatabase()
  return async () => {
    const state = await openDatabase(databaseOf(url), { now: () => clock.now })
    t.teardown(() => state.close())
    return state
  }
}

proveOutbox(t, open)
proveDelivery(t, open)
