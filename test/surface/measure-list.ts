import { catalogueOf } from '../../tools/catalogue/catalogue-of.js'
import { listTool } from '../../plugins/mcp/list-tools.js'
import type { AnyTool } from '../../tools/define.js'

export interface ListSize {
  name: string
  toolset: string
  /** The bytes that a model reads: name, description and input schema. */
  model: number
  /** The bytes of the whole entry in tools/list. */
  whole: number
}

/** Measures each tool's entry in tools/list, in bytes of UTF-8 JSON. */
export function measureList(tools: readonly AnyTool[]): ListSize[] {
  return catalogueOf(tools).map((tool) => {
    const listed = listTool(tool)
    const { name, description, inputSchema } = listed
    return { name, toolset: tool.toolset, model: bytes({ name, description, inputSchema }), whole: bytes(listed) }
  })
}

const bytes = (value: object) => Buffer.byteLength(JSON.stringify(value))
