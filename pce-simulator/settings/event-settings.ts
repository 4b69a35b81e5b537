import { Type } from '@sinclair/typebox'
import type { SingleKind } from '../kinds/single-kind.js'
import { CLOSED, OneOf, Shape } from '../validate/shape.js'

/** Which events are kept, how long and in which form they leave (P12). The simulator keeps them all. */
export const eventSettings: SingleKind = {
  route: '/orgs/:org/settings/events',
  noun: 'event_settings',
  defaults: { audit_event_retention_seconds: 2_592_000, audit_event_min_severity: 'informational', format: 'JSON' },
  shape: new Shape(
    'settings_events_put',
    Type.Object(
      {
        audit_event_retention_seconds: Type.Optional(Type.Integer({ minimum: 86_400, maximum: 17_280_000 })),
        audit_event_min_severity: Type.Optional(OneOf('error', 'warning', 'informational')),
        format: Type.Optional(OneOf('JSON', 'CEF', 'LEEF')),
      },
      CLOSED,
    ),
  ),
}
