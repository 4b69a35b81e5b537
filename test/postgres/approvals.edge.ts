/**
 * Calls that wait for a person, over PostgreSQL. `REPLICA_KILLS=200 npm test -- --timeout=3600 test/postgres/approvals.edge.ts` for a long
 * run.
 */
import t from 'tap'
import { proveApprovals } from './approval-proofs.js'
import { startPostgres } from './start-postgres.js'

proveApprovals(t, Number(process.env.REPLICA_KILLS ?? 24), startPostgres)
