import type { Limits } from '../../schemas/config.js'
import { describeReading } from '../../domain/traffic/describe-reading.js'
import type { Egress, EgressGroup } from '../../domain/traffic/find-egress.js'
import type { FlowsRead } from '../../domain/traffic/read-flows.js'
import { firstByName } from '../../domain/traffic/first-by-name.js'
import { findProvider } from '../../domain/traffic/providers/find-provider.js'
import { showSections } from './show-sections.js'

/** Users named per finding. */
const MOST_USERS = 5

const NOTE =
  'Egress goes to destinations without an agent of this PCE, public or not. A provider is the publisher of the address range: likely says the range serves its own services, ambiguous that many tenants share it, so who runs the service is unknown. permitted_today may mean only that no deny rule matched. process values match any part of the path in any case, at the PCE and again here.'

/** The findings as answers show them; what is not known of one is absent. */
export function showFinding({ keys, measures, parts }: EgressGroup) {
  const { process, destination, dst_ip: ip, fqdn, port, proto, policy_decision: decision, rule } = keys
  const users = parts.user.values().flatMap((user) => user ?? [])
  const provider = findProvider(ip)
  return {
    process,
    destination,
    dst_ip: ip,
    resolved_by_name: fqdn !== null,
    port,
    proto,
    policy_decision: decision,
    permitted_today: decision === 'allowed',
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
 * The answer about egress: rollups and totals of everything, and the findings it was given. `named` tells whether processes were
 * asked for, `filtered` whether anything narrowed the query: both change what an empty answer means.
 */
export function showEgress(
  { steps, findings, processes, providers }: Egress,
  read: FlowsRead,
  { limit, named, filtered, limits }: { limit: number; named: boolean; filtered: boolean; limits: Limits },
) {
  const reading = describeReading(read)
  const { note: coverage } = reading.analysed
  const answer = showSections(
    {
      totals: {
        pce_flows: read.pceFlows,
        egress_rows: steps.egress_rows,
        distinct_processes: processes.total,
        findings: findings.total,
        // Both are set when the answer has its size; nothing they can become is longer.
        returned: findings.groups.length,
        findings_truncated: false,
        flows_truncated: read.truncated,
      },
      examined: {
        pce_flows: read.pceFlows,
        rows: read.rows,
        outbound_rows: steps.outbound_rows,
        with_external_destination: steps.with_external_destination,
        without_process: steps.without_process,
      },
      ...(coverage !== undefined && { coverage_note: coverage }),
      ...(steps.egress_rows === 0 && explainEmpty(steps, read.rows, named, filtered)),
      note: NOTE,
      ...reading,
    },
    {
      processes,
      providers: { rows: providers, total: providers.length },
      findings: { rows: findings.groups.map(showFinding), total: findings.total },
    },
    {
      // limit is the caller's own; the rollups are shown as far as the answer has room.
      detail: 'full',
      limits,
      hint: (shown) =>
        `At most ${shown} rows a list are shown, ${Math.min(shown, limit)} of findings; totals count all. Raise limit, or narrow by process, source or decision.`,
    },
  )
  const returned = answer.findings.length
  Object.assign(answer.totals, { returned, findings_truncated: returned < findings.total })
  return answer
}

/** At which step the last row was left out, and what would bring it back. */
function explainEmpty(
  steps: Egress['steps'],
  rows: number,
  named: boolean,
  filtered: boolean,
): { message: string; hint: string } {
  if (rows === 0 && filtered)
    return {
      message: 'No flows in the window pass process, include_sources and policy_decisions.',
      hint: 'Leave one of these filters out, or widen the window.',
    }
  if (rows === 0) return { message: 'No flows in the window.', hint: 'Widen the window.' }
  if (steps.outbound_rows === 0)
    return { message: 'Only inbound records.', hint: 'include_inbound keeps those of unmanaged destinations.' }
  if (steps.with_external_destination === 0)
    return { message: 'Every destination is managed by this PCE.', hint: 'Traffic inside the estate is no egress.' }
  if (named) return { message: 'No external traffic of such a process.', hint: 'Leave process out to see all of them.' }
  return { message: 'No external traffic names a process.', hint: 'only_named_processes false shows it.' }
}
