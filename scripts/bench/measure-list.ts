import { listTool } from '../../plugins/mcp/list-tools.js'
import type { AnyTool } from '../../tools/define.js'

export interface ListSize {
  name: string
  toolset: string
  /** Bytes of what a model reads: name, description and input schema. */
  model: number
  /** Bytes of the whole entry of tools/list. */
  whole: number
}

/** The cost of tools/list in bytes of UTF-8 JSON, per tool, of a server that offers these. */
export function measureList(tools: readonly AnyTool[]): ListSize[] {
  return tools.map((tool) => {
    const listed = listTool(tool)
    const { name, description, inputSchema } = listed
    return { name, toolset: tool.toolset, model: bytes({ name, description, inputSchema }), whole: bytes(listed) }
  })
}

const bytes = (value: object) => Buffer.byteLength(JSON.stringify(value))
