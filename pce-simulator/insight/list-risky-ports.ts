import type { Service, ServicePort } from '../../schemas/pce/service.js'
import { RISKY_SERVICES, type Category, type Platform, type Severity } from './data/risky-services.js'

/** One port of one risky service; `service` is the policy object that stands for it, where there is one. */
export interface RiskyPort {
  name: string
  service: { href: string; name: string } | null
  port: number
  proto: number
  severity: Severity
  category: Category
  platforms: readonly Platform[]
}

interface Ransomware {
  severity: Severity
  category: Category
  os_platforms: Platform[]
}

/** The well-known ones, and what the policy's own services say of themselves in `risk_details` (P18), which wins. */
export function listRiskyPorts(services: Iterable<Service>): RiskyPort[] {
  const active = [...services].map((service) => ({
    reference: { href: service.href.replace('/sec_policy/draft/', '/sec_policy/active/'), name: service.name },
    ports: (service.service_ports ?? []).filter(({ port }) => port != null),
    ransomware: (service.risk_details as { ransomware?: Ransomware | null } | null | undefined)?.ransomware,
  }))
  const declared = active.flatMap(({ reference, ports, ransomware }) => {
    if (!ransomware) return []
    const { severity, category, os_platforms } = ransomware
    return ports.map(({ port, proto }) => ({
      name: reference.name,
      service: reference,
      port: port!,
      proto: proto,
      severity,
      category,
      platforms: os_platforms,
    }))
  })
  const taken = new Set(declared.map(({ port, proto }) => `${proto}/${port}`))
  const known = RISKY_SERVICES.filter(({ port, proto }) => !taken.has(`${proto}/${port}`)).map((spec) => {
    const isIt = (one: ServicePort) => one.port === spec.port && one.proto === spec.proto && one.to_port == null
    return { ...spec, service: active.find(({ ports }) => ports.some(isIt))?.reference ?? null }
  })
  return [...declared, ...known]
}
