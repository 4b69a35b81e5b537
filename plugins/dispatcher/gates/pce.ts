import { ToolError } from '../../../schemas/errors.js'
import type { Gate } from './gate.js'

/**
 * The PCE-presence gate. Throws `no_pce_credentials` when the tool works on a PCE and the caller has none; `hint` says how one
 * is set up in this mode.
 */
export const pceGate = (hint: string): Gate => ({
  name: 'pce',
  needs: 'call',
  check({ tool, session }) {
    if (tool.requiresPce && session.pce === null) {
      throw new ToolError(
        'no_pce_credentials',
        `${tool.name} needs a PCE, and there are no PCE credentials.`,
        {},
        { hint },
      )
    }
  },
})
