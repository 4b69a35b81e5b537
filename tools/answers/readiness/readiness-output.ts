import { Type } from '@sinclair/typebox'
import { Count, Counts, Flag, Nullable, StringEnum, Text, Total } from '../../../schemas/common.js'
import { Reading } from '../../../domain/traffic/read-flows.js'
import { Truncation } from '../show-sections.js'
import { ByDecision, Covered, CoveredConnections, Judged, NoApplication } from './judged-output.js'

const Plain = Type.String()
const Port = Nullable(Type.Integer())
const Applications = (description: string) => Type.Array(Type.Object({ app: Plain, env: Plain }), { description })

/** What enforcement-readiness answers (T20). */
export const ReadinessOutput = Type.Object({
  app: Plain,
  env: Plain,
  readiness_score: Nullable(Type.Number({ description: 'Of 100; null: no traffic, or nothing to enforce' })),
  readiness_level: StringEnum(['ready', 'partially_ready', 'not_ready', 'unknown'] as const, {
    description:
      'ready from 80, unless allowed by default or the ringfence is empty; partially_ready from 50; unknown: no score',
  }),
  factors: Type.Array(
    Type.Object({
      factor: Text('policy_coverage, ringfence, enforcement_mode, no_blocked_traffic or no_uncovered_remote_apps'),
      points: Type.Number({ description: 'Reached' }),
      max: Count('Points it can give'),
      reason: Text('What was found'),
    }),
    { description: 'What the score adds up; empty without score' },
  ),
  workloads: Type.Object(
    {
      total: Count('Managed or not'),
      enforcement_modes: Counts('All of them by mode'),
      managed_only: Type.Object(
        { total: Count('Workloads with an agent'), enforcement_modes: Counts('These by mode') },
        { description: 'Those with an agent' },
      ),
      offline: Count('With an agent that is not online'),
      not_enforceable: Count('Idle or without agent'),
    },
    { description: 'With both labels' },
  ),
  traffic_analysis: Type.Object(
    {
      lookback_days: Type.Integer(),
      ...Judged,
      policy_decisions: ByDecision,
      coverage_percentage: Covered,
      connection_coverage_percentage: CoveredConnections,
    },
    { description: 'Into, out of and inside the application' },
  ),
  remote_apps: Type.Object(
    {
      covered: Applications('All judged rows are allowed'),
      uncovered: Applications('None is allowed'),
      partially_covered: Applications('Some are allowed'),
      totals: Type.Object(
        { covered: Total, uncovered: Total, partially_covered: Total },
        { description: 'Entries of each list' },
      ),
    },
    { description: 'Source applications by what is allowed of their inbound rows' },
  ),
  unlabelled_sources: Type.Object(
    {
      total: Total,
      half_labelled: Count('With one of the two'),
      uncovered: Count('With a row that is not allowed'),
      top: Type.Array(
        Type.Object({
          ...NoApplication,
          flows: Count('Rows judged'),
          connections: Type.Integer(),
          uncovered_flows: Count('Rows of these not allowed'),
          uncovered_connections: Count('Connections of these not allowed'),
        }),
        { description: 'Most uncovered connections first, at most 20' },
      ),
    },
    { description: 'Without app, env or both' },
  ),
  uncovered_flows: Type.Array(
    Type.Object({
      path: StringEnum(['inbound', 'outbound', 'intra'] as const),
      remote: Text('Other end (intra: the source): app (env), else as endpoint'),
      port: Port,
      proto: Port,
      process: Nullable(Plain),
      decision: Text('potentially_blocked or blocked'),
      connections: Type.Integer(),
    }),
    { description: 'At most 20' },
  ),
  uncovered_flows_total: Total,
  has_ringfence: Flag('The draft has it, enabled'),
  ringfence: Type.Object(
    {
      name: Plain,
      href: Type.Optional(Plain),
      enabled: Type.Optional(Type.Boolean()),
      rules: Type.Optional(Count('Enabled ones')),
      provisioned: Flag('The active policy has it, enabled'),
      pending_changes: Flag('Its draft has changes that are not provisioned'),
      conflicts: Type.Array(
        Type.Object({
          href: Plain,
          why: StringEnum(['other_scope', 'pending_deletion'] as const, {
            description: 'other_scope: not exactly these two labels',
          }),
        }),
        { description: 'Draft rule sets of this name that are not it' },
      ),
    },
    { description: 'Draft rule set RF-<app>-<env>; without href there is none' },
  ),
  recommendations: Type.Array(Plain, { description: 'What to do next, most pressing first' }),
  ...Reading,
  ...Truncation,
})
