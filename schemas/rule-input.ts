import { Type } from '@sinclair/typebox'
import { StringEnum } from './common.js'
import { TextOrObject } from './label-reference.js'
import { RULE_TYPES } from './rule-shapes.js'

/** A label or label group in a scope, or an end of a rule, as callers write it. */
export const ActorInput = TextOrObject<{ key?: string; value?: string; href?: string; exclusion?: boolean }>()

export interface ServiceObject {
  port?: number
  to_port?: number
  proto?: string | number
  href?: string
  service?: string
}

/** A list of services; one service stands for a list of one, and a string for a service's name (tools contract, A5). */
const services = (description: string) => {
  const one = TextOrObject<ServiceObject>()
  return Type.Union([Type.Array(one, { maxItems: 100 }), ...one.anyOf], { description })
}

/** A rule to create. */
export const RuleInput = Type.Object(
  {
    providers: Type.Array(ActorInput, {
      minItems: 1,
      maxItems: 100,
      description:
        'Destinations: "ams" (all workloads), key=value, iplist:NAME, labelgroup:NAME, workload:NAME, href, or {key, value, exclusion?} (exclusion: all but this)',
    }),
    consumers: Type.Array(ActorInput, { minItems: 1, maxItems: 100, description: 'Sources, same forms' }),
    ingress_services: services(
      'One or a list of {port, proto: tcp|udp, to_port?}, {service: exact name} or {href}; "All Services" is everything',
    ),
    egress_services: Type.Optional(
      services('Windows process services of the consumer, {service} or {href}; allow rules only'),
    ),
    unscoped_consumers: Type.Optional(Type.Boolean({ default: false, description: 'Consumers outside the scope too' })),
    rule_type: Type.Optional(
      StringEnum(RULE_TYPES, { default: 'allow', description: 'override_deny beats every allow' }),
    ),
    description: Type.Optional(Type.String({ maxLength: 255, description: 'Free text' })),
  },
  { additionalProperties: false },
)
