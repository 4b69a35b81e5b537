import { nearestTool } from '../../plugins/dispatcher/admit-call.js'
import { type ConfirmConfig, type Fault, StartupError } from '../../schemas/config.js'
import { changeTool, type ListedTool } from '../../tools/listed-tool.js'

/**
 * Makes the tools in MCP_CONFIRM_TOOLS require confirmation, in addition to the tools that always do (D77, D149).
 * Throws a single StartupError for all names in MCP_CONFIRM_TOOLS that are unknown, or whose tools only read or manage
 * the caller's own PCE key.
 */
export function requireConfirmations(
  tools: readonly ListedTool[],
  names: readonly string[] = [],
): readonly ListedTool[] {
  const byName = new Map(tools.map((tool) => [tool.name, tool]))
  const unknown = names.filter((name) => !byName.has(name))
  const suggested = (name: string) => {
    const nearest = nearestTool(name, [...byName.keys()])
    return `'${name}'${nearest === undefined ? '' : ` (did you mean '${nearest}'?)`}`
  }
  const reading = names.filter((name) => byName.get(name)?.effect === 'read')
  const secret = names.filter((name) => byName.get(name)?.toolset === 'credentials' && !reading.includes(name))
  const faults = [
    ...(unknown.length > 0 ? [`there is no tool ${unknown.map(suggested).join(', ')}`] : []),
    ...(reading.length > 0 ? [`${listed(reading)} only reads, so there is nothing to confirm`] : []),
    ...(secret.length > 0
      ? [`${listed(secret)} could not show what would be done, because the arguments are secret`]
      : []),
  ]
  if (faults.length > 0)
    throw new StartupError({
      problem: `MCP_CONFIRM_TOOLS names tools that cannot be confirmed: ${faults.join('; ')}`,
      remedy: 'Write names of tools that change something, separated by commas: docs/tools.md lists them.',
    })
  return tools.map((tool) => (names.includes(tool.name) ? changeTool(tool, { requiresConfirm: true }) : tool))
}

const listed = (names: readonly string[]) => names.map((name) => `'${name}'`).join(', ')

/** Returns the faults in MCP_CONFIRM_TOOLS for which `requireConfirmations` would throw. */
export function findConfirmFaults(
  { confirm }: { confirm?: Pick<ConfirmConfig, 'tools'> },
  tools: readonly ListedTool[],
): readonly Fault[] {
  try {
    requireConfirmations(tools, confirm?.tools)
    return []
  } catch (error) {
    if (error instanceof StartupError) return error.faults
    throw error
  }
}
