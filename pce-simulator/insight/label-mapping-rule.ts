import { Type, type Static } from '@sinclair/typebox'
import type { PceObject } from '../../schemas/pce/reference.js'
import type { PlainKind } from '../kinds/plain-kind.js'
import { invalidInput } from '../refusal.js'
import { requireLabel } from '../validate/check-references.js'
import { CLOSED, Href, Name, Shape } from '../validate/shape.js'
import type { World } from '../world.js'
import { LabelRuleExpression, compileExpression } from './match-expression.js'

const Assignments = Type.Array(
  Type.Union([
    Type.Object({ label: Href }, CLOSED),
    Type.Object({ label: Type.Object({ key: Type.String(), value: Name }, CLOSED) }, CLOSED),
  ]),
)
export type Assignment = Static<typeof Assignments>[number]

export const RULE_CHANGES = {
  enabled: Type.Optional(Type.Boolean()),
  expression: Type.Optional(LabelRuleExpression),
  label_assignments: Type.Optional(Assignments),
}
const Overwrite = Type.Optional(Type.Boolean())
const CREATE = new Shape(
  'label_mapping_rules_post',
  Type.Object({ expression: LabelRuleExpression, label_assignments: Assignments, overwrite: Overwrite }, CLOSED),
)
const UPDATE = new Shape('label_mapping_rules_put', Type.Object({ ...RULE_CHANGES, overwrite: Overwrite }, CLOSED))

/** A rule as it is kept. */
export interface LabelMappingRule extends PceObject {
  enabled: boolean
  expression: LabelRuleExpression
  label_assignments: Assignment[]
  overwrite: boolean
}

/** Label mapping rules, evaluated in the order of their list (P28). */
export const labelMappingRule: PlainKind = {
  segment: 'label_mapping_rules',
  noun: 'label_mapping_rule',
  ids: 'uuid',
  store: (world) => world.store('label_mapping_rules'),
  filters: {},

  build(world, body) {
    const { overwrite = false, ...fields } = CREATE.read(body)
    checkRule(world, fields)
    return { enabled: true, ...fields, overwrite }
  },

  change(world, _current, body) {
    const fields = UPDATE.read(body)
    checkRule(world, fields)
    return fields
  },

  remove: () => null,
  render: (_world, object) => object,
}

export function labelMappingRules(world: World): LabelMappingRule[] {
  return world.store('label_mapping_rules').all() as LabelMappingRule[]
}

/** An expression that can be evaluated, labels that exist or can be made, one of each key. */
export function checkRule(world: World, { expression, label_assignments }: Partial<LabelMappingRule>): void {
  if (expression) compileExpression(expression)
  const keys = new Set<string>()
  for (const { label } of label_assignments ?? []) {
    const key = 'href' in label ? requireLabel(world, label.href).key : label.key
    if (!world.labelDimensions.live().some((dimension) => dimension.key === key)) {
      throw invalidInput(`Label key ${key} is not a label dimension`)
    }
    if (keys.has(key)) throw invalidInput(`Only one label with the key ${key} can be assigned`)
    keys.add(key)
  }
}
