import { listTool } from '../../plugins/mcp/list-tools.js'
import { isInDefault } from '../../tools/define.js'
import { tools } from '../../tools/index.js'

export interface ListSize {
  name: string
  /** Bytes of what a model reads: name, description and input schema. */
  model: number
  /** Bytes of the whole entry of tools/list. */
  whole: number
}

/** The cost of tools/list in bytes of UTF-8 JSON, per tool, as a server has it that was told nothing. */
export function measureList(): ListSize[] {
  return tools.filter(isInDefault).map((tool) => {
    const listed = listTool(tool)
    const { name, description, inputSchema } = listed
    return { name, model: bytes({ name, description, inputSchema }), whole: bytes(listed) }
  })
}

const bytes = (value: object) => Buffer.byteLength(JSON.stringify(value))
