import type { AnyTool } from '../define.js'
import type { ListedSchemas, ListedTool, ToolFacts } from '../listed-tool.js'
import { portableInput, portableOutput } from './portable-schema.js'

/** Returns the entries of tools whose code is loaded already, as in a process that runs from sources. */
export const catalogueOf = (tools: readonly AnyTool[]): readonly ListedTool[] =>
  tools.map((tool) => {
    let schemas: ListedSchemas | undefined
    return { ...factsOf(tool), schemas: () => (schemas ??= schemasOf(tool)), load: () => Promise.resolve(tool) }
  })

/** A tool's entry in the catalogue as JSON, which a build keeps in place of the tool's code. */
export interface ToolData extends ToolFacts {
  schemas: ListedSchemas
}

/**
 * Returns what a build keeps of a tool. Throws TypeError if the tool changes something and does not state how the scopes
 * of a caller limit it.
 */
export function dataOf(tool: AnyTool): ToolData {
  if (tool.effect !== 'read' && tool.scope === undefined)
    throw new TypeError(`${tool.name} changes something and has no \`scope\`: objects, everything or own`)
  return { ...factsOf(tool), schemas: schemasOf(tool) }
}

/** Returns the facts about a tool. A fact that the tool does not state is absent. */
function factsOf(tool: AnyTool): ToolFacts {
  const { name, title, summary, effect, toolset, idempotent, roles, requiresPce, requiresConfirm } = tool
  return {
    name,
    ...(title !== undefined && { title }),
    summary,
    effect,
    toolset,
    ...(idempotent !== undefined && { idempotent }),
    roles,
    requiresPce,
    requiresConfirm,
  }
}

/**
 * Computes the schemas of an entry of tools/list. A JSON round trip removes TypeBox's symbols here, so that this need
 * not be done for each answer.
 */
const schemasOf = ({ input, output }: Pick<AnyTool, 'input' | 'output'>): ListedSchemas =>
  JSON.parse(
    JSON.stringify({ inputSchema: portableInput(input), outputSchema: portableOutput(output) }),
  ) as ListedSchemas
