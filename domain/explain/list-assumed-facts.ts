import { collectAssumedFacts } from '../policy/assumed-facts.js'
import type { JudgedFlow } from './prepare-flow.js'

/** Lists the facts about the PCE that no source settles and on which the verdict about a flow hangs. */
export function listAssumedFacts({ sources, destinations, verdict }: JudgedFlow): string[] {
  const assumed = collectAssumedFacts()
  for (const { active, draft } of verdict.outcomes) for (const { undecided } of [active, draft]) assumed.add(undecided)
  assumed.add('no', ...sources.members, ...destinations.members)
  return assumed.list()
}
