import { mapDecisions, type PolicyDecision } from '../../schemas/pce/policy-decisions.js'
import { countOf, percentOf } from '../text/describe-numbers.js'
import { describeDefault, isUnidentified, mayBeByDefault, type Cell, type TrafficExposure } from './exposure.js'
import { evaluator, MOST_EVIDENCE, notAssessed, type Evaluator, type CheckOutcome } from './verdict.js'

/** Minimum percentages of rows that policy allows: GOOD for a PASS, FAIR for a WARNING. */
const GOOD = 90
const FAIR = 50

/** Judges how much of the traffic across application boundaries is covered by policy. */
export const boundaryCoverage: Evaluator = evaluator(
  {
    name: 'policy coverage',
    lookedAt: 'policy decisions on traffic in both directions, except inside one application',
    needs: ['traffic', 'workloads'],
  },
  ({ traffic }) => judgeCoverage(traffic, () => true),
)

/** Like boundaryCoverage, but looks only at traffic between two labelled applications. */
export const internalCoverage: Evaluator = evaluator(
  {
    name: 'policy coverage between applications',
    lookedAt: 'policy decisions on traffic between labelled applications',
    needs: ['traffic', 'workloads'],
  },
  ({ traffic }) =>
    judgeCoverage(
      traffic,
      ({ source, destination }) => source.identity === 'application' && destination.identity === 'application',
    ),
)

/**
 * Judges the share of passing traffic that policy allows: allowed / (allowed + potentially blocked). Blocked traffic is
 * left out of both numbers, because policy has already decided about it. Some "allowed" rows may pass only because no
 * deny rule matched, so a PASS requires that the threshold is reached even without these rows.
 */
function judgeCoverage(traffic: TrafficExposure, wanted: (cell: Cell) => boolean): CheckOutcome {
  const decided = (decision: PolicyDecision) => traffic.count((cell) => wanted(cell) && cell.decision === decision)
  const { allowed, potentially_blocked: open, blocked, unknown: unjudged } = mapDecisions(decided)
  const byDefault = traffic.count((cell) => wanted(cell) && mayBeByDefault(cell))
  const uncovered = traffic.busiest((cell) => wanted(cell) && cell.decision === 'potentially_blocked', MOST_EVIDENCE)
  const evidence = {
    counts: {
      allowed: allowed.rows,
      potentially_blocked: open.rows,
      blocked: blocked.rows,
      not_judged: unjudged.rows,
      allowed_by_default_possible: byDefault.rows,
      allowed_connections: allowed.connections,
      potentially_blocked_connections: open.connections,
      inside_one_application: traffic.inside,
    },
    ...(uncovered.length > 0 && { flows: uncovered }),
  }
  const judged = allowed.rows + open.rows
  if (judged === 0) {
    if (blocked.rows === 0) return notAssessed('No traffic that policy has decided on.', evidence)
    return {
      status: 'PASS',
      detail: `All ${countOf(blocked.rows, 'row')} that policy has decided on are blocked.`,
      evidence,
    }
  }
  const share = percentOf(allowed.rows, judged)
  const certain = percentOf(allowed.rows - byDefault.rows, judged)
  const text = `${share} % of the rows that pass are allowed by policy (PASS from ${GOOD} %, WARNING from ${FAIR} %). `
  const doubt = describeDefault(traffic, wanted)
  const status = share < FAIR ? 'FAIL' : share < GOOD || certain < GOOD ? 'WARNING' : 'PASS'
  return { status, detail: `${text}${doubt}`.trim(), evidence, assumes: traffic.assumes(wanted) }
}

/** Minimum percentages of rows whose other end is known: KNOWN_GOOD for a PASS, KNOWN_FAIR for a WARNING. */
const KNOWN_GOOD = 90
const KNOWN_FAIR = 50

/**
 * Judges whether dependencies in both directions are known: the share of rows whose outside end is labelled or in an IP
 * list.
 */
export const knownDependencies: Evaluator = evaluator(
  {
    name: 'known dependencies',
    lookedAt: 'the other ends of traffic in both directions: labelled, in an IP list, or neither',
    needs: ['traffic', 'ipLists'],
  },
  ({ traffic }) => {
    const passes = (cell: Cell) => cell.decision !== 'blocked' && (cell.inbound || cell.outbound)
    const unknown = (cell: Cell) =>
      passes(cell) && ((cell.inbound && isVague(cell.source)) || (cell.outbound && isVague(cell.destination)))
    const all = traffic.count(passes).rows
    if (all === 0) return notAssessed('No traffic with anything outside the application.')
    const counts = { rows: all, unknown_ends: traffic.count(unknown).rows, inside_one_application: traffic.inside }
    const share = percentOf(all - counts.unknown_ends, all)
    const flows = traffic.busiest(unknown, MOST_EVIDENCE)
    return {
      status: share >= KNOWN_GOOD ? 'PASS' : share >= KNOWN_FAIR ? 'WARNING' : 'FAIL',
      detail: `The other end of ${share} % of the rows is known (PASS from ${KNOWN_GOOD} %, WARNING from ${KNOWN_FAIR} %).`,
      evidence: { counts, ...(flows.length > 0 && { flows }) },
    }
  },
)

const isVague = (end: Cell['source']) => isUnidentified(end) || end.identity === 'half'
