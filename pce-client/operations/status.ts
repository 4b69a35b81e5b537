import type { ProductVersion } from '../../schemas/pce/status.js'
import type { Http } from '../transport.js'
import type { StatusOperations } from '../types.js'

/** Operations on the PCE itself; its paths have no organisation (pce-api a.3). */
export function createStatusOperations(http: Http): StatusOperations {
  return {
    async getProductVersion(options = {}) {
      const answer = await http.send('GET', '/product_version', { ...options, includeOrg: false })
      return answer.json<ProductVersion>()
    },
  }
}
