import type { PceClient } from '../../pce-client/index.js'
import type { IpList } from '../../schemas/pce/ip-list.js'
import type { LabelIndex } from '../inventory/labels.js'
import { hasIpTablesFor } from '../policy/ip-tables.js'
import { loadSnapshot, pendingHolders, withDenyRules, type PolicySnapshot } from '../policy/load-snapshot.js'
import type { End } from '../policy/match-rules.js'

interface Source {
  pce: PceClient
  signal: AbortSignal
}

/** Both versions of the policy with their deny rules. They are the same object if no pending change affects traffic. */
export interface PolicyVersions {
  active: PolicySnapshot
  draft: PolicySnapshot
}

/**
 * Reads both versions of the policy. Rule sets whose deny rules cannot be read are listed in `unread` of a version.
 * @throws the errors of the PCE client.
 */
export async function readVersions(source: Source, labels: LabelIndex): Promise<PolicyVersions> {
  const draft = await withDenyRules(source, await loadSnapshot(source, 'draft', labels))
  const isPending = pendingHolders(draft).length > 0 || draft.pendingObjects.size > 0
  const active = isPending ? await withDenyRules(source, await loadSnapshot(source, 'active', labels)) : draft
  return { draft, active }
}

/** Returns the IP lists that rules in either version use. Lists that could not be read are left out. */
export function listsInRules({ active, draft }: PolicyVersions): IpList[] {
  return [...new Set([active, draft])].flatMap(({ ruleSets, boundaries, listOf }) => {
    const holders = [...ruleSets.flatMap((set) => [...(set.rules ?? []), ...(set.deny_rules ?? [])]), ...boundaries]
    const hrefs = holders.flatMap(({ providers, consumers }) =>
      [...providers, ...consumers].flatMap(({ ip_list: list }) => list?.href ?? []),
    )
    return [...new Set(hrefs)].flatMap((href) => listOf(href) ?? [])
  })
}

/**
 * Returns the names of the rule sets, in force in either version, that have iptables rules for one of the ends. What
 * iptables rules do to a flow cannot be determined.
 */
export function listIpTables({ active, draft }: PolicyVersions, ends: readonly End[]): string[] {
  const names = [...new Set([active, draft])].flatMap((policy) =>
    policy.ruleSets
      .filter((set) => ends.some((end) => hasIpTablesFor(set, end, policy) !== 'no'))
      .map(({ name }) => name),
  )
  return [...new Set(names)]
}
