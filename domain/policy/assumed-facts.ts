import { isKubernetes } from '../inventory/kubernetes-workloads.js'
import { assumedBy, type Answer } from './three-valued.js'

/** A collection of the unconfirmed facts about the PCE on which an answer depends. */
export interface AssumedFacts {
  /**
   * Adds the facts on which an answer about rules depends: those behind the reasons why it is undecided, and P106 if
   * one end of the connection is a Kubernetes workload, because it is only assumed that rules reach Kubernetes
   * workloads by their labels.
   */
  add(answer: Answer, ...ends: readonly { workload: string | null }[]): void
  /** Returns each fact once, in alphabetical order. */
  list(): string[]
}

/** Creates an empty collection of assumed facts. */
export function collectAssumedFacts(): AssumedFacts {
  const facts = new Set<string>()
  const known = new Set<Answer>()
  const workloads = new Set<string | null>()
  return {
    add(answer, ...ends) {
      if (!known.has(answer)) for (const fact of assumedBy([answer])) facts.add(fact)
      known.add(answer)
      for (const { workload: href } of ends) {
        if (href !== null && !workloads.has(href) && isKubernetes({ href })) facts.add('P106')
        workloads.add(href)
      }
    },
    list: () => [...facts].sort(),
  }
}
