import { Type } from '@sinclair/typebox'
import { CLOSED, Href, Nullable, OneOf, Shape } from '../validate/shape.js'
import type { SingleKind } from './single-kind.js'

/** Seconds; -1 means never. */
const Duration = Type.Integer({ minimum: -1, maximum: 2_147_483_647 })
const VenType = Type.Optional(Nullable(OneOf('server', 'endpoint')))
const Timeouts = Type.Optional(
  Type.Array(Type.Object({ scope: Type.Array(Href), value: Duration, ven_type: VenType }, CLOSED)),
)
const UPDATE = new Shape(
  'settings_workloads_put',
  Type.Object(
    {
      workload_disconnected_timeout_seconds: Timeouts,
      workload_goodbye_timeout_seconds: Timeouts,
      workload_disconnected_notification_seconds: Type.Optional(
        Type.Array(Type.Object({ scope: Type.Array(Href), warning: Duration, ven_type: VenType })),
      ),
      ven_uninstall_timeout_hours: Type.Optional(
        Type.Array(Type.Object({ scope: Type.Array(Href), value: Duration }, CLOSED)),
      ),
    },
    CLOSED,
  ),
)

const DEFAULT_WORKLOAD_SETTINGS = {
  workload_disconnected_timeout_seconds: [
    { scope: [], value: 3600, ven_type: 'server' },
    { scope: [], value: -1, ven_type: 'endpoint' },
  ],
  workload_goodbye_timeout_seconds: [
    { scope: [], value: 900, ven_type: 'server' },
    { scope: [], value: 86_400, ven_type: 'endpoint' },
  ],
  workload_disconnected_notification_seconds: [{ scope: [], warning: 1800, ven_type: 'server' }],
  ven_uninstall_timeout_hours: [{ scope: [], value: 168 }],
}

/** Timeouts of workloads by scope (P28). */
export const workloadSettings: SingleKind = {
  route: '/orgs/:org/settings/workloads',
  noun: 'workload_settings',
  defaults: DEFAULT_WORKLOAD_SETTINGS,
  shape: UPDATE,
}
