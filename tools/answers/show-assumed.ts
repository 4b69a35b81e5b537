/** Lists the facts about the PCE on which an answer hangs and that no source settles; nothing if it hangs on none. */
export const showAssumed = (facts: readonly string[]): { assumes?: string[] } =>
  facts.length === 0 ? {} : { assumes: [...new Set(facts)].sort() }
