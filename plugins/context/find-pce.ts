import type { PceClient } from '../../pce-client/index.js'
import type { Owner, Role } from '../../schemas/caller.js'
import { ToolError } from '../../schemas/errors.js'
import type { PcePool } from './create-pce-pool.js'
import type { Connect, ContextLog, Keystore } from './ports.js'

/** The caller's PCE client; null without credentials, with `pceProblem` where that is not for lack of a registration. */
export interface FoundPce {
  pce: PceClient | null
  pceProblem?: ToolError
}

/**
 * Looks the caller's record up for every request, so that a removal or a new registration in any process counts at once; what is
 * decrypted, and connected, is only what the pool does not have. Never rejects: whatever is wrong with one record, or with the whole
 * keystore, must not keep a client from listing the tools.
 */
export function createPceFinder(ports: {
  keystore: Keystore
  pool: PcePool
  connect: Connect
  log: ContextLog
}): (owner: Owner, role: Role) => Promise<FoundPce> {
  const { keystore, pool, connect, log } = ports
  return async (owner, role) => {
    try {
      const record = await keystore.find(owner)
      if (record === null) {
        pool.drop(owner)
        return { pce: null }
      }
      // Readers may register addresses as everybody may, but are no operators of anything there (D48).
      const isTerse = role === 'reader'
      const variant = `${isTerse ? 'terse' : 'full'} ${record.version}`
      return { pce: pool.clientOf(owner, variant, () => connect(record.open(), { isTerse })) }
    } catch (error) {
      if (error instanceof ToolError) return { pce: null, pceProblem: error }
      log.error({ err: error }, 'the PCE credentials of a caller cannot be looked up')
      const problem = new ToolError('keystore_unavailable', 'Your PCE credentials cannot be looked up now.')
      return { pce: null, pceProblem: problem }
    }
  }
}
