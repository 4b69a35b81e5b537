import type { VersionedObject } from './reference.js'

export interface ServicePort {
  /** Absent means every port of the protocol. */
  port?: number | null
  to_port?: number | null
  /** IANA protocol number; -1 (any) only in the built-in All Services. */
  proto: number
  icmp_type?: number | null
  icmp_code?: number | null
}

export interface WindowsService {
  service_name?: string | null
  process_name?: string | null
  port?: number | null
  to_port?: number | null
  proto?: number | null
}

export interface Service extends VersionedObject {
  name: string
  description?: string | null
  service_ports?: ServicePort[] | null
  windows_services?: WindowsService[] | null
  windows_egress_services?: { service_name?: string | null; process_name?: string | null }[] | null
}

/** The built-in service that covers every port and protocol. Its href differs per PCE, its name does not. */
export const ALL_SERVICES_NAME = 'All Services'
