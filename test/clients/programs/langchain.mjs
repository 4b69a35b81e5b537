/** The MCP adapters of LangChain, whose tools are invoked as an agent would invoke them. */
import { MultiServerMCPClient } from '@langchain/mcp-adapters'
import { textOf } from './use-client.mjs'

export async function connect({ url, ...rest }) {
  const server = url === undefined ? { transport: 'stdio', ...rest } : { transport: 'http', url, ...rest }
  const client = new MultiServerMCPClient({ mcpServers: { svc: server } })
  const tools = await client.getTools()
  return {
    listTools: () => tools.map(({ name }) => name),
    readResource: async (uri) => textOf(await client.readResource('svc', uri)),
    async call(name, args) {
      // A structured answer comes as one block that has it beside the text.
      const { text } = await tools.find((tool) => tool.name === name).invoke(args)
      return { isError: false, text }
    },
    close: () => client.close(),
  }
}
