import type { Http } from '../transport.js'
import type { ClientSettings } from '../settings.js'
import type { ObjectApis } from '../types.js'
import { createApiKeyOperations, type ApiKeyOperations, createLoginOperations, type LoginOperations } from './access.js'
import {
  createContainerOperations,
  type ContainerOperations,
  createReportOperations,
  type ReportOperations,
  createRiskOperations,
  type RiskOperations,
} from './reports.js'
import { createCalls } from './create-calls.js'
import { createDefaultsOperations, type DefaultsOperations } from './defaults.js'
import {
  createLabelGroupOperations,
  type LabelGroupOperations,
  createLabelMappingOperations,
  type LabelMappingOperations,
} from './labels.js'
import { createNetworkDeviceOperations, type NetworkDeviceOperations } from './network-devices.js'
import {
  createPolicyDraftOperations,
  createPolicyOperations,
  type PolicyDraftOperations,
  type PolicyOperations,
} from './policy.js'
import { createPolicySearchOperations, type PolicySearchOperations } from './policy-search.js'
import { createStatusOperations, type StatusOperations } from './status.js'
import {
  createTrafficQueryOperations,
  type TrafficQueryOperations,
  createTrafficOperations,
  type TrafficOperations,
} from './traffic.js'
import {
  createVenReleaseOperations,
  createVenOperations,
  type VenReleaseOperations,
  type VenOperations,
} from './vens.js'
import { createWorkloadOperations, type WorkloadOperations } from './workloads.js'

export type { DownloadOptions, DownloadSink } from './create-calls.js'
export type {
  ApiKeyOperations,
  ContainerOperations,
  DefaultsOperations,
  LabelGroupOperations,
  LabelMappingOperations,
  LoginOperations,
  NetworkDeviceOperations,
  PolicyDraftOperations,
  PolicyOperations,
  PolicySearchOperations,
  ReportOperations,
  RiskOperations,
  StatusOperations,
  TrafficOperations,
  TrafficQueryOperations,
  VenOperations,
  VenReleaseOperations,
  WorkloadOperations,
}

/** The 68 named operations of the specification (S9), and the streamed traffic query. */
export type NamedOperations = DefaultsOperations &
  TrafficOperations &
  TrafficQueryOperations &
  PolicyOperations &
  PolicyDraftOperations &
  PolicySearchOperations &
  ApiKeyOperations &
  LoginOperations &
  NetworkDeviceOperations &
  ContainerOperations &
  ReportOperations &
  RiskOperations &
  VenOperations &
  VenReleaseOperations &
  WorkloadOperations &
  LabelGroupOperations &
  LabelMappingOperations &
  StatusOperations

export function createOperations(http: Http, settings: ClientSettings, objects: ObjectApis): NamedOperations {
  const calls = createCalls(http, settings)
  const traffic = createTrafficOperations(http, settings)
  return {
    ...createDefaultsOperations(calls, objects),
    ...traffic,
    ...createTrafficQueryOperations(calls, traffic),
    ...createPolicyOperations(calls),
    ...createPolicyDraftOperations(calls),
    ...createPolicySearchOperations(calls),
    ...createApiKeyOperations(calls),
    ...createLoginOperations(calls),
    ...createNetworkDeviceOperations(calls),
    ...createContainerOperations(calls),
    ...createReportOperations(calls),
    ...createRiskOperations(calls),
    ...createVenOperations(calls),
    ...createVenReleaseOperations(calls),
    ...createWorkloadOperations(calls),
    ...createLabelGroupOperations(calls),
    ...createLabelMappingOperations(calls),
    ...createStatusOperations(calls),
  }
}
