import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { getMcpConfigForManifest, unpackExtension, type McpbManifestAny } from '@anthropic-ai/mcpb'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'

/** The address and the key of a PCE that responds. */
export interface KnownPce {
  url: string
  key: string
  secret: string
}

type Answers = Record<string, string | number | boolean>

/**
 * Unpacks the bundle and starts it as Claude Desktop would, with two versions of the form. In one, only the required
 * fields are filled in, and the placeholders of blank fields are passed on unchanged. In the other, all fields are
 * filled in, and only read-only tools are offered. Throws Error if the bundle does not work.
 */
export async function tryBundle(bundle: string, folder: string, { url, key, secret }: KnownPce): Promise<void> {
  if (!(await unpackExtension({ mcpbPath: bundle, outputDir: folder, silent: true })))
    throw new Error('cannot be unpacked')
  const manifest = JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8')) as McpbManifestAny
  const key_ = { api_key: key, api_secret: secret }
  const blank = Object.fromEntries(
    Object.entries(manifest.user_config ?? {})
      .filter(([, { required }]) => required !== true)
      .map(([name]) => [name, `\${user_config.${name}}`]),
  )
  const everything = await serve(manifest, folder, { ...blank, ...key_, pce_host: url })
  if (!everything.includes('provision-policy')) throw new Error(`offers ${everything.join(', ')}`)
  const { origin, port } = new URL(url)
  const reading = await serve(manifest, folder, {
    ...{ ...key_, pce_host: origin.replace(`:${port}`, ''), pce_port: Number(port), pce_org_id: 1 },
    ...{ read_only: true, toolsets: 'default,explain', ca_file: '' },
  })
  if (reading.includes('provision-policy') || !reading.includes('explain-flow'))
    throw new Error(`with read_only it offers ${reading.join(', ')}`)
}

/**
 * Starts the server with these answers to the form, calls a tool that queries the PCE and a tool that runs in a worker
 * thread, and returns the offered tools.
 */
async function serve(manifest: McpbManifestAny, extensionPath: string, userConfig: Answers): Promise<string[]> {
  const config = await getMcpConfigForManifest({
    ...{ manifest, extensionPath, userConfig },
    systemDirs: {},
    pathSeparator: '/',
  })
  if (config?.command !== 'node') throw new Error(`starts ${config?.command}`)
  const client = new Client({ name: 'smoke', version: '1' })
  try {
    await client.connect(
      new StdioClientTransport({
        command: process.execPath,
        args: config.args ?? [],
        env: config.env ?? {},
        cwd: '/',
        stderr: 'ignore',
      }),
    )
    const { tools } = await client.listTools()
    const calls: [string, Record<string, unknown>][] = [
      ['check-pce-connection', {}],
      ['get-traffic-flows-summary', { start_date: '2026-01-01', end_date: '2026-01-02' }],
    ]
    for (const [name, args] of calls) {
      const { isError, content } = await client.callTool({ name, arguments: args })
      if (isError === true) throw new Error(`${name}: ${JSON.stringify(content)}`)
    }
    return tools.map(({ name }) => name)
  } finally {
    await client.close()
  }
}
