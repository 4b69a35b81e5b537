import { Type, type TProperties } from '@sinclair/typebox'
import { CLOSED, EXTERNAL_DATA, Href, OneOf, Port, Shape, Text } from '../validate/shape.js'

const optional = <T extends TProperties>(properties: T) =>
  Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, Type.Optional(schema)])) as T

const selectors = {
  exclusion: Type.Boolean(),
  label: Href,
  label_group: Href,
  workload: Href,
  ip_list: Href,
}
const actors = (properties: TProperties) => Type.Array(Type.Object(optional(properties), CLOSED), { minItems: 1 })

const IngressServices = Type.Array(
  Type.Union([
    Href,
    Type.Object({ port: Type.Optional(Port), to_port: Type.Optional(Port), proto: OneOfNumbers(6, 17) }, CLOSED),
  ]),
)
const ResolveAs = Type.Array(OneOf('workloads', 'virtual_services'), { minItems: 1 })
const NetworkType = OneOf('brn', 'non_brn', 'all')

/**
 * The schema of the providers or consumers of an enforcement boundary (P22). Unlike those of a rule, they cannot be
 * excluded.
 */
const BOUNDARY_ACTORS = actors({
  actors: OneOf('ams'),
  label: Href,
  label_group: Href,
  ip_list: Href,
  workload: Href,
})
export const BOUNDARY_SIDES = {
  providers: BOUNDARY_ACTORS,
  consumers: BOUNDARY_ACTORS,
  ingress_services: IngressServices,
}

/** The optional fields that allow rules and deny rules share. */
const CORE = {
  description: Type.Optional(Text),
  egress_services: Type.Optional(Type.Array(Href)),
  unscoped_consumers: Type.Optional(Type.Boolean()),
  network_type: Type.Optional(NetworkType),
}

const ALLOW_REQUIRED = {
  enabled: Type.Boolean(),
  providers: actors({
    ...selectors,
    actors: OneOf('ams'),
    label_dimension: Type.String(),
    virtual_service: Href,
    virtual_server: Href,
  }),
  consumers: actors({
    ...selectors,
    actors: OneOf('ams', 'container_host'),
    label_dimension: Type.String(),
    virtual_service: Href,
  }),
  ingress_services: IngressServices,
  resolve_labels_as: Type.Object({ providers: ResolveAs, consumers: ResolveAs }),
}
const ALLOW_OPTIONAL = {
  ...CORE,
  ...EXTERNAL_DATA,
  sec_connect: Type.Optional(Type.Boolean()),
  stateless: Type.Optional(Type.Boolean()),
  machine_auth: Type.Optional(Type.Boolean()),
  consuming_security_principals: Type.Optional(Type.Array(Href)),
  use_workload_subnets: Type.Optional(Type.Array(OneOf('providers', 'consumers'), { maxItems: 2 })),
  log_flow: Type.Optional(Type.Boolean()),
}
/**
 * The field `update_type`. Its value is ignored; it is accepted because clients send it back when they change an object
 * that they have read.
 */
const UPDATE_TYPE = { update_type: Type.Optional(OneOf('create', 'update', 'delete')) }

const DENY_REQUIRED = {
  enabled: Type.Boolean(),
  providers: actors({ ...selectors, actors: OneOf('ams') }),
  consumers: actors({ ...selectors, actors: OneOf('ams') }),
  ingress_services: IngressServices,
}
const DENY_OPTIONAL = { ...CORE, override: Type.Optional(Type.Boolean()) }

/**
 * The schema of a new allow rule (P20). The fields whose names begin with `all_ips_except_for_in_` are missing, because
 * they exist only in later releases than the simulated one.
 */
export const ALLOW_CREATE = new Shape(
  'sec_policy_rule_sets_sec_rules_post',
  Type.Object({ ...ALLOW_REQUIRED, ...ALLOW_OPTIONAL }, CLOSED),
)
export const ALLOW_UPDATE = new Shape(
  'sec_policy_rule_sets_sec_rules_put',
  Type.Object({ ...optional(ALLOW_REQUIRED), ...ALLOW_OPTIONAL, ...UPDATE_TYPE }, CLOSED),
)
/** The schema of a new deny rule (P21). It lacks the fields that exist only in allow rules. */
export const DENY_CREATE = new Shape(
  'sec_policy_rule_sets_deny_rules_post',
  Type.Object({ ...DENY_REQUIRED, ...DENY_OPTIONAL }, CLOSED),
)
export const DENY_UPDATE = new Shape(
  'sec_policy_rule_sets_deny_rules_put',
  Type.Object({ ...optional(DENY_REQUIRED), ...DENY_OPTIONAL, ...UPDATE_TYPE }, CLOSED),
)

const IP_TABLES_REQUIRED = {
  enabled: Type.Boolean(),
  statements: Type.Array(
    Type.Object(
      {
        table_name: OneOf('nat', 'mangle', 'filter'),
        chain_name: OneOf('PREROUTING', 'INPUT', 'OUTPUT', 'FORWARD', 'POSTROUTING'),
        parameters: Type.String(),
      },
      CLOSED,
    ),
    { minItems: 1 },
  ),
  actors: actors({ actors: OneOf('ams'), label: Href, label_group: Href, workload: Href }),
  ip_version: OneOf('4', '6'),
}
const IP_TABLES_OPTIONAL = { description: Type.Optional(Text) }
export const IP_TABLES_CREATE = new Shape(
  'sec_policy_rule_sets_ip_tables_rules_post',
  Type.Object({ ...IP_TABLES_REQUIRED, ...IP_TABLES_OPTIONAL }, CLOSED),
)
export const IP_TABLES_UPDATE = new Shape(
  'sec_policy_rule_sets_ip_tables_rules_put',
  Type.Object({ ...optional(IP_TABLES_REQUIRED), ...IP_TABLES_OPTIONAL, ...UPDATE_TYPE }, CLOSED),
)

function OneOfNumbers(...values: number[]) {
  return Type.Union(values.map((value) => Type.Literal(value)))
}
