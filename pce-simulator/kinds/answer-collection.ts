import type { PceObject } from '../../schemas/pce/reference.js'
import type { Answer, Call } from '../http/route.js'
import { invalidInput } from '../refusal.js'
import { keepLatest } from '../store/keep-latest.js'
import { startProgress } from '../status/progress.js'
import { UNCERTAIN } from '../uncertain.js'
import type { Filters } from '../validate/query-filters.js'
import { type Job, orgPath } from '../world.js'

export const DEFAULT_MAX_RESULTS = 500

export interface Collection {
  objects: readonly PceObject[]
  filters: Filters
  render: (object: PceObject) => unknown
  defaultMaxResults?: number
  /** Maximum number of objects in an answer, even if the request asks for more. */
  ceiling?: number
}

/**
 * Answers a collection GET: the objects are filtered and silently truncated at max_results (default 500), and the
 * header X-Total-Count is set. With `Prefer: respond-async`, it answers 202 with a job that returns everything (P8,
 * P10).
 */
export function answerCollection(call: Call, collection: Collection): Answer {
  const {
    objects,
    filters,
    render,
    defaultMaxResults = DEFAULT_MAX_RESULTS,
    ceiling = UNCERTAIN.largestPage,
  } = collection
  const tests = Object.entries(filters).flatMap(([name, filter]) =>
    call.query.getAll(name).map((value) => filter(value, call.world)),
  )
  const matched = tests.length === 0 ? objects : objects.filter((object) => tests.every((test) => test(object)))
  const asked = readMaxResults(call.query)
  if (/\brespond-async\b/i.test(String(call.headers.prefer ?? ''))) {
    return startJob(call, renderAll(matched.slice(0, asked ?? Infinity), render))
  }
  const limit = Math.min(asked ?? defaultMaxResults, ceiling)
  const onlyMatched = call.world.options.totalCount === 'matched'
  const page = renderAll(matched.slice(0, limit), render)
  return {
    status: 200,
    ...(Array.isArray(page) ? { json: page } : { rows: page }),
    headers: {
      'x-total-count': String(onlyMatched ? matched.length : objects.length),
      ...(onlyMatched ? {} : { 'x-matched-count': String(matched.length) }),
    },
  }
}

/**
 * Maximum number of objects in a collection, and maximum number of entries in all their lists together. A collection
 * within both limits is rendered before it is sent. A larger one is rendered while it is sent, so that it is never
 * completely in memory.
 */
const MOST_HELD = 5000
const MOST_ENTRIES_HELD = 1_000_000

const entriesIn = (object: PceObject): number =>
  Object.values(object).reduce((sum: number, value) => (Array.isArray(value) ? sum + value.length : sum), 0)

function renderAll(
  objects: readonly PceObject[],
  render: Collection['render'],
): readonly unknown[] | Iterable<unknown> {
  const isHeld =
    objects.length <= MOST_HELD && objects.reduce((sum, object) => sum + entriesIn(object), 0) <= MOST_ENTRIES_HELD
  if (isHeld) return objects.map(render)
  return {
    *[Symbol.iterator]() {
      for (const object of objects) yield render(object)
    },
  }
}

export function readMaxResults(query: URLSearchParams): number | null {
  const text = query.get('max_results')
  if (text === null) return null
  if (!/^\d{1,9}$/.test(text)) throw invalidInput(`The parameter max_results must be a whole number, not ${text}`)
  return Number(text)
}

/** Maximum number of jobs that are kept. In a real PCE, jobs and their files expire after about a day (P10). */
export const KEPT_JOBS = 100

/**
 * Starts a job and answers 202 with the path to poll. The job's rows are determined at its start, so every later read
 * returns the same rows (P10).
 */
export function startJob(call: Call, rows: Iterable<unknown>): Answer {
  const { world } = call
  const job: Job = {
    href: orgPath(world, `/jobs/${world.ids.uuid('job')}`),
    description: call.path,
    requestedAt: world.now(),
    terminatedAt: null,
    progress: startProgress(call),
    resultHref: orgPath(world, `/datafiles/${world.ids.uuid('datafile')}`),
    rows,
  }
  keepLatest(world.jobs, KEPT_JOBS, job.href, job)
  return { status: 202, headers: { location: job.href, 'retry-after': String(world.options.retryAfter) } }
}
