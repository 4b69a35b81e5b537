import type { Static, TObject } from '@sinclair/typebox'
import type { DecidedTraffic } from '../../../domain/policy/decide-traffic.js'
import { showAssumed } from '../../../schemas/assumes.js'
import type { DecidedOut } from '../../../schemas/decided-traffic.js'
import { explainRecorded, showRecorded } from '../../../schemas/recorded-otherwise.js'

/**
 * Returns the output fields about decisions that were derived from the rules of a policy. There are none if the answer
 * shows the decisions that the PCE recorded.
 */
export function showDecided(decided: DecidedTraffic | null): Static<TObject<typeof DecidedOut>> {
  if (decided === null) return {}
  const { by, undecided, maybeBlocked, because, recorded, otherwise, assumes } = decided
  return {
    decided: {
      by,
      undecided_rows: undecided.rows,
      undecided_connections: undecided.connections,
      maybe_blocked_connections: maybeBlocked,
      ...(because !== '' && { because }),
      ...(otherwise.total > 0 && { otherwise: otherwise.pairs, otherwise_total: otherwise.total }),
      note: describe(decided),
    },
    ...showRecorded(recorded),
    ...showAssumed(assumes),
  }
}

function describe({ by, isSame, recorded, otherwise, modes }: DecidedTraffic): string {
  const whose = by === 'active' ? 'The policy in force' : 'The draft, as if all of it were provisioned,'
  return [
    `${whose} decides, in the modes of today: allowed is what rules permit at both ends.`,
    ...modes,
    isSame === true ? 'Nothing is pending, so the draft is the policy in force.' : '',
    explainRecorded(recorded),
    otherwise.total > otherwise.pairs.length
      ? 'otherwise has the busiest pairs of these; grouped by recorded_decision, get-traffic-flows shows every row with what was recorded.'
      : '',
    by === 'draft' && isSame === false && explainRecorded(recorded) !== ''
      ? 'Or the pending changes make the difference.'
      : '',
  ]
    .filter(Boolean)
    .join(' ')
}
