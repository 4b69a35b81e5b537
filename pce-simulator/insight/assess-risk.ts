import type { Label } from '../../schemas/pce/label.js'
import type { Workload } from '../../schemas/pce/workload.js'
import { createEvaluator } from '../policy/evaluate.js'
import { osType } from '../policy/resolve-observations.js'
import { buildPolicyView } from '../policy-versions/build-policy-view.js'
import type { World } from '../world.js'
import type { Severity } from './data/risky-services.js'
import { listRiskyPorts, type RiskyPort } from './list-risky-ports.js'

const SEVERITIES = ['critical', 'high', 'medium', 'low'] as const
export type Exposure = Severity | 'fully_protected'

/** What the active policy makes of every risky port of one managed workload. */
export interface WorkloadRisk {
  workload: Workload
  ports: { port: RiskyPort; protected: boolean }[]
}

/** Nobody's address (RFC 5737): what reaches a port from here reaches it from anywhere. */
const STRANGER = { ip: '192.0.2.66' }

/**
 * Ransomware risk of the managed workloads, by the policy in force: a port is protected when the workload's own enforcement
 * would block a stranger's connection to it. Ports count by the platform a service exists on. `only` is the href of the one asked
 * for.
 */
export function assessRisk(world: World, only?: string): WorkloadRisk[] {
  const live = world.workloads.live() as Workload[]
  const view = buildPolicyView(world, 'active')
  const judge = createEvaluator(
    view,
    new Map(live.map((workload) => [workload.href, workload])),
    new Map(world.labels.all().map((label) => [label.href, label as Label])),
  )
  const risky = listRiskyPorts(view.services.values()).map((port) => ({
    port,
    service: { port: port.port, proto: port.proto },
  }))
  return live
    .filter(({ managed, href }) => managed !== false && (only === undefined || href === only))
    .map((workload) => {
      const platform = osType(workload)
      const dst = { workload: workload.href, ip: workload.interfaces?.[0]?.address ?? '0.0.0.0' }
      const ports = risky
        .filter(({ port }) => platform !== 'unknown' && port.platforms.includes(platform))
        .map(({ port, service }) => {
          const { decision } = judge({ src: STRANGER, dst, service, flowDirection: 'inbound' })
          return { port, protected: decision === 'blocked' }
        })
      return { workload, ports }
    })
}

type Ports = WorkloadRisk['ports']

/** The most severe port that is open to strangers. */
export function exposureOf(ports: Ports): Exposure {
  const open = new Set(ports.filter((one) => !one.protected).map(({ port }) => port.severity))
  return SEVERITIES.find((severity) => open.has(severity)) ?? 'fully_protected'
}

/** With one decimal; without any risky port there is nothing left to protect. */
export function protectionOf(ports: Ports): number {
  if (ports.length === 0) return 100
  return Math.round((ports.filter((one) => one.protected).length / ports.length) * 1000) / 10
}

/** Is any traffic of the workload ever blocked? */
export function isEnforced({ enforcement_mode }: Workload): boolean {
  return enforcement_mode === 'selective' || enforcement_mode === 'full'
}

/** `{num_protected_ports, num_unprotected_ports}` of the ports that belong to each group. */
export function countPorts<K extends string>(
  ports: Ports,
  groups: readonly K[],
  groupOf: (port: RiskyPort) => K,
): Record<K, { num_protected_ports: number; num_unprotected_ports: number }> {
  const counts = groups.map((group) => {
    const mine = ports.filter(({ port }) => groupOf(port) === group)
    const covered = mine.filter((one) => one.protected).length
    return [group, { num_protected_ports: covered, num_unprotected_ports: mine.length - covered }] as const
  })
  return Object.fromEntries(counts) as Record<K, { num_protected_ports: number; num_unprotected_ports: number }>
}

/** `risk_summary` of a workload or an app group (P49). */
export function summariseRisk(ports: Ports, at: string) {
  return {
    ransomware: {
      workload_exposure_severity: exposureOf(ports),
      ransomware_protection_percent: protectionOf(ports),
      last_updated_at: at,
    },
  }
}

/** `risk_details` of a workload or an app group: no source shows more than the object around it. */
export function detailRisk(risks: readonly WorkloadRisk[], at: string) {
  const ports = risks.flatMap((risk) => risk.ports)
  const names = [...new Set(ports.map(({ port }) => port.name))]
  return {
    ransomware: {
      ...summariseRisk(ports, at).ransomware,
      num_workloads: risks.length,
      services: names.map((name) => {
        const mine = ports.filter(({ port }) => port.name === name)
        const { service, port, proto, severity, category } = mine[0]!.port
        const covered = mine.filter((one) => one.protected).length
        return {
          ...(service ? { href: service.href } : {}),
          name,
          port,
          proto,
          severity,
          category,
          num_protected_workloads: covered,
          num_unprotected_workloads: mine.length - covered,
        }
      }),
    },
  }
}
