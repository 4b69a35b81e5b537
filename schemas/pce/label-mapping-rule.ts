import { Type, type Static } from '@sinclair/typebox'
import { List, MaybeFlag, MaybeNumber, MaybeText, OBJECT_FIELDS, OneOf, Reference, type Read } from './reference.js'

const PortRange = Type.Object({ port: MaybeNumber, to_port: MaybeNumber, proto: MaybeNumber })

/** A comparison of one property, or comparisons joined by and, or, not. */
export const LabelRuleExpression = Type.Recursive(
  (Self) =>
    Type.Union([
      Type.Object({
        property: OneOf('hostname', 'ip_address', 'os', 'process', 'port'),
        operator: OneOf('starts_with', 'ends_with', 'contains', 'equals', 'is_in', 'regex'),
        values: Type.Array(Type.Union([Type.String(), PortRange])),
      }),
      Type.Object({
        logical_operator: OneOf('and', 'or', 'not'),
        child_expressions: Type.Array(Self),
      }),
    ]),
  { $id: 'LabelRuleExpression' },
)
export type LabelRuleExpression = Static<typeof LabelRuleExpression>

/** Gives labels to workloads that an expression matches; a list of them is evaluated in its order (P28). */
export const LabelMappingRule = Type.Object({
  ...OBJECT_FIELDS,
  enabled: MaybeFlag,
  expression: LabelRuleExpression,
  /** A label by href, or by key and value, which creates it. */
  label_assignments: List(
    Type.Object({
      label: Type.Union([Reference, Type.Object({ key: MaybeText, value: MaybeText })]),
    }),
  ),
  overwrite: MaybeFlag,
})
export type LabelMappingRule = Read<typeof LabelMappingRule>
