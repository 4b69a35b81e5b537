import type { VulnerabilityReport } from '../../schemas/pce/vulnerability.js'
import { countOf } from '../text/describe-numbers.js'
import { MOST_EVENTS, type Assessment } from './facts.js'
import { evaluator, found, MOST_EVIDENCE, notAssessed, type Evaluator } from './verdict.js'

/**
 * Checks that activity is recorded: the PCE must have audit events within the window. No event at all is a WARNING,
 * because either nothing happened or nothing is recorded. The detail says where events are sent and how long they are
 * kept. Events concern the PCE as a whole, not single applications.
 */
export const auditTrail: Evaluator = evaluator(
  {
    name: 'audit trail',
    lookedAt: `the PCE's newest audit events in the window (${MOST_EVENTS} at most), their syslog destinations and retention`,
    needs: ['events'],
  },
  ({ events: { events, more, destinations, retentionDays } }) => {
    const counts = {
      events: events.length,
      failures: events.filter(({ status }) => status === 'failure').length,
      event_types: new Set(events.map(({ event_type: type }) => type)).size,
      ...(destinations !== null && { syslog_destinations: destinations.all, remote_destinations: destinations.remote }),
      ...(retentionDays !== null && { retention_days: retentionDays }),
    }
    const kept =
      destinations === null
        ? 'Their syslog destinations could not be read.'
        : destinations.remote > 0
          ? 'They are sent to a remote syslog server.'
          : 'They are sent to no remote syslog server.'
    if (events.length === 0) {
      return { status: 'WARNING', detail: `No audit event in the window. ${kept}`, evidence: { counts } }
    }
    const text = `${more ? `At least ${countOf(events.length, 'audit event')}` : countOf(events.length, 'audit event')}, the newest at ${events[0]?.timestamp}. ${kept}`
    return { status: 'PASS', detail: text, evidence: { counts } }
  },
)

const LOOKED_AT = 'vulnerability reports uploaded to the PCE'
const NONE = 'The PCE holds no vulnerability report, and scans made elsewhere cannot be seen from it.'

/**
 * Checks that every workload was scanned for vulnerabilities within the window. It is a WARNING if some workloads were
 * not scanned, or if all reports are older than the window. It is a FAIL if recent reports exist but cover none of the
 * workloads. Reports that do not name the scanned addresses prove nothing about the workloads.
 */
export const scannedWorkloads: Evaluator = evaluator(
  { name: 'vulnerability scans', lookedAt: LOOKED_AT, needs: ['workloads', 'scans'] },
  ({ workloads, scans }, { assessment }) => {
    if (scans.length === 0) return notAssessed(NONE)
    if (workloads.length === 0) return notAssessed('No workload.')
    const recent = recentOf(scans, assessment)
    const scanned = new Set(recent.flatMap(({ scanned_ips: addresses }) => addresses ?? []))
    const missed = workloads.filter(({ addresses }) => !addresses.some((address) => scanned.has(address)))
    const counts = {
      reports: scans.length,
      recent_reports: recent.length,
      vulnerabilities: recent.reduce((total, report) => total + report.num_vulnerabilities, 0),
      workloads: workloads.length,
      not_scanned: missed.length,
    }
    if (recent.length === 0)
      return { status: 'WARNING', detail: 'All reports are older than the window.', evidence: { counts } }
    if (scanned.size === 0)
      return { status: 'INFO', detail: 'The reports do not say what they scanned.', evidence: { counts } }
    const text = found(
      missed.length,
      'workload',
      `of ${workloads.length} in no vulnerability report from the window`,
    ).trim()
    return {
      status: missed.length === 0 ? 'PASS' : missed.length === workloads.length ? 'FAIL' : 'WARNING',
      detail: text || `All ${workloads.length} workloads were scanned in the window.`,
      evidence: {
        counts,
        ...(missed.length > 0 && { workloads: missed.slice(0, MOST_EVIDENCE).map(({ name }) => name) }),
      },
    }
  },
)

/**
 * Reports vulnerability scans as INFO. They are only one kind of resilience test, so they cannot make the control pass
 * or fail.
 */
export const resilienceTests: Evaluator = evaluator(
  { name: 'resilience tests', lookedAt: LOOKED_AT, needs: ['scans'] },
  ({ scans }, { assessment }) => {
    if (scans.length === 0) return notAssessed(NONE)
    const counts = { reports: scans.length, recent_reports: recentOf(scans, assessment).length }
    const text = 'Scans are one kind of test; penetration and recovery tests leave no trace in the PCE.'
    return { status: 'INFO', detail: text, evidence: { counts } }
  },
)

function recentOf(scans: readonly VulnerabilityReport[], { window }: Assessment): VulnerabilityReport[] {
  const since = Date.parse(window.start)
  return scans.filter(({ exported_at: exported, updated_at: updated }) => {
    return Date.parse(typeof exported === 'string' ? exported : (updated ?? '')) >= since
  })
}
