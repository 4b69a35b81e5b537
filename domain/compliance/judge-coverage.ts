import { mapDecisions, type PolicyDecision } from '../../schemas/pce/policy-decisions.js'
import type { DecidedWord } from '../policy/decide-rows.js'
import { countOf, percentOf } from '../text/describe-numbers.js'
import {
  describeDoubt,
  isOpen,
  isUnidentified,
  mayBeBlocked,
  type Cell,
  type CellTest,
  type TrafficExposure,
} from './exposure.js'
import { evaluator, MOST_EVIDENCE, notAssessed, type Evaluator, type CheckOutcome, type Status } from './verdict.js'

/** Minimum percentage of rows that policy must allow: GOOD for a PASS, FAIR for a WARNING. */
const GOOD = 90
const FAIR = 50

/** Rates how much of the traffic across application boundaries policy covers. */
export const boundaryCoverage: Evaluator = evaluator(
  {
    name: 'policy coverage',
    lookedAt: 'what rules decide about traffic in both directions, except inside one application',
    needs: ['traffic', 'policy', 'workloads'],
  },
  ({ traffic }) => judgeCoverage(traffic, () => true),
)

/** Works like `boundaryCoverage`, but considers only traffic between two labelled applications. */
export const internalCoverage: Evaluator = evaluator(
  {
    name: 'policy coverage between applications',
    lookedAt: 'what rules decide about traffic between labelled applications',
    needs: ['traffic', 'policy', 'workloads'],
  },
  ({ traffic }) =>
    judgeCoverage(
      traffic,
      ({ source, destination }) => source.identity === 'application' && destination.identity === 'application',
    ),
)

/**
 * Rates a share that is known only as a range, because some rows are undecided. It is a PASS if even the lower bound is
 * good, and a FAIL if even the upper bound is not fair.
 */
const grade = (lower: number, upper: number, { good, fair }: { good: number; fair: number }): Status =>
  lower >= good ? 'PASS' : upper < fair ? 'FAIL' : 'WARNING'

/** Formats a share as one percentage, or as a range if both bounds differ. */
const shareOf = (lower: number, upper: number): string => (lower === upper ? `${lower} %` : `${lower} to ${upper} %`)

/**
 * Rates how much of the passing traffic rules allow: allowed / (allowed + potentially blocked). Blocked traffic is left
 * out of both numbers, because policy has already decided about it. If several decisions are possible for a row, the
 * lower bound assumes the decision that makes the share smallest, and the upper bound the one that makes it largest.
 */
function judgeCoverage(traffic: TrafficExposure, wanted: CellTest): CheckOutcome {
  const counted = (test: CellTest) => traffic.count((cell) => wanted(cell) && test(cell))
  const certain = (word: PolicyDecision) => counted((cell) => !isOpen(cell) && cell.decision === word)
  const { allowed, potentially_blocked: reported, blocked, unknown: unjudged } = mapDecisions(certain)
  const undecided = counted(isOpen)
  // Rows are counted by their decision, even an uncertain one, as in the tool get-policy-coverage-report.
  const named = (word: DecidedWord) => counted((cell) => cell.decision === word)
  const [uncertain, unallowed] = [named('undecided'), named('potentially_blocked')]
  const maybeBlocked = unallowed.rows - reported.rows
  const isUncovered: CellTest = (cell) => cell.decision === 'potentially_blocked' || cell.decision === 'undecided'
  const uncovered = traffic.busiest((cell) => wanted(cell) && isUncovered(cell), MOST_EVIDENCE)
  const evidence = {
    counts: {
      allowed: allowed.rows,
      potentially_blocked: unallowed.rows,
      blocked: blocked.rows,
      not_judged: unjudged.rows,
      ...(maybeBlocked > 0 && { maybe_blocked: maybeBlocked }),
      ...(uncertain.rows > 0 && { undecided: uncertain.rows }),
      allowed_connections: allowed.connections,
      potentially_blocked_connections: unallowed.connections,
      inside_one_application: traffic.inside,
    },
    ...(uncovered.length > 0 && { flows: uncovered }),
  }
  const doubt = describeDoubt(traffic, wanted)
  const assumes = traffic.assumes(wanted)
  const settled = allowed.rows + reported.rows
  if (settled === 0) {
    if (undecided.rows > 0) return { ...notAssessed(`Coverage is not known: ${doubt}`.trim(), evidence), assumes }
    if (blocked.rows === 0) return notAssessed('No traffic that policy has decided on.', evidence)
    const detail = `All ${countOf(blocked.rows, 'row')} that policy has decided on are blocked.`
    return { status: 'PASS', detail, evidence, assumes }
  }
  const openTo = (word: PolicyDecision) => counted((cell) => isOpen(cell) && cell.possible.includes(word)).rows
  const [perhapsAllowed, perhapsReported] = [openTo('allowed'), openTo('potentially_blocked')]
  const lower = percentOf(allowed.rows, settled + perhapsReported)
  const upper = percentOf(allowed.rows + perhapsAllowed, settled + perhapsAllowed)
  const text = `${shareOf(lower, upper)} of the rows that pass are allowed by policy (PASS from ${GOOD} %, WARNING from ${FAIR} %). `
  const status = grade(lower, upper, { good: GOOD, fair: FAIR })
  return { status, detail: `${text}${doubt}`.trim(), evidence, assumes }
}

/** Minimum percentage of rows whose remote party is known: KNOWN_GOOD for a PASS, KNOWN_FAIR for a WARNING. */
const KNOWN_GOOD = 90
const KNOWN_FAIR = 50

/**
 * Rates whether dependencies in both directions are known: the share of rows whose remote party, which communicates
 * with an assessed workload, is labelled or in an IP list.
 */
export const knownDependencies: Evaluator = evaluator(
  {
    name: 'known dependencies',
    lookedAt: 'the other ends of traffic in both directions: labelled, in an IP list, or neither',
    needs: ['traffic', 'policy', 'ipLists'],
  },
  ({ traffic }) => {
    const passes: CellTest = (cell) => cell.decision !== 'blocked' && (cell.inbound || cell.outbound)
    const isUnknown: CellTest = (cell) =>
      passes(cell) && ((cell.inbound && isVague(cell.source)) || (cell.outbound && isVague(cell.destination)))
    const rowsOf = (test: CellTest) => traffic.count(test).rows
    const all = rowsOf(passes)
    if (all === 0) return notAssessed('No traffic with anything outside the application.')
    const [open, unknown] = [rowsOf((cell) => passes(cell) && mayBeBlocked(cell)), rowsOf(isUnknown)]
    const assumes = traffic.assumes(passes)
    const doubt = describeDoubt(traffic, (cell) => passes(cell) && mayBeBlocked(cell))
    if (open === all) return { ...notAssessed(`What passes is not known: ${doubt}`.trim()), assumes }
    const openUnknown = rowsOf((cell) => isUnknown(cell) && mayBeBlocked(cell))
    const counts = {
      rows: all,
      unknown_ends: unknown,
      ...(open > 0 && { undecided: open }),
      inside_one_application: traffic.inside,
    }
    // Traffic that may already be blocked may not be a real dependency. The share of rows with a known remote party is
    // lowest if only those of them that may be blocked are left out, and highest if only rows with an unknown remote
    // party are.
    const known = all - unknown
    const openKnown = open - openUnknown
    const lower = percentOf(known - openKnown, all - openKnown)
    const upper = percentOf(known, all - openUnknown)
    const status = grade(lower, upper, { good: KNOWN_GOOD, fair: KNOWN_FAIR })
    const flows = traffic.busiest(isUnknown, MOST_EVIDENCE)
    const text = `The other end of ${shareOf(lower, upper)} of the rows is known (PASS from ${KNOWN_GOOD} %, WARNING from ${KNOWN_FAIR} %). `
    return {
      status,
      detail: `${text}${doubt}`.trim(),
      evidence: { counts, ...(flows.length > 0 && { flows }) },
      assumes,
    }
  },
)

const isVague = (end: Cell['source']) => isUnidentified(end) || end.identity === 'half'
