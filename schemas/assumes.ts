import { Type } from '@sinclair/typebox'

/** The output property of every tool whose judgements may depend on facts about the PCE that no source settles. */
export const AssumesOut = {
  assumes: Type.Optional(
    Type.Array(Type.String(), { description: 'Facts about the PCE (P…) on which it hangs and that no source settles' }),
  ),
}
