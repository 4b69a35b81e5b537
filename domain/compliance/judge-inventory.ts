import { isUnidentified } from './classify-end.js'
import type { Cell } from './exposure.js'
import { percentOf } from '../text/percent-of.js'
import { evaluator, MOST_EVIDENCE, notAssessed, type Evaluator } from './verdict.js'

/** Label keys that say what a machine is: what for, for whom, at which stage, where. */
const IDENTITY = ['app', 'env', 'role', 'loc'] as const
/** Percent of the workloads that may be incomplete at a WARNING. */
const TOLERATED = 10

/** Every machine, managed or not, is identified by all four labels. */
export const inventory: Evaluator = evaluator(
  { name: 'label completeness', lookedAt: `${IDENTITY.join(', ')} labels of all workloads`, needs: ['workloads'] },
  ({ workloads }) => {
    if (workloads.length === 0) return notAssessed('No workload.')
    const lacking = (key: string) => workloads.filter(({ labels }) => labels[key] === undefined)
    const incomplete = workloads.filter(({ labels }) => IDENTITY.some((key) => labels[key] === undefined))
    const share = percentOf(incomplete.length, workloads.length)
    return {
      status: incomplete.length === 0 ? 'PASS' : share <= TOLERATED ? 'WARNING' : 'FAIL',
      detail:
        incomplete.length === 0
          ? `All ${workloads.length} workloads have all four labels.`
          : `${incomplete.length} of ${workloads.length} workloads (${share} %) lack a label (WARNING up to ${TOLERATED} %).`,
      evidence: {
        counts: {
          workloads: workloads.length,
          incomplete: incomplete.length,
          ...Object.fromEntries(IDENTITY.map((key) => [`without_${key}`, lacking(key).length])),
        },
        ...(incomplete.length > 0 && { workloads: incomplete.slice(0, MOST_EVIDENCE).map(({ name }) => name) }),
      },
    }
  },
)

/** Percent of the rows whose other end is known, for a PASS and for a WARNING. */
const KNOWN_GOOD = 90
const KNOWN_FAIR = 50

/** What is depended on, and who depends on it, is known: the share of rows whose ends outside are labelled or in an IP list. */
export const knownDependencies: Evaluator = evaluator(
  {
    name: 'known dependencies',
    lookedAt: 'who the other ends of traffic in both directions are',
    needs: ['traffic', 'ipLists'],
  },
  ({ traffic }) => {
    const passes = (cell: Cell) => cell.decision !== 'blocked' && (cell.inbound || cell.outbound)
    const unknown = (cell: Cell) =>
      passes(cell) && ((cell.inbound && isVague(cell.source)) || (cell.outbound && isVague(cell.target)))
    const all = traffic.count(passes).rows
    if (all === 0) return notAssessed('No traffic with anything outside.')
    const counts = { rows: all, unknown_ends: traffic.count(unknown).rows, inside_one_application: traffic.inside }
    const share = percentOf(all - counts.unknown_ends, all)
    const flows = traffic.busiest(unknown, MOST_EVIDENCE)
    return {
      status: share >= KNOWN_GOOD ? 'PASS' : share >= KNOWN_FAIR ? 'WARNING' : 'FAIL',
      detail: `${share} % of the rows have known ends (PASS from ${KNOWN_GOOD}, WARNING from ${KNOWN_FAIR}).`,
      evidence: { counts, ...(flows.length > 0 && { flows }) },
    }
  },
)

const isVague = (end: Cell['source']) => isUnidentified(end) || end.identity === 'half'
