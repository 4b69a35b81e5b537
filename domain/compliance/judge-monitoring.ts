import { MOST_EVENTS } from './facts.js'
import { evaluator, found, MOST_EVIDENCE, notAssessed, type Evaluator } from './verdict.js'

/**
 * Activity is recorded: the PCE holds audit events of the window. None at all is a warning, for either nothing happened or nothing
 * is recorded. Where they are sent and how long they are kept is told with it; events concern the PCE as a whole.
 */
export const auditTrail: Evaluator = evaluator(
  {
    name: 'audit trail',
    lookedAt: `the PCE's newest audit events of the window (${MOST_EVENTS} at most), their syslog destinations and retention`,
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
    const kept = `${destinations === null ? 'Where they are sent could not be read.' : destinations.remote > 0 ? 'They are sent to a remote syslog.' : 'No remote syslog receives them.'}`
    if (events.length === 0) {
      return { status: 'WARNING', detail: `No audit event in the window. ${kept}`, evidence: { counts } }
    }
    const text = `${more ? `${events.length} or more` : events.length} audit events, newest of ${events[0]?.timestamp}. ${kept}`
    return { status: 'PASS', detail: text, evidence: { counts } }
  },
)

/** Machines are watched: managed workloads are online and report their flows. One that is not is a warning, none that is fails. */
export const watchedWorkloads: Evaluator = evaluator(
  {
    name: 'watched workloads',
    lookedAt: 'connection and flow reporting of managed workloads',
    needs: ['workloads'],
  },
  ({ workloads }) => {
    const managed = workloads.filter((workload) => workload.managed)
    const blind = managed.filter(({ online, reportsFlows }) => !online || !reportsFlows)
    const evidence = {
      counts: {
        managed: managed.length,
        unmanaged: workloads.length - managed.length,
        offline: managed.filter(({ online }) => !online).length,
        not_reporting_flows: managed.filter(({ reportsFlows }) => !reportsFlows).length,
      },
      ...(blind.length > 0 && { workloads: blind.slice(0, MOST_EVIDENCE).map(({ name }) => name) }),
    }
    if (managed.length === 0) return notAssessed('No managed workload.', evidence)
    const text = found(blind.length, 'workload', `of ${managed.length} offline or not reporting flows`).trim()
    const status = blind.length === 0 ? 'PASS' : blind.length === managed.length ? 'FAIL' : 'WARNING'
    return { status, detail: text || `All ${managed.length} managed workloads report.`, evidence }
  },
)
