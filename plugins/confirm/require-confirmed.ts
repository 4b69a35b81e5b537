import { ToolError } from '../../schemas/errors.js'
import type { AnyTool } from '../../tools/define.js'

/** The tool that a token is asked for. Throws ToolError `unknown_tool`, and `invalid_argument` for one that needs no confirmation. */
export function requireConfirmed(tool: AnyTool | undefined): AnyTool {
  if (tool === undefined) throw new ToolError('unknown_tool', 'There is no tool of this name.')
  if (tool.requiresConfirm) return tool
  throw new ToolError('invalid_argument', `${tool.name} needs no confirmation: call it without a token.`)
}
