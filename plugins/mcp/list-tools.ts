import type { Tool } from '@modelcontextprotocol/sdk/types.js'
import { annotationsOf, describe, titleOf, type AnyTool } from '../../tools/define.js'

/** One entry of tools/list. The JSON round trip leaves TypeBox's symbols behind, once, so that no answer has to. */
export function listTool(tool: AnyTool): Tool {
  const entry = {
    name: tool.name,
    title: titleOf(tool),
    description: describe(tool),
    inputSchema: tool.input,
    outputSchema: tool.output,
    annotations: annotationsOf(tool),
  }
  return JSON.parse(JSON.stringify(entry)) as Tool
}
