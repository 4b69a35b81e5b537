import type { EnforcementBoundary, IngressService, RuleSet } from '../../schemas/pce/rule-set.js'
import type { IpList } from '../../schemas/pce/ip-list.js'
import type { ChangeSubsetType } from '../../schemas/pce/words.js'
import type { PceObject, Reference, VersionedObject } from '../../schemas/pce/reference.js'
import type { Service } from '../../schemas/pce/service.js'
import { kindOf } from '../kinds/index.js'
import { collectHrefs } from '../kinds/find-usage.js'
import { expandGroup } from '../kinds/expand-group.js'
import { bodiesAt } from '../kinds/policy-version.js'
import { serviceBinding } from '../kinds/service-binding.js'
import type { BoundService, PolicyView, PortOverride } from '../model.js'
import type { World } from '../world.js'

/**
 * Builds the view of a policy version. This can be the active version, a past version, or the version that provisioning
 * all pending changes would create. All hrefs in a view are draft hrefs. Throws 404 for an unknown version.
 */
export function buildPolicyView(world: World, version: string): PolicyView {
  const bodies = (type: ChangeSubsetType): VersionedObject[] =>
    bodiesAt(world, type, version).flatMap(({ body, updateType }) => {
      if (updateType === 'delete') return []
      return version === 'draft' ? [kindOf(type).settle?.(body) ?? body] : [body]
    })
  const byHref = <T>(type: ChangeSubsetType) => new Map(bodies(type).map((body) => [body.href, body as T]))
  const groups = byHref<VersionedObject>('label_groups')
  const bindings = serviceBinding.store(world).live()
  return {
    ruleSets: bodies('rule_sets') as RuleSet[],
    ipLists: byHref<IpList>('ip_lists'),
    services: byHref<Service>('services'),
    labelGroups: new Map([...groups.keys()].map((href) => [href, expandGroup(href, (group) => groups.get(group))])),
    boundaries: bodies('enforcement_boundaries') as EnforcementBoundary[],
    virtualServices: bodies('virtual_services').map((body) => bindService(body, bindings)),
  }
}

function bindService(body: VersionedObject, bindings: readonly PceObject[]): BoundService {
  const active = body.href.replace('/sec_policy/draft/', '/sec_policy/active/')
  return {
    href: body.href,
    labels: [...collectHrefs(body.labels)],
    services: (body.service ? [body.service] : (body.service_ports ?? [])) as IngressService[],
    bindings: bindings.flatMap(({ virtual_service, workload, port_overrides }) => {
      if ((virtual_service as Reference).href !== active || !workload) return []
      return [{ workload: (workload as Reference).href, portOverrides: (port_overrides ?? []) as PortOverride[] }]
    }),
  }
}
