/** The bridge `mcp-remote` as a process of its own: MCP over stdio here, OAuth and Streamable HTTP there. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { found } from './within.js'

const BRIDGE = fileURLToPath(new URL('../../clients/node_modules/mcp-remote/dist/proxy.js', import.meta.url))

interface Test {
  teardown(fn: () => unknown): void
}

export interface BridgeOptions {
  /** Where the bridge listens for the way back from the login. */
  port: number
  /** Its further arguments. */
  args?: readonly string[]
  /** Opens the login page that the bridge names, as the person at its browser. */
  logIn: (url: string) => Promise<unknown>
}

/** Where the provider sends the person back to. */
export const redirectOf = (port: number) => `http://localhost:${port}/oauth/callback`

/** Connects a client of the SDK through the bridge; a login happens where the bridge asks for one. */
export async function connectBridge(t: Test, url: string, { port, args = [], logIn }: BridgeOptions): Promise<Client> {
  const folder = mkdtempSync(join(tmpdir(), 'edge-bridge-'))
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [BRIDGE, url, String(port), '--transport', 'http-only', ...args],
    // A browser that opens nothing.
    env: { PATH: process.env.PATH!, HOME: folder, MCP_REMOTE_CONFIG_DIR: folder, BROWSER: 'true' },
    cwd: folder,
    stderr: 'pipe',
  })
  const client = new Client({ name: 'edge-suite', version: '1.0.0' })
  t.teardown(async () => {
    await client.close()
    rmSync(folder, { recursive: true, force: true })
  })
  let said = ''
  transport.stderr!.on('data', (chunk: Buffer) => (said += chunk.toString()))
  const connecting = client.connect(transport)
  const failed = connecting.then(
    () => null,
    (error: unknown) => {
      throw new Error(`the bridge does not connect (.ci/install-packages installs it): ${said}`, { cause: error })
    },
  )
  const page = await Promise.race([
    failed,
    found(() => /visiting:\s+(\S+)/.exec(said)?.[1], 'the bridge asks for a login'),
  ])
  if (page !== null) await logIn(page)
  await failed
  return client
}
