import { Type } from '@sinclair/typebox'
import { Count, Flag, Nullable, StringEnum, Text } from '../../../schemas/common.js'

/** Null where there is nothing to divide by. */
export const Percent = (description: string) => Nullable(Type.Number({ description }))
export const Covered = Percent('Percent of judged rows that are allowed; null: none judged')
export const CoveredConnections = Percent('The same of connections')

/** The four decisions of policy, each with a count. */
export const ByDecision = Type.Object(
  {
    allowed: Count('Let through'),
    potentially_blocked: Count('Enforcement would stop them'),
    blocked: Count('Stopped already'),
    unknown: Count('Nobody judged: in no total or percentage'),
  },
  { description: 'Rows by what the active policy decides' },
)

/** What both reports say of an application's rows as a whole. */
export const Judged = {
  total_flows: Count('Rows, each once; unknown left out'),
  total_connections: Count('Of these rows'),
  allowed_by_default_possible: Flag('Selective mode: allowed may mean no deny matched'),
}

/** An end that is no application, so that no rule by app and env label reaches it. */
export const NoApplication = {
  endpoint: Text('FQDN, else host name, else address with its IP lists'),
  ip: Nullable(Text('null: the PCE names none')),
  kind: StringEnum(['unlabelled', 'half_labelled'] as const),
}
