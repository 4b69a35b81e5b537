import {
  AccessRestriction,
  AuthSecurityPrincipal,
  Permission,
  Role,
  SecurityPrincipal,
  ServiceAccount,
  User,
  AuthenticationSettings,
  LdapConfig,
  PasswordPolicy,
  SamlConfig,
} from './access.js'
import { AppGroupSummary, CoreServiceType, DetectedCoreService } from './risk.js'
import { ContainerCluster, ContainerWorkloadProfile, KubernetesWorkload } from './container-cluster.js'
import { EnforcementBoundary, DenyRule, Rule, RuleSet } from './rule-set.js'
import { SyslogDestination, TrafficCollectorSetting, PceEvent } from './event.js'
import {
  FirewallSettings,
  EventSettings,
  OptionalFeature,
  OrgSettings,
  ReportSettings,
  TrustedProxyIps,
  WorkloadSettings,
} from './settings.js'
import { IpList } from './ip-list.js'
import { Job } from './status.js'
import { LabelGroup, LabelMappingRule, Label, LabelDimension } from './label.js'
import { NetworkDevice, NetworkEndpoint, NetworkEnforcementNode } from './network-device.js'
import { PairingProfile, Ven } from './ven.js'
import { Report, ReportSchedule, ReportTemplate, SupportBundleRequest } from './report.js'
import { Service } from './service.js'
import { DiscoveredVirtualServer, Slb, VirtualServer, ServiceBinding, VirtualService } from './virtual-service.js'
import { Vulnerability, VulnerabilityReport } from './vulnerability.js'
import { Workload } from './workload.js'

/**
 * The schemas of all kinds of objects, by the kind's attribute name: `client[attribute].get()` returns a list of
 * objects with this schema.
 */
export const KIND_SCHEMAS = {
  accessRestrictions: AccessRestriction,
  appGroupSummary: AppGroupSummary,
  authSecurityPrincipals: AuthSecurityPrincipal,
  authenticationSettings: AuthenticationSettings,
  containerClusters: ContainerCluster,
  containerWorkloadProfiles: ContainerWorkloadProfile,
  coreServiceTypes: CoreServiceType,
  denyRules: DenyRule,
  detectedCoreServices: DetectedCoreService,
  discoveredVirtualServers: DiscoveredVirtualServer,
  enforcementBoundaries: EnforcementBoundary,
  eventSettings: EventSettings,
  events: PceEvent,
  firewallSettings: FirewallSettings,
  ipLists: IpList,
  jobs: Job,
  kubernetesWorkloads: KubernetesWorkload,
  labelDimensions: LabelDimension,
  labelGroups: LabelGroup,
  labelMappingRules: LabelMappingRule,
  labels: Label,
  ldapConfigs: LdapConfig,
  networkDevices: NetworkDevice,
  networkEndpoints: NetworkEndpoint,
  networkEnforcementNodes: NetworkEnforcementNode,
  optionalFeatures: OptionalFeature,
  orgSettings: OrgSettings,
  pairingProfiles: PairingProfile,
  passwordPolicy: PasswordPolicy,
  permissions: Permission,
  reportSchedules: ReportSchedule,
  reportSettings: ReportSettings,
  reportTemplates: ReportTemplate,
  reports: Report,
  roles: Role,
  ruleSets: RuleSet,
  rules: Rule,
  samlConfigs: SamlConfig,
  securityPrincipals: SecurityPrincipal,
  serviceAccounts: ServiceAccount,
  serviceBindings: ServiceBinding,
  services: Service,
  slbs: Slb,
  supportBundleRequests: SupportBundleRequest,
  syslogDestinations: SyslogDestination,
  systemEvents: PceEvent,
  trafficCollectorSettings: TrafficCollectorSetting,
  trustedProxyIps: TrustedProxyIps,
  users: User,
  vens: Ven,
  virtualServers: VirtualServer,
  virtualServices: VirtualService,
  vulnerabilities: Vulnerability,
  vulnerabilityReports: VulnerabilityReport,
  workloadSettings: WorkloadSettings,
  workloads: Workload,
}
