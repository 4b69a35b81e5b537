import type { AnyTool } from './define.js'

/** A JSON Schema of an object, as tools/list shows it. */
interface ListedSchema {
  [keyword: string]: unknown
  type: 'object'
}

/** The schemas of a tool as tools/list shows them. */
export interface ListedSchemas {
  inputSchema: ListedSchema
  outputSchema: ListedSchema
}

/** The facts about a tool on which lists, offers and the gates before the arguments depend. */
export type ToolFacts = Pick<
  AnyTool,
  'name' | 'title' | 'summary' | 'effect' | 'toolset' | 'idempotent' | 'roles' | 'requiresPce' | 'requiresConfirm'
>

/**
 * A tool as it is known before its first call. Its code, with its schemas, is loaded only when it is called, because a
 * client waits for the start of a server that will need few of its tools.
 */
export interface ListedTool extends ToolFacts {
  /** Returns the schemas that tools/list shows. Every call returns the same objects. */
  readonly schemas: () => ListedSchemas
  /** Loads the tool. Every call resolves with the same tool, and with the facts of this entry. Rejects if its code cannot be read. */
  readonly load: () => Promise<AnyTool>
}

/**
 * Returns the entry of a tool that differs from the given one: in its facts, before and after the tool is loaded, and
 * in what `change` makes of the loaded tool.
 */
export function changeTool(
  tool: ListedTool,
  facts: Partial<ToolFacts>,
  change: (loaded: AnyTool) => AnyTool = (loaded) => loaded,
): ListedTool {
  let loading: Promise<AnyTool> | undefined
  const load = async () => change({ ...(await tool.load()), ...facts })
  return {
    ...tool,
    ...facts,
    load: () =>
      (loading ??= load().catch((error: unknown) => {
        // The next call tries again, because a file that cannot be read now may be readable later.
        loading = undefined
        throw error
      })),
  }
}
