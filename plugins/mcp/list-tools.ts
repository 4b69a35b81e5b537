import type { Tool } from '@modelcontextprotocol/sdk/types.js'
import { annotationsOf, describe, titleOf } from '../../tools/define.js'
import type { ListedTool } from '../../tools/listed-tool.js'

/**
 * Returns a tool's entry in tools/list. It is as short as possible without losing meaning for a model, because the list
 * is part of every conversation.
 */
export function listTool(tool: ListedTool): Tool {
  let entry = listed.get(tool)
  if (entry === undefined) {
    const { inputSchema, outputSchema } = tool.schemas()
    entry = {
      name: tool.name,
      title: titleOf(tool),
      description: describe(tool),
      inputSchema: inputSchema,
      outputSchema: outputSchema,
      annotations: annotationsOf(tool),
    }
    listed.set(tool, entry)
  }
  return entry
}

/** The entries that have been built, by tool. All servers of a process share them. */
const listed = new WeakMap<ListedTool, Tool>()
