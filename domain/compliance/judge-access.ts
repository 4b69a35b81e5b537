import { isUnidentified } from './classify-end.js'
import { isProduction } from './judge-enforcement.js'
import { passesUnenforced } from './judge-ports.js'
import type { Cell } from './exposure.js'
import { judgeOffences } from './judge-offences.js'
import { evaluator, notAssessed, type Evaluator } from './verdict.js'

/**
 * Access is restricted to known parties: labelled ends and those of IP lists made for them. Policy that lets somebody unknown in
 * fails it. Half-labelled sources, unknown destinations, and whatever passes without being enforced are warnings.
 */
export const restrictedAccess = (directions: 'inbound' | 'both'): Evaluator =>
  evaluator(
    {
      name: `restricted access, ${directions}`,
      lookedAt: `${directions === 'both' ? 'inbound and outbound' : 'inbound'} traffic from outside the application, by who the other end is`,
      needs: ['traffic', 'ipLists'],
    },
    ({ traffic }) => {
      const outbound = (cell: Cell) => directions === 'both' && cell.outbound
      return judgeOffences(traffic, {
        fail: {
          allowed_from_unknown: (cell) => cell.inbound && cell.decision === 'allowed' && isUnidentified(cell.source),
        },
        warn: {
          allowed_from_half_labelled: (cell) =>
            cell.inbound && cell.decision === 'allowed' && cell.source.identity === 'half',
          allowed_to_unknown: (cell) => outbound(cell) && cell.decision === 'allowed' && isUnidentified(cell.target),
          passing_unenforced: (cell) => (cell.inbound || outbound(cell)) && passesUnenforced(cell),
        },
        note: {
          blocked: (cell) => (cell.inbound || outbound(cell)) && cell.decision === 'blocked',
          allowed_by_default_possible: (cell) => (cell.inbound || outbound(cell)) && cell.byDefault,
        },
      })
    },
  )

/**
 * Environments are kept apart. Traffic between two of them that passes is a warning; on a high-risk port into or out of
 * production, and allowed, it fails.
 */
export const segregation = (ports: readonly number[]): Evaluator =>
  evaluator(
    {
      name: 'segregation of environments',
      lookedAt: 'traffic between ends with different env labels',
      needs: ['traffic'],
      ports,
    },
    ({ traffic }) => {
      const risky = new Set<number | null>(ports)
      const crosses = ({ source, target }: Cell) =>
        source.env !== null && target.env !== null && source.env !== target.env
      const touches = ({ source, target }: Cell) => isProduction(source.env) || isProduction(target.env)
      const offends = (cell: Cell) =>
        crosses(cell) && touches(cell) && risky.has(cell.port) && cell.decision === 'allowed'
      if (
        traffic.count(({ source, target }) => source.env !== null || target.env !== null).rows + traffic.inside ===
        0
      ) {
        return notAssessed('No traffic of anything with an env label.')
      }
      return judgeOffences(traffic, {
        fail: { allowed_high_risk_with_production: offends },
        warn: {
          allowed_between_environments: (cell) => crosses(cell) && cell.decision === 'allowed' && !offends(cell),
          passing_unenforced: (cell) => crosses(cell) && passesUnenforced(cell),
        },
        note: { blocked: (cell) => crosses(cell) && cell.decision === 'blocked' },
      })
    },
  )
