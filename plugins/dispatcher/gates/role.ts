import { ToolError } from '../../../schemas/errors.js'
import type { CallerGate } from './gate.js'

/**
 * The role allowlist of the tool (S13). Throws `forbidden_no_role`, in the session's own words where it has some, for a caller
 * without a role and `forbidden {allowed_roles}` for one whose role is not on the list.
 */
export const roleGate: CallerGate = {
  name: 'role',
  needs: 'call',
  check({ tool, session }) {
    const { role } = session.caller
    if (role === null)
      throw session.roleProblem ?? new ToolError('forbidden_no_role', 'Your groups give you no role here.')
    if (!tool.roles.includes(role)) {
      throw new ToolError('forbidden', `${tool.name} is for ${tool.roles.join(', ')}; your role is ${role}.`, {
        allowed_roles: [...tool.roles],
      })
    }
  },
}
