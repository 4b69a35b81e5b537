import { Type } from '@sinclair/typebox'

/** The output property of tools whose answers may depend on assumptions, that is, on unproven facts about the PCE. */
export const AssumesOut = {
  assumes: Type.Optional(
    Type.Array(Type.String(), { description: 'Facts about the PCE (P…) it hangs on, settled by no source' }),
  ),
}

/**
 * Returns `{ assumes }` with the assumptions about the PCE on which an answer depends, or `{}` if it depends on none.
 */
export const showAssumed = (facts: readonly string[]): { assumes?: string[] } =>
  facts.length === 0 ? {} : { assumes: [...new Set(facts)].sort() }

/** Like `showAssumed`, but for several results: returns the assumptions on which any of them depends, each only once. */
export const showAssumedBy = (judged: readonly { assumes?: readonly string[] }[]): { assumes?: string[] } =>
  showAssumed(judged.flatMap(({ assumes = [] }) => assumes))
