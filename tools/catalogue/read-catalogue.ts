import type { AnyTool } from '../define.js'
import type { ListedTool } from '../listed-tool.js'
import type { ToolData } from './catalogue-of.js'

/** Loads the tools of one area, by name. */
type LoadArea = () => Promise<{ tools: Readonly<Record<string, AnyTool>> }>

/** Returns the entries of tools whose code is loaded at their first call. */
export const readCatalogue = (
  data: readonly ToolData[],
  loaders: Readonly<Record<string, LoadArea>>,
): readonly ListedTool[] =>
  data.map(({ schemas, ...facts }) => ({
    ...facts,
    schemas: () => schemas,
    load: async () => (await loaders[facts.name]!()).tools[facts.name]!,
  }))
