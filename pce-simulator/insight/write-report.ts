import { invalidInput } from '../refusal.js'
import type { World } from '../world.js'
import { assessAppGroups } from './assess-app-groups.js'
import { summariseRisk } from './assess-risk.js'
import { REPORT_TEMPLATES, type ReportType } from './data/report-templates.js'
import { idOf } from './find-app-groups.js'
import { renderCsv } from './render-csv.js'
import { renderPdf } from './render-pdf.js'
import type { Parameters } from './report-parameters.js'
import { summariseEstateRisk } from './summarise-estate-risk.js'
import { summariseAppGroups, summariseForExecutives } from './write-summaries.js'
import { countRuleHits, exportTraffic } from './write-tables.js'

export interface ReportFile {
  type: string
  content: string | Buffer
}

/** The file of a report, by its template: PDF, CSV or JSON, its figures those of the estate (P60). */
export function writeReport(world: World, template: string, parameters: Parameters): ReportFile {
  const type = REPORT_TEMPLATES.find((spec) => spec.type === idOf(template))?.type
  if (!type) throw invalidInput(`There is no report template ${template}`)
  return WRITERS[type](world, parameters)
}

const WRITERS: Record<ReportType, (world: World, parameters: Parameters) => ReportFile> = {
  executive_summary_report: (world, parameters) => pdf(summariseForExecutives(world, parameters)),
  app_group_summary_report: (world, parameters) => pdf(summariseAppGroups(world, parameters)),
  traffic_export_report: (world, parameters) => csv(exportTraffic(world, parameters)),
  rule_hit_count_report: (world, parameters) => csv(countRuleHits(world, parameters)),
  ransomware_protection_report: (world) => json(describeProtection(world)),
}

const pdf = (lines: readonly string[]): ReportFile => ({ type: 'application/pdf', content: renderPdf(lines) })
const csv = (rows: Iterable<readonly unknown[]>): ReportFile => ({ type: 'text/csv', content: renderCsv(rows) })
const json = (value: unknown): ReportFile => ({ type: 'application/json', content: JSON.stringify(value) })

function describeProtection(world: World): Record<string, unknown> {
  const appGroups = assessAppGroups(world).map(({ group, risks }) => ({
    app_group: { href: group.href },
    labels: group.labels,
    num_workloads: group.workloads.length,
    ...summariseRisk(
      risks.flatMap(({ ports }) => ports),
      world.now(),
    ),
  }))
  return { ...summariseEstateRisk(world), app_groups: appGroups }
}
