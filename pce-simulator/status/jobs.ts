import { answerCollection } from '../kinds/answer-collection.js'
import type { Answer, Call, Route } from '../http/route.js'
import { notFound } from '../refusal.js'
import { exact } from '../validate/query-filters.js'
import type { Job, World } from '../world.js'
import { advance, isPending, requireResult } from './progress.js'

export const jobRoutes: Route[] = [
  {
    path: '/orgs/:org/jobs',
    verbs: {
      GET: {
        handle: (call) =>
          answerCollection(call, {
            objects: [...call.world.jobs.values()].map((job) => describeJob(job, call.world)),
            filters: { job_type: exact('job_type') },
            render: (job) => job,
          }),
      },
    },
  },
  {
    path: '/orgs/:org/jobs/:id',
    verbs: {
      GET: { handle: pollJob },
      DELETE: {
        event: 'job.delete',
        handle: (call) => {
          if (!call.world.jobs.delete(call.path)) throw notFound()
          return { status: 204, changes: [{ resource: { job: { href: call.path } }, type: 'delete' }] }
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
          if (!job) throw notFound()
          requireResult(job.progress)
          return { status: 200, rows: job.rows }
        },
      },
    },
  },
]

function pollJob({ world, path }: Call): Answer {
  const job = world.jobs.get(path)
  if (!job) throw notFound()
  job.progress = advance(job.progress, world.options.pollsUntilDone)
  const pending = isPending(job.progress)
  if (!pending) job.terminatedAt ??= world.now()
  return {
    status: 200,
    json: describeJob(job, world),
    ...(pending ? { headers: { 'retry-after': String(world.options.retryAfter) } } : {}),
  }
}

const STATUSES = { waiting: 'pending', working: 'running', done: 'done', failed: 'failed' } as const

function describeJob({ progress, ...job }: Job, world: World) {
  const { stage, message } = progress
  return {
    href: job.href,
    job_type: ':illumio/async_requests',
    description: job.description,
    status: STATUSES[stage],
    result: stage === 'done' ? { href: job.resultHref } : stage === 'failed' ? { message } : {},
    requested_at: job.requestedAt,
    requested_by: { href: world.user.href },
    ...(job.terminatedAt === null ? {} : { terminated_at: job.terminatedAt }),
  }
}
