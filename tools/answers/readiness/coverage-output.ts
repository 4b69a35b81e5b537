import { Type } from '@sinclair/typebox'
import { Count, Flag, Nullable, Text, Total } from '../../../schemas/common.js'
import { Reading } from '../../../domain/traffic/read-flows.js'
import { Truncation } from '../show-sections.js'
import { ByDecision, Covered, CoveredConnections, Judged, NoApplication, Percent } from './judged-output.js'

const Plain = Type.String()
const Port = Nullable(Type.Integer())
const CoveredByDraft = Percent('Percent of rows the draft would allow; null: none judged, or not assessed')

const Figures = {
  total_flows: Count('Rows judged'),
  total_connections: Count('Of these rows'),
  by_decision: ByDecision,
  coverage_percentage: Covered,
  connection_coverage_percentage: CoveredConnections,
  draft_coverage_percentage: CoveredByDraft,
}
const uncovered = {
  flows: Count('Rows not allowed'),
  connections: Type.Integer(),
  draft_allowed_connections: Nullable(Count('Of these the draft would allow; null: not assessed')),
}
const Direction = Type.Object(
  {
    ...Figures,
    uncovered_services: Type.Array(
      Type.Object({
        port: Port,
        proto: Port,
        processes: Type.Array(Plain, { description: 'At most 5' }),
        ...uncovered,
      }),
      { description: 'What is not allowed, by port; busiest first' },
    ),
    uncovered_apps: Type.Array(Type.Object({ app: Plain, env: Plain, ...uncovered }), {
      description: 'By the other application; busiest first',
    }),
    uncovered_unlabelled: Type.Array(Type.Object({ ...NoApplication, ...uncovered }), {
      description: 'By the other end without app, env or both; busiest first',
    }),
    totals: Type.Object(
      { uncovered_services: Total, uncovered_apps: Total, uncovered_unlabelled: Total },
      { description: 'Entries of each list' },
    ),
  },
  { description: 'Intra rows included' },
)
const Draft = Type.Object(
  {
    assessed: Flag('false: reason says why'),
    reason: Type.Optional(Text('Why the PCE gave no draft decisions')),
    overall_coverage_percentage: CoveredByDraft,
    would_allow_flows: Nullable(Count('Of the rows that are not allowed now')),
    rules: Type.Array(
      Type.Object({
        rule: Text('Href or essential service'),
        flows: Count('Rows it would allow that are not allowed now'),
        connections: Type.Integer(),
      }),
      { description: 'Draft rules that match them' },
    ),
  },
  { description: 'What the draft policy would decide on the same rows' },
)

/** What get-policy-coverage-report answers (T21). */
export const CoverageOutput = Type.Object({
  app: Plain,
  env: Plain,
  lookback_days: Type.Integer(),
  overall_coverage_percentage: Covered,
  overall_connection_coverage_percentage: CoveredConnections,
  ...Judged,
  total_allowed: Count('Rows allowed'),
  inbound: Direction,
  outbound: Direction,
  intra: Type.Object(Figures, { description: 'Inside the application' }),
  draft: Draft,
  recommendation: Text('What the figures mean and what to do next'),
  ...Reading,
  ...Truncation,
})
