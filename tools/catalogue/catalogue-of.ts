import type { AnyTool } from '../define.js'
import type { ListedSchemas, ListedTool, ToolFacts } from '../listed-tool.js'
import { portableInput, portableOutput } from './portable-schema.js'

/**
 * Returns the entries of tools whose code is already loaded, as in a process that runs from the sources. All servers of
 * a process share the entry of a tool, and so the schemas in it.
 */
export const catalogueOf = (tools: readonly AnyTool[]): readonly ListedTool[] => tools.map(entryOf)

const entries = new WeakMap<AnyTool, ListedTool>()

function entryOf(tool: AnyTool): ListedTool {
  const known = entries.get(tool)
  if (known !== undefined) return known
  let schemas: ListedSchemas | undefined
  const entry: ListedTool = {
    ...factsOf(tool),
    schemas: () => (schemas ??= schemasOf(tool)),
    load: () => Promise.resolve(tool),
  }
  entries.set(tool, entry)
  return entry
}

/** A tool's entry in the catalogue as JSON. A build keeps it separately from the tool's code, which is loaded later. */
export interface ToolData extends ToolFacts {
  schemas: ListedSchemas
}

/**
 * Returns the data that a build keeps about a tool. Throws TypeError if the tool does not say how a caller's scopes limit
 * what it changes, or what it answers.
 */
export function dataOf(tool: AnyTool): ToolData {
  if (tool.effect !== 'read' && tool.scope === undefined)
    throw new TypeError(`${tool.name} changes something and has no \`scope\`: objects, everything or own`)
  if (tool.effect === 'read' && tool.requiresPce && tool.reads === undefined)
    throw new TypeError(`${tool.name} reads from a PCE and has no \`reads\`: shown, judged or everything`)
  return { ...factsOf(tool), schemas: schemasOf(tool) }
}

/** Returns the facts about a tool. Facts that the tool does not define are absent. */
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
 * Computes the schemas for a tool's entry in tools/list. A JSON round trip removes TypeBox's symbols once, instead of
 * for each answer.
 */
const schemasOf = ({ input, output }: Pick<AnyTool, 'input' | 'output'>): ListedSchemas =>
  JSON.parse(
    JSON.stringify({ inputSchema: portableInput(input), outputSchema: portableOutput(output) }),
  ) as ListedSchemas
