/** Lists the facts about the PCE that no source settles, but on which an answer depends; nothing if there are none. */
export const showAssumed = (facts: readonly string[]): { assumes?: string[] } =>
  facts.length === 0 ? {} : { assumes: [...new Set(facts)].sort() }
