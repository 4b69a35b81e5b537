import type { PolicyVersionSelector } from '../../schemas/common.js'
import type { IpList } from '../../schemas/pce/ip-list.js'
import type { LabelGroup } from '../../schemas/pce/label.js'
import type { EnforcementBoundary, RuleSet } from '../../schemas/pce/rule-set.js'
import type { Service } from '../../schemas/pce/service.js'
import type { LabelIndex } from '../inventory/labels.js'
import { catalogOf, type PolicySnapshot } from '../policy/load-snapshot.js'
import type { ReadType, WholePolicy } from './load-policy.js'

/**
 * Converts a complete version of the policy, which may be a past one, to the form that connection judges need. All its
 * deny rules are present, because `loadPolicy` throws otherwise. Labels have no versions, so the present labels are
 * used.
 */
export function snapshotOf(
  policy: WholePolicy,
  version: PolicyVersionSelector,
  labels: LabelIndex,
  /**
   * A snapshot of another policy with the same IP lists, services and label groups, whose catalog can be used again.
   */
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
