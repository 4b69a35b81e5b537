import type { ChangeSubsetType } from '../../schemas/pce/words.js'
import type { Route } from '../http/route.js'
import { enforcementBoundary } from './enforcement-boundary.js'
import { eventRoutes } from './event.js'
import { firewallSettings, firewallSettingsRoutes } from './firewall-settings.js'
import { genericKindRoutes } from './generic-kinds.js'
import { ipList } from './ip-list.js'
import { label } from './label.js'
import { labelDimension } from './label-dimension.js'
import { labelGroup } from './label-group.js'
import { labelGroupRoutes } from './label-group-routes.js'
import { pairingKeyRoutes, pairingProfile } from './pairing-profile.js'
import { plainRoutes } from './plain-kind.js'
import { RULE_KINDS } from './rule-kind.js'
import { ruleRoutes } from './rule-routes.js'
import { ruleSet } from './rule-set.js'
import { service } from './service.js'
import { serviceBinding } from './service-binding.js'
import { versionedRoutes, type VersionedKind } from './versioned-kind.js'
import { virtualServer } from './virtual-server.js'
import { virtualService } from './virtual-service.js'
import { virtualServiceBulkRoutes } from './virtual-service-bulk.js'
import { workload } from './workload.js'
import { workloadBulkRoutes } from './workload-bulk.js'

/** The table of versioned and plain object kinds. A new kind needs a file of its own and an entry here. */
const PLAIN_KINDS = [label, labelDimension, workload, pairingProfile, serviceBinding]
const VERSIONED_KINDS = [labelGroup, service, ipList, ruleSet, virtualService, virtualServer, enforcementBoundary]

const byType = new Map<ChangeSubsetType, VersionedKind>(
  [...VERSIONED_KINDS, firewallSettings].map((kind) => [kind.type, kind]),
)

/** Finds the object kind of an entry in the policy store. */
export function kindOf(type: ChangeSubsetType): VersionedKind {
  return byType.get(type)!
}

export const kindRoutes: Route[] = [
  ...PLAIN_KINDS.flatMap(plainRoutes),
  ...workloadBulkRoutes,
  ...pairingKeyRoutes,
  ...virtualServiceBulkRoutes,
  ...VERSIONED_KINDS.flatMap(versionedRoutes),
  ...labelGroupRoutes,
  ...RULE_KINDS.flatMap(ruleRoutes),
  ...firewallSettingsRoutes,
  ...genericKindRoutes,
  ...eventRoutes,
]
