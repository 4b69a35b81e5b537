import { Type } from '@sinclair/typebox'

/** A filter that finds what contains a text, unless `exact` is set. */
export const Part = (of?: string) =>
  Type.Optional(Type.String({ minLength: 1, description: of === undefined ? 'Part' : `Part; ${of}` }))

/** Of every list of policy objects: `readPolicyVersion` reads it. */
export const PolicyVersionInput = {
  policy_version: Type.Optional(
    Type.Union([Type.String(), Type.Integer({ minimum: 1 })], { description: 'draft (default), active or a number' }),
  ),
}

/** Of every list tool that has such filters. */
export const ExactInput = {
  exact: Type.Optional(Type.Boolean({ description: 'Whole, not part' })),
}
