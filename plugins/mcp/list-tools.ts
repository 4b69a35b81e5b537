import type { Tool } from '@modelcontextprotocol/sdk/types.js'
import { LISTED_SCHEMAS, type ListedSchemas } from './listed-schemas.js'
import { annotationsOf, type AnyTool, describe, titleOf } from '../../tools/define.js'
import { portableInput, portableOutput } from './portable-schema.js'

/**
 * Returns one entry of tools/list. The entry is as short as possible without losing meaning for a model, because the
 * list is part of every conversation.
 */
export function listTool(tool: AnyTool): Tool {
  const known = listed.get(tool)
  if (known !== undefined) return known
  const { inputSchema, outputSchema } = LISTED_SCHEMAS?.[tool.name] ?? listSchemas(tool)
  const entry = {
    name: tool.name,
    title: titleOf(tool),
    description: describe(tool),
    inputSchema,
    outputSchema,
    annotations: annotationsOf(tool),
  }
  listed.set(tool, entry)
  return entry
}

/** The cached entries, by tool. All servers of a process share them. */
const listed = new WeakMap<AnyTool, Tool>()

/**
 * Computes the schemas of an entry. A JSON round trip removes TypeBox's symbols here, so that this need not be done for
 * each answer.
 */
export function listSchemas(tool: Pick<AnyTool, 'input' | 'output'>): ListedSchemas {
  const schemas = {
    inputSchema: portableInput(tool.input),
    outputSchema: portableOutput(tool.output),
  }
  return JSON.parse(JSON.stringify(schemas)) as ListedSchemas
}
