export interface ReportTemplateSpec {
  /** The last part of the href. */
  type: string
  name: string
  format: 'pdf' | 'csv' | 'json'
  report_parameters: Record<string, unknown>
}

const WEEK = { report_time_range: { last_num_days: 7 } }

/** One template of each form of parameters that P49 knows. Their types are not listed by any source. */
export const REPORT_TEMPLATES = [
  { type: 'executive_summary_report', name: 'Executive Summary', format: 'pdf', report_parameters: WEEK },
  {
    type: 'app_group_summary_report',
    name: 'App Group Summary',
    format: 'pdf',
    report_parameters: { ...WEEK, app_groups: [] },
  },
  { type: 'traffic_export_report', name: 'Traffic Export', format: 'csv', report_parameters: WEEK },
  {
    type: 'rule_hit_count_report',
    name: 'Rule Hit Count',
    format: 'csv',
    report_parameters: { ...WEEK, rule_sets: [] },
  },
  { type: 'ransomware_protection_report', name: 'Ransomware Protection', format: 'json', report_parameters: {} },
] as const satisfies readonly ReportTemplateSpec[]

export type ReportType = (typeof REPORT_TEMPLATES)[number]['type']
