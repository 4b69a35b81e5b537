import { Type, type Static } from '@sinclair/typebox'
import { invalidInput } from '../refusal.js'
import { acceptQuery, readDate, TrafficQueryShape } from '../traffic/validate-query.js'
import { requireDraft, requireLabel } from '../validate/check-references.js'
import { CLOSED, Href } from '../validate/shape.js'
import type { World } from '../world.js'

const DAY_MS = 86_400_000
const LastDays = Type.Object({ last_num_days: Type.Integer({ minimum: 1 }) }, CLOSED)
const TimeRange = Type.Union([Type.Object({ start_date: Type.String(), end_date: Type.String() }, CLOSED), LastDays])

/** The forms of `report_parameters` (P49); which of them a template means, nobody says. */
export const ReportParameters = Type.Union([
  Type.Object({ report_time_range: TimeRange }, CLOSED),
  Type.Object(
    { report_time_range: TimeRange, app_groups: Type.Array(Type.Array(Type.Object({ label: Href }, CLOSED))) },
    CLOSED,
  ),
  Type.Object({ report_time_range: LastDays, filters: TrafficQueryShape }, CLOSED),
  Type.Object({}, CLOSED),
  Type.Object(
    {
      report_time_range: TimeRange,
      rule_sets: Type.Array(Href),
      max_results: Type.Optional(Type.Integer({ minimum: 0, maximum: 200_000 })),
    },
    CLOSED,
  ),
])

/** What any of the forms may hold. */
export interface Parameters {
  report_time_range?: Static<typeof TimeRange>
  app_groups?: { label: { href: string } }[][]
  filters?: Static<typeof TrafficQueryShape>
  rule_sets?: { href: string }[]
  max_results?: number
}

/** 406 for anything that is not a full timestamp, and for a label, rule set or selector that does not exist (P28). */
export function checkParameters(world: World, parameters: Parameters): void {
  const { app_groups = [], rule_sets = [], filters } = parameters
  readWindow(world, parameters)
  for (const { label } of app_groups.flat()) requireLabel(world, label.href)
  for (const { href } of rule_sets)
    requireDraft(world, 'rule_sets', href.replace('/sec_policy/active/', '/sec_policy/draft/'))
  if (filters) acceptQuery(world, filters)
}

/** The days a report covers: by default the last seven. */
export function readWindow(world: World, { report_time_range = { last_num_days: 7 } }: Parameters) {
  if ('last_num_days' in report_time_range) {
    const end = world.clock()
    return { start: end - report_time_range.last_num_days * DAY_MS, end }
  }
  const [start, end] = [readDate(report_time_range.start_date), readDate(report_time_range.end_date)]
  if (start > end) throw invalidInput('start_date must not be after end_date')
  return { start, end }
}
