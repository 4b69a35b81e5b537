import { Type } from '@sinclair/typebox'

/**
 * Creates the argument that selects parts of an analysis by name. The names are neither an enumeration nor shown in
 * tools/list, which would make every conversation longer. Callers find them in answers, and in the error for an unknown
 * name (D256).
 */
export const SectionsInput = (names: readonly string[]) => ({
  sections: Type.Optional(
    Type.Array(Type.String(), {
      minItems: 1,
      maxItems: 100,
      description: `Only these parts: ${names.join(', ')}`,
      listed: '',
    }),
  ),
})

/** The output property that names the parts which the argument `sections` has excluded. */
export const SectionsOutput = {
  sections_left_out: Type.Optional(
    Type.Array(Type.String(), { description: 'Parts that sections leaves out, empty ones aside where that is known' }),
  ),
}
