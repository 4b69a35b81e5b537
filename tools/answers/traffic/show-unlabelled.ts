import { Type } from '@sinclair/typebox'
import { NO_DECIDED_FLOWS } from '../../../domain/traffic/applications.js'
import {
  UNLABELLED_KINDS,
  type UnlabelledPeer,
  type UnlabelledTrafficFinder,
} from '../../../domain/traffic/find-unlabelled.js'
import { markOutside } from '../../../domain/traffic/outside-window.js'
import { describeReading, Reading, type FlowsRead } from '../../../domain/traffic/read-flows.js'
import { Count, Counts, Nullable, StringEnum, Text } from '../../../schemas/common.js'
import { SectionsOutput } from '../../../schemas/sections.js'
import { TrafficTimes } from '../../../schemas/traffic-counts.js'
import type { Limits } from '../../../schemas/config.js'
import { mostRowsShown, OVERVIEW_BYTES, Truncation } from '../byte-budget.js'
import { showChosen, type Sections } from '../choose-sections.js'

const text = Type.String()
const count = Type.Integer()
const Kind = StringEnum(UNLABELLED_KINDS, { description: 'A workload to label, in an IP list, or neither' })
const Address = Text('"-": the PCE names none')
const Name = Type.Optional(Text('Name, else FQDN, else IP lists; absent: none'))
const App = Text('app label of this end')
const Env = Text('env label of this end, "-" without')

const named = {
  kind: Kind,
  name: Type.Optional(Text('Of the workload, where it is not its host name')),
  hostname: Type.Optional(text),
  fqdn: Type.Optional(text),
  ip_lists: Type.Optional(Type.Array(text, { description: 'That contain it, except Any' })),
}
const traffic = {
  port: Nullable(count),
  proto: Nullable(count),
  connections: count,
  policy_decisions: Counts('Connections by decision'),
  processes: Type.Optional(Type.Array(text, { description: 'Busiest 5; absent: none named' })),
  ...TrafficTimes,
}

/** The parts of find-unmanaged-traffic's answer from which a caller can choose. */
export const UNLABELLED_PARTS = ['unmanaged_sources', 'unmanaged_destinations', 'both_unlabelled'] as const

/** The answer of find-unmanaged-traffic (T13). */
export const UnlabelledOutput = Type.Object({
  lookback_days: count,
  direction_filter: Text('direction as applied'),
  min_connections: Count('As applied, per row'),
  unmanaged_source_count: Count('Rows of unmanaged_sources, shown or not'),
  unmanaged_destination_count: Count('Rows of unmanaged_destinations, shown or not'),
  section_totals: Counts('Rows of at least min_connections'),
  distinct_ips: Counts('Addresses without app label in these rows'),
  connections: Counts('Of traffic with a policy decision, before filters'),
  unmanaged_sources: Type.Optional(
    Type.Array(Type.Object({ src_ip: Address, ...named, dst_app: App, dst_env: Env, ...traffic }), {
      description: 'Sources without app label of labelled destinations',
    }),
  ),
  unmanaged_destinations: Type.Optional(
    Type.Array(Type.Object({ dst_ip: Address, ...named, src_app: App, src_env: Env, ...traffic }), {
      description: 'Destinations without app label of labelled sources',
    }),
  ),
  both_unlabelled: Type.Optional(
    Type.Array(
      Type.Object({
        src_ip: Address,
        src_kind: Kind,
        src_name: Name,
        dst_ip: Address,
        dst_kind: Kind,
        dst_name: Name,
        ...traffic,
      }),
      { description: 'No app label at either end; direction does not apply' },
    ),
  ),
  recommendation: Text('What to do about each kind'),
  message: Type.Optional(text),
  ...SectionsOutput,
  ...Reading,
  ...Truncation,
})

const NONE = { total: 0, rows: [], distinctIps: 0 }
const ADVICE =
  'Label each unlabelled_workload: policy by label does not reach it. Put known networks into IP lists. Identify each unknown_ip before enforcement: traffic that no rule covers is then blocked.'

/**
 * Builds the answer of find-unmanaged-traffic with the busiest rows of each list. The counts cover all rows that have
 * at least `least` connections.
 */
export function showUnlabelled(
  finder: UnlabelledTrafficFinder,
  read: FlowsRead,
  asked: {
    days: number
    direction: 'inbound' | 'outbound' | 'both'
    least: number
    limit: number | undefined
    chosen: Sections<(typeof UNLABELLED_PARTS)[number]>
  },
  limits: Limits,
) {
  const { days, direction, least, limit: most, chosen } = asked
  const limit = most ?? mostRowsShown('standard')
  const sources = direction === 'outbound' ? NONE : finder.peers('src', limit, least)
  const destinations = direction === 'inbound' ? NONE : finder.peers('dst', limit, least)
  // Pairs are shown for every requested direction: inbound and outbound refer to a labelled end, and a pair has none.
  const pairs = finder.pairs(limit, least)
  const marked = <R extends Parameters<typeof markOutside>[1]>(rows: readonly R[]) =>
    rows.map((row) => markOutside(read.window, row))
  const isEmpty = sources.total + destinations.total + pairs.total === 0
  return showChosen(
    chosen,
    {
      lookback_days: days,
      direction_filter: direction,
      min_connections: least,
      unmanaged_source_count: sources.total,
      unmanaged_destination_count: destinations.total,
      section_totals: { sources: sources.total, destinations: destinations.total, both_unlabelled: pairs.total },
      distinct_ips: { sources: sources.distinctIps, destinations: destinations.distinctIps },
      connections: finder.connections(),
      recommendation: isEmpty ? 'Nothing here needs a label.' : ADVICE,
      ...(isEmpty && { message: explainEmpty(read.rows) }),
      ...describeReading(read),
    },
    {
      unmanaged_sources: { total: sources.total, rows: marked(sources.rows).map(asSource) },
      unmanaged_destinations: { total: destinations.total, rows: marked(destinations.rows).map(asDestination) },
      both_unlabelled: { total: pairs.total, rows: marked(pairs.rows) },
    },
    {
      detail: 'standard',
      asked: most,
      aim: OVERVIEW_BYTES,
      limits,
      hint: (shown, isFull) =>
        `At most ${shown} rows per list are shown; section_totals counts all. ${isFull ? 'Raise min_connections, or choose one direction.' : 'Raise top_n.'}`,
    },
  )
}

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
    : 'No traffic without app label passes direction and min_connections; connections counts all with a policy decision.'
