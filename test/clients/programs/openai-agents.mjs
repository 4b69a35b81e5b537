/** The MCP servers of the OpenAI Agents SDK, as its runner calls them. */
import { MCPServerStdio, MCPServerStreamableHttp } from '@openai/agents'
import { answerOf, textOf } from './use-client.mjs'

export async function connect({ url, headers, ...command }) {
  const server =
    url === undefined ? new MCPServerStdio(command) : new MCPServerStreamableHttp({ url, requestInit: { headers } })
  await server.connect()
  return {
    listTools: async () => (await server.listTools()).map(({ name }) => name),
    readResource: async (uri) => textOf((await server.readResource(uri)).contents),
    call: async (name, args) => answerOf(await server.callToolResult(name, args)),
    close: () => server.close(),
  }
}
