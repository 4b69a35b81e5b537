import type { PolicyVersionSelector } from '../../schemas/common.js'
import type { IpList } from '../../schemas/pce/ip-list.js'
import type { LabelGroup } from '../../schemas/pce/label.js'
import type { EnforcementBoundary, RuleSet } from '../../schemas/pce/rule-set.js'
import type { Service } from '../../schemas/pce/service.js'
import type { LabelIndex } from '../inventory/labels.js'
import { catalogOf, type PolicySnapshot } from '../policy/load-snapshot.js'
import type { ReadType, WholePolicy } from './load-policy.js'

/**
 * Converts a whole version of the policy, also a past one, to the form in which the judges of connections take it. All
 * its deny rules were read, or `loadPolicy` would have thrown. Labels have no versions, so the present ones are used.
 */
export function snapshotOf(
  policy: WholePolicy,
  version: PolicyVersionSelector,
  labels: LabelIndex,
  /** A snapshot of a policy with the same IP lists, services and label groups, of which the catalog is used. */
  sharing?: PolicySnapshot,
): PolicySnapshot {
  const all = <T>(type: ReadType) => [...policy[type].values()] as unknown as T[]
  const catalog =
    sharing ??
    catalogOf({
      labels,
      services: all<Service>('services'),
      lists: all<IpList>('ip_lists'),
      groups: all<LabelGroup>('label_groups'),
    })
  return {
    ...catalog,
    version: version === 'draft' ? 'draft' : 'active',
    ruleSets: all<RuleSet>('rule_sets'),
    boundaries: all<EnforcementBoundary>('enforcement_boundaries'),
    unread: new Map(),
    pendingObjects: new Map(),
  }
}
