import { ANY_IP_LIST_NAME, ALL_SERVICES_NAME } from '../schemas/pce/words.js'
import type { PceObject, VersionedObject } from '../schemas/pce/reference.js'
import { draftPath, type World } from './world.js'

/**
 * The creation time of the built-in objects, which every organisation has (P46). It is long before any traffic or
 * event.
 */
export const BIRTH = '2025-01-01T00:00:00.000Z'

/** Creates the built-in IP list that covers every address (P17). */
export function anyIpList(world: World): VersionedObject {
  return {
    href: draftPath(world, '/ip_lists/1'),
    name: ANY_IP_LIST_NAME,
    description: null,
    external_data_set: null,
    external_data_reference: null,
    ip_ranges: [
      { from_ip: '0.0.0.0/0', exclusion: false },
      { from_ip: '::/0', exclusion: false },
    ],
    fqdns: [],
    ...birthOf(world),
    deleted_at: null,
    deleted_by: null,
  }
}

/** Creates the built-in service that covers every port of every protocol (P18). */
export function allServices(world: World): VersionedObject {
  return {
    href: draftPath(world, '/services/1'),
    name: ALL_SERVICES_NAME,
    description: null,
    description_url: null,
    process_name: null,
    service_ports: [{ proto: -1 }],
    windows_services: null,
    windows_egress_services: null,
    risk_details: { ransomware: null },
    external_data_set: null,
    external_data_reference: null,
    ...birthOf(world),
    deleted_at: null,
    deleted_by: null,
  }
}

export function birthOf(world: World): Pick<PceObject, 'created_at' | 'updated_at' | 'created_by' | 'updated_by'> {
  const by = { href: world.user.href }
  return { created_at: BIRTH, updated_at: BIRTH, created_by: by, updated_by: by }
}
