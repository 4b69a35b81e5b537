import { collectAssumedFacts } from '../policy/assumed-facts.js'
import { assumedOfIpTables } from '../policy/ip-tables.js'
import type { JudgedFlow } from './prepare-flow.js'
import { listIpTables } from './read-versions.js'

/** Lists the unconfirmed assumptions about the PCE on which the verdict about a flow depends. */
export function listAssumedFacts({ sources, destinations, verdict, versions }: JudgedFlow): string[] {
  const assumed = collectAssumedFacts()
  for (const { active, draft } of verdict.outcomes) for (const { undecided } of [active, draft]) assumed.add(undecided)
  const ends = [...sources.members, ...destinations.members]
  assumed.add('no', ...ends)
  return [...assumed.list(), ...assumedOfIpTables(listIpTables(versions, ends).length)]
}
