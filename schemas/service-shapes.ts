import { Type, type Static, type TProperties } from '@sinclair/typebox'
import { Nullable } from './common.js'

/** The protocol of a service, as a number or by name. tools/list shows only the number, as answers do (D243). */
export const ProtoInput = Type.Union([Type.Integer(), Type.String()], { description: '6 tcp …' })
const Int = (description: string) => Type.Optional(Type.Integer({ description }))
const Text = (description: string) => Type.Optional(Type.String({ description }))
const Entries = <T extends TProperties>(properties: T, description: string) =>
  Type.Optional(Type.Array(Type.Object(properties), { maxItems: 1000, description }))

/**
 * The three lists of a service, only one of which may be used. The schema allows additional fields in their entries,
 * because `planService` reports a field in the wrong list and can say in which list it belongs.
 */
export const ServiceListsInput = {
  service_ports: Entries(
    {
      port: Type.Optional(Type.Integer({ description: 'Absent: all', listed: '' })),
      to_port: Int('Last'),
      proto: ProtoInput,
      icmp_type: Int('ICMP type'),
      icmp_code: Int('ICMP code'),
    },
    'Ports and protocols',
  ),
  windows_services: Entries(
    {
      process_name: Text('Program'),
      service_name: Text('Service'),
      port: Int('Port'),
      to_port: Int('Last'),
      proto: Type.Optional(ProtoInput),
    },
    'Windows providers',
  ),
  windows_egress_services: Entries(
    { process_name: Text('Program'), service_name: Text('Service') },
    'Windows consumers',
  ),
}

/** The entries of one of a service's lists as the PCE stores them, with the same field names as in the input. */
export const EntriesOut = Type.Optional(
  Type.Array(
    Type.Object({
      port: Type.Optional(Type.Integer()),
      to_port: Type.Optional(Type.Integer()),
      proto: Type.Optional(Type.Union([Type.Integer(), Type.String()])),
      process_name: Type.Optional(Type.String()),
      service_name: Type.Optional(Type.String()),
    }),
  ),
)

/** The form in which answers show a service. */
export const ServiceOut = Type.Object(
  {
    href: Type.String(),
    name: Type.String(),
    description: Nullable(Type.String()),
    process_name: Type.Optional(Type.String()),
    service_ports: EntriesOut,
    windows_services: EntriesOut,
    windows_egress_services: EntriesOut,
    update_type: Type.Optional(Type.String({ description: 'Pending change' })),
    omitted: Type.Optional(Type.String({ description: 'What was cut' })),
  },
  { description: 'As stored' },
)
export type ServiceOut = Static<typeof ServiceOut>
