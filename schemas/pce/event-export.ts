import { Type } from '@sinclair/typebox'
import { List, Maybe, MaybeText, OBJECT_FIELDS, OneOf, type Read } from './reference.js'

/** A syslog server, or the PCE's own syslog, that events are sent to. */
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

/** Which flows are dropped or merged before they are stored. */
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
