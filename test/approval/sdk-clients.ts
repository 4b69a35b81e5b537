/** Clients of both SDKs at the /mcp of a service that listens: how each leads its person to the page that decides. */
import { Client as ModernClient, StreamableHTTPClientTransport as ModernTransport } from '@modelcontextprotocol/client'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Test } from 'tap'
import type { Json } from '../contract/authenticated-service.js'

export const MODERN = '2026-07-28'
export const PINNED = { versionNegotiation: { mode: { pin: MODERN } } } as const

/** What the person does with the link, and then says in their client. */
export type Visit = (link: string) => Promise<'accept' | 'decline' | 'cancel'>

/** What a tool said, or why not. */
export const said = ({ content }: Json): Json => JSON.parse(content[0].text)

const withToken = (token: string) => ({ requestInit: { headers: { authorization: `Bearer ${token}` } } })

/** Of 2026-07-28: the server asks for the visit in the middle of the call, and the client goes on with the call. */
export async function connectModern(t: Test, origin: string, token: string, visit: Visit) {
  const client = new ModernClient(
    { name: 'v2', version: '1' },
    { ...PINNED, capabilities: { elicitation: { url: {} } } },
  )
  client.setRequestHandler('elicitation/create', async ({ params }) => ({ action: await visit((params as Json).url) }))
  await client.connect(new ModernTransport(new URL(`${origin}/mcp`), withToken(token)))
  t.teardown(() => client.close())
  return { callTool: (call: Call): Promise<Json> => client.callTool(call) }
}

/** Of the revisions with a handshake: the refusal has the link, and the call is repeated after the visit. */
export async function connectLegacy(t: Test, origin: string, token: string, visit: Visit) {
  const client = new Client({ name: 'v1', version: '1' })
  await client.connect(new StreamableHTTPClientTransport(new URL(`${origin}/mcp`), withToken(token)))
  t.teardown(() => client.close())
  return {
    async callTool(call: Call): Promise<Json> {
      const answer = await client.callTool(call)
      const { approval_url: link } = said(answer)
      return link !== undefined && (await visit(link)) === 'accept' ? client.callTool(call) : answer
    },
  }
}

interface Call {
  name: string
  arguments: Record<string, unknown>
}
