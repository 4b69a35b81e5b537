import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client'
import { APPROVAL_EVENTS } from '../../schemas/approvals.js'
import { GUARDRAIL_CODES } from '../../schemas/guardrails.js'
import { NOTIFICATION_FATES, type Meter, type MeasuredFigures } from '../../schemas/metrics.js'

export interface MeterFacts {
  version: string
  mode: string
}

export interface Exposition {
  meter: Meter
  contentType: string
  /** Returns all measurements in the format that Prometheus reads. */
  readonly render: () => Promise<string>
}

/**
 * The histogram buckets for the duration of a call, in seconds. They range from an answer held in memory to a traffic
 * query that takes five minutes.
 */
const CALL_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300]
/** The histogram buckets for the duration of a PCE request with all its retries, in seconds. */
const REQUEST_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120]
/**
 * The histogram buckets for the duration of an operation on the server's store, in seconds. They range from fractions
 * of a millisecond for a file to seconds for a database over a network.
 */
const STATE_BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30]

/**
 * The HTTP statuses that are counted individually, because people look for them. All other statuses are counted by
 * class (such as `5xx`), because a PCE may answer with any number.
 */
const STATUSES = new Set([200, 201, 202, 204, 400, 401, 403, 404, 406, 409, 413, 415, 422, 429, 500, 502, 503, 504])

const statusLabel = (status: number): string => {
  if (STATUSES.has(status)) return String(status)
  return status >= 100 && status < 600 ? `${Math.floor(status / 100)}xx` : 'other'
}

/**
 * The error codes for which an alert exists. Their counters start at zero, because an alert would not see the first
 * error as an increase if the counter appeared only with it.
 */
const ALERTED = ['internal', 'outcome_unknown', 'pce_unreachable', 'busy', ...GUARDRAIL_CODES] as const

/** Creates the metrics of one server, including those of its process and of Node.js. */
export function createMeter({ version, mode }: MeterFacts): Exposition {
  const register = new Registry()
  const registers = [register]
  const counter = <L extends string>(name: string, help: string, labelNames: readonly L[] = []) =>
    new Counter<L>({ name: `svc_mcp_${name}`, help, labelNames, registers })
  const histogram = <L extends string>(name: string, help: string, labelNames: readonly L[], buckets: number[]) =>
    new Histogram<L>({ name: `svc_mcp_${name}`, help, labelNames, buckets, registers })
  let figures = (): MeasuredFigures | null => null
  const gauge = (name: string, help: string, read: (figures: MeasuredFigures) => number | undefined) =>
    new Gauge({
      name: `svc_mcp_${name}`,
      help,
      registers,
      collect() {
        const now = figures()
        const value = now === null ? undefined : read(now)
        if (value === undefined) this.remove()
        else this.set(value)
      },
    })

  let checks: readonly string[] = []
  let findFailed: () => Promise<string | null> = () => Promise.resolve(null)
  new Gauge({
    name: 'svc_mcp_ready',
    help: '0 for the check that keeps the process from taking calls, as /readyz names it, and 1 for every other.',
    labelNames: ['check'],
    registers,
    async collect() {
      const failed = await findFailed()
      for (const check of checks) this.set({ check }, check === failed ? 0 : 1)
    },
  })

  collectDefaultMetrics({ register })
  new Gauge({
    name: 'svc_mcp_build_info',
    help: 'Always 1; the labels say what runs.',
    labelNames: ['version', 'mode'],
    registers,
  }).set({ version, mode }, 1)

  const calls = counter('tool_calls_total', 'Tool calls that are over, by the gate that refused them or "handler".', [
    'tool',
    'outcome',
    'gate',
  ])
  const callErrors = counter('tool_errors_total', 'Tool calls that were answered with an error, by its code.', ['code'])
  const callSeconds = histogram(
    'tool_call_duration_seconds',
    'Time from the arrival of a tool call to its outcome.',
    ['tool', 'outcome'],
    CALL_BUCKETS,
  )
  const requests = counter('pce_requests_total', 'Requests to PCEs that are over, by the last status or failure.', [
    'operation',
    'status',
  ])
  const requestSeconds = histogram(
    'pce_request_duration_seconds',
    'Time of a request to a PCE with its retries and waits.',
    ['operation'],
    REQUEST_BUCKETS,
  )
  const retries = counter('pce_retries_total', 'Attempts of requests to PCEs after the first.', ['operation'])
  const waits = counter('pce_retry_wait_seconds_total', 'Time waited before such attempts.', ['operation'])
  const refused = counter('tokens_refused_total', 'Requests without a valid access token, by reason.', ['reason'])
  const fetches = counter('key_fetches_total', "Downloads of the identity provider's signing keys.", ['outcome'])
  const keysLoaded = new Gauge({
    name: 'svc_mcp_signing_keys_loaded_timestamp_seconds',
    help: "When the identity provider's signing keys were last loaded, since the epoch; absent before.",
    labelNames: [],
    registers,
  })
  keysLoaded.remove()
  const approvals = counter('approvals_total', 'What became of calls that wait for a person.', ['event'])
  const auditFailures = counter('audit_failures_total', 'Times that the audit log could not be used.', ['operation'])
  const notifications = counter(
    'notifications_total',
    'Messages to the receiver of notifications, by what became of them; failed counts attempts.',
    ['fate'],
  )
  const stateSeconds = histogram(
    'state_operation_duration_seconds',
    'Time of an operation on the keystore and the other state.',
    ['operation', 'outcome'],
    STATE_BUCKETS,
  )
  gauge('requests_in_flight', 'Requests that have a place now.', ({ requestsInFlight }) => requestsInFlight)
  gauge('heavy_calls_running', 'Heavy calls that have a place now.', ({ heavyRunning }) => heavyRunning)
  gauge('heavy_calls_waiting', 'Heavy calls that wait for a place.', ({ heavyWaiting }) => heavyWaiting)
  gauge(
    'notifications_waiting',
    'Messages to the receiver of notifications that it does not have yet.',
    ({ notificationsWaiting }) => notificationsWaiting,
  )
  gauge('state_pool_connections', 'Connections to the database.', ({ pool }) => pool?.total)
  gauge('state_pool_idle', 'Of these, the ones that are free.', ({ pool }) => pool?.idle)
  gauge('state_pool_waiting', 'Queries that wait for a connection.', ({ pool }) => pool?.waiting)

  for (const code of ALERTED) callErrors.inc({ code }, 0)
  for (const event of APPROVAL_EVENTS) approvals.inc({ event }, 0)
  for (const fate of NOTIFICATION_FATES) notifications.inc({ fate }, 0)
  for (const operation of ['write', 'sync', 'check']) auditFailures.inc({ operation }, 0)
  for (const outcome of ['success', 'failure']) fetches.inc({ outcome }, 0)

  return {
    contentType: register.contentType,
    render: () => register.metrics(),
    meter: {
      toolCall({ tool = 'unknown', outcome, gate, code, seconds }) {
        calls.inc({ tool, outcome, gate })
        callSeconds.observe({ tool, outcome }, seconds)
        if (code !== null) callErrors.inc({ code })
      },
      pceRequest({ operation, status, failure, retries: more, waitedSeconds, seconds }) {
        const isAnswered = status !== undefined && (failure === undefined || status >= 400)
        requests.inc({ operation, status: isAnswered ? statusLabel(status) : (failure ?? 'none') })
        requestSeconds.observe({ operation }, seconds)
        if (more === 0) return
        retries.inc({ operation }, more)
        waits.inc({ operation }, waitedSeconds)
      },
      tokenRefused: (reason) => refused.inc({ reason }),
      keysFetched(isLoaded) {
        fetches.inc({ outcome: isLoaded ? 'success' : 'failure' })
        if (isLoaded) keysLoaded.set(Date.now() / 1000)
      },
      approval: (event) => approvals.inc({ event }),
      notification: (fate, times = 1) => notifications.inc({ fate }, times),
      auditFailed: (operation) => auditFailures.inc({ operation }),
      stateUsed: (operation, isDone, seconds) =>
        stateSeconds.observe({ operation, outcome: isDone ? 'success' : 'failure' }, seconds),
      readinessFrom(names, find) {
        checks = names
        findFailed = find
      },
      readFrom: (source) => (figures = source),
    },
  }
}
