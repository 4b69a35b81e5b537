import { startPostgres, type Postgres } from './start-postgres.js'

interface Test {
  teardown(fn: () => unknown): void
}

/** `REPLICA_STATE=file` runs a proof that needs no fault of the database on one SQLite file instead, whose promises are the same. */
export const ON_FILE = process.env.REPLICA_STATE === 'file'

/** A server for a proof's replicas; none on a file. */
export const stateEngine = async (t: Test): Promise<Postgres | undefined> => (ON_FILE ? undefined : startPostgres(t))
