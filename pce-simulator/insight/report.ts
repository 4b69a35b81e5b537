import { Type } from '@sinclair/typebox'
import type { PceObject, Reference } from '../../schemas/pce/reference.js'
import { readRoute, type Answer, type Call, type Route } from '../http/route.js'
import { plainRoutes, type PlainKind } from '../kinds/plain-kind.js'
import { singleOf } from '../kinds/single-kind.js'
import { Refusal, notFound } from '../refusal.js'
import { reportSettings } from '../settings/report-settings.js'
import { advance, isPending, percentOf, requireResult, startProgress, type Progress } from '../status/progress.js'
import { CLOSED, Href, Nullable, OneOf, Shape } from '../validate/shape.js'
import { UNCERTAIN } from '../uncertain.js'
import type { World } from '../world.js'
import { checkParameters, ReportParameters, type Parameters } from './report-parameters.js'
import { describeTemplate, requireTemplate } from './report-template.js'
import { writeReport, type ReportFile } from './write-report.js'

const CREATE = new Shape(
  'reports_post',
  Type.Object(
    {
      report_template: Type.Object({ href: Type.String() }, CLOSED),
      report_parameters: ReportParameters,
      send_by_email: Type.Optional(Type.Boolean()),
      description: Type.Optional(Nullable(Type.String({ maxLength: 255 }))),
      created_by: Type.Optional(Href),
    },
    CLOSED,
  ),
)
const UPDATE = new Shape('reports_put', Type.Object({ status: Type.Optional(OneOf('cancel_requested')) }, CLOSED))

/** A report as it is kept: what was asked for, how far it is, and its file. */
interface Report extends PceObject {
  report_template: Reference
  report_parameters: Parameters
  progress: Progress
  cancelling: 'requested' | 'cancelled' | null
  generated_at: string | null
  file: ReportFile | null
}

/** Reports, made in the background: reading one moves it on, as with a traffic query (P28). */
const report: PlainKind = {
  segment: 'reports',
  noun: 'report',
  ids: 'uuid',
  store: (world) => world.store('reports'),
  filters: {},

  build(world, body, call) {
    const { created_by: _told, ...fields } = CREATE.read(body)
    requireTemplate(world, fields.report_template.href)
    checkParameters(world, fields.report_parameters)
    const most = Number(singleOf(world, reportSettings).max_queued_reports)
    if (
      world
        .store('reports')
        .all()
        .filter((other) => isAtWork(other as Report)).length >= most
    ) {
      throw new Refusal(UNCERTAIN.fullReportQueueStatus, [
        { token: 'input_validation_error', message: `No more than ${most} reports can be queued` },
      ])
    }
    return {
      description: null,
      send_by_email: false,
      ...fields,
      progress: startProgress(call),
      cancelling: null,
      generated_at: null,
      file: null,
    }
  },

  change(_world, current, body) {
    const { status } = UPDATE.read(body)
    // A report that has ended stays as it ended.
    return status && isAtWork(current as Report) ? { cancelling: 'requested' } : {}
  },

  render(world, object) {
    const { progress, cancelling, file: _kept, ...shown } = object as Report
    return {
      ...shown,
      report_template: describeTemplate(world, shown.report_template),
      progress_percentage: percentOf(progress, world.options.pollsUntilDone),
      status: cancelling === null ? UNCERTAIN.reportStatuses[progress.stage] : CANCELLING[cancelling],
    }
  },
}

const isAtWork = ({ cancelling, progress }: Report) => cancelling === null && isPending(progress)

const CANCELLING = { requested: 'cancel_requested', cancelled: 'cancelled' } as const

const [collection, item] = plainRoutes(report)

export const reportRoutes: Route[] = [
  collection!,
  {
    ...item!,
    verbs: {
      ...item!.verbs,
      GET: {
        handle: (call): Answer => {
          const next = poll(call.world, find(call))
          return {
            status: 200,
            json: report.render(call.world, next, call.query),
            ...(isAtWork(next) ? { headers: { 'retry-after': String(call.world.options.retryAfter) } } : {}),
          }
        },
      },
    },
  },
  readRoute('/orgs/:org/reports/:id/download', (call) => {
    const { progress, file } = find(call)
    requireResult(progress)
    return { status: 200, file: file! }
  }),
]

/** One more read. The one that completes the report writes its file, from the state of that moment. */
function poll(world: World, current: Report): Report {
  const moved = moveOn(world, current)
  if (!moved) return current
  const next: Report = { ...current, ...moved }
  world.store('reports').set(next)
  return next
}

function moveOn(world: World, { cancelling, progress, ...current }: Report): Partial<Report> | null {
  if (cancelling === 'requested') return { cancelling: 'cancelled', updated_at: world.now() }
  if (cancelling === 'cancelled' || !isPending(progress)) return null
  const next = advance(progress, world.options.pollsUntilDone)
  if (next.stage !== 'done') return { progress: next, updated_at: world.now() }
  const file = writeReport(world, current.report_template.href, current.report_parameters)
  return { progress: next, file, generated_at: world.now(), updated_at: world.now() }
}

function find({ world, path }: Call): Report {
  const found = world.store('reports').get(path.replace(/\/download$/, ''))
  if (!found) throw notFound()
  return found as Report
}
