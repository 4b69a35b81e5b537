/** The client of the MCP SDK, version 2, which asks for the newest revision of the protocol that both sides have. */
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { useClient } from './use-client.mjs'

export async function connect({ url, headers, ...command }) {
  const client = new Client({ name: 'clients', version: '1' }, { versionNegotiation: { mode: 'auto' } })
  const transport =
    url === undefined
      ? new StdioClientTransport({ ...command, stderr: 'ignore' })
      : new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } })
  await client.connect(transport)
  return useClient(client)
}
