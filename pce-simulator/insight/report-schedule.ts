import { Type } from '@sinclair/typebox'
import type { PlainKind } from '../kinds/plain-kind.js'
import { readDate } from '../traffic/validate-query.js'
import { CLOSED, Name, OneOf, Shape } from '../validate/shape.js'
import { checkParameters, ReportParameters } from './report-parameters.js'
import { describeTemplate, requireTemplate } from './report-template.js'

const Template = Type.Object({ href: Type.String() }, CLOSED)
const Frequency = OneOf('daily', 'weekly', 'monthly', 'quarterly', 'once')
const OPTIONAL = { send_by_email: Type.Optional(Type.Boolean()), scheduled_at: Type.Optional(Type.String()) }
const CREATE = new Shape(
  'report_schedules_post',
  Type.Object(
    {
      report_template: Template,
      name: Name,
      report_generation_frequency: Frequency,
      report_parameters: ReportParameters,
      ...OPTIONAL,
    },
    CLOSED,
  ),
)
const UPDATE = new Shape(
  'report_schedules_put',
  Type.Object(
    {
      report_template: Type.Optional(Template),
      name: Type.Optional(Name),
      report_format: Type.Optional(OneOf('pdf', 'json')),
      report_generation_frequency: Type.Optional(Frequency),
      report_parameters: Type.Optional(ReportParameters),
      ...OPTIONAL,
    },
    CLOSED,
  ),
)

/** Schedules of reports (P49). The simulator's clock makes no report by itself. */
export const reportSchedule: PlainKind = {
  segment: 'report_schedules',
  noun: 'report_schedule',
  ids: 'uuid',
  store: (world) => world.store('report_schedules'),
  filters: {},

  build(world, body) {
    const fields = CREATE.read(body)
    requireTemplate(world, fields.report_template.href)
    checkParameters(world, fields.report_parameters)
    return { send_by_email: false, ...fields, scheduled_at: readTimestamp(fields.scheduled_at) ?? world.now() }
  },

  change(world, _current, body) {
    const fields = UPDATE.read(body)
    if (fields.report_template) requireTemplate(world, fields.report_template.href)
    if (fields.report_parameters) checkParameters(world, fields.report_parameters)
    readTimestamp(fields.scheduled_at)
    return fields
  },

  remove: () => null,

  render(world, { report_format: _written, ...object }) {
    return { ...object, report_template: describeTemplate(world, object.report_template) }
  },
}

function readTimestamp(text: string | undefined): string | undefined {
  if (text !== undefined) readDate(text)
  return text
}
