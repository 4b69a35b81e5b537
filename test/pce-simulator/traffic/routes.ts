import { Type } from '@sinclair/typebox'
import type { Answer, Call, Route } from '../http/route.js'
import { readMaxResults } from '../kinds/answer-collection.js'
import { invalidInput, notFound } from '../refusal.js'
import { keepLatest } from '../store/keep-latest.js'
import { CLOSED, Shape } from '../validate/shape.js'
import { TrafficQueryRun } from './query-run.js'
import { readTrafficQuery } from './validate-query.js'

const CANCEL = new Shape(
  'traffic_flows_async_queries_put',
  Type.Object({ status: Type.Union([Type.Literal('cancel_requested')]) }, CLOSED),
)

const PATH = '/orgs/:org/traffic_flows/async_queries'
/** Results expire after a while (pce-api d); here by number, so that a long benchmark does not fill the memory. */
const KEPT_QUERIES = 200

/** The asynchronous traffic query: ask, poll, download, and the rules of its rows on request (pce-api b.4). */
export const trafficRoutes: Route[] = [
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
          if (!run.isCompleted) throw notFound()
          return { status: 200, rows: run.rows() }
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
          if (!run.isCompleted) throw invalidInput('The query is not completed')
          run.updateRules()
          return { status: 202 }
        },
      },
    },
  },
]

function ask(call: Call): Answer {
  const { world } = call
  const run = new TrafficQueryRun(world, readTrafficQuery(world, call.body), call.body)
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

function find({ world, path }: Call): TrafficQueryRun {
  const run = world.queries.get(path.replace(/\/(download|update_rules)$/, ''))
  if (!run) throw notFound()
  return run
}

function retryAfter({ world }: Call): Record<string, string> {
  return { 'retry-after': String(world.options.retryAfter) }
}
