/** The MCP client of Strands Agents. It reads resources only through the SDK's client that it holds. */
import { McpClient } from '@strands-agents/sdk'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { answerOf } from './use-client.mjs'

export async function connect({ url, headers, ...command }) {
  const client = new McpClient(
    url === undefined ? { transport: new StdioClientTransport({ ...command, stderr: 'ignore' }) } : { url, headers },
  )
  const tools = await client.listTools()
  return {
    listTools: () => tools.map(({ name }) => name),
    call: async (name, args) =>
      answerOf(
        await client.callTool(
          tools.find((tool) => tool.name === name),
          args,
        ),
      ),
    close: () => client.disconnect(),
  }
}
