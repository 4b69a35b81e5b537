import { Type } from '@sinclair/typebox'
import { ActionError, VenImage, VenRelease, VenStatistics } from '../../../schemas/pce/ven.js'
import { CreatedApiKey, OrgApiKey, UserApiKey, LoginSession } from '../../../schemas/pce/access.js'
import { ImportResult, WorkloadInterface } from '../../../schemas/pce/workload.js'
import { IpList } from '../../../schemas/pce/ip-list.js'
import { LabelMappingRun, LabelRef } from '../../../schemas/pce/label.js'
import {
  ModifiedPolicyObject,
  PolicyDependency,
  PolicyImpact,
  PolicyVersion,
  TypedPendingChange,
  CheckedRule,
  FoundRule,
  PolicyCheck,
} from '../../../schemas/pce/policy.js'
import { AnyFields } from '../../../schemas/pce/reference.js'
import { AppGroupRisk, CoreServicesSummary, RiskDetails, RiskSummary } from '../../../schemas/pce/risk.js'
import { ServiceBackend } from '../../../schemas/pce/container-cluster.js'
import { Service } from '../../../schemas/pce/service.js'
import { NodeAvailability, ProductVersion, SuperclusterLeader } from '../../../schemas/pce/status.js'
import { AsyncTrafficQuery, TrafficDatabaseMetrics, TrafficFlow } from '../../../schemas/pce/traffic.js'

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
