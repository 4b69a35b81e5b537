import type { World } from '../world.js'
import { assessAppGroups } from './assess-app-groups.js'
import { assessRisk, countPorts, exposureOf, isEnforced, protectionOf } from './assess-risk.js'

const TOP = 5
const EXPOSURES = ['critical', 'high', 'medium', 'low', 'fully_protected'] as const

/** GET /reports/risk_summary: null while no managed workload gives anything to sum up (P49). */
export function summariseEstateRisk(world: World): { ransomware: Record<string, unknown> | null } {
  const risks = assessRisk(world)
  if (risks.length === 0) return { ransomware: null }
  const ports = risks.flatMap((risk) => risk.ports)
  const exposures = risks.map((risk) => exposureOf(risk.ports))
  return {
    ransomware: {
      num_total_workloads: risks.length,
      num_protected_workloads: exposures.filter((exposure) => exposure === 'fully_protected').length,
      ransomware_protection_coverage_percent: protectionOf(ports),
      workloads_by_exposure: Object.fromEntries(
        EXPOSURES.map((exposure) => [exposure, exposures.filter((one) => one === exposure).length]),
      ),
      risky_ports_by_severity: countPorts(ports, ['critical', 'high', 'medium', 'low'], ({ severity }) => severity),
      risky_ports_by_category: countPorts(ports, ['admin', 'legacy'], ({ category }) => category),
      top_risky_applications: topApplications(world, risks),
      top_risky_services: topServices(ports),
      num_risky_services: new Set(ports.filter((one) => !one.protected).map(({ port }) => port.name)).size,
      num_unenforced_workloads: risks.filter(({ workload }) => !isEnforced(workload)).length,
      last_updated_at: world.now(),
    },
  }
}

type Risks = ReturnType<typeof assessRisk>

function topApplications(world: World, risks: Risks): Record<string, unknown>[] {
  return assessAppGroups(world, risks)
    .filter((assessed) => assessed.risks.length > 0)
    .map((assessed) => ({
      app_group: { href: assessed.group.href },
      labels: assessed.group.labels,
      num_workloads: assessed.group.workloads.length,
      ransomware_protection_percent: protectionOf(assessed.risks.flatMap(({ ports }) => ports)),
    }))
    .sort(
      (one, other) =>
        one.ransomware_protection_percent - other.ransomware_protection_percent ||
        other.num_workloads - one.num_workloads,
    )
    .slice(0, TOP)
}

/** Only what a service of the policy stands for can be named by its href. */
function topServices(ports: Risks[number]['ports']): Record<string, unknown>[] {
  const services = new Map(ports.flatMap(({ port }) => (port.service ? [[port.service.href, port.service]] : [])))
  return [...services.values()]
    .map((service) => ({
      ...service,
      ransomware_protection_percent: protectionOf(ports.filter(({ port }) => port.service?.href === service.href)),
    }))
    .sort((one, other) => one.ransomware_protection_percent - other.ransomware_protection_percent)
    .slice(0, TOP)
}
