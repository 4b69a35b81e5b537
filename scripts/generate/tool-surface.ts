import { catalogueOf } from '../../tools/catalogue/catalogue-of.js'
import { listTool } from '../../plugins/mcp/list-tools.js'
import type { AnyTool } from '../../tools/define.js'

/**
 * Collects everything about a tool on which clients and operators may rely: its entry in tools/list, who may call it,
 * and its gates.
 */
export function surfaceOf(tool: AnyTool) {
  return {
    ...listTool(catalogueOf([tool])[0]!),
    roles: tool.roles,
    requires_pce: tool.requiresPce,
    requires_confirm: tool.requiresConfirm,
  }
}
