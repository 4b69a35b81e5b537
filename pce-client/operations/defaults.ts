import type { IpList } from '../../schemas/pce/ip-list.js'
import { ANY_IP_LIST_NAME, ALL_SERVICES_NAME } from '../../schemas/pce/words.js'
import type { Service } from '../../schemas/pce/service.js'
import { PceError } from '../errors.js'
import { KINDS } from '../kinds.js'
import type { ObjectApis, ReferenceLike, RequestOptions } from '../types.js'
import { madeBy, type Calls } from './create-calls.js'

/** The protocol number that stands for every protocol. Only the built-in service All Services may have it (P18). */
const ANY_PROTOCOL = -1

/**
 * Operations on built-in objects that every PCE has, and on pairing keys. The built-in objects are read in their active
 * version and found by their exact names. A similar name is never accepted, because rules built on the wrong object
 * would open or block the wrong connections.
 */
export interface DefaultsOperations {
  /** Returns the built-in IP list that covers every address, found by its exact name. */
  getDefaultIpList(options?: RequestOptions): Promise<IpList>
  /** Returns the built-in service All Services, found by its exact name. */
  getDefaultService(options?: RequestOptions): Promise<Service>
  /** Creates a pairing key for a profile and returns it as a string. The PCE does not show it again. */
  generatePairingKey(pairingProfileHref: ReferenceLike, options?: RequestOptions): Promise<string>
}

export function createDefaultsOperations(
  calls: Calls,
  { ipLists, services }: Pick<ObjectApis, 'ipLists' | 'services'>,
): DefaultsOperations {
  return {
    async getDefaultIpList(options) {
      const list = await ipLists.getByName(ANY_IP_LIST_NAME, 'active', options)
      if (list === null) throw missing('IP list', ANY_IP_LIST_NAME)
      return list
    },
    async getDefaultService(options = {}) {
      // Service names are not unique, so the built-in service is recognised by its protocol: a user may have created
      // another "All Services".
      const params = { ...options.params, name: ALL_SERVICES_NAME }
      const found = await services.getAll('active', null, { ...options, params })
      const service = found.find((candidate) => candidate.name === ALL_SERVICES_NAME && coversEverything(candidate))
      if (service === undefined) throw missing('service', ALL_SERVICES_NAME)
      return service
    },
    async generatePairingKey(pairingProfileHref, options) {
      const path = `${calls.href(KINDS.pairingProfiles, pairingProfileHref)}/pairing_key`
      const answer = await calls.post(path, {}, options)
      return madeBy<{ activation_code: string }>(answer, 'the pairing key', 'activation_code').activation_code
    },
  }
}

function coversEverything({ service_ports: ports }: Service): boolean {
  return Array.isArray(ports) && ports.some(({ proto }) => proto === ANY_PROTOCOL)
}

function missing(what: string, name: string): PceError {
  return new PceError('not_found', `this PCE has no built-in ${what} named ${JSON.stringify(name)}`)
}
