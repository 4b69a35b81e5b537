import type { ServiceBackend } from '../../schemas/pce/container-cluster.js'
import type { RiskSummary, CoreServicesSummary, AppGroupRisk, RiskDetails } from '../../schemas/pce/risk.js'
import { KINDS } from '../kinds.js'
import type { ReferenceLike, RequestOptions } from '../types.js'
import { createDownload, segment, type Calls, type DownloadOptions } from './create-calls.js'

/** Operations on report files (S9, P60). */
export interface ReportOperations {
  /**
   * Downloads the file of a finished report: PDF, CSV or JSON, depending on its template. Returns the bytes, or passes
   * them on piece by piece to `options.sink` and returns their number. Fails with 404 while the report is not ready.
   */
  downloadReport(reportHref: ReferenceLike, options: DownloadOptions): Promise<{ bytes: number }>
  downloadReport(reportHref: ReferenceLike, options?: RequestOptions): Promise<Uint8Array>
}

export function createReportOperations(calls: Calls): ReportOperations {
  return {
    downloadReport: createDownload(calls, (report: ReferenceLike) => `${calls.href(KINDS.reports, report)}/download`),
  }
}

/** Operations on container clusters beyond the generic ones (S9, P13). */
export interface ContainerOperations {
  /** Lists the backends of a container cluster's services. */
  getContainerServiceBackends(clusterHref: ReferenceLike, options?: RequestOptions): Promise<ServiceBackend[]>
}

export function createContainerOperations(calls: Calls): ContainerOperations {
  return {
    async getContainerServiceBackends(clusterHref, options) {
      const path = `${calls.href(KINDS.containerClusters, clusterHref)}/service_backends`
      return calls.list<ServiceBackend>(path, options)
    },
  }
}

/** Operations that read the PCE's findings about exposure to risks (S9, P13). */
export interface RiskOperations {
  /** Reports how exposed the organisation is to ransomware. `ransomware` is null until the PCE has computed it. */
  getRiskSummary(options?: RequestOptions): Promise<RiskSummary>
  /** Counts the detected core services by type. Returns a list, as the PCE does. */
  getDetectedCoreServicesSummary(options?: RequestOptions): Promise<CoreServicesSummary[]>
  /** Reports how exposed each application group is to risks. Returns a list, as the PCE does. */
  getAppGroupRiskSummary(options?: RequestOptions): Promise<AppGroupRisk[]>
  /** Explains what puts an application group at risk. */
  getAppGroupRiskDetails(appGroupId: string, options?: RequestOptions): Promise<RiskDetails>
}

export function createRiskOperations({ org, get, list }: Calls): RiskOperations {
  return {
    getRiskSummary: (options) => get<RiskSummary>(`${org}/reports/risk_summary`, options),
    getDetectedCoreServicesSummary: (options) =>
      list<CoreServicesSummary>(`${org}/detected_core_services_summary`, options),
    getAppGroupRiskSummary: (options) => list<AppGroupRisk>(`${org}/app_groups/risk_summary`, options),
    async getAppGroupRiskDetails(appGroupId, options) {
      return get<RiskDetails>(`${org}/app_groups/${segment('app_group_id', appGroupId)}/risk_details`, options)
    },
  }
}
