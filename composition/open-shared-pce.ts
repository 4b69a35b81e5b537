import type { CallScope } from '../plugins/dispatcher/call-scope.js'
import { pceGate } from '../plugins/dispatcher/gates/pce.js'
import { openState } from '../storage/state/open-state.js'
import type { SharedConfig } from '../schemas/config.js'
import type { PceSource } from './pce-source.js'
import type { ServiceParts } from './compose-service.js'
import { connectPce } from './connect-pce.js'
import { fixedCredentials } from './fixed-credentials.js'

/** The one PCE of shared mode. Throws StartupError. */
export function openSharedPce(
  config: SharedConfig,
  scope: CallScope,
  { log }: Pick<ServiceParts, 'log'>,
  now: () => number,
): PceSource {
  const pce = connectPce(config.pce, scope, log)
  const state = openState(config.statePath, { now, variable: 'MCP_STATE_PATH', warn: (line) => log.warn({}, line) })
  const credentials = fixedCredentials(
    true,
    'This server uses one PCE account for everybody; nobody has to register.',
    {
      code: 'shared_mode',
      message: 'This server uses one PCE account for everybody: there is nothing to register or delete.',
    },
  )
  return {
    state,
    find: () => Promise.resolve({ pce, credentials }),
    gate: pceGate('The operator sets PCE_HOST, API_KEY and API_SECRET.'),
    close: () => pce.close(),
  }
}
