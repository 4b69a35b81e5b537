import type { NodeAvailability, ProductVersion, SuperclusterLeader } from '../../schemas/pce/status.js'
import { PceApiError } from '../errors.js'
import type { RequestOptions } from '../types.js'
import { below, type Calls } from './create-calls.js'

/** Operations that ask about the PCE itself; their paths have no organisation (P3). */
export interface StatusOperations {
  /** Returns the release that the PCE runs. */
  getProductVersion(options?: RequestOptions): Promise<ProductVersion>
  /**
   * Reports whether the PCE is available: it is not if the node answers with 404, or if a load balancer still answers
   * with 502 after all retries. Any other error is thrown, because it says nothing about availability.
   */
  getNodeAvailable(options?: RequestOptions): Promise<NodeAvailability>
  /** Reports whether this PCE leads its supercluster: it does not if it answers with 404, as the other members do. */
  getSuperclusterLeader(options?: RequestOptions): Promise<SuperclusterLeader>
}

export function createStatusOperations({ http, get }: Calls): StatusOperations {
  /**
   * Asks a question that the PCE answers only with an HTTP status (P42). Returns true for a success and false for each
   * status in `denials`; any other error is thrown.
   */
  async function isSaid(path: string, options: RequestOptions | undefined, denials: readonly number[]) {
    try {
      await http.send('GET', path, below(options))
      return true
    } catch (error) {
      if (error instanceof PceApiError && denials.includes(error.status)) return false
      throw error
    }
  }
  return {
    getProductVersion: (options) => get<ProductVersion>('/product_version', options),
    async getNodeAvailable(options) {
      return { available: await isSaid('/node_available', options, [404, 502]) }
    },
    async getSuperclusterLeader(options) {
      return { leader: await isSaid('/supercluster/leader', options, [404]) }
    },
  }
}
