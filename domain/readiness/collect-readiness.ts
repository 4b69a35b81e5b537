import type { Workload } from '../../schemas/pce/workload.js'
import type { FlowEncoder, FlowRow } from '../traffic/encode-flow.js'
import type { FlowPath } from '../traffic/read-both-ways.js'
import { countAllowedByDefault } from './count-allowed-by-default.js'
import { judgeRemotes } from './judge-remotes.js'
import { listUncovered } from './list-uncovered.js'
import { tallyDecisions } from './tally-decisions.js'

/** Flows that are listed one by one (T20). */
const LISTED_FLOWS = 20

export type ReadinessTraffic = ReturnType<ReturnType<typeof collectReadiness>['result']>

/** Takes the rows of an application with these workloads, each once, and keeps what readiness is judged by. */
export function collectReadiness(encoder: FlowEncoder, workloads: readonly Workload[]) {
  const tally = tallyDecisions(encoder)
  const paths = { outbound: tallyDecisions(encoder), intra: tallyDecisions(encoder) }
  const remotes = judgeRemotes(encoder, 'src')
  const uncovered = listUncovered(encoder)
  const weaklyAllowed = countAllowedByDefault(encoder, workloads)
  return {
    take: (row: FlowRow, path: FlowPath): void => {
      tally.add(row)
      if (path === 'inbound') remotes.add(row)
      else paths[path].add(row)
      uncovered.add(row, path)
      weaklyAllowed.add(row, path)
    },
    result: () => ({
      decisions: tally.result(),
      outbound: paths.outbound.result(),
      intra: paths.intra.result(),
      remotes: remotes.result(),
      uncovered: uncovered.busiest(LISTED_FLOWS),
      weaklyAllowed: weaklyAllowed.result(),
    }),
  }
}
