import { Type } from '@sinclair/typebox'

/**
 * Creates the argument that chooses parts of an analysis's answer by name. The names are neither an enumeration nor in
 * the list of tools, because every conversation would pay for them: answers show them, and the error of an unknown name
 * lists them (D256).
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

/** The output field of an answer with chosen parts. */
export const SectionsOutput = {
  sections_left_out: Type.Optional(
    Type.Array(Type.String(), { description: 'Parts that sections leaves out, empty ones aside where that is known' }),
  ),
}
