import { Type } from '@sinclair/typebox'
import { Nullable } from './common.js'
import { ActorOut, RuleTypeOut } from './rule-shapes.js'

/** A stored rule in answers; `resolve_labels_as` is of allow rules. */
export const RuleOut = Type.Object(
  {
    rule_type: RuleTypeOut,
    href: Type.String(),
    enabled: Type.Boolean(),
    description: Nullable(Type.String()),
    resolve_labels_as: Type.Optional(Type.Object({})),
    consumers: Type.Array(ActorOut),
    providers: Type.Array(ActorOut),
    ingress_services: Type.Array(Type.Object({}), { description: '{href, name} or {port, to_port?, proto}' }),
    egress_services: Type.Optional(Type.Array(Type.Object({}))),
    unscoped_consumers: Type.Boolean(),
    update_type: Type.Optional(Type.String({ description: 'Pending change' })),
  },
  { description: 'As stored' },
)

/** Services a caller named, as they were understood: `{href, resolved_name}` or ports. */
export const ResolvedServices = Type.Optional(Type.Array(Type.Object({}), { description: 'As understood' }))
