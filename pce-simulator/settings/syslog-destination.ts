import { Type, type TSchema } from '@sinclair/typebox'
import { birthOf } from '../built-in-objects.js'
import type { Json } from '../model.js'
import type { PlainKind } from '../kinds/plain-kind.js'
import { invalidInput } from '../refusal.js'
import { CLOSED, OneOf, Shape } from '../validate/shape.js'
import { PCE_FQDN, orgPath, type World } from '../world.js'

const Flag = Type.Boolean()
const AUDIT = {
  configuration_event_included: Flag,
  system_event_included: Flag,
  min_severity: OneOf('error', 'warning', 'informational'),
}
const TRAFFIC = {
  traffic_flow_allowed_event_included: Flag,
  traffic_flow_potentially_blocked_event_included: Flag,
  traffic_flow_blocked_event_included: Flag,
}
const NODE = { node_status_included: Flag }
const REMOTE = {
  address: Type.String(),
  port: Type.Integer(),
  protocol: Type.Integer(),
  tls_enabled: Flag,
  tls_verify_cert: Flag,
}
const TLS_CA_BUNDLE = { tls_ca_bundle: Type.Optional(Type.String()) }
const KIND = { pce_scope: Type.Array(Type.String()), type: OneOf('local_syslog', 'remote_syslog') }
const DESCRIPTION = { description: Type.String() }

const CREATE = new Shape(
  'settings_syslog_destinations_post',
  Type.Object(
    {
      ...KIND,
      ...DESCRIPTION,
      audit_event_logger: Type.Object(AUDIT),
      traffic_event_logger: Type.Object(TRAFFIC),
      node_status_logger: Type.Object(NODE),
      remote_syslog: Type.Optional(Type.Object({ ...REMOTE, ...TLS_CA_BUNDLE })),
    },
    CLOSED,
  ),
)
const some = <T extends Record<string, TSchema>>(fields: T) => Type.Partial(Type.Object(fields))
const UPDATE = new Shape(
  'settings_syslog_destinations_put',
  Type.Object(
    {
      ...some({ href: Type.String(), ...KIND, ...DESCRIPTION }).properties,
      audit_event_logger: Type.Optional(some(AUDIT)),
      traffic_event_logger: Type.Optional(some(TRAFFIC)),
      node_status_logger: Type.Optional(some(NODE)),
      remote_syslog: Type.Optional(some({ ...REMOTE, ...TLS_CA_BUNDLE })),
    },
    CLOSED,
  ),
)

const PROTOCOLS = [6, 17]
const PARTS = ['audit_event_logger', 'traffic_event_logger', 'node_status_logger', 'remote_syslog']

/** A syslog server, or the PCE's own syslog (P28). Nothing is ever sent there. */
export const syslogDestination: PlainKind = {
  segment: 'syslog_destinations',
  route: '/orgs/:org/settings/syslog/destinations',
  noun: 'syslog_destination',
  ids: 'uuid',
  store: (world) => world.store('syslog_destinations'),
  filters: {},

  build: (_world, body) => checkRemote(CREATE.read(body)),

  change(_world, current, body) {
    const { href: _own, ...fields } = UPDATE.read(body) as Json
    // The parts are objects whose fields may be sent one by one.
    for (const part of PARTS) if (fields[part]) fields[part] = { ...(current[part] as Json), ...(fields[part] as Json) }
    checkRemote({ ...current, ...fields })
    return fields
  },

  remove: () => null,
  render: (_world, object) => object,
}

function checkRemote<T extends Json>(fields: T): T {
  const remote = fields.remote_syslog as Json | undefined
  if (fields.type === 'remote_syslog' && !remote) throw invalidInput('A remote destination requires remote_syslog')
  if (!remote) return fields
  const missing = Object.keys(REMOTE).find((name) => remote[name] === undefined)
  if (missing !== undefined) throw invalidInput(`remote_syslog requires ${missing}`)
  if (!PROTOCOLS.includes(remote.protocol as number)) throw invalidInput('The protocol must be 6 or 17')
  return fields
}

/** The PCE's own syslog gets everything. */
export function seedSyslog(world: World): void {
  world.store('syslog_destinations').set({
    href: orgPath(world, `/settings/syslog/destinations/${world.ids.uuid('syslog_destinations')}`),
    pce_scope: [PCE_FQDN],
    type: 'local_syslog',
    description: 'Local syslog',
    audit_event_logger: {
      configuration_event_included: true,
      system_event_included: true,
      min_severity: 'informational',
    },
    traffic_event_logger: {
      traffic_flow_allowed_event_included: true,
      traffic_flow_potentially_blocked_event_included: true,
      traffic_flow_blocked_event_included: true,
    },
    node_status_logger: { node_status_included: true },
    ...birthOf(world),
  })
}
