import { Type } from '@sinclair/typebox'
import type { Answer, Call, Route } from '../http/route.js'
import { readMaxResults } from '../kinds/answer-collection.js'
import { collectTraffic, type TrafficQueryBody } from '../policy/run-traffic-query.js'
import { invalidInput, notFound } from '../refusal.js'
import { startProgress } from '../status/progress.js'
import { keepLatest } from '../store/keep-latest.js'
import { readFlag } from '../validate/query-filters.js'
import { CLOSED, Shape } from '../validate/shape.js'
import { UNCERTAIN } from '../uncertain.js'
import { measureDatabase } from './measure-database.js'
import { TrafficQueryRun, readTrafficState } from './query-run.js'
import { ALL_ROWS, type RuleWindow, type TrafficQuery } from './traffic-query.js'
import { writeCsv } from './write-csv.js'
import { readSynchronousQuery, readTrafficQuery } from './validate-query.js'

const CANCEL = new Shape(
  'traffic_flows_async_queries_put',
  Type.Object({ status: Type.Union([Type.Literal('cancel_requested')]) }, CLOSED),
)

const PATH = '/orgs/:org/traffic_flows/async_queries'
/**
 * Maximum number of queries that are kept. In a real PCE, results expire after a time (P30); here, a fixed number
 * prevents a long benchmark from filling the memory.
 */
const KEPT_QUERIES = 200

/** The routes of traffic queries, synchronous and asynchronous (P11). They change nothing and cause no events. */
export const trafficRoutes: Route[] = [
  { path: '/orgs/:org/traffic_flows/traffic_analysis_queries', verbs: { POST: { handle: answerAtOnce } } },
  {
    path: '/orgs/:org/traffic_flows/database_metrics',
    verbs: { GET: { handle: ({ world }) => ({ status: 200, json: measureDatabase(world) }) } },
  },
  { path: PATH, verbs: { GET: { handle: list }, POST: { handle: ask } } },
  {
    path: `${PATH}/:id`,
    verbs: {
      GET: {
        handle: (call) => {
          const run = find(call)
          run.poll()
          return { status: 200, json: run.describe(), ...(run.isPending ? { headers: retryAfter(call) } : {}) }
        },
      },
      PUT: {
        handle: (call) => {
          const run = find(call)
          CANCEL.read(call.body)
          run.cancel()
          return { status: 204 }
        },
      },
      DELETE: {
        handle: (call) => {
          call.world.queries.delete(find(call).href)
          return { status: 204 }
        },
      },
    },
  },
  {
    path: `${PATH}/:id/download`,
    verbs: {
      GET: {
        handle: (call) => {
          const run = find(call)
          run.requireResult()
          const isPacked = call.world.options.reality === 'core-25.2'
          if (acceptsJson(call.headers.accept)) return { status: 200, rows: run.rows(), isPacked }
          return { status: 200, lines: { type: 'text/csv', of: writeCsv(run.rows()) }, isPacked }
        },
      },
    },
  },
  {
    path: `${PATH}/:id/update_rules`,
    verbs: {
      PUT: {
        handle: (call) => {
          const run = find(call)
          const window = readRuleWindow(call.query)
          if (!run.isCompleted) throw invalidInput('The query is not completed')
          run.updateRules(startProgress(call), UNCERTAIN.updateRulesHasWindow ? window : ALL_ROWS)
          return { status: UNCERTAIN.updateRulesStatus }
        },
      },
    },
  },
]

/** Answers a query in the older, synchronous form, which has no name or job and returns at most 100,000 rows (P25). */
function answerAtOnce({ world, body }: Call): Answer {
  const query = readSynchronousQuery(world, body)
  return { status: 200, rows: collectTraffic(query as TrafficQueryBody, readTrafficState(world)).rows }
}

function ask(call: Call): Answer {
  const { world } = call
  const run = new TrafficQueryRun(world, readTrafficQuery(world, call.body), call.body, startProgress(call))
  keepLatest(world.queries, KEPT_QUERIES, run.href, run)
  return { status: 202, json: run.describe(), headers: { location: run.href, ...retryAfter(call) } }
}

function list({ world, query }: Call): Answer {
  const runs = [...world.queries.values()].map((run) => run.describe())
  return {
    status: 200,
    json: runs.slice(0, readMaxResults(query) ?? 500),
    headers: { 'x-total-count': String(runs.length) },
  }
}

/**
 * Reads the range of rows for which `update_rules` is requested. `label_based_rules` is accepted without effect,
 * because decisions are always based on the workloads' labels.
 */
function readRuleWindow(query: URLSearchParams): RuleWindow {
  const flag = query.get('label_based_rules')
  if (flag !== null) readFlag(flag, 'label_based_rules')
  const whole = (name: string, otherwise: number) => {
    const text = query.get(name)
    if (text === null) return otherwise
    if (!/^\d{1,9}$/.test(text)) throw invalidInput(`The parameter ${name} must be a whole number, not ${text}`)
    return Number(text)
  }
  return { offset: whole('offset', 0), limit: whole('limit', Infinity) }
}

/**
 * Returns true if the Accept header allows JSON, explicitly or as any type. A request without the header gets CSV
 * (P71).
 */
function acceptsJson(accept: string | undefined): boolean {
  const types = (accept ?? '').split(',').map((type) => type.split(';', 1)[0]!.trim().toLowerCase())
  return types.some((type) => type === 'application/json' || (UNCERTAIN.anyTypeMeansJson && type === '*/*'))
}

function find({ world, path }: Call): TrafficQuery {
  const run = world.queries.get(path.replace(/\/(download|update_rules)$/, ''))
  if (!run) throw notFound()
  return run
}

function retryAfter({ world }: Call): Record<string, string> {
  return { 'retry-after': String(world.options.retryAfter) }
}
