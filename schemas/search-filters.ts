import { Type } from '@sinclair/typebox'

/**
 * Creates the schema of a filter by text. It matches values that contain the given text or, if `exact` is set, values
 * that equal it.
 */
export const Part = (of?: string) =>
  Type.Optional(Type.String({ minLength: 1, description: of === undefined ? 'Contains' : `Contains; ${of}` }))

/** The `policy_version` argument of every tool that lists policy objects. `readPolicyVersion` reads this argument. */
export const PolicyVersionInput = {
  policy_version: Type.Optional(
    Type.Union([Type.String(), Type.Integer()], {
      description: 'draft (default), active, number',
    }),
  ),
}

/**
 * The output property with the policy version that was read, in the same form as the argument. Every answer with policy
 * objects has this property.
 */
export const PolicyVersionOut = {
  policy_version: Type.String({ description: 'Which was read' }),
}

/** The `exact` argument of every list tool with text filters. */
export const ExactInput = {
  exact: Type.Optional(Type.Boolean({ description: 'Not parts' })),
}
