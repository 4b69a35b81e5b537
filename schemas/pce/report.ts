import { Type } from '@sinclair/typebox'
import type { TrafficQuery } from './traffic.js'
import {
  Maybe,
  MaybeFlag,
  MaybeList,
  MaybeNumber,
  MaybeText,
  OBJECT_FIELDS,
  Reference,
  type Read,
} from './reference.js'

const TimeRange = Type.Union([
  Type.Object({ start_date: Type.String(), end_date: Type.String() }),
  Type.Object({ last_num_days: Type.Integer() }),
])

/** The parameters of a report. The template decides which of them the report has. */
const ReportParameters = Type.Object({
  report_time_range: Type.Optional(TimeRange),
  app_groups: MaybeList(Type.Array(Type.Object({ label: Reference }))),
  rule_sets: MaybeList(Reference),
  filters: Type.Optional(Type.Unsafe<Partial<TrafficQuery>>(Type.Object({}))),
  max_results: MaybeNumber,
})

const TemplateRef = Type.Object({ href: Type.String(), name: Type.Optional(Type.String()) })

/** A type of report. The last segment of its href is the type. */
export const ReportTemplate = Type.Object({
  ...OBJECT_FIELDS,
  name: Type.String(),
  enabled: MaybeFlag,
  show_in_ui: MaybeFlag,
  report_parameters: ReportParameters,
})
export type ReportTemplate = Read<typeof ReportTemplate>

/** A report that the PCE generates once. */
export const Report = Type.Object({
  ...OBJECT_FIELDS,
  report_template: TemplateRef,
  description: MaybeText,
  send_by_email: MaybeFlag,
  progress_percentage: MaybeNumber,
  generated_at: MaybeText,
  status: Type.String(),
  report_parameters: ReportParameters,
})
export type Report = Read<typeof Report>

/** A schedule by which the PCE generates a report repeatedly. */
export const ReportSchedule = Type.Object({
  ...OBJECT_FIELDS,
  report_template: TemplateRef,
  name: Type.String(),
  report_generation_frequency: Type.String(),
  scheduled_at: MaybeText,
  send_by_email: MaybeFlag,
  report_parameters: ReportParameters,
})
export type ReportSchedule = Read<typeof ReportSchedule>

/** A bundle of logs and facts for the vendor's support, which is created on request. */
export const SupportBundleRequest = Type.Object({
  ...OBJECT_FIELDS,
  name: Type.String(),
  download_url: Maybe(Type.Union([Type.String(), Reference])),
  requested_at: Type.String(),
  completed_at: MaybeText,
  status: Type.String(),
  include_logs: Type.Boolean(),
  starting_at: MaybeText,
  ending_at: MaybeText,
})
export type SupportBundleRequest = Read<typeof SupportBundleRequest>
