import { completeTool } from './answers/approval/complete-tool.js'
import type { AnyTool } from './define.js'
import getContainerClusters from './containers/get-container-clusters.js'
import getContainerWorkloadProfiles from './containers/get-container-workload-profiles.js'
import getKubernetesWorkloads from './containers/get-kubernetes-workloads.js'
import updateContainerWorkloadProfile from './containers/update-container-workload-profile.js'
import checkPceCredentialsStatus from './credentials/check-pce-credentials-status.js'
import deletePceCredentials from './credentials/delete-pce-credentials.js'
import registerPceCredentials from './credentials/register-pce-credentials.js'
import previewEnforcementChange from './enforcement/preview-enforcement-change.js'
import setEnforcementMode from './enforcement/set-enforcement-mode.js'
import explainFlow from './explain/explain-flow.js'
import identityReach from './explain/identity-reach.js'
import suggestRule from './explain/suggest-rule.js'
import exposureReport from './hygiene/exposure-report.js'
import findListeners from './hygiene/find-listeners.js'
import findRedundantRules from './hygiene/find-redundant-rules.js'
import findUnused from './hygiene/find-unused.js'
import comparePolicyVersions from './history/compare-policy-versions.js'
import discardDraftChanges from './history/discard-draft-changes.js'
import listPolicyVersions from './history/list-policy-versions.js'
import resolvePolicy from './history/resolve-policy.js'
import restorePolicyObject from './history/restore-policy-object.js'
import restorePolicyVersion from './history/restore-policy-version.js'
import reviewDraft from './history/review-draft.js'
import whoChanged from './history/who-changed.js'
import findUnlabelledWorkloads from './hygiene/find-unlabelled-workloads.js'
import labelWorkloads from './hygiene/label-workloads.js'
import createIplist from './ip-lists/create-iplist.js'
import deleteIplist from './ip-lists/delete-iplist.js'
import editIpListRanges from './ip-lists/edit-ip-list-ranges.js'
import getIpListMatches from './ip-lists/get-ip-list-matches.js'
import getIplists from './ip-lists/get-iplists.js'
import updateIplist from './ip-lists/update-iplist.js'
import createLabel from './labels/create-label.js'
import createLabelDimension from './label-dimensions/create-label-dimension.js'
import deleteLabelDimension from './label-dimensions/delete-label-dimension.js'
import updateLabelDimension from './label-dimensions/update-label-dimension.js'
import createPairingKey from './pairing/create-pairing-key.js'
import createPairingProfile from './pairing/create-pairing-profile.js'
import deletePairingKeys from './pairing/delete-pairing-keys.js'
import deletePairingProfile from './pairing/delete-pairing-profile.js'
import updatePairingProfile from './pairing/update-pairing-profile.js'
import createLabelGroup from './labels/create-label-group.js'
import deleteLabelGroup from './labels/delete-label-group.js'
import deleteLabel from './labels/delete-label.js'
import getLabelGroups from './labels/get-label-groups.js'
import getLabels from './labels/get-labels.js'
import updateLabelGroup from './labels/update-label-group.js'
import updateLabel from './labels/update-label.js'
import checkPceConnection from './pce/check-pce-connection.js'
import getEvents from './pce/get-events.js'
import getPairingProfiles from './pce/get-pairing-profiles.js'
import compareDraftActive from './policy/compare-draft-active.js'
import complianceCheck from './policy/compliance-check.js'
import enforcementReadiness from './policy/enforcement-readiness.js'
import getPolicyCoverageReport from './policy/get-policy-coverage-report.js'
import provisionPolicy from './policy/provision-policy.js'
import createRingfence from './ringfence/create-ringfence.js'
import detectLateralMovementPaths from './ringfence/detect-lateral-movement-paths.js'
import ringfenceBatch from './ringfence/ringfence-batch.js'
import createDenyRule from './rulesets/create-deny-rule.js'
import createRule from './rulesets/create-rule.js'
import createRuleset from './rulesets/create-ruleset.js'
import deleteDenyRule from './rulesets/delete-deny-rule.js'
import deleteRuleset from './rulesets/delete-ruleset.js'
import deleteSecRule from './rulesets/delete-sec-rule.js'
import findRules from './rulesets/find-rules.js'
import getRulesets from './rulesets/get-rulesets.js'
import planPortClosure from './rulesets/plan-port-closure.js'
import retireExpired from './rulesets/retire-expired.js'
import updateDenyRule from './rulesets/update-deny-rule.js'
import updateRuleset from './rulesets/update-ruleset.js'
import updateSecRule from './rulesets/update-sec-rule.js'
import getServerChangelog from './server/get-server-changelog.js'
import createService from './services/create-service.js'
import deleteService from './services/delete-service.js'
import getServices from './services/get-services.js'
import identifyInfrastructureServices from './services/identify-infrastructure-services.js'
import updateService from './services/update-service.js'
import compareTraffic from './traffic/compare-traffic.js'
import discoverProcessEgress from './traffic/discover-process-egress.js'
import findUnmanagedTraffic from './traffic/find-unmanaged-traffic.js'
import getTrafficFlowsSummary from './traffic/get-traffic-flows-summary.js'
import getTrafficFlows from './traffic/get-traffic-flows.js'
import findStaleVens from './vens/find-stale-vens.js'
import getCompatibilityReports from './vens/get-compatibility-reports.js'
import getVens from './vens/get-vens.js'
import requestVenSupportReports from './vens/request-ven-support-reports.js'
import setVenStatus from './vens/set-ven-status.js'
import unpairVens from './vens/unpair-vens.js'
import upgradeVens from './vens/upgrade-vens.js'
import venHealthReport from './vens/ven-health-report.js'
import bindWorkloads from './virtual-services/bind-workloads.js'
import createVirtualService from './virtual-services/create-virtual-service.js'
import deleteVirtualService from './virtual-services/delete-virtual-service.js'
import getVirtualServices from './virtual-services/get-virtual-services.js'
import updateVirtualService from './virtual-services/update-virtual-service.js'
import createWorkload from './workloads/create-workload.js'
import deleteWorkload from './workloads/delete-workload.js'
import findDuplicateWorkloads from './workloads/find-duplicate-workloads.js'
import getWorkloadEnforcementStatus from './workloads/get-workload-enforcement-status.js'
import getWorkloads from './workloads/get-workloads.js'
import importWorkloads from './workloads/import-workloads.js'
import updateWorkload from './workloads/update-workload.js'

const listed: readonly AnyTool[] = [
  bindWorkloads,
  checkPceConnection,
  checkPceCredentialsStatus,
  compareDraftActive,
  comparePolicyVersions,
  compareTraffic,
  complianceCheck,
  createDenyRule,
  createIplist,
  createLabel,
  createLabelDimension,
  createLabelGroup,
  createPairingKey,
  createPairingProfile,
  createRingfence,
  createRule,
  createRuleset,
  createService,
  createVirtualService,
  createWorkload,
  deleteDenyRule,
  deleteIplist,
  deleteLabel,
  deleteLabelDimension,
  deleteLabelGroup,
  deletePairingKeys,
  deletePairingProfile,
  deletePceCredentials,
  deleteRuleset,
  deleteSecRule,
  deleteService,
  deleteVirtualService,
  deleteWorkload,
  detectLateralMovementPaths,
  discardDraftChanges,
  discoverProcessEgress,
  editIpListRanges,
  enforcementReadiness,
  explainFlow,
  exposureReport,
  findDuplicateWorkloads,
  findListeners,
  findRedundantRules,
  findRules,
  findStaleVens,
  findUnlabelledWorkloads,
  findUnmanagedTraffic,
  findUnused,
  getCompatibilityReports,
  getContainerClusters,
  getContainerWorkloadProfiles,
  getEvents,
  getIpListMatches,
  getIplists,
  getKubernetesWorkloads,
  getLabelGroups,
  getLabels,
  getPairingProfiles,
  getPolicyCoverageReport,
  getRulesets,
  getServerChangelog,
  getServices,
  getTrafficFlows,
  getTrafficFlowsSummary,
  getVens,
  getVirtualServices,
  getWorkloadEnforcementStatus,
  getWorkloads,
  identifyInfrastructureServices,
  identityReach,
  importWorkloads,
  labelWorkloads,
  listPolicyVersions,
  planPortClosure,
  previewEnforcementChange,
  provisionPolicy,
  registerPceCredentials,
  requestVenSupportReports,
  resolvePolicy,
  restorePolicyObject,
  restorePolicyVersion,
  retireExpired,
  reviewDraft,
  ringfenceBatch,
  setEnforcementMode,
  setVenStatus,
  suggestRule,
  unpairVens,
  updateContainerWorkloadProfile,
  updateDenyRule,
  updateIplist,
  updateLabel,
  updateLabelDimension,
  updateLabelGroup,
  updatePairingProfile,
  updateRuleset,
  updateSecRule,
  updateService,
  updateVirtualService,
  updateWorkload,
  upgradeVens,
  venHealthReport,
  whoChanged,
]

/** All tools of the server, sorted by name and completed by `completeTool`. */
export const tools: readonly AnyTool[] = listed.map(completeTool)
