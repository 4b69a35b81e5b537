import type { Workload } from '../../schemas/pce/workload.js'
import { readRoute, type Route } from '../http/route.js'
import { renderLabels } from '../kinds/render-labels.js'
import { notFound } from '../refusal.js'
import type { World } from '../world.js'

type Risk = NonNullable<NonNullable<Workload['risk_summary']>['ransomware']>

/** The degrees of severity in the PCE's spelling, worst first. */
const SEVERITIES = ['critical', 'high', 'medium', 'low', 'fully_protected'] as const
/** The label keys that together define an application group. */
const GROUP_KEYS = ['app', 'env']

/**
 * The API routes for the exposure to ransomware (P115, P116). The simulator does not compute exposure: it only
 * summarises the field `risk_summary` of the estate's workloads. If no workload has this field, there is no summary, as
 * on a new PCE.
 */
export const riskRoutes: Route[] = [
  readRoute('/orgs/:org/reports/risk_summary', ({ world }) => ({
    status: 200,
    json: { ransomware: summarise(world) },
  })),
  readRoute('/orgs/:org/app_groups/risk_summary', ({ world }) => ({
    status: 200,
    json: groupsOf(world).map(({ href, labels, risks }) => ({
      app_group: { href },
      labels,
      risk_summary: { ransomware: risks.length === 0 ? null : joinRisks(risks) },
    })),
  })),
  readRoute('/orgs/:org/app_groups/:id/risk_details', ({ world, params }) => {
    const group = groupsOf(world).find(({ id }) => id === params['id'])
    if (group === undefined) throw notFound()
    const { risks } = group
    // No source documents the details, so the fields in this answer are invented.
    return {
      status: 200,
      json: { risk_details: risks.length === 0 ? null : { ransomware: { num_rated: risks.length } } },
    }
  }),
]

const managed = (world: World): Workload[] =>
  (world.workloads.all() as unknown as Workload[]).filter((one) => one.managed === true && one.deleted !== true)

const riskOf = (workload: Workload): Risk[] => {
  const risk = workload.risk_summary?.ransomware
  return risk === null || risk === undefined ? [] : [risk]
}

const average = (numbers: readonly number[]): number =>
  Math.round(numbers.reduce((sum, one) => sum + one, 0) / Math.max(1, numbers.length))

const latest = (risks: readonly Risk[]): string =>
  risks
    .map((risk) => risk.last_updated_at)
    .sort()
    .at(-1) ?? ''

/** Combines the exposures of a group's workloads. The severity is that of the worst workload. */
const joinRisks = (risks: readonly Risk[]): Risk => ({
  workload_exposure_severity: SEVERITIES.find((one) => risks.some((risk) => risk.workload_exposure_severity === one))!,
  ransomware_protection_percent: average(risks.map((risk) => risk.ransomware_protection_percent)),
  last_updated_at: latest(risks),
})

function groupsOf(world: World) {
  const groups = new Map<string, { id: string; href: string; labels: ReturnType<typeof renderLabels>; risks: Risk[] }>()
  for (const workload of managed(world)) {
    const labels = renderLabels(world, workload.labels).filter(({ key }) => GROUP_KEYS.includes(String(key)))
    if (labels.length < GROUP_KEYS.length) continue
    labels.sort((a, b) => GROUP_KEYS.indexOf(String(a.key)) - GROUP_KEYS.indexOf(String(b.key)))
    const id = labels.map(({ href }) => href.split('/').at(-1)).join('x')
    const group = groups.get(id) ?? { id, href: `/orgs/${world.orgId}/app_groups/${id}`, labels, risks: [] }
    groups.set(id, group)
    group.risks.push(...riskOf(workload))
  }
  return [...groups.values()]
}

function summarise(world: World): object | null {
  const all = managed(world)
  const risks = all.flatMap(riskOf)
  if (risks.length === 0) return null
  const count = (severity: string) => risks.filter((risk) => risk.workload_exposure_severity === severity).length
  return {
    num_total_workloads: all.length,
    num_protected_workloads: count('fully_protected'),
    ransomware_protection_coverage_percent: average(risks.map((risk) => risk.ransomware_protection_percent)),
    workloads_by_exposure: Object.fromEntries(SEVERITIES.map((severity) => [severity, count(severity)])),
    risky_ports_by_severity: {},
    risky_ports_by_category: {},
    top_risky_applications: [],
    top_risky_services: [],
    num_risky_services: 0,
    num_unenforced_workloads: all.filter(({ enforcement_mode: mode }) => mode !== 'full' && mode !== 'selective')
      .length,
    last_updated_at: latest(risks),
  }
}
