import type { Label } from '../../schemas/pce/label.js'
import type { PolicyView } from '../model.js'
import { compilePolicy, type RuleKind } from './compile-rules.js'
import type { EndFacts } from './match-actors.js'
import type { Address } from './match-addresses.js'
import type { ServiceFacts } from './match-services.js'

/** The source or destination of the connection for which rules are requested. */
export interface AskedEnd {
  workload: string | null
  labels: ReadonlySet<string>
  address: Address | null
}

/**
 * Finds the rules that would apply to a connection, whatever the enforcement modes of its source and destination: rules
 * enforced on the destination that include the source, and rules enforced on the source that include the destination. A
 * rule is found if it matches any of `services`.
 */
export function findRules(
  view: PolicyView,
  labels: ReadonlyMap<string, Label>,
  { src, dst, services }: { src: AskedEnd; dst: AskedEnd; services: readonly ServiceFacts[] },
  networks: ReadonlySet<string>,
): Record<RuleKind, Set<string>> {
  const policy = compilePolicy(view, labels, networks)
  const factsOf = ({ workload, labels: bears, address }: AskedEnd): EndFacts => {
    const covering = [...policy.ipLists].filter(([, covers]) => covers(address, null)).map(([key]) => key)
    return { workload, labels: bears, ipLists: new Set(covering) }
  }
  const [source, destination] = [factsOf(src), factsOf(dst)]
  const found: Record<RuleKind, Set<string>> = { override_deny: new Set(), allow: new Set(), deny: new Set() }
  for (const { href, kind, providers, consumers, matchesService } of policy.rules) {
    const offered = providers.asWorkload(destination)
    const asked = consumers.asWorkload(source)
    const speaks =
      (offered && (asked || consumers.asAddress(source))) || (asked && (offered || providers.asAddress(destination)))
    if (speaks && services.some(matchesService)) found[kind].add(href)
  }
  return found
}
