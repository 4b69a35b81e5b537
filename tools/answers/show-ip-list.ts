import type { IpListOut } from '../../schemas/ip-list-shapes.js'
import type { IpList } from '../../schemas/pce/ip-list.js'

/** An IP list as answers show it. The PCE may say null for an empty list (P17). */
export function showIpList(list: IpList): IpListOut {
  return {
    href: list.href,
    name: list.name,
    description: list.description ?? null,
    ip_ranges: (list.ip_ranges ?? []).map(({ from_ip: from, to_ip: to, exclusion, description }) => ({
      from_ip: from,
      ...(to != null && { to_ip: to }),
      exclusion: exclusion === true,
      ...(description != null && description !== '' && { description }),
    })),
    fqdns: (list.fqdns ?? []).map(({ fqdn, description }) => ({
      fqdn,
      ...(description != null && description !== '' && { description }),
    })),
    ...(list.update_type != null && { update_type: list.update_type }),
    ...(list.created_at !== undefined && { created_at: list.created_at }),
    ...(list.updated_at !== undefined && { updated_at: list.updated_at }),
  }
}
