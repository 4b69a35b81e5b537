import type { Service } from '../../schemas/pce/service.js'

/** A service for a rule's egress_services: it names the Windows process or service that opens the connection. */
export function isEgressService(service: Service): boolean {
  return (service.windows_egress_services?.length ?? 0) > 0
}

/** A service that matches by Windows process or service name, on either side. Deny rules cannot use it (P21). */
export function hasWindowsQualifier(service: Service): boolean {
  return (
    isEgressService(service) ||
    Boolean(service.process_name) ||
    (service.windows_services ?? []).some((entry) => Boolean(entry.process_name || entry.service_name))
  )
}
