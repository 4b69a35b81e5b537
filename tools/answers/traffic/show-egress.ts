import { Type } from '@sinclair/typebox'
import type { Egress, EgressGroup } from '../../../domain/traffic/find-egress.js'
import { firstByName } from '../../../domain/traffic/group-tables.js'
import { isProviderName } from '../../../domain/traffic/providers/provider-domains.js'
import { findProvider } from '../../../domain/traffic/providers/find-provider.js'
import { markOutside } from '../../../domain/traffic/outside-window.js'
import { Reading, describeReading, type FlowsRead } from '../../../domain/traffic/read-flows.js'
import { countOf } from '../../../domain/text/describe-numbers.js'
import { Count, Counts, Flag, Nullable, StringEnum, Text, Total } from '../../../schemas/common.js'
import { SectionsOutput } from '../../../schemas/sections.js'
import { TrafficCounts, TrafficSums, TrafficTimes } from '../../../schemas/traffic-counts.js'
import type { Limits } from '../../../schemas/config.js'
import { Truncation } from '../byte-budget.js'
import { showChosen, type Sections } from '../choose-sections.js'

const text = Type.String()
const count = Type.Integer()
const confidence = { description: 'likely: its own services; ambiguous: shared by many tenants' }

/** The parts of discover-process-egress's answer from which a caller can choose. */
export const EGRESS_PARTS = ['processes', 'providers', 'findings'] as const

/** The answer of discover-process-egress (T14). */
export const EgressOutput = Type.Object({
  totals: Type.Object(
    {
      pce_flows: TrafficCounts.pce_flows,
      egress_rows: Count('Rows counted as egress'),
      distinct_processes: Count('Named ones'),
      findings: Total,
      returned: Count('Findings shown'),
      findings_truncated: Flag('Not all are shown'),
      flows_truncated: Reading.flows_truncated,
    },
    { description: 'Of everything, shown or not' },
  ),
  examined: Counts('Rows left after each step'),
  coverage_note: TrafficCounts.coverage_note,
  processes: Type.Optional(
    Type.Array(
      Type.Object({
        process: text,
        destination_count: count,
        external_destinations: Type.Array(text, { description: 'Busiest 5, 20 where no other part is shown' }),
      }),
      { description: 'Most destinations first' },
    ),
  ),
  providers: Type.Optional(
    Type.Array(
      Type.Object({
        provider: Text('Publisher of the address range'),
        provider_confidence: StringEnum(['likely', 'ambiguous'] as const, confidence),
        connections: count,
        process_count: Count('Processes that talk to it'),
        processes: Type.Array(text, { description: 'At most 5, 50 where no other part is shown' }),
        destination_count: Count('Hosts in its ranges'),
        destinations: Type.Array(text, { description: 'Busiest 5, 10 where no other part is shown' }),
      }),
      { description: 'Most processes first' },
    ),
  ),
  findings: Type.Optional(
    Type.Array(
      Type.Object({
        process: text,
        destination: Text('FQDN, else host name, else address with its IP lists'),
        dst_ip: Text('"-": the PCE names none'),
        resolved_by_name: Flag('The PCE knows its FQDN'),
        provider_name: Type.Optional(Flag('That FQDN is of a CDN or cloud, not of the service there')),
        other_names: Type.Optional(
          Type.Array(text, { description: 'FQDNs that other traffic has for dst_ip, busiest 5' }),
        ),
        other_names_total: Type.Optional(Total),
        port: Nullable(count),
        proto: text,
        policy_decision: Text('As recorded'),
        was_permitted: Flag('Recorded as allowed, maybe only as no deny rule matched'),
        ...TrafficSums,
        ...TrafficTimes,
        process_runs_on: Text('source, or destination for its own records'),
        source_hosts: Count('Distinct source workloads or addresses'),
        user_count: count,
        users: Type.Optional(Type.Array(text, { description: 'First 5 by name; absent: none named' })),
        likely_provider: Type.Optional(Text('Publisher of the range of dst_ip; absent: unknown')),
        provider_confidence: Type.Optional(Type.String(confidence)),
        matched_rule: Type.Optional(Text('Hrefs of rules, or essential services, the PCE names')),
      }),
      { description: 'Most connections first' },
    ),
  ),
  note: text,
  message: Type.Optional(text),
  hint: Type.Optional(Text('What would bring rows into an empty answer')),
  ...SectionsOutput,
  ...Reading,
  ...Truncation,
})

/** Maximum number of users named in a finding. */
const MOST_USERS = 5

const NOTE =
  'Egress is traffic to destinations without a VEN of this PCE, public or not. A provider is the publisher of the address range: likely means that the range serves its own services, ambiguous that many tenants share it, so who runs the service is unknown: destination and other_names are the names that traffic has for it. was_permitted is what was recorded: policy may have changed since, or no deny rule matched. process matches any part of the path, in any case, in the rows that were read.'

/** Converts a finding to its output form. Fields with unknown values are left out. */
export function showFinding({ keys, measures, parts, otherNames }: EgressGroup) {
  const { process, destination, dst_ip: ip, fqdn, port, proto, policy_decision: decision, rule } = keys
  const users = parts.user.values().flatMap((user) => user ?? [])
  const provider = findProvider(ip)
  return {
    process,
    destination,
    dst_ip: ip,
    resolved_by_name: fqdn !== null,
    ...(fqdn !== null && isProviderName(fqdn) && { provider_name: true }),
    ...(otherNames.total > 0 && { other_names: [...otherNames.names], other_names_total: otherNames.total }),
    port,
    proto,
    policy_decision: decision,
    was_permitted: decision === 'allowed',
    ...measures,
    process_runs_on: keys.process_runs_on,
    source_hosts: parts.source.total,
    user_count: parts.user.total,
    ...(users.length > 0 && { users: firstByName(users, MOST_USERS) }),
    ...(provider !== null && { likely_provider: provider.provider, provider_confidence: provider.confidence }),
    ...(rule !== null && { matched_rule: rule }),
  }
}

/**
 * Builds the answer of discover-process-egress from the totals and the given findings. Two flags matter if the answer
 * is empty: `named` is true if only certain processes were requested, and `filtered` if the PCE was asked for only a
 * part of the traffic.
 */
export function showEgress(
  { steps, findings, processes, providers }: Egress,
  read: FlowsRead,
  {
    named,
    filtered,
    chosen,
    limits,
  }: { named: boolean; filtered: boolean; chosen: Sections<(typeof EGRESS_PARTS)[number]>; limits: Limits },
) {
  const { analysed, ...reading } = describeReading(read)
  const { note: coverage, ...basis } = analysed
  const isEmpty = steps.egress_rows === 0
  const answer = showChosen(
    chosen,
    {
      totals: {
        pce_flows: read.pceFlows,
        egress_rows: steps.egress_rows,
        distinct_processes: processes.total,
        findings: findings.total,
        // The next two fields are set again after the list of findings is cut to size. Their final values take no more
        // bytes than these.
        returned: findings.groups.length,
        findings_truncated: false,
        flows_truncated: read.truncated,
      },
      examined: {
        // If there are no findings, these counts are shown here, too; otherwise only in `analysed`.
        ...(isEmpty && { pce_flows: read.pceFlows, rows: read.rows }),
        outbound_rows: steps.outbound_rows,
        with_external_destination: steps.with_external_destination,
        without_process: steps.without_process,
      },
      ...(coverage !== undefined && { coverage_note: coverage }),
      ...(isEmpty
        ? explainEmpty(steps, read, named, filtered)
        : named && read.truncated && { message: lookedAt(read) }),
      note: NOTE,
      ...reading,
      analysed: basis,
    },
    {
      processes,
      providers: { rows: providers, total: providers.length },
      findings: {
        rows: findings.groups.map((group) => markOutside(read.window, showFinding(group))),
        total: findings.total,
      },
    },
    {
      // The caller's `limit` applies only to findings. The lists of processes and providers are limited by space alone.
      detail: 'full',
      limits,
      hint: (shown, isFull) =>
        `At most ${shown} rows per list are shown; totals count all. ${isFull ? 'Narrow by process, source or decision.' : 'Raise limit.'}`,
    },
  )
  const returned = answer.findings?.length ?? 0
  Object.assign(answer.totals, { returned, findings_truncated: returned < findings.total })
  return answer
}

const lookedAt = ({ pceFlows }: FlowsRead) =>
  `Only ${countOf(pceFlows, 'row')} could be looked at, and there are more: the process may have other destinations there.`

/** Returns the message and hint of `explainStep`. If some rows were not read, both say so. */
function explainEmpty(steps: Egress['steps'], read: FlowsRead, named: boolean, filtered: boolean) {
  const { message, hint } = explainStep(steps, read.rows, named, filtered)
  if (!read.truncated) return { message, hint }
  const rest = read.divides ? 'Narrow' : 'complete: true reads the rest; or narrow'
  return {
    message: `Only ${countOf(read.pceFlows, 'row')} could be looked at, and there are more. Among them: ${message.charAt(0).toLowerCase()}${message.slice(1)} ${named ? 'The process' : 'Some'} may be in the others.`,
    hint: `${rest} by include_sources, policy_decisions or a shorter window. ${hint}`,
  }
}

/** Explains which step of the analysis removed the last rows, and how to change the call so that rows remain. */
function explainStep(
  steps: Egress['steps'],
  rows: number,
  named: boolean,
  filtered: boolean,
): { message: string; hint: string } {
  if (rows === 0 && filtered)
    return {
      message: 'No flows in the window pass include_sources and policy_decisions.',
      hint: 'Leave one of these filters out, or widen the window.',
    }
  if (rows === 0) return { message: 'No flows in the window.', hint: 'Widen the window.' }
  if (named && steps.wanted_rows === 0)
    return { message: 'No flows in the window are of such a process.', hint: 'Leave process out to see all of them.' }
  if (steps.outbound_rows === 0)
    return { message: 'Only inbound records.', hint: 'include_inbound keeps those of unmanaged destinations.' }
  if (steps.with_external_destination === 0)
    return { message: 'Every destination is managed by this PCE.', hint: 'Traffic inside the estate is not egress.' }
  if (named) return { message: 'No external traffic of such a process.', hint: 'Leave process out to see all of them.' }
  return { message: 'No external traffic names a process.', hint: 'only_named_processes: false shows the rest.' }
}
