import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { satisfies } from 'semver'

/** A client that other people wrote, as scripts/clients.ts runs it. */
export interface TriedClient {
  /** The file in test/clients/programs/ that uses the client, without `.mjs`. */
  program: string
  title: string
  /** The packages of the client that are named in the table. The first one says which Node.js it needs. */
  packages: readonly [string, ...string[]]
  /** The only transport of a client that has no other. */
  only?: 'http'
  /**
   * The words with which the client itself refuses arguments that do not match the schema of the tool. Absent if the
   * client passes them on.
   */
  ownWords?: string
}

/** The clients in the order of the table. */
export const CLIENTS: readonly TriedClient[] = [
  { program: 'sdk', title: 'MCP SDK, version 1', packages: ['@modelcontextprotocol/sdk'] },
  { program: 'sdk-2', title: 'MCP SDK, version 2', packages: ['@modelcontextprotocol/client'] },
  {
    program: 'langchain',
    title: 'LangChain',
    packages: ['@langchain/mcp-adapters', '@langchain/core'],
    ownWords: 'Received tool input did not match expected schema',
  },
  { program: 'openai-agents', title: 'OpenAI Agents SDK', packages: ['@openai/agents'] },
  { program: 'ai-sdk', title: 'AI SDK', packages: ['@ai-sdk/mcp'] },
  { program: 'llamaindex', title: 'LlamaIndex', packages: ['@llamaindex/tools'] },
  { program: 'strands', title: 'Strands Agents', packages: ['@strands-agents/sdk'] },
  { program: 'inspector', title: 'MCP Inspector, command line', packages: ['@modelcontextprotocol/inspector'] },
  { program: 'mcp-remote', title: 'mcp-remote, a bridge from stdio to HTTP', packages: ['mcp-remote'], only: 'http' },
]

/** The folder that contains the clients and their packages. */
export const FOLDER = fileURLToPath(new URL('../../test/clients/', import.meta.url))

interface Package {
  version: string
  engines?: { node?: string }
}

/** Returns the versions of the packages of a client, by name, and the versions of Node.js that it needs. */
export function describePackages({ packages }: TriedClient): { versions: Record<string, string>; node: string } {
  const described = packages.map((name): [string, Package] => [
    name,
    JSON.parse(readFileSync(`${FOLDER}node_modules/${name}/package.json`, 'utf8')) as Package,
  ])
  return {
    versions: Object.fromEntries(described.map(([name, { version }]) => [name, version])),
    node: described[0]![1].engines?.node ?? 'not said',
  }
}

/** Returns whether a client runs on the Node.js of this process. */
export const runsHere = ({ node }: { node: string }): boolean => node === 'not said' || satisfies(process.version, node)
