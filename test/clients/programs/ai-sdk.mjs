/** The MCP client of the AI SDK, whose tools are executed as generateText would execute them. */
import { createMCPClient } from '@ai-sdk/mcp'
import { Experimental_StdioMCPTransport as StdioTransport } from '@ai-sdk/mcp/mcp-stdio'
import { answerOf, textOf } from './use-client.mjs'

export async function connect({ url, headers, ...command }) {
  const transport =
    url === undefined ? new StdioTransport({ ...command, stderr: 'ignore' }) : { type: 'http', url, headers }
  const client = await createMCPClient({ transport })
  const tools = await client.tools()
  return {
    listTools: () => Object.keys(tools),
    readResource: async (uri) => textOf((await client.readResource({ uri })).contents),
    call: async (name, args) => answerOf(await tools[name].execute(args, { toolCallId: '1', messages: [] })),
    close: () => client.close(),
  }
}
