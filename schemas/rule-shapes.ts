import { Type, type Static } from '@sinclair/typebox'
import { Nullable, StringEnum } from './common.js'
import { ObjectOrText, TextOrObject } from './label-reference.js'
import { ProtoInput } from './service-shapes.js'

export const RULE_TYPES = ['allow', 'deny', 'override_deny'] as const

/** The form in which answers with full detail show a consumer or provider of a rule. */
export const ActorOut = Type.Object({
  type: Type.String({ description: 'ams, label, ip_list …' }),
  href: Type.Optional(Type.String()),
  key: Type.Optional(Type.String()),
  value: Type.Optional(Type.String()),
  name: Type.Optional(Type.String()),
  exclusion: Type.Optional(Type.Boolean()),
})
export type ActorOut = Static<typeof ActorOut>

/** The form in which answers show one condition of a scope. */
export const ScopeOut = Type.Object({
  href: Type.String(),
  key: Type.Optional(Type.String()),
  value: Type.Optional(Type.String()),
  name: Type.Optional(Type.String()),
  exclusion: Type.Optional(Type.Boolean()),
})
export type ScopeOut = Static<typeof ScopeOut>

export const RuleTypeOut = StringEnum(RULE_TYPES)

/**
 * The form in which answers show a consumer, a provider, a condition of a scope, or a service: a string that callers
 * can also use in arguments, or an object with an href if no string would identify it.
 */
export const WrittenOut = Type.Union([Type.String(), Type.Object({})])

/**
 * A warning about a rule that is limited to certain Windows programs. Consumers with another operating system cannot
 * check the program, so the rule permits them more than it seems to.
 */
export const WideningOut = Type.Optional(
  Type.Object(
    {
      warning: Type.String(),
      services: Type.Array(Type.String()),
      non_windows_consumer_count: Type.Optional(Type.Integer()),
      examples: Type.Array(Type.String()),
      message: Type.String(),
    },
    { description: 'The rule admits more than it appears to' },
  ),
)

/**
 * The form in which answers show a rule. Only allow rules have `resolve_labels_as`. If the caller asked for full
 * detail, the PCE's own fields, such as `log_flow`, replace `conditions`.
 */
export const RuleOut = Type.Object({
  rule_type: RuleTypeOut,
  href: Type.String(),
  enabled: Type.Optional(Type.Boolean()),
  description: Nullable(Type.String()),
  resolve_labels_as: Type.Optional(Type.Object({}, { description: 'Absent: workloads on both sides' })),
  consumers: Type.Array(WrittenOut),
  providers: Type.Array(WrittenOut),
  ingress_services: Type.Array(WrittenOut, { description: 'A name, or {port, to_port?, proto}' }),
  egress_services: Type.Optional(Type.Array(WrittenOut)),
  unscoped_consumers: Type.Boolean(),
  conditions: Type.Optional(Type.Array(Type.String(), { description: 'What else narrows or widens it' })),
  update_type: Type.Optional(Type.String({ description: 'Pending change' })),
})

/** The form in which answers show a rule that has just been written. */
export const StoredRuleOut = Type.Object(
  { ...RuleOut.properties, description: Type.Optional(Type.String()) },
  { description: 'As stored, in the words of callers' },
)

const { resolve_labels_as: _resolution, egress_services: _programs, ...DENY_PARTS } = StoredRuleOut.properties

/**
 * The form in which answers show a deny rule that has just been written. It lacks the fields that exist only in allow
 * rules.
 */
export const StoredDenyRuleOut = Type.Object(DENY_PARTS, { description: 'As stored, in the words of callers' })

/** The services that the caller named, in resolved form: a service object as `{href, name}`, or ports. */
export const ResolvedServices = Type.Optional(Type.Array(Type.Object({}), { description: 'As resolved' }))
/** A label or label group of a scope, or a consumer or provider of a rule, in the form that callers write. */
export const ActorInput = TextOrObject<{ key?: string; value?: string; href?: string; exclusion?: boolean }>([
  'key',
  'value',
  'href',
  'exclusion',
])

export interface ServiceObject {
  port?: number
  to_port?: number
  proto?: string | number
  href?: string
  service?: string
}

/** One service in any form that callers may use: an object in one of three forms, or its name. */
export const ServiceInput = ObjectOrText<ServiceObject>({
  port: Type.Integer({ description: 'Port' }),
  to_port: Type.Integer({ description: 'Last' }),
  proto: ProtoInput,
  href: Type.String({ description: 'Href' }),
  service: Type.String({ description: 'Name' }),
})

/**
 * Creates the schema of a list of services. A single service counts as a list of one, and a string as a service's name
 * (T5).
 */
export const ServicesInput = (description: string) =>
  Type.Union([Type.Array(ServiceInput, { maxItems: 100 }), ...ServiceInput.anyOf], { description })

/**
 * Creates the schema of a list of services that callers nearly always give by name, so that tools/list shows only the
 * name.
 */
export const NamedServicesInput = (description: string) => {
  const [object, text] = ServiceInput.anyOf
  const one = Type.Union([text, object])
  return Type.Union([Type.Array(one, { maxItems: 100 }), ...one.anyOf], { description })
}

/** Creates the schema of one side of a rule: its consumers or its providers. */
export const ActorsInput = (description: string, options: { listed?: string } = {}) =>
  Type.Array(ActorInput, { minItems: 1, maxItems: 100, description, ...options })
/** The schemas of the parts of a rule in the form that callers write. */
export const RuleParts = {
  providers: ActorsInput('Destinations: ams, key=value, iplist:NAME, href …'),
  consumers: ActorsInput('Sources'),
  ingress_services: ServicesInput('By port and proto, service or href'),
  egress_services: NamedServicesInput('Windows consumers; allow only'),
  unscoped_consumers: Type.Boolean({ default: false, description: 'Beyond the scope' }),
  description: Type.String({ description: 'Text' }),
}

/** The schema of a new rule. */
export const RuleInput = Type.Object(
  {
    providers: RuleParts.providers,
    consumers: RuleParts.consumers,
    ingress_services: RuleParts.ingress_services,
    egress_services: Type.Optional(RuleParts.egress_services),
    unscoped_consumers: Type.Optional(RuleParts.unscoped_consumers),
    rule_type: Type.Optional(StringEnum(RULE_TYPES, { default: 'allow', description: 'override_deny beats allow' })),
    description: Type.Optional(RuleParts.description),
  },
  { additionalProperties: false },
)

/**
 * The arguments that replace fields of an existing rule. They have no defaults, because a default would change fields
 * that the caller did not mention.
 */
export const RuleChangeInput = {
  enabled: Type.Optional(Type.Boolean({ description: 'Switched on' })),
  providers: Type.Optional(ActorsInput('Replace the destinations')),
  consumers: Type.Optional(ActorsInput('Replace the sources')),
  ingress_services: Type.Optional(ServicesInput('By port and proto, service or href')),
  unscoped_consumers: Type.Optional(Type.Boolean({ description: 'Beyond the scope', listed: '' })),
  description: Type.Optional(RuleParts.description),
}
