import { Type } from '@sinclair/typebox'
import { UNLABELLED_KINDS } from '../../../domain/traffic/find-unlabelled.js'
import { Reading } from '../../../domain/traffic/read-flows.js'
import { Count, Counts, Nullable, StringEnum, Text } from '../../../schemas/common.js'
import { Truncation } from '../show-sections.js'

const text = Type.String()
const count = Type.Integer()
const Kind = StringEnum(UNLABELLED_KINDS, { description: 'A workload to label, in an IP list, or neither' })
const Address = Text('"-": the PCE names none')
const Name = Type.Optional(Text('Host name, else FQDN, else IP lists; absent: none'))
const App = Text('app label of this end')
const Env = Text('env label of this end, "-" without')

const named = {
  kind: Kind,
  hostname: Type.Optional(text),
  fqdn: Type.Optional(text),
  ip_lists: Type.Optional(Type.Array(text, { description: 'Those that cover it, Any left out' })),
}
const traffic = {
  port: Nullable(count),
  proto: Nullable(count),
  connections: count,
  policy_decisions: Counts('Connections by decision'),
  processes: Type.Optional(Type.Array(text, { description: 'Busiest 5; absent: none named' })),
  first_detected: Nullable(text),
  last_detected: Nullable(text),
}

/** What find-unmanaged-traffic answers (T13). */
export const UnlabelledOutput = Type.Object({
  lookback_days: count,
  direction_filter: Text('direction as applied'),
  min_connections: Count('As applied: least of a row'),
  unmanaged_source_count: Count('Rows of unmanaged_sources, shown or not'),
  unmanaged_destination_count: Count('Rows of unmanaged_destinations, shown or not'),
  section_totals: Counts('Rows of at least min_connections'),
  distinct_ips: Counts('Addresses without app label in these rows'),
  connections: Counts('Of traffic that policy decided on, before any filter'),
  unmanaged_sources: Type.Array(Type.Object({ src_ip: Address, ...named, dst_app: App, dst_env: Env, ...traffic }), {
    description: 'Sources without app label of labelled destinations',
  }),
  unmanaged_destinations: Type.Array(
    Type.Object({ dst_ip: Address, ...named, src_app: App, src_env: Env, ...traffic }),
    { description: 'Destinations without app label of labelled sources' },
  ),
  both_unlabelled: Type.Array(
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
  recommendation: Text('What to do about each kind'),
  message: Type.Optional(text),
  ...Reading,
  ...Truncation,
})
