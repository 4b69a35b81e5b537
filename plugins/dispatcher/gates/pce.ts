import { ToolError, type ErrorDetails } from '../../../schemas/errors.js'
import type { CallerGate } from './gate.js'

/**
 * The PCE-presence gate. Throws `no_pce_credentials` when the tool works on a PCE and the caller has none, or what the session
 * says of the PCE instead; `hint` tells how one is set up in this mode, `details` stand beside the code.
 */
export const pceGate = (hint: string, details: ErrorDetails = {}): CallerGate => ({
  name: 'pce',
  needs: 'call',
  check({ tool, session }) {
    if (!tool.requiresPce || session.pce !== null) return
    if (session.pceProblem !== undefined) throw session.pceProblem
    const message = `${tool.name} needs a PCE, and there are no PCE credentials.`
    throw new ToolError('no_pce_credentials', message, details, { hint })
  },
})
