import type { Answer, Call, Route } from '../http/route.js'
import { notFound } from '../refusal.js'
import { keepLatest } from '../store/keep-latest.js'
import { orgPath, type Job, type World } from '../world.js'

/** Jobs and their files expire after about a day (pce-api b.3); here by number. */
const KEPT_JOBS = 100

/** 202 with the place to poll; the rows are those of now, however often the job is read later (pce-api b.3). */
export function startJob(call: Call, rows: readonly unknown[]): Answer {
  const { world } = call
  const job: Job = {
    href: orgPath(world, `/jobs/${world.ids.uuid('job')}`),
    description: call.path,
    requestedAt: world.now(),
    terminatedAt: null,
    polls: 0,
    resultHref: orgPath(world, `/datafiles/${world.ids.uuid('datafile')}`),
    rows,
  }
  keepLatest(world.jobs, KEPT_JOBS, job.href, job)
  return { status: 202, headers: { location: job.href, 'retry-after': String(world.options.retryAfter) } }
}

export const jobRoutes: Route[] = [
  {
    path: '/orgs/:org/jobs',
    verbs: {
      GET: {
        handle: ({ world }) => {
          const jobs = [...world.jobs.values()].map((job) => describeJob(job, world))
          return { status: 200, json: jobs, headers: { 'x-total-count': String(jobs.length) } }
        },
      },
    },
  },
  {
    path: '/orgs/:org/jobs/:id',
    verbs: {
      GET: { handle: pollJob },
      DELETE: {
        handle: (call) => {
          if (!call.world.jobs.delete(call.path)) throw notFound()
          return { status: 204 }
        },
      },
    },
  },
  {
    path: '/orgs/:org/datafiles/:id',
    verbs: {
      GET: {
        handle: ({ world, path }) => {
          const job = [...world.jobs.values()].find((candidate) => candidate.resultHref === path)
          if (!job || job.terminatedAt === null) throw notFound()
          return { status: 200, rows: job.rows }
        },
      },
    },
  },
]

function pollJob(call: Call): Answer {
  const { world } = call
  const job = world.jobs.get(call.path)
  if (!job) throw notFound()
  job.polls += 1
  if (job.polls >= world.options.pollsUntilDone) job.terminatedAt ??= world.now()
  return {
    status: 200,
    json: describeJob(job, world),
    ...(job.terminatedAt === null ? { headers: { 'retry-after': String(world.options.retryAfter) } } : {}),
  }
}

function describeJob(job: Job, world: World): Record<string, unknown> {
  const done = job.terminatedAt !== null
  return {
    href: job.href,
    job_type: ':illumio/async_requests',
    description: job.description,
    status: done ? 'done' : job.polls <= 1 ? 'pending' : 'running',
    result: done ? { href: job.resultHref } : {},
    requested_at: job.requestedAt,
    requested_by: { href: world.user.href },
    ...(done ? { terminated_at: job.terminatedAt } : {}),
  }
}
