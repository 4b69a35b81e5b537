import type { Tool } from '@modelcontextprotocol/sdk/types.js'
import { annotationsOf, describe, titleOf, type AnyTool } from '../../tools/define.js'
import { compactSchema, typesOnly, withoutLengths } from './compact-schema.js'
import { shareParts } from './share-parts.js'

/**
 * One entry of tools/list, in as few bytes as say the same to a model: every conversation pays for the list. The JSON round trip
 * leaves TypeBox's symbols behind, once, so that no answer has to.
 */
export function listTool(tool: AnyTool): Tool {
  const entry = {
    name: tool.name,
    title: titleOf(tool),
    description: describe(tool),
    inputSchema: compactSchema(withoutLengths(tool.input)),
    outputSchema: shareParts(compactSchema(typesOnly(tool.output)) as Record<string, unknown>),
    annotations: annotationsOf(tool),
  }
  return JSON.parse(JSON.stringify(entry)) as Tool
}
