import { Type } from '@sinclair/typebox'
import { ActionError } from './action-error.js'
import { CreatedApiKey, OrgApiKey, UserApiKey } from './api-key.js'
import { ImportResult } from './import-result.js'
import { IpList } from './ip-list.js'
import { LabelMappingRun } from './label-mapping-run.js'
import { LabelRef } from './label.js'
import { LoginSession } from './login-session.js'
import { ModifiedPolicyObject, PolicyDependency, PolicyImpact, PolicyVersion, TypedPendingChange } from './policy.js'
import { CheckedRule, FoundRule, PolicyCheck } from './policy-search.js'
import { AnyFields } from './reference.js'
import { AppGroupRisk, CoreServicesSummary, RiskDetails, RiskSummary } from './risk.js'
import { ServiceBackend } from './service-backend.js'
import { Service } from './service.js'
import { VenImage, VenRelease } from './software-release.js'
import { NodeAvailability, ProductVersion, SuperclusterLeader } from './status.js'
import { AsyncTrafficQuery, TrafficDatabaseMetrics, TrafficFlow } from './traffic.js'
import { VenStatistics } from './ven-statistics.js'
import { WorkloadInterface } from './workload.js'

/** What one object of a bulk call became; an empty list of errors is success. */
export const BulkResult = Type.Object({
  href: Type.Optional(Type.String()),
  errors: Type.Array(Type.Object({ token: Type.String(), message: Type.String() })),
})

/** A label group that contains another one. */
const ContainingGroup = Type.Object({ href: Type.String(), name: Type.Optional(Type.String()) })

/**
 * What every named operation that answers data answers, under the client's method: the result as the client gives it, which for
 * some is not the PCE's own (see the method). Operations without data and downloads are not here.
 */
export const OPERATION_RESULTS = {
  getDefaultIpList: IpList,
  getDefaultService: Service,
  generatePairingKey: Type.String(),

  getTrafficFlows: Type.Array(TrafficFlow),
  getTrafficFlowsAsync: Type.Array(TrafficFlow),
  getAsyncQueries: Type.Array(AsyncTrafficQuery),
  getTrafficFlowDbMetrics: TrafficDatabaseMetrics,

  provisionPolicyChanges: PolicyVersion,
  getPendingPolicyChanges: Type.Array(TypedPendingChange),
  getPolicyDependencies: Type.Array(PolicyDependency),
  getModifiedPolicyObjects: Type.Array(ModifiedPolicyObject),
  checkPolicy: PolicyCheck,
  getPolicyAllow: Type.Array(CheckedRule),
  analyzePolicyImpact: PolicyImpact,
  restorePolicy: AnyFields,
  searchRules: Type.Array(FoundRule),

  createServiceAccountApiKey: CreatedApiKey,
  getUserApiKeys: Type.Array(UserApiKey),
  createUserApiKey: CreatedApiKey,
  getOrgApiKeys: Type.Array(OrgApiKey),
  loginUser: LoginSession,
  verifyLdapConnection: AnyFields,

  requestEnforcementInstructions: AnyFields,

  getContainerServiceBackends: Type.Array(ServiceBackend),
  getRiskSummary: RiskSummary,
  getDetectedCoreServicesSummary: Type.Array(CoreServicesSummary),
  getAppGroupRiskSummary: Type.Array(AppGroupRisk),
  getAppGroupRiskDetails: RiskDetails,

  unpairVens: Type.Array(ActionError),
  upgradeVens: Type.Array(ActionError),
  venRemoteAction: Type.Array(ActionError),
  venAuthRecovery: Type.Array(ActionError),
  getVenStatistics: VenStatistics,
  getVenSoftwareReleases: Type.Array(VenRelease),
  getVenSoftwareRelease: VenRelease,
  getVenReleaseImages: Type.Array(VenImage),

  getWorkloadInterfaces: Type.Array(WorkloadInterface),
  createWorkloadInterface: WorkloadInterface,
  getWorkloadRiskDetails: RiskDetails,
  unpairWorkloads: Type.Array(ActionError),
  bulkImportWorkloads: Type.Array(ImportResult),

  getLabelGroupAllLabels: Type.Array(LabelRef),
  getLabelGroupMemberOf: Type.Array(ContainingGroup),
  bulkUpdateLabelMappingRules: Type.Array(BulkResult),
  runLabelMappingRules: LabelMappingRun,
  getLabelMappingJob: LabelMappingRun,

  getProductVersion: ProductVersion,
  getNodeAvailable: NodeAvailability,
  getSuperclusterLeader: SuperclusterLeader,
}
