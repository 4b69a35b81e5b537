import { Type } from '@sinclair/typebox'

/** The output property of every tool whose judgements may depend on facts about the PCE that no source settles. */
export const AssumesOut = {
  assumes: Type.Optional(
    Type.Array(Type.String(), { description: 'Facts about the PCE (P…) it hangs on, settled by no source' }),
  ),
}

/** Lists the facts about the PCE that no source settles, but on which an answer depends; nothing if there are none. */
export const showAssumed = (facts: readonly string[]): { assumes?: string[] } =>
  facts.length === 0 ? {} : { assumes: [...new Set(facts)].sort() }

/** Lists the facts on which these judgements hang, once for all of them; nothing if there are none. */
export const showAssumedBy = (judged: readonly { assumes?: readonly string[] }[]): { assumes?: string[] } =>
  showAssumed(judged.flatMap(({ assumes = [] }) => assumes))
