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

/**
 * The facts about a tool that are needed before its arguments are known: for lists of tools, and for checks of whether
 * the caller may use it.
 */
export type ToolFacts = Pick<
  AnyTool,
  'name' | 'title' | 'summary' | 'effect' | 'toolset' | 'idempotent' | 'roles' | 'requiresPce' | 'requiresConfirm'
>

/**
 * A tool as it is known before its first call. Its code and schemas are loaded only when it is called, because a client
 * waits for the start of a server of which it will need few tools.
 */
export interface ListedTool extends ToolFacts {
  /** Returns the schemas as tools/list shows them. Every call returns the same objects. */
  readonly schemas: () => ListedSchemas
  /**
   * Loads the tool. Every call resolves with the same tool, whose facts equal those of this entry. Rejects if the code
   * cannot be read.
   */
  readonly load: () => Promise<AnyTool>
}

/**
 * Returns a changed entry of a tool: its facts are replaced, both before and after loading, and `change` is applied to
 * the loaded tool.
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
        // The promise is dropped so that the next call tries again, because the file may be readable by then.
        loading = undefined
        throw error
      })),
  }
}
