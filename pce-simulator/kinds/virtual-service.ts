import { isIP } from 'node:net'
import { Type, type Static } from '@sinclair/typebox'
import type { PceObject, Reference } from '../../schemas/pce/reference.js'
import type { Json } from '../model.js'
import { invalidInput, notAcceptable } from '../refusal.js'
import { UNCERTAIN } from '../uncertain.js'
import { requireDraft, requireFreeExternalData, requireLabels } from '../validate/check-references.js'
import { EXTERNAL_DATA_FILTERS, byLabels, partial, type Filter } from '../validate/query-filters.js'
import { CLOSED, EXTERNAL_DATA, Href, Name, OneOf, Port, Shape, Text } from '../validate/shape.js'
import type { World } from '../world.js'
import { collectHrefs, findPolicyUsage, isInUse } from './find-usage.js'
import { requireFreeName } from './policy-version.js'
import { renderLabels } from './render-labels.js'
import { byPort, byProtocol, byService } from './service-filters.js'
import type { VersionedKind } from './versioned-kind.js'

const ServicePort = Type.Object(
  {
    port: Type.Optional(Port),
    to_port: Type.Optional(Port),
    proto: Type.Union([Type.Literal(6), Type.Literal(17)]),
  },
  CLOSED,
)
const Address = Type.Union([
  Type.Object({ ip: Type.String(), network: Type.Optional(Href), port: Type.Optional(Port) }, CLOSED),
  Type.Object({ fqdn: Type.String(), description: Type.Optional(Text), port: Type.Optional(Port) }, CLOSED),
])
const OPTIONAL = {
  description: Type.Optional(Text),
  labels: Type.Optional(Type.Array(Href)),
  service: Type.Optional(Href),
  service_ports: Type.Optional(Type.Array(ServicePort, { minItems: 1 })),
  apply_to: Type.Optional(OneOf('host_only', 'internal_bridge_network')),
  ip_overrides: Type.Optional(Type.Array(Type.String())),
  service_addresses: Type.Optional(Type.Array(Address)),
  ...EXTERNAL_DATA,
}
const Creation = Type.Object({ name: Name, ...OPTIONAL }, CLOSED)
const CREATE = new Shape('sec_policy_virtual_services_post', Creation)
const UPDATE = new Shape(
  'sec_policy_virtual_services_put',
  Type.Object({ name: Type.Optional(Name), ...OPTIONAL }, CLOSED),
)

type Fields = Partial<Static<typeof Creation>>

/** The object kind for virtual services (P23). */
export const virtualService: VersionedKind = {
  type: 'virtual_services',
  noun: 'virtual_service',
  ids: 'uuid',
  filters: {
    name: partial('name'),
    description: partial('description'),
    labels: byLabels((object) => [collectHrefs(object.labels)]),
    service: byService(({ service }) => (service ? [service] : [])),
    'service_ports.port': byPort(portsOf),
    'service_ports.proto': byProtocol(portsOf),
    'service_address.ip': byAddressField('ip'),
    'service_address.fqdn': byAddressField('fqdn'),
    ...EXTERNAL_DATA_FILTERS,
  },

  build(world, body) {
    const fields = CREATE.read(body)
    if ((fields.service === undefined) === (fields.service_ports === undefined)) {
      throw invalidInput('Exactly one of service and service_ports is required')
    }
    const { name, description, apply_to, ip_overrides, service_addresses } = fields
    return {
      name,
      description: description ?? null,
      pce_fqdn: null,
      labels: [],
      apply_to: apply_to ?? 'host_only',
      ip_overrides: ip_overrides ?? [],
      service_addresses: service_addresses ?? [],
      external_data_set: fields.external_data_set ?? null,
      external_data_reference: fields.external_data_reference ?? null,
      ...check(world, fields, null),
    }
  },

  change(world, { draft }, body) {
    const fields = UPDATE.read(body)
    if (fields.service !== undefined && fields.service_ports !== undefined) {
      throw invalidInput('Only one of service and service_ports is possible')
    }
    return { ...fields, ...check(world, fields, draft) }
  },

  refuseRemoval(world, { draft }) {
    const { token, message } = UNCERTAIN.virtualServiceInUse
    if (isInUse(findPolicyUsage(world, draft.href))) throw notAcceptable(token, message)
  },

  render(world, { service, service_ports, ...body }) {
    return {
      ...body,
      labels: renderLabels(world, body.labels),
      ...(service ? { service: describeService(world, service as Reference) } : { service_ports }),
    }
  },
}

/**
 * Checks the fields of a write and returns them in the stored form: references by href alone, and either `service` or
 * `service_ports`.
 */
function check(world: World, fields: Fields, own: PceObject | null): Json {
  const { name, labels, service, service_ports } = fields
  if (name !== undefined) requireFreeName(world, 'virtual_services', name, own?.href ?? null)
  const others = world.policy.entries('virtual_services').flatMap(({ draft }) => (draft === own ? [] : [draft]))
  requireFreeExternalData(others, { ...own, ...fields })
  for (const { port, to_port } of service_ports ?? []) {
    if (to_port !== undefined && (port === undefined || to_port < port)) {
      throw invalidInput('to_port must not be below port')
    }
  }
  const addresses = (fields.service_addresses ?? []).flatMap((address) => ('ip' in address ? [address.ip] : []))
  for (const address of [...addresses, ...(fields.ip_overrides ?? [])]) {
    if (isIP(address) === 0) throw notAcceptable('invalid_ip_address', 'Invalid IP address specified')
  }
  if (service) requireDraft(world, 'services', service.href)
  return {
    ...(labels ? { labels: requireLabels(world, labels) } : {}),
    ...(service ? { service: { href: service.href }, service_ports: null } : {}),
    ...(service_ports ? { service_ports, service: null } : {}),
  }
}

function describeService(world: World, { href }: Reference): Json {
  return { href, name: world.policy.get('services', href)?.draft.name }
}

function portsOf(object: PceObject): { port?: number; to_port?: number; proto: number }[] {
  return (object.service_ports ?? []) as { port?: number; to_port?: number; proto: number }[]
}

function byAddressField(field: 'ip' | 'fqdn'): Filter {
  return (value) => (object) =>
    ((object.service_addresses ?? []) as Record<string, string | undefined>[]).some((address) =>
      address[field]?.includes(value),
    )
}
