import { Type, type Static } from '@sinclair/typebox'
import { Count, Flag, Nullable, Text, Total } from '../../../schemas/common.js'
import type { Limits } from '../../../schemas/config.js'
import { countOf } from '../../../domain/text/describe-numbers.js'
import { applicationName, NO_DECIDED_FLOWS } from '../../../domain/traffic/applications.js'
import type { Reading } from '../../../domain/traffic/read-flows.js'
import { answerBudget, jsonBytes, showSections } from '../byte-budget.js'
import type { Sections } from '../choose-sections.js'
import type { Consumed, Consumption } from '../../../domain/dependency-map/collect-app-graph.js'
import type { InfrastructureRow } from '../../../domain/dependency-map/rank-infrastructure.js'
import { quote } from '../../../domain/text/escape-text.js'

export const Tiers = Type.Object(
  {
    core_infrastructure: Count('Score 75 or more'),
    shared_service: Count('Score 50 to below 75'),
    standard_application: Count('Score below 50'),
  },
  { description: 'Of all applications' },
)

/** The parts of a row from which a caller can choose. The row's figures are always included. */
export const INFRASTRUCTURE_PARTS = ['top_ports', 'consumed_by', 'consumes'] as const

export const InfrastructureResult = Type.Object({
  app: Type.String(),
  env: Type.String(),
  is_production: Flag('env is one of production_envs; else the score is halved'),
  infrastructure_score: Type.Number({ description: '0 to 100' }),
  tier: Text('Core Infrastructure, Shared Service or Standard Application, by the score'),
  dominant_pattern: Text('provider or consumer'),
  in_degree: Count('Applications that consume it'),
  out_degree: Count('Applications it consumes'),
  betweenness_centrality: Type.Number({ description: '0 to 1' }),
  consumer_ratio: Type.Number({ description: 'in / (in + out)' }),
  inbound_connections: Count('From applications that consume it'),
  outbound_connections: Count('To applications it consumes'),
  total_connections: Count('Both'),
  unmanaged_sources: Count('Source addresses without app label'),
  top_ports: Type.Optional(
    Type.Array(
      Type.Object({ port: Nullable(Type.Integer()), proto: Nullable(Type.String()), connections: Type.Integer() }),
      { description: 'Inbound except from itself, busiest 5' },
    ),
  ),
  ports_total: Total,
  consumed_by: Type.Optional(Type.Array(Type.String(), { description: 'app|env; in_degree has the total' })),
  consumes: Type.Optional(Type.Array(Type.String(), { description: 'app|env; out_degree has the total' })),
})

/** The columns of `in_brief`, in order. Each row of `in_brief` has these figures for one application. */
const BRIEF_COLUMNS = ['app', 'env', 'infrastructure_score', 'in_degree', 'out_degree', 'total_connections'] as const

/** The requested applications for which complete rows do not fit into the answer. Each has a brief row instead. */
export const InBrief = Type.Optional(
  Type.Object(
    {
      columns: Type.Array(Type.String(), { description: 'Of data' }),
      data: Type.Array(Type.Array(Type.Union([Type.String(), Type.Number()])), { description: 'By columns' }),
    },
    { description: 'What comes after the last of results, for which whole rows leave no room' },
  ),
)

const PORTS_SHOWN = 5
/**
 * Maximum numbers of neighbours named per row: if the row has other parts as well, and if neighbours are its only part.
 */
const NEIGHBOURS_SHOWN = { together: 5, alone: 20 }
/** Minimum number of complete rows in an answer that also has brief rows. */
const LEAST_WHOLE = 10
/** Number of bytes that are left free for the sentences about brief rows. */
const SPARE_BYTES = 500
/** Number of rows that are shown if the caller does not give a number. */
export const DEFAULT_TOP = 20

interface InfrastructureFacts {
  summary: {
    total_flows_analyzed: number
    app_to_app_flows: number
    lookback_days: number
    unique_apps: number
    unique_app_to_app_edges: number
    min_connections_filter: number
    tier_counts: Static<typeof Tiers>
  }
  reading: Reading
  /** The rows of all applications, highest score first. */
  rows: readonly InfrastructureRow[]
  consumption: Consumption
  productionEnvs: readonly string[]
}

/**
 * Builds the answer of identify-infrastructure-services with as many of the first `top` applications as fit. The counts
 * cover all applications.
 */
export function showInfrastructure(
  { summary, reading, rows, consumption, productionEnvs }: InfrastructureFacts,
  {
    chosen,
    top = DEFAULT_TOP,
    detail,
    limits,
  }: {
    chosen: Sections<(typeof INFRASTRUCTURE_PARTS)[number]>
    top?: number | undefined
    detail: 'standard' | 'full'
    limits: Limits
  },
) {
  const shown = rows.slice(0, top)
  const consumed = consumption.of(shown, PORTS_SHOWN)
  const envelope = {
    summary: {
      ...summary,
      scoring_methodology: methodology(productionEnvs),
      recommendation: recommend(summary.tier_counts, rows),
    },
    results_total: rows.length,
    ...(rows.length === 0 && { message: explainNothing(summary, reading) }),
    ...(shown.length > 0 &&
      chosen.names.length < INFRASTRUCTURE_PARTS.length && {
        sections_left_out: INFRASTRUCTURE_PARTS.filter((name) => !chosen.has(name)),
      }),
    ...reading,
  }
  const { together, alone } = NEIGHBOURS_SHOWN
  const neighbours = detail === 'full' ? Infinity : chosen.isAlone ? alone : together
  const whole = shown.map((row, at) => showRow(row, consumed[at] as Consumed, { chosen, neighbours }))
  const answer = showSections(
    envelope,
    { results: { rows: whole, total: rows.length } },
    {
      detail,
      limits,
      asked: top,
      hint: (_shown, isFull) =>
        `results_total and tier_counts count all applications; ${isFull ? 'a higher min_connections leaves some out.' : 'raise top_n to see others.'}`,
    },
  )
  if (answer.results.length === shown.length)
    return { ...answer, truncated: reading.flows_truncated || shown.length < rows.length }
  return showInBrief(envelope, whole, rows.length, {
    isFull: detail === 'full',
    truncated: reading.flows_truncated,
    limits,
  })
}

/**
 * Shows as many of the requested applications as possible: the first ones as complete rows, the others as brief rows.
 */
function showInBrief<E extends object>(
  envelope: E,
  rows: readonly ReturnType<typeof showRow>[],
  total: number,
  { isFull, truncated, limits }: { isFull: boolean; truncated: boolean; limits: Limits },
) {
  const brief = rows.map((row) => BRIEF_COLUMNS.map((column) => row[column]))
  const briefBytes = brief.map((row) => jsonBytes(row) + 1)
  const room = answerBudget(limits) - jsonBytes({ ...envelope, columns: BRIEF_COLUMNS }) - SPARE_BYTES
  let rest = briefBytes.reduce((sum, bytes) => sum + bytes, 0)
  let used = 0
  let whole = 0
  for (const [at, row] of rows.entries()) {
    const bytes = jsonBytes(row) + 1
    rest -= briefBytes[at] as number
    if (used + bytes + (whole < LEAST_WHOLE ? 0 : rest) > room) break
    used += bytes
    whole += 1
  }
  let end = whole
  for (; end < rows.length; end++) {
    used += briefBytes[end] as number
    if (used > room) break
  }
  const data = brief.slice(whole, end)
  const isCut = end < total
  const others = end < rows.length ? 'a higher min_connections leaves some out.' : 'raise top_n to see others.'
  const less = isFull ? 'detail_level standard, or a smaller top_n,' : 'A smaller top_n'
  return {
    ...envelope,
    results: rows.slice(0, whole),
    in_brief: { columns: [...BRIEF_COLUMNS], data },
    truncated: truncated || isCut,
    ...(isCut && { truncated_sections: ['results'] }),
    truncation_note: [
      `results has the first ${whole} in full, in_brief the next ${data.length}. ${less} leaves them room.`,
      isCut ? `results_total and tier_counts count all applications; ${others}` : '',
    ]
      .filter(Boolean)
      .join(' '),
  }
}

function showRow(
  row: InfrastructureRow,
  { ports, ports_total: total, unmanaged_sources: unmanaged }: Consumed,
  { chosen, neighbours }: { chosen: Sections<(typeof INFRASTRUCTURE_PARTS)[number]>; neighbours: number },
) {
  const {
    node: _node,
    provider_score: _provider,
    consumer_score: _consumer,
    consumed_by: by,
    consumes,
    ...figures
  } = row
  return {
    ...figures,
    unmanaged_sources: unmanaged,
    ...(chosen.has('top_ports') && { top_ports: ports }),
    ports_total: total,
    ...(chosen.has('consumed_by') && { consumed_by: by.slice(0, neighbours) }),
    ...(chosen.has('consumes') && { consumes: consumes.slice(0, neighbours) }),
  }
}

function methodology(productionEnvs: readonly string[]): string {
  return (
    'provider = 0.40 in-degree + 0.30 consumer ratio + 0.25 betweenness + 0.05 connections, consumer likewise with out-degree, ' +
    'each relative to the highest of the estate (0 to 100). The greater one counts, divided by 1 + 0.3 min(in, out), and halved ' +
    `unless env is ${productionEnvs.map(quote).join(' or ')}. Core Infrastructure from 75, Shared Service from 50. Traffic counts whatever its decision.`
  )
}

function recommend(
  { core_infrastructure: core, shared_service: shared }: Static<typeof Tiers>,
  rows: readonly InfrastructureRow[],
) {
  if (rows.length === 0) return 'Nothing to rank.'
  if (core + shared === 0) return 'No application stands out as infrastructure; order ringfences by business priority.'
  const first = rows
    .filter(({ tier }) => tier !== 'Standard Application')
    .slice(0, 3)
    .map((row) => quote(applicationName(row)))
  return `Write policy for the ${countOf(core + shared, 'infrastructure application')} before ringfencing what depends on them, starting with ${first.join(', ')}.`
}

function explainNothing(
  { app_to_app_flows: between, min_connections_filter: least }: InfrastructureFacts['summary'],
  reading: Reading,
) {
  if (reading.analysed.rows === 0) return NO_DECIDED_FLOWS
  if (between === 0) return 'No flow has app and env labels on both ends, so there is nothing to rank.'
  return `No pair of applications has ${least} connections or more.`
}
