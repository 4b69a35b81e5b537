/**
 * Calls that wait for a person, with one SQLite file for all processes. `EDGE_KILLS=200 npm test -- --timeout=3600
 * test/edge/approvals.edge.ts` for a long run.
 */
import t from 'tap'
import { proveApprovals } from '../postgres/approval-proofs.js'

proveApprovals(t, Number(process.env.EDGE_KILLS ?? 12), () => Promise.resolve(undefined))
