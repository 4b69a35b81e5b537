import { Type } from '@sinclair/typebox'
import type { SingleKind } from '../kinds/single-kind.js'
import { CLOSED, Shape } from '../validate/shape.js'

/** How many reports may wait, and how long they are kept (P12). */
export const reportSettings: SingleKind = {
  route: '/orgs/:org/settings/reports',
  noun: 'report_settings',
  defaults: { max_queued_reports: 25, report_retention_days: 1 },
  shape: new Shape(
    'settings_reports_put',
    Type.Object(
      {
        max_queued_reports: Type.Optional(Type.Integer({ minimum: 1, maximum: 25 })),
        report_retention_days: Type.Optional(Type.Integer({ minimum: 1, maximum: 7 })),
      },
      CLOSED,
    ),
  ),
}
