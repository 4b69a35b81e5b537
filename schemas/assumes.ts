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

/** The assumptions in words, for readers of answers who cannot look up the numbers in docs/pce-facts.md. */
const IN_WORDS: Partial<Record<string, string>> = {
  P19: 'how rules in the words of iptables mix with others is not documented',
  P51: 'whether a source in selective mode enforces deny rules is not documented',
  P65: 'whether a rule that excludes a label reaches workloads without any label of that key is not documented',
  P106: 'rules are taken to reach Kubernetes workloads by their labels',
  P107: 'that rules for the corporate network do not reach an end off it is said by one source alone',
  P129: 'the ports are those of the last report of a VEN, and when it reports is not documented',
}

/** Returns a note that says in words what the given numbers of assumptions mean; [] if nothing is assumed. */
export const explainAssumed = (facts: readonly string[]): string[] => {
  const said = [...new Set(facts)].sort().flatMap((fact) => {
    const words = IN_WORDS[fact]
    return words === undefined ? [] : [`${words} (${fact})`]
  })
  return said.length === 0 ? [] : [`Not certain: ${said.join('; ')}.`]
}

/** Like `showAssumed`, but for several results: returns the assumptions on which any of them depends, each only once. */
export const showAssumedBy = (judged: readonly { assumes?: readonly string[] }[]): { assumes?: string[] } =>
  showAssumed(judged.flatMap(({ assumes = [] }) => assumes))
