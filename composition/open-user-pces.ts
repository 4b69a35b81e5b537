import type { CallScope } from '../plugins/dispatcher/call-scope.js'
import type { PerUserConfig } from '../schemas/config.js'
import type { PceSource } from './pce-source.js'
import type { ServiceParts } from './compose-service.js'
import { composeUserPces, type UserPcesParts } from './compose-user-pces.js'
import { openKeystoreFile } from './open-keystore.js'

/** The PCEs of the users, over the keystore file. Rejects with StartupError. `more` is what else the PCEs may depend on. */
export async function openUserPces(
  config: PerUserConfig,
  scope: CallScope,
  { log }: Pick<ServiceParts, 'log'>,
  now: () => number,
  more: Pick<UserPcesParts, 'own' | 'resolve' | 'patienceMs'> = {},
): Promise<PceSource> {
  const { state, keystore } = await openKeystoreFile(config.keystore, { now, warn: (line) => log.warn({}, line) })
  try {
    return { state, ...composeUserPces(config, { ...more, keystore, scope, log, now }) }
  } catch (error) {
    state.close()
    throw error
  }
}
