import { Type } from '@sinclair/typebox'
import { AssumesOut } from './assumes.js'
import { Count, StringEnum, Text } from './common.js'
import { RecordedOut } from './recorded-otherwise.js'

/**
 * The source of the decisions that an answer about traffic shows: the PCE's records, or the rules of a policy version.
 */
export const DECIDE_BY = ['recorded', 'active', 'draft'] as const
export type DecideBy = (typeof DECIDE_BY)[number]

/** The argument that selects the source of the decisions, for tools that show traffic with its decisions. */
export const DecideByInput = {
  decide_by: Type.Optional(
    StringEnum(DECIDE_BY, {
      default: 'recorded',
      description: 'As recorded, or by policy now',
      listed: '',
    }),
  ),
}

/**
 * The part of an answer that explains decisions by the rules. Absent if the answer shows the decisions that the PCE
 * recorded.
 */
export const DecidedOut = {
  decided: Type.Optional(
    Type.Object(
      {
        by: Text('active, or draft as if all of it were provisioned'),
        undecided_rows: Count('Shown as unknown; before the filter by decisions'),
        undecided_connections: Count('Of these rows'),
        maybe_blocked_connections: Count('Of rows shown as potentially_blocked that may be blocked already'),
        because: Type.Optional(Text('Why they are undecided')),
        otherwise: Type.Optional(
          Type.Array(
            Type.Object({
              source: Text('Application, or host'),
              destination: Text('Application, or host'),
              recorded: Text('The decision that the PCE recorded'),
              decided: Text('The decision of the rules'),
              connections: Type.Integer(),
              ports: Type.Array(Type.String(), { description: 'Busiest 5' }),
            }),
            { description: 'What recorded_otherwise counts, by pairs, busiest first' },
          ),
        ),
        otherwise_total: Type.Optional(Count('Such pairs')),
        note: Type.String(),
      },
      { description: 'By whose rules rows are decided, in the modes of today' },
    ),
  ),
  ...RecordedOut,
  ...AssumesOut,
}
