/** The MCP client of LlamaIndex, which makes tools and reads no resources. */
import { mcp } from '@llamaindex/tools'
import { answerOf } from './use-client.mjs'

export async function connect({ url, headers, ...command }) {
  const client = mcp(url === undefined ? { ...command, stderr: 'ignore' } : { url, requestInit: { headers } })
  const tools = await client.tools()
  return {
    listTools: () => tools.map(({ metadata }) => metadata.name),
    call: async (name, args) => answerOf(await tools.find(({ metadata }) => metadata.name === name).call(args)),
    close: () => client.cleanup(),
  }
}
