import { Type } from '@sinclair/typebox'
import type { PceObject } from '../../schemas/pce/reference.js'
import type { Service, ServicePort } from '../../schemas/pce/service.js'
import { ALL_SERVICES_NAME } from '../../schemas/pce/words.js'
import { invalidInput, notAcceptable } from '../refusal.js'
import { UNCERTAIN } from '../uncertain.js'
import { requireFreeExternalData } from '../validate/check-references.js'
import { EXTERNAL_DATA_FILTERS, partial, readFlag } from '../validate/query-filters.js'
import { CLOSED, EXTERNAL_DATA, Name, Nullable, OneOf, Port, Shape, Text } from '../validate/shape.js'
import type { World } from '../world.js'
import { findPolicyUsage, isInUse } from './find-usage.js'
import type { VersionedKind } from './versioned-kind.js'

const Icmp = Type.Optional(Nullable(Type.Integer({ minimum: 0, maximum: 255 })))
const Proto = Type.Integer({ minimum: 0, maximum: 255 })
const Qualifier = Type.Optional(Nullable(Type.String()))
const LISTS = {
  service_ports: Type.Optional(
    Type.Array(
      Type.Object(
        { port: Type.Optional(Port), to_port: Type.Optional(Port), proto: Proto, icmp_type: Icmp, icmp_code: Icmp },
        CLOSED,
      ),
      { minItems: 1 },
    ),
  ),
  windows_services: Type.Optional(
    Type.Array(
      Type.Object(
        {
          service_name: Qualifier,
          process_name: Qualifier,
          port: Type.Optional(Port),
          to_port: Type.Optional(Port),
          proto: Type.Optional(Nullable(Proto)),
          icmp_type: Icmp,
          icmp_code: Icmp,
        },
        CLOSED,
      ),
      { minItems: 1 },
    ),
  ),
  windows_egress_services: Type.Optional(
    Type.Array(Type.Object({ service_name: Qualifier, process_name: Qualifier }, CLOSED), { minItems: 1 }),
  ),
}
const OPTIONAL = {
  description: Type.Optional(Text),
  process_name: Type.Optional(Type.String()),
  risk_details: Type.Optional(
    Type.Object({
      ransomware: Type.Optional(
        Type.Object(
          {
            category: OneOf('admin', 'legacy'),
            severity: OneOf('low', 'medium', 'high', 'critical'),
            os_platforms: Type.Array(OneOf('windows', 'linux'), { minItems: 1 }),
          },
          CLOSED,
        ),
      ),
    }),
  ),
  ...LISTS,
  ...EXTERNAL_DATA,
}
const CREATE = new Shape('sec_policy_services_post', Type.Object({ name: Name, ...OPTIONAL }, CLOSED))
const UPDATE = new Shape('sec_policy_services_put', Type.Object({ name: Type.Optional(Name), ...OPTIONAL }, CLOSED))

const LIST_NAMES = ['service_ports', 'windows_services', 'windows_egress_services'] as const

/** The object kind for services. Their names need not be unique (P18). */
export const service: VersionedKind = {
  type: 'services',
  noun: 'service',
  ids: 'int',
  filters: {
    name: partial('name'),
    description: partial('description'),
    port: (value) => {
      const port = Number(value)
      if (!Number.isInteger(port) || port < -1 || port > 65_535 || port === 0)
        throw invalidInput(`Invalid port ${value}`)
      return (object) => portsOf(object).some((one) => port === (one.port ?? -1) || inRange(port, one))
    },
    is_ransomware: (value) => {
      const wanted = readFlag(value, 'is_ransomware')
      return (object) => ((object as Service).risk_details?.ransomware != null) === wanted
    },
    proto: (value) => (object) => portsOf(object).some(({ proto }) => String(proto) === value),
    ...EXTERNAL_DATA_FILTERS,
  },

  build(world, body) {
    const fields = CREATE.read(body)
    checkPorts(fields)
    // If the body has several of the lists in LIST_NAMES, only the first is kept. The others are silently dropped
    // (P18).
    const kept = LIST_NAMES.find((list) => fields[list] !== undefined)
    if (!kept) throw invalidInput('One of service_ports, windows_services and windows_egress_services is required')
    requireFreeExternalData(drafts(world), fields)
    return {
      name: fields.name,
      description: fields.description ?? null,
      description_url: null,
      process_name: fields.process_name ?? null,
      ...Object.fromEntries(LIST_NAMES.map((list) => [list, list === kept ? fields[list] : null])),
      risk_details: fields.risk_details ?? { ransomware: null },
      external_data_set: fields.external_data_set ?? null,
      external_data_reference: fields.external_data_reference ?? null,
    }
  },

  change(world, entry, body) {
    const fields = UPDATE.read(body)
    refuseBuiltIn(entry.draft)
    checkPorts(fields)
    const current = LIST_NAMES.find((list) => (entry.draft[list] as unknown[] | null | undefined)?.length)
    if (LIST_NAMES.some((list) => fields[list] !== undefined && list !== current)) {
      throw invalidInput('cannot change OS type of service')
    }
    const others = drafts(world).filter((other) => other.href !== entry.draft.href)
    requireFreeExternalData(others, { ...entry.draft, ...fields })
    return fields
  },

  refuseRemoval(world, entry) {
    refuseBuiltIn(entry.draft)
    if (isInUse(findPolicyUsage(world, entry.draft.href))) {
      throw notAcceptable('service_referenced', 'Service is referenced by a rule')
    }
  },
}

function drafts(world: World): PceObject[] {
  return world.policy.entries('services').map(({ draft }) => draft)
}

function refuseBuiltIn(object: PceObject): void {
  if (UNCERTAIN.builtInObjectsAreFixed && object.name === ALL_SERVICES_NAME)
    throw invalidInput('The built-in service cannot be changed')
}

type PortRange = Pick<ServicePort, 'port' | 'to_port'>

function checkPorts(fields: { service_ports?: PortRange[]; windows_services?: PortRange[] }): void {
  for (const { port, to_port } of [...(fields.service_ports ?? []), ...(fields.windows_services ?? [])]) {
    if (to_port != null && (port == null || to_port < port)) throw invalidInput('to_port must not be below port')
  }
}

function portsOf(object: PceObject): ServicePort[] {
  const { service_ports, windows_services } = object as Service
  return [...(service_ports ?? []), ...((windows_services ?? []) as ServicePort[])]
}

function inRange(port: number, { port: from, to_port: to }: PortRange): boolean {
  return from != null && to != null && port >= from && port <= to
}
