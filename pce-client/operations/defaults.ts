import { ANY_IP_LIST_NAME } from '../../schemas/pce/ip-list.js'
import { ALL_SERVICES_NAME, type Service } from '../../schemas/pce/service.js'
import { PceError } from '../errors.js'
import type { DefaultsOperations, ObjectApis } from '../types.js'

/** Protocol -1 stands for every protocol, and only the built-in service may have it (pce-api e.5). */
const ANY_PROTOCOL = -1

/**
 * The objects every PCE is born with, read in their active version and known by their exact names. A near match is never
 * taken instead: rules built on it would open or close something else.
 */
export function createDefaultsOperations({
  ipLists,
  services,
}: Pick<ObjectApis, 'ipLists' | 'services'>): DefaultsOperations {
  return {
    async getDefaultIpList(options) {
      const list = await ipLists.getByName(ANY_IP_LIST_NAME, 'active', options)
      if (list === null) throw missing('IP list', ANY_IP_LIST_NAME)
      return list
    },
    async getDefaultService(options = {}) {
      // Services may share a name, so that a user's own "All Services" is told apart by what it covers.
      const params = { ...options.params, name: ALL_SERVICES_NAME }
      const found = await services.getAll('active', null, { ...options, params })
      const service = found.find((candidate) => candidate.name === ALL_SERVICES_NAME && coversEverything(candidate))
      if (service === undefined) throw missing('service', ALL_SERVICES_NAME)
      return service
    },
  }
}

function coversEverything({ service_ports: ports }: Service): boolean {
  return ports?.some(({ proto }) => proto === ANY_PROTOCOL) === true
}

function missing(what: string, name: string): PceError {
  return new PceError('not_found', `this PCE has no built-in ${what} named ${JSON.stringify(name)}`)
}
