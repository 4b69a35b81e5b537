import type { AppGroupRisk, CoreServicesSummary, RiskDetails, RiskSummary } from '../../schemas/pce/risk.js'
import type { RequestOptions } from '../types.js'
import { segment, type Calls } from './create-calls.js'

/** What the PCE has found out about exposure (S9, P13). */
export interface RiskOperations {
  /** Tells how exposed the organisation is to ransomware; `ransomware` is null until the PCE has computed it. */
  getRiskSummary(options?: RequestOptions): Promise<RiskSummary>
  /** Counts the detected core services of each type; a list, as the PCE answers it. */
  getDetectedCoreServicesSummary(options?: RequestOptions): Promise<CoreServicesSummary[]>
  /** Tells how exposed each application group is; a list, as the PCE answers it. */
  getAppGroupRiskSummary(options?: RequestOptions): Promise<AppGroupRisk[]>
  /** Tells what makes an application group a risk. */
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
