import { readFileSync } from 'node:fs'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { createPceSimulator } from '../../pce-simulator/index.js'
import { largeEstate, type LargeSize } from './large-estate.js'

/** A running svc-mcp process with a large estate. */
export interface ServedEstate {
  /** Calls a tool and returns its answer. Throws Error if it fails. */
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- answers are read as they come off the wire
  readonly call: (tool: string, args?: Record<string, unknown>) => Promise<any>
  /** The paths that the last call requested from the PCE, below the organisation. */
  requests(): string[]
  /** The process's peak memory so far, in MiB. */
  peak(): number
  close(): Promise<void>
}

const KIB_OF_MIB = 1024
const LONGEST_CALL_MS = 900_000

/** Starts the stdio program as clients do. */
export async function serveLargeEstate(program: string, size: LargeSize): Promise<ServedEstate> {
  const estate = largeEstate(size)
  const simulator = await createPceSimulator({ estate, totalCount: 'all', pollsUntilDone: 1, retryAfter: 0 })
  const url = new URL(await simulator.listen())
  const client = new Client({ name: 'tester', version: '9' })
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [program],
    env: {
      PATH: process.env.PATH ?? '',
      PCE_HOST: `http://${url.hostname}`,
      PCE_PORT: url.port,
      API_KEY: simulator.credentials.key,
      API_SECRET: simulator.credentials.secret,
    },
    stderr: 'ignore',
  })
  await client.connect(transport)
  return {
    async call(tool, args = {}) {
      simulator.clearRequests()
      const result = await client.callTool({ name: tool, arguments: args }, undefined, { timeout: LONGEST_CALL_MS })
      const text = (result.content as { text: string }[])[0]!.text
      if (result.isError === true) throw new Error(`${tool} ${JSON.stringify(args)} failed: ${text}`)
      return JSON.parse(text) as unknown
    },
    requests: () => simulator.requests.map(({ path }) => path.replace('/api/v2/orgs/1/', '')),
    peak() {
      const [, kib] = /^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${transport.pid}/status`, 'utf8')) ?? []
      return Number(kib) / KIB_OF_MIB
    },
    async close() {
      await client.close()
      await simulator.close()
    },
  }
}
