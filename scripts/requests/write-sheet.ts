import { INSTRUCTIONS } from '../../plugins/mcp/instructions.js'
import { listTool } from '../../plugins/mcp/list-tools.js'
import { catalogueOf } from '../../tools/catalogue/catalogue-of.js'
import type { AnyTool } from '../../tools/define.js'
import type { Request } from './judge-answers.js'

/**
 * Writes the sheet that a model is given: the instructions, what a model reads of each tool in tools/list, and the
 * requests without the calls that they lead to.
 */
export function writeSheet(requests: readonly Request[], tools: readonly AnyTool[]): string {
  const entries = catalogueOf(tools).map((tool) => {
    const { name, description, inputSchema } = listTool(tool)
    return JSON.stringify({ name, description, inputSchema })
  })
  return [
    'You are connected to an MCP server. An operator asks you one thing at a time. For each numbered request answer one line of JSON, and nothing else:',
    '{"number": 1, "tool": "NAME", "arguments": {…}}',
    'It is the one call that you would make first. You cannot ask back. Today is 2026-06-15.',
    '## Instructions of the server',
    ...INSTRUCTIONS,
    '## Its tools',
    ...entries,
    '## Requests',
    ...requests.map(({ request }, at) => `${at + 1}. ${request}`),
    '',
  ].join('\n')
}
