import { Type } from '@sinclair/typebox'
import { Nullable } from '../common.js'
import {
  AnyFields,
  List,
  Maybe,
  MaybeList,
  MaybeNumber,
  MaybeText,
  OBJECT_FIELDS,
  OneOf,
  type Read,
} from './reference.js'

/**
 * The actor who caused the event. Usually only one field is present; if the actor is a VEN, both `agent` and `ven` are
 * present (P26).
 */
const EventActor = Type.Object({
  user: Maybe(Type.Object({ href: MaybeText, username: MaybeText })),
  agent: Maybe(Type.Object({ href: MaybeText, hostname: MaybeText })),
  ven: Maybe(Type.Object({ href: MaybeText, hostname: MaybeText })),
  workload: Maybe(Type.Object({ href: MaybeText, name: MaybeText, hostname: MaybeText })),
  container_cluster: Maybe(Type.Object({ href: MaybeText, name: MaybeText })),
  service_account: Maybe(Type.Object({ href: MaybeText, name: MaybeText })),
  system: Maybe(AnyFields),
})

const EventAction = Type.Object({
  uuid: MaybeText,
  api_endpoint: MaybeText,
  api_method: MaybeText,
  http_status_code: Maybe(Type.Integer()),
  src_ip: MaybeText,
  info: Maybe(AnyFields),
  errors: MaybeList(Type.Object({ token: MaybeText, message: MaybeText })),
})

const ResourceChange = Type.Object({
  uuid: MaybeText,
  /** An object with a single field, which is named after the kind of the changed object and contains that object. */
  resource: Maybe(AnyFields),
  /** The changed fields, each as `{before, after}`, or as `{created, deleted, updated}` for lists (P26). */
  changes: Maybe(AnyFields),
  change_type: MaybeText,
})

const Notification = Type.Object({
  uuid: MaybeText,
  notification_type: MaybeText,
  severity: Maybe(OneOf('err', 'warning', 'info')),
  info: Maybe(AnyFields),
})

/** An event of one organisation or of the whole PCE (P26). */
export const PceEvent = Type.Object({
  href: Type.String(),
  event_type: Nullable(Type.String()),
  timestamp: Nullable(Type.String()),
  severity: Nullable(Type.String()),
  status: Nullable(Type.String()),
  pce_fqdn: MaybeText,
  event_id: MaybeText,
  org_id: MaybeNumber,
  version: MaybeText,
  created_by: Maybe(EventActor),
  action: Maybe(EventAction),
  resource_changes: MaybeList(ResourceChange),
  notifications: MaybeList(Notification),
})
export type PceEvent = Read<typeof PceEvent>

/** A syslog server, or the PCE's own syslog, to which events are sent. */
export const SyslogDestination = Type.Object({
  ...OBJECT_FIELDS,
  pce_scope: List(Type.String()),
  type: Type.String(),
  description: Type.String(),
  audit_event_logger: Type.Object({
    configuration_event_included: Type.Boolean(),
    system_event_included: Type.Boolean(),
    min_severity: OneOf('error', 'warning', 'informational'),
  }),
  traffic_event_logger: Type.Object({
    traffic_flow_allowed_event_included: Type.Boolean(),
    traffic_flow_potentially_blocked_event_included: Type.Boolean(),
    traffic_flow_blocked_event_included: Type.Boolean(),
  }),
  node_status_logger: Type.Object({ node_status_included: Type.Boolean() }),
  remote_syslog: Maybe(
    Type.Object({
      address: Type.String(),
      port: Type.Integer(),
      protocol: Type.Integer(),
      tls_enabled: Type.Boolean(),
      tls_ca_bundle: MaybeText,
      tls_verify_cert: Type.Boolean(),
    }),
  ),
})
export type SyslogDestination = Read<typeof SyslogDestination>

/** The settings that decide which flows are dropped or merged before they are stored. */
export const TrafficCollectorSetting = Type.Object({
  ...OBJECT_FIELDS,
  transmission: Type.String(),
  action: Type.String(),
  data_source: MaybeText,
  network: MaybeText,
  target: Maybe(
    Type.Object({
      src_port: Maybe(Type.Integer()),
      dst_port: Maybe(Type.Integer()),
      proto: Type.Integer(),
      dst_ip: MaybeText,
      src_ip: MaybeText,
    }),
  ),
})
export type TrafficCollectorSetting = Read<typeof TrafficCollectorSetting>
