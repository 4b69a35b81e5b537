import { Type } from '@sinclair/typebox'

/** The output property of every tool whose answers may depend on facts about the PCE that no source settles. */
export const AssumesOut = {
  assumes: Type.Optional(
    Type.Array(Type.String(), { description: 'Facts about the PCE (P…) it hangs on, settled by no source' }),
  ),
}

/**
 * Returns `{ assumes }` with the facts about the PCE that no source settles and on which an answer depends, or `{}` if
 * there are no such facts.
 */
export const showAssumed = (facts: readonly string[]): { assumes?: string[] } =>
  facts.length === 0 ? {} : { assumes: [...new Set(facts)].sort() }

/** Like `showAssumed`, for several results: returns the facts on which any of them depends, each listed only once. */
export const showAssumedBy = (judged: readonly { assumes?: readonly string[] }[]): { assumes?: string[] } =>
  showAssumed(judged.flatMap(({ assumes = [] }) => assumes))
