import { Type, type Static } from '@sinclair/typebox'
import {
  AnyFields,
  EXTERNAL_FIELDS,
  List,
  Maybe,
  MaybeFlag,
  MaybeList,
  MaybeNumber,
  MaybeText,
  OBJECT_FIELDS,
  Reference,
  OneOf,
  VERSIONED_FIELDS,
  type Read,
} from './reference.js'

/** A label as it appears in other objects; older releases give only its href. */
export const LabelRef = Type.Object({
  href: Type.String(),
  key: Type.Optional(Type.String()),
  value: Type.Optional(Type.String()),
})
export type LabelRef = Static<typeof LabelRef>

export const LabelGroupRef = Type.Object({
  href: Type.String(),
  key: Type.Optional(Type.String()),
  name: Type.Optional(Type.String()),
})

/** A label: a key (dimension) and a value. Labels are not versioned, so changes take effect at once (P14). */
export const Label = Type.Object({
  ...OBJECT_FIELDS,
  ...EXTERNAL_FIELDS,
  key: Type.String(),
  value: Type.String(),
  deleted: MaybeFlag,
  /** For each kind of object, whether objects of this kind use the label; returned only on request. */
  usage: Type.Optional(Type.Record(Type.String(), Type.Boolean())),
})
export type Label = Read<typeof Label>

/** A key that labels can have, such as role or app. */
export const LabelDimension = Type.Object({
  ...OBJECT_FIELDS,
  ...EXTERNAL_FIELDS,
  key: Type.String(),
  display_name: Type.String(),
  /** The look of the dimension in the PCE's console: icon, initial, colours and position. */
  display_info: Maybe(AnyFields),
  usage: Maybe(Type.Object({ labels: MaybeFlag, label_groups: MaybeFlag })),
  deleted: MaybeFlag,
  deleted_at: MaybeText,
})
export type LabelDimension = Read<typeof LabelDimension>

/** A named group of labels that share a key (P15). */
export const LabelGroup = Type.Object({
  ...VERSIONED_FIELDS,
  ...EXTERNAL_FIELDS,
  name: Type.String(),
  key: Type.String(),
  description: MaybeText,
  labels: MaybeList(LabelRef),
  sub_groups: MaybeList(Type.Object({ href: Type.String(), name: Type.String() })),
  /** For each kind of object, whether objects of this kind use the label group; returned only on request. */
  usage: Type.Optional(Type.Record(Type.String(), Type.Boolean())),
})
export type LabelGroup = Read<typeof LabelGroup>

const PortRange = Type.Object({ port: MaybeNumber, to_port: MaybeNumber, proto: MaybeNumber })
/** A comparison of one property, or several comparisons combined with and, or, not. */
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

/**
 * A rule that assigns labels to workloads that match an expression. Several rules are evaluated in their order (P28).
 */
export const LabelMappingRule = Type.Object({
  ...OBJECT_FIELDS,
  enabled: MaybeFlag,
  expression: LabelRuleExpression,
  /**
   * The labels to assign, each by its href, or by key and value. A label given by key and value is created if it does
   * not exist.
   */
  label_assignments: List(
    Type.Object({
      label: Type.Union([Reference, Type.Object({ key: MaybeText, value: MaybeText })]),
    }),
  ),
  overwrite: MaybeFlag,
})
export type LabelMappingRule = Read<typeof LabelMappingRule>

/**
 * A run of label mapping rules: a job that finds the labels which the rules would assign, and assigns them on request.
 */
export const LabelMappingRun = Type.Object({
  href: Type.String(),
  status: Type.String(),
  progress_percent: MaybeNumber,
  /** The place where the result can be read; absent until the job has a result. */
  result: MaybeText,
  created_at: Type.Optional(Type.String()),
  created_by: Maybe(Reference),
  updated_at: MaybeText,
  label_mapping_params: Maybe(
    Type.Object({
      workloads: MaybeList(Reference),
      rules: MaybeList(Reference),
      assign_labels: MaybeFlag,
    }),
  ),
})
export type LabelMappingRun = Read<typeof LabelMappingRun>

/** The workloads and rules of a run; an absent list means all. */
export interface LabelMappingRunRequest {
  workloads?: readonly Reference[]
  rules?: readonly Reference[]
  assign_labels?: boolean
}
