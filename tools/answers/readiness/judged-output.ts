import { Type, type Static } from '@sinclair/typebox'
import type { DecidedWord } from '../../../domain/policy/decide-rows.js'
import { DECISION_MEANINGS, mapDecisions } from '../../../schemas/pce/policy-decisions.js'
import { Count, Flag, Nullable, StringEnum, Text } from '../../../schemas/common.js'

/** Creates the schema of a percentage. It is null if there is nothing to divide by. */
export const Percent = (description: string) => Nullable(Type.Number({ description }))
export const Covered = Percent('Percent of judged rows that rules allow; null: none decided')
export const CoveredConnections = Percent('The same of connections')

const DECIDED = {
  allowed: 'Rules allow it at both ends',
  potentially_blocked: 'May pass, and no rule allows it',
  blocked: DECISION_MEANINGS.blocked,
  unknown: 'Neither end judges it: in no total',
}

/** A count for each policy decision. */
export const ByDecision = Type.Object(
  { ...mapDecisions((word) => Count(DECIDED[word])), undecided: Type.Optional(Count('It hangs on what is not known')) },
  { description: 'Rows by what the active policy decides now' },
)

/** Returns the number of rows for each decision. If no row is undecided, that number is left out. */
export const showDecisions = ({ undecided, ...counts }: Record<DecidedWord, number>): Static<typeof ByDecision> => ({
  ...counts,
  ...(undecided > 0 && { undecided }),
})

/**
 * Output fields for the totals over all traffic rows of an application, used in the readiness and the coverage report.
 */
export const Judged = {
  total_flows: Count('Rows judged: without unknown ones and second reports'),
  total_connections: Count('Of these rows'),
  allowed_by_default_possible: Flag('Some rows may pass by selective mode alone'),
}

/** A source or destination that belongs to no application, so that no rule by app and env labels covers it. */
export const NoApplication = {
  endpoint: Text('FQDN, else host name, else address with its IP lists'),
  ip: Nullable(Text('null: the PCE names none')),
  kind: StringEnum(['unlabelled', 'half_labelled'] as const),
}
