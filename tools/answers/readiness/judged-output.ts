import { Type } from '@sinclair/typebox'
import { DECISION_MEANINGS, mapDecisions } from '../../../schemas/pce/policy-decisions.js'
import { Count, Flag, Nullable, StringEnum, Text } from '../../../schemas/common.js'

/** Creates the schema of a percentage, which is null if there is nothing to divide by. */
export const Percent = (description: string) => Nullable(Type.Number({ description }))
export const Covered = Percent('Percent of judged rows that are allowed; null: none judged')
export const CoveredConnections = Percent('The same of connections')

/** A count for each policy decision. */
export const ByDecision = Type.Object(
  mapDecisions((word) => Count(DECISION_MEANINGS[word])),
  { description: 'Rows by what the active policy decides' },
)

/** Output fields about all rows of an application that both reports have. */
export const Judged = {
  total_flows: Count('Rows that policy decided on: analysed.rows without unknown ones and second reports'),
  total_connections: Count('Of these rows'),
  allowed_by_default_possible: Flag('Selective mode: some rows may have no allow rule'),
}

/** An end that belongs to no application, so that no rule based on app and env labels covers it. */
export const NoApplication = {
  endpoint: Text('FQDN, else host name, else address with its IP lists'),
  ip: Nullable(Text('null: the PCE names none')),
  kind: StringEnum(['unlabelled', 'half_labelled'] as const),
}
