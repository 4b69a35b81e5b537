import type { Service } from '../../schemas/pce/service.js'
import type { ServiceOut } from '../../schemas/service-shapes.js'

/** A service as answers show it: of its three lists only the one it has. */
export function showService(service: Service): ServiceOut {
  const { service_ports: ports, windows_services: windows, windows_egress_services: egress } = service
  const process = service.process_name
  return {
    href: service.href,
    name: service.name,
    description: service.description ?? null,
    ...(typeof process === 'string' && process !== '' && { process_name: process }),
    ...(ports != null && { service_ports: ports.map(withoutNulls) }),
    ...(windows != null && { windows_services: windows.map(withoutNulls) }),
    ...(egress != null && { windows_egress_services: egress.map(withoutNulls) }),
    ...(service.update_type != null && { update_type: service.update_type }),
  }
}

function withoutNulls(entry: object): object {
  return Object.fromEntries(Object.entries(entry).filter(([, value]) => value !== null && value !== undefined))
}
