import type { PceClient } from '../../pce-client/index.js'
import type { IpList } from '../../schemas/pce/ip-list.js'
import type { LabelIndex } from '../inventory/labels.js'
import { isInForce, loadSnapshot, pendingHolders, withDenyRules, type PolicySnapshot } from '../policy/load-snapshot.js'

interface Source {
  pce: PceClient
  signal: AbortSignal
}

/** Both versions of the policy, with their deny rules; one object where nothing that decides about traffic is pending. */
export interface PolicyVersions {
  active: PolicySnapshot
  draft: PolicySnapshot
}

/** Throws what the PCE client throws. Deny rules that cannot be read are named in `unread`. */
export async function readVersions(source: Source, labels: LabelIndex): Promise<PolicyVersions> {
  const draft = await withDenyRules(source, await loadSnapshot(source, 'draft', labels))
  const isPending = pendingHolders(draft).length > 0 || draft.pendingObjects.size > 0
  const active = isPending ? await withDenyRules(source, await loadSnapshot(source, 'active', labels)) : draft
  return { draft, active }
}

/** The IP lists that rules of either version name; those that could not be read are left out. */
export function listsInRules({ active, draft }: PolicyVersions): IpList[] {
  return [...new Set([active, draft])].flatMap(({ ruleSets, boundaries, listOf }) => {
    const holders = [...ruleSets.flatMap((set) => [...(set.rules ?? []), ...(set.deny_rules ?? [])]), ...boundaries]
    const hrefs = holders.flatMap(({ providers, consumers }) =>
      [...providers, ...consumers].flatMap(({ ip_list: list }) => list?.href ?? []),
    )
    return [...new Set(hrefs)].flatMap((href) => listOf(href) ?? [])
  })
}

/** What in the policy in force, beside its rules, decides about traffic and is not judged: as sentences. */
export function listUnjudged({ ruleSets }: PolicySnapshot): string[] {
  const tables = ruleSets.filter((set) => isInForce(set) && (set.ip_tables_rules ?? []).some(isInForce))
  return tables.length === 0
    ? []
    : [
        `Rules in the words of iptables are not judged: ${tables
          .slice(0, 3)
          .map(({ name }) => name)
          .join(', ')}.`,
      ]
}
