import {
  AccessRestriction,
  AuthSecurityPrincipal,
  Permission,
  Role,
  SecurityPrincipal,
  ServiceAccount,
  User,
} from './access.js'
import { AppGroupSummary } from './app-group-summary.js'
import { AuthenticationSettings, LdapConfig, PasswordPolicy, SamlConfig } from './authentication.js'
import { ContainerCluster, ContainerWorkloadProfile } from './container-cluster.js'
import { CoreServiceType, DetectedCoreService } from './core-service.js'
import { EnforcementBoundary } from './enforcement-boundary.js'
import { SyslogDestination, TrafficCollectorSetting } from './event-export.js'
import { PceEvent } from './event.js'
import { FirewallSettings } from './firewall-settings.js'
import { IpList } from './ip-list.js'
import { Job } from './job.js'
import { KubernetesWorkload } from './kubernetes-workload.js'
import { LabelGroup } from './label-group.js'
import { LabelMappingRule } from './label-mapping-rule.js'
import { Label, LabelDimension } from './label.js'
import { NetworkDevice, NetworkEndpoint, NetworkEnforcementNode } from './network-device.js'
import { PairingProfile } from './pairing-profile.js'
import { Report, ReportSchedule, ReportTemplate, SupportBundleRequest } from './report.js'
import { DenyRule, Rule, RuleSet } from './rule-set.js'
import { Service } from './service.js'
import {
  EventSettings,
  OptionalFeature,
  OrgSettings,
  ReportSettings,
  TrustedProxyIps,
  WorkloadSettings,
} from './settings.js'
import { Ven } from './ven.js'
import { DiscoveredVirtualServer, Slb, VirtualServer } from './virtual-server.js'
import { ServiceBinding, VirtualService } from './virtual-service.js'
import { Vulnerability, VulnerabilityReport } from './vulnerability.js'
import { Workload } from './workload.js'

/** The read shape of one object of every kind, under the kind's attribute: `client[attribute].get()` answers a list of it. */
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
