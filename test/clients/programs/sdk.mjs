/** The client of the MCP SDK, version 1. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { useClient } from './use-client.mjs'

export async function connect({ url, headers, ...command }) {
  const client = new Client({ name: 'clients', version: '1' })
  const transport =
    url === undefined
      ? new StdioClientTransport({ ...command, stderr: 'ignore' })
      : new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } })
  await client.connect(transport)
  return useClient(client)
}
