import type { VersionedObject } from './reference.js'

export interface IpRange {
  from_ip: string
  to_ip?: string | null
  exclusion?: boolean
  description?: string | null
}

export interface IpList extends VersionedObject {
  name: string
  description?: string | null
  ip_ranges?: IpRange[] | null
  fqdns?: { fqdn: string; description?: string | null }[] | null
}

/** The built-in list that covers every address; its name is the same on every PCE. */
export const ANY_IP_LIST_NAME = 'Any (0.0.0.0/0 and ::/0)'
