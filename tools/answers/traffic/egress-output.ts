import { Type } from '@sinclair/typebox'
import { Count, Counts, Flag, Nullable, StringEnum, Text, Total } from '../../../schemas/common.js'
import { Truncation } from '../show-sections.js'
import { Reading } from '../../../domain/traffic/describe-reading.js'

const text = Type.String()
const count = Type.Integer()
const confidence = { description: 'likely: its own services; ambiguous: shared by many tenants' }

/** What discover-process-egress answers (tools contract, B3). */
export const EgressOutput = Type.Object({
  totals: Type.Object(
    {
      pce_flows: Count('Rows the PCE returned'),
      egress_rows: Count('Rows that count as egress'),
      distinct_processes: Count('Named ones'),
      findings: Total,
      returned: Count('Findings shown'),
      findings_truncated: Flag('Not all are shown'),
      flows_truncated: Reading.flows_truncated,
    },
    { description: 'Of everything, whatever is shown' },
  ),
  examined: Counts('Rows left after each step'),
  coverage_note: Type.Optional(Text('What the counts leave out')),
  processes: Type.Array(
    Type.Object({
      process: text,
      destination_count: count,
      external_destinations: Type.Array(text, { description: 'Busiest 20' }),
    }),
    { description: 'Most destinations first' },
  ),
  providers: Type.Array(
    Type.Object({
      provider: Text('Who publishes the address range'),
      provider_confidence: StringEnum(['likely', 'ambiguous'] as const, confidence),
      connections: count,
      process_count: Count('Processes that talk to it'),
      processes: Type.Array(text, { description: 'At most 50' }),
    }),
    { description: 'Most processes first' },
  ),
  findings: Type.Array(
    Type.Object({
      process: text,
      destination: Text('FQDN, else host name, else address with its IP lists'),
      dst_ip: Text('"-": the PCE names none'),
      resolved_by_name: Flag('The PCE knows an FQDN of it'),
      port: Nullable(count),
      proto: text,
      policy_decision: Text('Of the active policy'),
      permitted_today: Flag('It is allowed, maybe only as no deny rule matched'),
      connections: count,
      bytes_in: count,
      bytes_out: count,
      first_detected: Nullable(text),
      last_detected: Nullable(text),
      process_runs_on: Text('source, or destination for its own records'),
      source_hosts: Count('Distinct source workloads or addresses'),
      user_count: count,
      users: Type.Optional(Type.Array(text, { description: 'First 5 by name; absent: none named' })),
      likely_provider: Type.Optional(Text('Publisher of the range of dst_ip; absent: unknown')),
      provider_confidence: Type.Optional(Type.String(confidence)),
      matched_rule: Type.Optional(Text('Hrefs of rules, or essential services, that the PCE names')),
    }),
    { description: 'Most connections first' },
  ),
  note: text,
  message: Type.Optional(text),
  hint: Type.Optional(Text('What would bring rows into an empty answer')),
  ...Reading,
  ...Truncation,
})
