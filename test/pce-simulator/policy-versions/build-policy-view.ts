import type { IpList } from '../../../schemas/pce/ip-list.js'
import type { ChangeSubsetType } from '../../../schemas/pce/policy.js'
import type { VersionedObject } from '../../../schemas/pce/reference.js'
import type { RuleSet } from '../../../schemas/pce/rule-set.js'
import type { Service } from '../../../schemas/pce/service.js'
import { kindOf } from '../kinds/index.js'
import { expandGroup } from '../kinds/expand-group.js'
import type { PolicyView } from '../model.js'
import type { World } from '../world.js'

/** The policy as it is in force, or as it would be if everything pending were provisioned. Hrefs are draft hrefs in both. */
export function buildPolicyView(world: World, version: 'active' | 'draft'): PolicyView {
  const bodies = (type: ChangeSubsetType): VersionedObject[] =>
    world.policy.entries(type).flatMap(({ active, draft, updateType }) => {
      if (version === 'active') return active === null ? [] : [active]
      return updateType === 'delete' ? [] : [kindOf(type).settle?.(draft) ?? draft]
    })
  const byHref = <T>(type: ChangeSubsetType) => new Map(bodies(type).map((body) => [body.href, body as T]))
  const groups = byHref<VersionedObject>('label_groups')
  return {
    ruleSets: bodies('rule_sets') as RuleSet[],
    ipLists: byHref<IpList>('ip_lists'),
    services: byHref<Service>('services'),
    labelGroups: new Map([...groups.keys()].map((href) => [href, expandGroup(href, (group) => groups.get(group))])),
  }
}
