import { Type, type Static } from '@sinclair/typebox'
import { Nullable, StringEnum } from './common.js'
import { LabelOut, LabelReference, LabelsOut } from './label-reference.js'
import { EntriesOut, ProtoInput } from './service-shapes.js'

/** Maximum number of ports, addresses or overrides of a virtual service in a call. */
const MOST_ENTRIES = 500

const Int = (description: string) => Type.Optional(Type.Integer({ description }))

/** An address or a domain name at which a virtual service is reached, in the form that answers show. */
const AddressInput = Type.Object(
  {
    ip: Type.Optional(Type.String({ description: 'Address' })),
    fqdn: Type.Optional(Type.String({ description: 'Or domain name' })),
    network: Type.Optional(Type.String({ description: 'href of the network of ip', listed: 'href' })),
    description: Type.Optional(Type.String({ description: 'Text, of fqdn', listed: '' })),
    port: Int('Port'),
  },
  { additionalProperties: false },
)
export type AddressInput = Static<typeof AddressInput>

const PortInput = Type.Object(
  { port: Int('Absent: all'), to_port: Int('Last'), proto: ProtoInput },
  { additionalProperties: false },
)
export type PortInput = Static<typeof PortInput>

/** The arguments for the ports and addresses of a virtual service. */
export const VirtualServiceInput = {
  service: Type.Optional(
    Type.String({ minLength: 1, description: 'Name or href of the service it offers', listed: 'Service it offers' }),
  ),
  service_ports: Type.Optional(
    Type.Array(PortInput, { minItems: 1, maxItems: MOST_ENTRIES, description: 'Or its ports, tcp or udp' }),
  ),
  labels: Type.Optional(Type.Array(LabelReference, { maxItems: 50, description: 'All, one per key' })),
  service_addresses: Type.Optional(
    Type.Array(AddressInput, { maxItems: MOST_ENTRIES, description: 'All: where it is reached' }),
  ),
  ip_overrides: Type.Optional(
    Type.Array(Type.String(), {
      maxItems: MOST_ENTRIES,
      description: 'All: addresses in place of those of its workloads',
    }),
  ),
  apply_to: Type.Optional(
    StringEnum(['host_only', 'internal_bridge_network'] as const, {
      description: 'Where its rules are enforced',
      listed: '',
    }),
  ),
}

const AddressOut = Type.Object({
  ip: Type.Optional(Type.String({ description: 'Address' })),
  network: Type.Optional(Type.String({ description: 'href of the network that the address is in' })),
  fqdn: Type.Optional(Type.String()),
  description: Type.Optional(Type.String()),
  port: Type.Optional(Type.Integer()),
})
export type AddressOut = Static<typeof AddressOut>

/** The form in which answers show a virtual service. */
export const VirtualServiceOut = Type.Object({
  href: Type.String(),
  name: Type.String(),
  description: Nullable(Type.String()),
  service: Type.Optional(
    Type.Object(
      { href: Type.String(), name: Type.Optional(Type.String()) },
      { description: 'The service it offers; absent: service_ports has its ports' },
    ),
  ),
  service_ports: EntriesOut,
  labels: LabelsOut(LabelOut, 'As key=value'),
  apply_to: Type.Optional(Type.String({ description: 'host_only or internal_bridge_network' })),
  service_addresses: Type.Optional(
    Type.Array(AddressOut, { description: 'Where it is reached, beside the workloads bound to it' }),
  ),
  ip_overrides: Type.Optional(
    Type.Array(Type.String(), { description: 'Addresses in place of those of its workloads' }),
  ),
  pce_fqdn: Type.Optional(Type.String({ description: 'The PCE that owns it, in a group of PCEs' })),
  update_type: Type.Optional(Type.String({ description: 'Pending change' })),
  omitted: Type.Optional(Type.String({ description: 'What was cut' })),
})
export type VirtualServiceOut = Static<typeof VirtualServiceOut>

/** Maximum number of port overrides when workloads are bound to a virtual service. */
const MOST_OVERRIDES = 100

/**
 * The ports at which the bound workloads provide a virtual service, where they differ from the ports of the virtual
 * service itself.
 */
export const PortOverridesInput = Type.Optional(
  Type.Array(
    Type.Object(
      {
        port: Type.Integer({ description: 'Of the virtual service' }),
        proto: ProtoInput,
        new_port: Type.Integer({ description: 'Of the workload' }),
        new_to_port: Int('Last of a range'),
      },
      { additionalProperties: false },
    ),
    { minItems: 1, maxItems: MOST_OVERRIDES, description: 'Other ports at these workloads' },
  ),
)
export type PortOverrideInput = { port: number; proto: number | string; new_port: number; new_to_port?: number }
