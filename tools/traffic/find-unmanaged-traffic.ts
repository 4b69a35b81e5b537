import { Type, type Static } from '@sinclair/typebox'
import { StringEnum } from '../../schemas/common.js'
import { defineTool } from '../define.js'
import { KNOWN_DECISIONS, NO_DECIDED_FLOWS } from '../../domain/traffic/applications.js'
import { describeReading, createFlowReader } from '../../domain/traffic/read-flows.js'
import { createFlowEncoder } from '../../domain/traffic/encode-flow.js'
import { createUnlabelledTrafficFinder, type UnlabelledPeer } from '../../domain/traffic/find-unlabelled.js'
import { lookbackDays, lookbackWindow } from '../../domain/traffic/traffic-window.js'
import { UnlabelledOutput } from '../answers/traffic/show-unlabelled.js'
import { loadLabels } from '../../domain/inventory/load-labels.js'
import { showSections } from '../answers/show-sections.js'

const DEFAULT_DAYS = 30
const NONE = { total: 0, rows: [], distinctIps: 0 }
const ADVICE =
  'Label the unlabelled_workload addresses: policy by label does not reach them. Put known networks into IP lists. Find out who each unknown_ip is before enforcement: what no rule covers is cut.'

export default defineTool({
  name: 'find-unmanaged-traffic',
  area: 'traffic',
  summary: 'Find traffic of the whole estate whose source, destination or both have no app label, busiest first.',
  effect: 'read',
  roles: ['reader', 'operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  input: Type.Object(
    {
      lookback_days: lookbackDays(DEFAULT_DAYS),
      direction: Type.Optional(
        StringEnum(['inbound', 'outbound', 'both'] as const, {
          default: 'both',
          description: 'As the labelled end sees it',
        }),
      ),
      min_connections: Type.Optional(Type.Integer({ minimum: 0, default: 1, description: 'Per row' })),
      top_n: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, default: 50, description: 'Rows per list' })),
    },
    { additionalProperties: false },
  ),
  output: UnlabelledOutput,
  example: { lookback_days: 7, direction: 'inbound' },
  async handler(args, ctx): Promise<Static<typeof UnlabelledOutput>> {
    const days = args.lookback_days ?? DEFAULT_DAYS
    const { direction = 'both', min_connections: least = 1, top_n: limit = 50 } = args
    const encoder = createFlowEncoder(await loadLabels(ctx.pce, ctx))
    const finder = createUnlabelledTrafficFinder(encoder)
    const read = await createFlowReader(ctx, encoder)(
      { name: 'mcp-unmanaged-traffic', window: lookbackWindow(ctx.now(), days), decisions: KNOWN_DECISIONS },
      (row) => finder.add(row),
    )
    const sources = direction === 'outbound' ? NONE : finder.peers('src', limit, least)
    const destinations = direction === 'inbound' ? NONE : finder.peers('dst', limit, least)
    // Neither end is the labelled one that a direction goes by, so these are never filtered by it.
    const pairs = finder.pairs(limit, least)
    const isEmpty = sources.total + destinations.total + pairs.total === 0
    return showSections(
      {
        lookback_days: days,
        direction_filter: direction,
        min_connections: least,
        unmanaged_source_count: sources.total,
        unmanaged_destination_count: destinations.total,
        section_totals: { sources: sources.total, destinations: destinations.total, both_unlabelled: pairs.total },
        distinct_ips: { sources: sources.distinctIps, destinations: destinations.distinctIps },
        connections: finder.connections(),
        recommendation: isEmpty ? 'Nothing to label in this answer.' : ADVICE,
        ...(isEmpty && { message: explainEmpty(read.rows) }),
        ...describeReading(read),
      },
      {
        unmanaged_sources: { total: sources.total, rows: sources.rows.map(asSource) },
        unmanaged_destinations: { total: destinations.total, rows: destinations.rows.map(asDestination) },
        both_unlabelled: pairs,
      },
      {
        // top_n is the caller's own limit.
        detail: 'full',
        limits: ctx.limits,
        hint: (shown) =>
          `At most ${Math.min(shown, limit)} rows a list are shown; section_totals counts all. Raise top_n or min_connections, or choose one direction.`,
      },
    )
  },
})

const asSource = ({ ip, app, env, ...rest }: UnlabelledPeer) => ({ src_ip: ip, dst_app: app, dst_env: env, ...rest })
const asDestination = ({ ip, app, env, ...rest }: UnlabelledPeer) => ({
  dst_ip: ip,
  src_app: app,
  src_env: env,
  ...rest,
})

const explainEmpty = (rows: number) =>
  rows === 0
    ? NO_DECIDED_FLOWS
    : 'No traffic without app label passes direction and min_connections; connections counts all that policy decided on.'
