import type { PceClient } from '../../pce-client/index.js'
import type { Caller, Owner } from '../../schemas/caller.js'
import { ToolError } from '../../schemas/errors.js'
import type { AnyTool } from '../../tools/define.js'

/** What of a session decides whether its caller may have a token. */
export interface MintingSession {
  caller: Caller
  /** Why there is no role, where more can be said than that. */
  roleProblem?: ToolError
  /** Null where the caller has no PCE credentials. */
  pce: PceClient | null
  /** What is wrong with them, where they are not simply absent. */
  pceProblem?: ToolError
}

/** Which PCE a token would be for, as the confirm gate names it. */
export const pceOf = ({ pce }: MintingSession): { pce?: string } =>
  pce === null ? {} : { pce: `${pce.origin} org ${pce.orgId}` }

/**
 * Whose token it would be. Nobody is given one for a call that could not run: throws ToolError `unknown_tool`, `invalid_argument` for
 * a tool that needs no confirmation, and what the gates before the confirmation would say of the call itself (`forbidden_no_role`,
 * `forbidden {allowed_roles}`, `no_pce_credentials {setup_path}`).
 */
export function checkMint(tool: AnyTool | undefined, { caller, roleProblem, pce, pceProblem }: MintingSession): Owner {
  if (tool === undefined) throw new ToolError('unknown_tool', 'There is no tool of this name.')
  if (!tool.requiresConfirm) {
    throw new ToolError('invalid_argument', `${tool.name} needs no confirmation: call it without a token.`)
  }
  const { iss, sub, role } = caller
  if (iss === null || sub === null) {
    throw new ToolError('server_misconfigured', 'Only somebody who has logged in can confirm a call.')
  }
  if (role === null) throw roleProblem ?? new ToolError('forbidden_no_role', 'Your groups give you no role here.')
  if (!tool.roles.includes(role)) {
    throw new ToolError('forbidden', `${tool.name} is for ${tool.roles.join(', ')}; your role is ${role}.`, {
      allowed_roles: [...tool.roles],
    })
  }
  if (tool.requiresPce && pce === null) {
    throw (
      pceProblem ??
      new ToolError(
        'no_pce_credentials',
        `${tool.name} needs a PCE, and there are no PCE credentials.`,
        { setup_path: '/setup' },
        { hint: 'Register them at /setup, or with register-pce-credentials.' },
      )
    )
  }
  return { iss, sub }
}
